"""What is said of a drive that turns."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from leadline.inventory.fields import Entry, Unfit
from leadline.virtual.quantities import MegabytesPerSecond, Milliseconds


class Rotation(Entry):
    """The mechanics of a disk, and in which order it serves what it holds."""

    rpm: int = Field(  # ATA8-ACS word 217: what lies below stands for other things
        ge=1025, le=65534, description="revolutions a minute, 1025 to 65534"
    )
    track_to_track_ms: Milliseconds = Field(
        default=0.8, description="milliseconds of a seek to the next track"
    )
    full_stroke_ms: Milliseconds = Field(
        default=16.0, description="milliseconds of a seek from the first track to the last"
    )
    mb_per_s: MegabytesPerSecond = Field(
        description="megabytes a second that pass under the heads, as in 150"
    )
    reorders: bool = Field(
        default=True,
        description="true (whatever is reached first is served first) or false (in their order)",
    )
    overtaken_at_most: int = Field(
        default=64,
        ge=0,
        le=1_000_000,
        description="how many later requests may be served before one that waits",
    )
    read_ahead_kib: int = Field(
        default=512,
        ge=0,
        le=65_536,
        description="KiB that are read ahead of a stream, 0 to 65536",
    )
    segments: int = Field(
        default=16, ge=1, le=1024, description="how many streams are read ahead of, 1 to 1024"
    )

    write_behind: int = Field(
        default=0,
        ge=0,
        le=256,
        description="how many writes are answered before they are written, 0 to 256",
    )

    @model_validator(mode="after")
    def _longer_seeks_take_longer(self) -> Self:
        if self.full_stroke_ms < self.track_to_track_ms:
            raise Unfit(f"full_stroke_ms {self.full_stroke_ms:g}", "no less than track_to_track_ms")
        return self
