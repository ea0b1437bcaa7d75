"""What a virtual drive is like: its identity, its speed, and what is wrong with it.

A profile is one YAML file, and stands for one firmware revision: flashing a virtual drive is
giving it another profile, which it takes up at its next power-on.  Every fault follows from the
profile's seed and the order and time in which requests arrive, so that a run can be repeated.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from leadline.inventory.document import read
from leadline.inventory.fields import Entry, Text, Unfit, Wwn
from leadline.inventory.shape import require
from leadline.virtual.behaviour import GarbageCollection, WarmUp
from leadline.virtual.faults import Faults
from leadline.virtual.quantities import (
    CAPACITY,
    FIRMWARE,
    MODEL,
    READ_MS,
    READY_S,
    SERIAL,
    WRITE_MS,
    Capacity,
    Firmware,
    MegabytesPerSecond,
    Milliseconds,
    Model,
    Seconds,
    Serial,
)
from leadline.virtual.rotation import Rotation

SECTOR_BYTES = 512


class Profile(Entry):
    """One virtual drive at one firmware revision.

    An ATA drive has a `model`, a SCSI drive a `vendor` and a `product`.
    """

    model: Model | None = Field(default=None, description=MODEL)
    vendor: Annotated[Text, Field(max_length=8)] | None = Field(  # SPC-4 INQUIRY bytes 8-15
        default=None, description="a SCSI vendor of at most 8 characters"
    )
    product: Annotated[Text, Field(max_length=16)] | None = Field(  # SPC-4 INQUIRY bytes 16-31
        default=None, description="a SCSI product of at most 16 characters"
    )
    serial: Serial = Field(description=SERIAL)
    firmware: Firmware = Field(description=FIRMWARE)
    wwn: Wwn | None = Field(default=None, description="a world wide name, as in 0x5000c5000000a001")
    capacity_bytes: Capacity = Field(description=CAPACITY)

    channels: int = Field(
        ge=1, le=64, description="how many requests the drive works on at once, 1 to 64"
    )
    read_ms: Milliseconds = Field(description=READ_MS)
    write_ms: Milliseconds = Field(description=WRITE_MS)
    read_ms_per_mib: Milliseconds = Field(
        default=0.0, description="milliseconds more in a channel for each MiB of a read"
    )
    write_ms_per_mib: Milliseconds = Field(
        default=0.0, description="milliseconds more in a channel for each MiB of a write"
    )
    overhead_ms: Milliseconds = Field(
        default=0.0,
        description="milliseconds that a request spends outside the channels, beside others",
    )
    queueing_ms: Milliseconds = Field(
        default=0.0,
        description="milliseconds more in a channel while the host has more than one in flight",
    )
    link_mb_per_s: MegabytesPerSecond | None = Field(
        default=None, description="megabytes a second over the link that all requests share"
    )
    flush_ms: Milliseconds = Field(default=2.0, description="milliseconds that a flush takes")
    jitter: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="the service time's standard deviation as a share of it, 0 to 1",
    )
    distribution: Literal["normal", "lognormal", "exponential"] = Field(
        default="normal", description="normal, lognormal or exponential"
    )
    rotation: Rotation | None = Field(
        default=None, description="a mapping of rpm, mb_per_s and more, for a disk"
    )
    warm_up: WarmUp | None = Field(default=None, description="{seconds, factor}")
    garbage_collection: GarbageCollection | None = Field(
        default=None, description="{every_mib, seconds, write_factor, read_factor}"
    )
    ready_s: Seconds = Field(default=0.0, description=READY_S)
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
    if drive.rotation is not None and drive.channels != 1:
        raise Unfit(
            f"rotation and {drive.channels} channels", "channels: 1, for a disk has one arm"
        )
    if drive.rotation is not None and drive.rotation.write_behind and not drive.write_cache:
        raise Unfit("write_behind without a write cache", "write_cache: true, or write_behind: 0")
    if drive.faults.partial_flush is not None and not drive.write_cache:
        raise Unfit("a partial_flush without a write cache", "write_cache: true")
    worst = max(drive.faults.bad_lbas, default=0)
    if worst * SECTOR_BYTES >= drive.capacity_bytes:
        raise Unfit(f"the bad sector {worst}", "one below the capacity")
    end = drive.faults.end_of_range
    if end is not None and end.sectors * SECTOR_BYTES > drive.capacity_bytes:
        raise Unfit(f"an end_of_range of {end.sectors} sectors", "no more than the drive has")


def load_profile(path: Path) -> Profile:
    """Read a profile file.  Raises Misuse with file, line, field, and what was expected."""
    return require(read(path), Profile)


def digest(path: Path) -> str:
    """What tells a profile from another of the same revision: the SHA-256 of its file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
