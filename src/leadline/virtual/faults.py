"""What can be wrong with a virtual drive."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from leadline.inventory.fields import Entry, Unfit
from leadline.virtual.quantities import (
    CAPACITY,
    FACTOR,
    FIRMWARE,
    MODEL,
    ONE_IN,
    READ_MS,
    READY_S,
    SERIAL,
    WRITE_MS,
    Capacity,
    Factor,
    Firmware,
    Milliseconds,
    Model,
    OneIn,
    Seconds,
    Serial,
)


class DepthFault(Entry):
    """Service is slow at one depth (a dip), or at every depth beyond one (a collapse).

    The depth is the number of requests in flight at the drive.
    """

    at: int | None = Field(default=None, ge=1, le=64, description="a depth, 1 to 64")
    beyond: int | None = Field(
        default=None, ge=0, le=64, description="the last depth that is not slow, 0 to 64"
    )
    factor: Factor = Field(description=FACTOR)

    def covers(self, depth: int) -> bool:
        """Whether so many requests in flight are slowed."""
        return depth == self.at if self.beyond is None else depth > self.beyond

    @model_validator(mode="after")
    def _says_which_depths(self) -> Self:
        if (self.at is None) == (self.beyond is None):
            found = "neither" if self.at is None else "both"
            raise Unfit(f"{found} of at and beyond", "one of the two")
        return self


class Stall(Entry):
    """A time in which the drive does nothing, once or again and again."""

    after_s: Seconds = Field(description="seconds from power-on to the first stall")
    seconds: float = Field(
        gt=0, le=3600, allow_inf_nan=False, description="how many seconds nothing is served"
    )
    every_s: float | None = Field(
        default=None,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
        description="seconds from one stall's beginning to the next one's",
    )


class LongTail(Entry):
    """Now and then a request takes far longer than it should."""

    one_in: OneIn = Field(description=ONE_IN)
    times: Factor = Field(description="how many times as long that one takes, as in 50")


class SlowStart(Entry):
    """Everything is slow for a while after power-on."""

    seconds: Seconds = Field(description="seconds after power-on")
    factor: Factor = Field(description=FACTOR)


class InterferingStreams(Entry):
    """Sequential reads are slow while the host keeps more than one request in flight.

    A disk reads nothing ahead then, either.
    """

    factor: Factor = Field(description=FACTOR)


class LargeRequests(Entry):
    """Requests above a size fail, or take very long."""

    over_kib: float = Field(
        ge=0, le=1 << 20, allow_inf_nan=False, description="KiB, the largest that does not suffer"
    )
    fails: bool = Field(default=True, description="true (it is an error) or false")
    seconds: Seconds = Field(default=0.0, description="seconds that it takes longer")


class EndOfRange(Entry):
    """Requests for the last sectors hang."""

    sectors: int = Field(ge=1, description="how many sectors, from 1")
    seconds: Seconds = Field(description="seconds that such a request takes longer")


class Starvation(Entry):
    """Now and then a request waits while newer ones overtake it, if there are any."""

    one_in: OneIn = Field(description=ONE_IN)
    seconds: Seconds = Field(description="seconds after which it has its turn all the same")


class WrongData(Entry):
    """Now and then a read is answered with other sectors' data, if requests are queued."""

    one_in: OneIn = Field(description=ONE_IN)


class PartialFlush(Entry):
    """A flush leaves some of what it should write in the volatile cache, and is acknowledged."""

    one_in: OneIn = Field(description="one stretch of sectors in how many, on average")


class Change(Entry):
    """What is different once the drive has been through so many power cycles."""

    after_cycle: int = Field(ge=1, description="how many power cycles come before, from 1")
    model: Model | None = Field(default=None, description=MODEL)
    serial: Serial | None = Field(default=None, description=SERIAL)
    firmware: Firmware | None = Field(default=None, description=FIRMWARE)
    capacity_bytes: Capacity | None = Field(default=None, description=CAPACITY)
    read_ms: Milliseconds | None = Field(default=None, description=READ_MS)
    write_ms: Milliseconds | None = Field(default=None, description=WRITE_MS)
    ready_s: Seconds | None = Field(default=None, description=READY_S)


class Faults(Entry):
    """What is wrong with the drive: nothing, unless said."""

    serialise: bool = Field(
        default=False, description="true (one request at a time, whatever the channels) or false"
    )
    slow_depths: tuple[DepthFault, ...] = Field(
        default=(), description="a list of {at or beyond, factor}"
    )
    read_error_rate: float = Field(
        default=0.0, ge=0, le=1, description="the share of reads that fail, 0 to 1"
    )
    bad_lbas: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        default=(), description="a list of sectors that cannot be read (writing mends nothing)"
    )
    stalls: tuple[Stall, ...] = Field(
        default=(), description="a list of {after_s, seconds, every_s}"
    )
    long_tail: LongTail | None = Field(default=None, description="{one_in, times}")
    slow_after_power_on: SlowStart | None = Field(default=None, description="{seconds, factor}")
    interfering_streams: InterferingStreams | None = Field(default=None, description="{factor}")
    large_requests: LargeRequests | None = Field(
        default=None, description="{over_kib, fails, seconds}"
    )
    end_of_range: EndOfRange | None = Field(default=None, description="{sectors, seconds}")
    starvation: Starvation | None = Field(default=None, description="{one_in, seconds}")
    wrong_data: WrongData | None = Field(default=None, description="{one_in}")
    ignore_flush: bool = Field(
        default=False, description="true (a flush is acknowledged and not done) or false"
    )
    partial_flush: PartialFlush | None = Field(default=None, description="{one_in}")
    changes: tuple[Change, ...] = Field(
        default=(), description="a list of {after_cycle, and the fields that change}"
    )

    @model_validator(mode="after")
    def _stalls_leave_time_between(self) -> Self:
        if sum(stall.seconds / stall.every_s for stall in self.stalls if stall.every_s) >= 1:
            raise Unfit("stalls without a pause between them", "a longer every_s")
        return self
