"""Where a disk's data passes under its heads, and when.

The tracks are taken as one spiral from the first sector to the last, so that a transfer goes on
at the rate of the medium across the border of two tracks, as it does on a disk with track skew.
The heads are over any sector at a known moment of each revolution.  Times are in nanoseconds,
counted from any origin, and whole: a transfer that goes on where another ended waits for nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from leadline.virtual.profile import SECTOR_BYTES
from leadline.virtual.rotation import Rotation


@dataclass(frozen=True, slots=True)
class Geometry:
    """A disk's tracks and how its arm moves."""

    revolution_ns: int
    sector_ns: float
    """How long one sector passes under the heads."""
    tracks: float
    track_to_track_ns: int
    full_stroke_ns: int

    @classmethod
    def of(cls, rotation: Rotation, capacity_bytes: int) -> Geometry:
        """The disk of such a capacity: all its tracks together are the full stroke."""
        revolution_ns = round(60e9 / rotation.rpm)
        sector_ns = SECTOR_BYTES / rotation.mb_per_s * 1e3
        sectors = capacity_bytes // SECTOR_BYTES
        return cls(
            revolution_ns=revolution_ns,
            sector_ns=sector_ns,
            tracks=sectors * sector_ns / revolution_ns,
            track_to_track_ns=round(rotation.track_to_track_ms * 1e6),
            full_stroke_ns=round(rotation.full_stroke_ms * 1e6),
        )

    def seek_ns(self, from_lba: int, to_lba: int) -> int:
        """How long the arm takes: none within a track, then as the root of the way to go.

        The root is the part of a seek in which the arm speeds up and slows down again, which on
        today's disks is nearly all of it (Ruemmler and Wilkes, An Introduction to Disk Drive
        Modeling, 1994).
        """
        crossed = abs(to_lba - from_lba) * self.sector_ns / self.revolution_ns
        if crossed < 1.0:
            return 0
        share = math.sqrt(min(1.0, (crossed - 1.0) / max(1.0, self.tracks - 1.0)))
        span_ns = self.full_stroke_ns - self.track_to_track_ns
        return self.track_to_track_ns + round(span_ns * share)

    def rotation_ns(self, lba: int, at_ns: int) -> int:
        """From `at_ns` until this sector begins to pass, less than a revolution."""
        return (round(lba * self.sector_ns) - at_ns) % self.revolution_ns

    def positioning_ns(self, from_lba: int, to_lba: int, at_ns: int) -> int:
        """Seek and rotation, begun at `at_ns`."""
        seek_ns = self.seek_ns(from_lba, to_lba)
        return seek_ns + self.rotation_ns(to_lba, at_ns + seek_ns)

    def transfer_ns(self, from_lba: int, to_lba: int) -> int:
        """How long the sectors from `from_lba` up to but not with `to_lba` take to pass."""
        return round(to_lba * self.sector_ns) - round(from_lba * self.sector_ns)

    def passed(self, from_lba: int, took_ns: int) -> int:
        """The sector that is being read so long after `from_lba` began to pass."""
        return from_lba + max(0, int(took_ns / self.sector_ns))
