"""What a virtual drive is like: its identity, its speed, and what is wrong with it.

A profile is one YAML file, and stands for one firmware revision: flashing a virtual drive is
giving it another profile, which it takes up at its next power-on.  Every fault follows from the
profile's seed and the order and time in which requests arrive, so that a run can be repeated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from leadline.inventory.document import read
from leadline.inventory.fields import Entry, Text, Unfit, Wwn
from leadline.inventory.shape import require

SECTOR_BYTES = 512

_Factor = Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)]
_Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
_Milliseconds = Annotated[float, Field(ge=0, le=600_000, allow_inf_nan=False)]
_Model = Annotated[Text, Field(max_length=40)]  # ATA8-ACS words 27-46
_Serial = Annotated[Text, Field(max_length=20)]  # ATA8-ACS words 10-19
_Firmware = Annotated[Text, Field(max_length=8)]  # ATA8-ACS words 23-26
_Capacity = Annotated[int, Field(ge=1 << 20, le=1 << 44, multiple_of=4096)]

_MODEL = "an ATA model number of at most 40 characters"
_SERIAL = "a serial number of at most 20 characters"
_FIRMWARE = "a firmware revision of at most 8 characters (SCSI: 4)"
_CAPACITY = "bytes, 1 MiB to 16 TiB, a multiple of 4096"
_READ_MS = "milliseconds that a read occupies a channel"
_WRITE_MS = "milliseconds that a write occupies a channel"
_READY_S = "seconds after power-on until the first request is served"
_FACTOR = "how many times as long the service takes, as in 2"


class DepthFault(Entry):
    """Service is slow at one depth (a dip), or at every depth beyond one (a collapse).

    The depth is the number of requests in flight at the drive.
    """

    at: int | None = Field(default=None, ge=1, le=64, description="a depth, 1 to 64")
    beyond: int | None = Field(
        default=None, ge=0, le=64, description="the last depth that is not slow, 0 to 64"
    )
    factor: _Factor = Field(description=_FACTOR)

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

    after_s: _Seconds = Field(description="seconds from power-on to the first stall")
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

    one_in: int = Field(ge=1, description="one request in how many, on average")
    times: _Factor = Field(description="how many times as long that one takes, as in 50")


class SlowStart(Entry):
    """Everything is slow for a while after power-on."""

    seconds: _Seconds = Field(description="seconds after power-on")
    factor: _Factor = Field(description=_FACTOR)


class Change(Entry):
    """What is different once the drive has been through so many power cycles."""

    after_cycle: int = Field(ge=1, description="how many power cycles come before, from 1")
    model: _Model | None = Field(default=None, description=_MODEL)
    serial: _Serial | None = Field(default=None, description=_SERIAL)
    firmware: _Firmware | None = Field(default=None, description=_FIRMWARE)
    capacity_bytes: _Capacity | None = Field(default=None, description=_CAPACITY)
    read_ms: _Milliseconds | None = Field(default=None, description=_READ_MS)
    write_ms: _Milliseconds | None = Field(default=None, description=_WRITE_MS)
    ready_s: _Seconds | None = Field(default=None, description=_READY_S)


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
    ignore_flush: bool = Field(
        default=False, description="true (a flush is acknowledged and not done) or false"
    )
    changes: tuple[Change, ...] = Field(
        default=(), description="a list of {after_cycle, and the fields that change}"
    )

    @model_validator(mode="after")
    def _stalls_leave_time_between(self) -> Self:
        if sum(stall.seconds / stall.every_s for stall in self.stalls if stall.every_s) >= 1:
            raise Unfit("stalls without a pause between them", "a longer every_s")
        return self


class Profile(Entry):
    """One virtual drive at one firmware revision.

    An ATA drive has a `model`, a SCSI drive a `vendor` and a `product`.
    """

    model: _Model | None = Field(default=None, description=_MODEL)
    vendor: Annotated[Text, Field(max_length=8)] | None = Field(  # SPC-4 INQUIRY bytes 8-15
        default=None, description="a SCSI vendor of at most 8 characters"
    )
    product: Annotated[Text, Field(max_length=16)] | None = Field(  # SPC-4 INQUIRY bytes 16-31
        default=None, description="a SCSI product of at most 16 characters"
    )
    serial: _Serial = Field(description=_SERIAL)
    firmware: _Firmware = Field(description=_FIRMWARE)
    wwn: Wwn | None = Field(default=None, description="a world wide name, as in 0x5000c5000000a001")
    capacity_bytes: _Capacity = Field(description=_CAPACITY)

    channels: int = Field(
        ge=1, le=64, description="how many requests the drive works on at once, 1 to 64"
    )
    read_ms: _Milliseconds = Field(description=_READ_MS)
    write_ms: _Milliseconds = Field(description=_WRITE_MS)
    overhead_ms: _Milliseconds = Field(
        default=0.0,
        description="milliseconds that a request spends outside the channels, beside others",
    )
    flush_ms: _Milliseconds = Field(default=2.0, description="milliseconds that a flush takes")
    jitter: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="the service time's standard deviation as a share of it, 0 to 1",
    )
    ready_s: _Seconds = Field(default=0.0, description=_READY_S)
    write_cache: bool = Field(
        default=True,
        description="true (writes are lost in a power cut until flushed) or false (never)",
    )
    cache_bytes: int = Field(
        default=64 << 20,
        ge=4096,
        le=1 << 30,
        description="bytes of unflushed writes that the cache holds, 4096 to 1073741824",
    )
    preconditioned: bool = Field(
        default=True,
        description="true (never-written sectors hold data) or false (they read as zeros, at once)",
    )
    seed: int = Field(default=1, description="a number; the same one gives the same faults")
    faults: Faults = Field(default=Faults(), description="a mapping of what is wrong")

    @property
    def is_scsi(self) -> bool:
        """Whether this is a SCSI drive, and not an ATA one."""
        return self.model is None

    @model_validator(mode="after")
    def _is_a_drive_throughout(self) -> Self:
        for cycle in (0, *(change.after_cycle for change in self.faults.changes)):
            _require_a_drive(self.at_cycle(cycle))
        return self

    def at_cycle(self, cycle: int) -> Profile:
        """The drive as it is after `cycle` power cycles (0: as it was first switched on)."""
        changed: dict[str, object] = {}
        for change in sorted(self.faults.changes, key=lambda each: each.after_cycle):
            if change.after_cycle <= cycle:
                changed |= change.model_dump(exclude={"after_cycle"}, exclude_none=True)
        return self.model_copy(update=changed)  # each change is validated where it is read


def _require_a_drive(drive: Profile) -> None:
    """Raise Unfit when the fields, each right by itself, make no drive together."""
    named = [key for key in ("model", "vendor", "product") if getattr(drive, key) is not None]
    if named not in (["model"], ["vendor", "product"]):
        raise Unfit(" and ".join(named) or "no name", "model (ATA) or vendor and product (SCSI)")
    if drive.is_scsi and len(drive.firmware) > 4:  # SPC-4 INQUIRY bytes 32-35
        raise Unfit(f"firmware {drive.firmware}", "a SCSI revision of at most 4 characters")
    if drive.wwn is not None and len(drive.wwn) > 18:  # ATA8-ACS words 108-111: 64 bits
        raise Unfit(f"wwn {drive.wwn}", "one of 16 digits, as in 0x5000c5000000a001")
    worst = max(drive.faults.bad_lbas, default=0)
    if worst * SECTOR_BYTES >= drive.capacity_bytes:
        raise Unfit(f"the bad sector {worst}", "one below the capacity")


def load_profile(path: Path) -> Profile:
    """Read a profile file.  Raises Misuse with file, line, field, and what was expected."""
    return require(read(path), Profile)
