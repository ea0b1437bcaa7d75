"""A disk's arm and its cache: how long a command takes where the heads happen to be.

What a disk reads ahead makes a sequential stream go on at the rate of the medium: after each
read the heads go on reading while nothing else is to be done.  For a read that goes on where
an earlier one ended, they do so before they leave for another command, so that several streams
cost one positioning for every `read_ahead_kib`, and not for every command.
"""

from __future__ import annotations

from dataclasses import dataclass

from leadline.virtual.positioning import Geometry
from leadline.virtual.profile import SECTOR_BYTES
from leadline.virtual.rotation import Rotation
from leadline.virtual.scheduling import Command


@dataclass(slots=True, eq=False)
class _Segment:
    """A stretch of sectors in the cache, or on its way there.

    `mark_lba` passes under the heads at `mark_ns`, and what follows it up to `end` after it; what
    is before it has been read.
    """

    begin: int
    mark_lba: int
    mark_ns: int
    end: int

    def reaches(self, lba: int) -> bool:
        """Whether a read from here goes on where it has read, or within that."""
        return self.begin <= lba <= self.end


class Disk:
    """One arm with its heads, and the segments of the cache.  Times as in `scheduling`."""

    def __init__(self, rotation: Rotation, capacity_bytes: int, *, write_cache: bool) -> None:
        self._geometry = Geometry.of(rotation, capacity_bytes)
        self._sectors = capacity_bytes // SECTOR_BYTES
        self._ahead = rotation.read_ahead_kib * 1024 // SECTOR_BYTES
        self._most_segments = rotation.segments
        self._write_cache = write_cache
        self._segments: list[_Segment] = []  # the one that was used last is last
        self._reading: _Segment | None = None
        self._ended_at = 0
        self._wrote = False
        self._free_ns = 0

    @property
    def free_ns(self) -> int:
        """When the arm may leave for another command."""
        return self._free_ns

    idle_ns = free_ns

    def at_hand_ns(self, command: Command, now_ns: int, *, reads_on: bool) -> int | None:
        """When the last sector of a read is in the cache; None when the arm has to be sent.

        With `reads_on` the heads may read on for it, if they are there.
        """
        segment = self._holding(command, reads_on=reads_on)
        if segment is None:
            return None
        self._segments.remove(segment)
        self._segments.append(segment)
        end = command.lba + command.sectors
        if segment is self._reading:
            if reads_on:
                self._read_on(segment, end, now_ns)
            read_ns = segment.mark_ns + self._geometry.transfer_ns(segment.mark_lba, end)
            self.occupy_until(read_ns)
            return max(now_ns, read_ns)
        return now_ns

    def positioning_ns(self, command: Command, at_ns: int) -> int:
        """Seek and rotation until its first sector, by way of the command's own work."""
        if self._holding(command, reads_on=True) or self._goes_on_writing(command):
            return 0
        at_ns += command.work_ns
        return self._geometry.positioning_ns(self._where(at_ns), command.lba, at_ns)

    def begin(self, command: Command, at_ns: int) -> tuple[int, int]:
        """Seek, turn, transfer; for a stream the arm stays until its segment is full."""
        ready_ns = at_ns + command.work_ns
        in_cache_ns = self.at_hand_ns(command, ready_ns, reads_on=True)
        if in_cache_ns is not None:
            return in_cache_ns - at_ns, 0
        end = command.lba + command.sectors
        start_ns = ready_ns
        if not self._goes_on_writing(command):
            start_ns += self._geometry.positioning_ns(self._where(ready_ns), command.lba, ready_ns)
        self._leave(ready_ns)
        done_ns = start_ns + self._geometry.transfer_ns(command.lba, end)
        self._ended_at, self._wrote = end, command.op == "write"
        busy_ns = done_ns
        if command.op == "read" and command.reads_ahead and self._ahead:
            busy_ns += self._follow(command, start_ns)
        return done_ns - at_ns, busy_ns - at_ns

    def occupy_until(self, end_ns: int) -> None:
        """The arm's next command begins then."""
        self._free_ns = max(self._free_ns, end_ns)

    def _holding(self, command: Command, *, reads_on: bool) -> _Segment | None:
        """The segment that has all of a read, or will have."""
        if command.op != "read" or not command.reads_ahead:
            return None
        end = command.lba + command.sectors
        for segment in self._segments:
            goes_on = reads_on and segment is self._reading
            if segment.reaches(command.lba) and (goes_on or end <= segment.end):
                return segment
        return None

    def _goes_on_writing(self, command: Command) -> bool:
        """Whether the cache has joined a write to the one before, for lack of which every
        write of a stream would wait for a revolution.
        """
        joined = self._wrote and self._ended_at == command.lba
        return self._write_cache and command.op == "write" and joined

    def _follow(self, command: Command, start_ns: int) -> int:
        """Read ahead of this command; how long the arm is to stay for that."""
        end = command.lba + command.sectors
        known = next((each for each in self._segments if each.reaches(command.lba)), None)
        ahead = min(end + self._ahead, self._sectors)
        segment = _Segment(command.lba, command.lba, start_ns, ahead)
        if known is not None:
            self._segments.remove(known)
        self._segments = [*self._segments, segment][-self._most_segments :]
        self._reading = segment
        return 0 if known is None else self._geometry.transfer_ns(end, ahead)

    def _read_on(self, segment: _Segment, consumed: int, now_ns: int) -> None:
        """The segment's end moves on with the stream.

        Heads that had stopped there wait until it passes again, which costs a revolution: so they
        do only when half of what was read ahead is used up.
        """
        end = min(consumed + self._ahead, self._sectors)
        if end <= segment.end:
            return
        stopped_ns = segment.mark_ns + self._geometry.transfer_ns(segment.mark_lba, segment.end)
        if stopped_ns < now_ns:
            if segment.end - consumed > self._ahead // 2:
                return
            segment.mark_lba = segment.end
            segment.mark_ns = now_ns + self._geometry.rotation_ns(segment.end, now_ns)
        segment.end = end
        segment.begin = max(segment.begin, end - 2 * self._ahead)

    def _where(self, at_ns: int) -> int:
        """The sector over which the heads are, as far as tracks go."""
        if self._reading is None:
            return self._ended_at
        return self._read_until(self._reading, at_ns)

    def _leave(self, at_ns: int) -> None:
        """The heads read no further."""
        if self._reading is not None:
            self._reading.end = self._read_until(self._reading, at_ns)
            self._reading = None

    def _read_until(self, segment: _Segment, at_ns: int) -> int:
        passed = self._geometry.passed(segment.mark_lba, at_ns - segment.mark_ns)
        return min(segment.end, passed)
