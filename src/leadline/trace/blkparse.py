"""blkparse's text, its default format, as a trace: what the drive was sent.

    blkparse(1), "Output description and formatting"; `process_default` in blkparse_fmt.c
    (blktrace 1.2.0): MAJOR,MINOR CPU SEQUENCE SECONDS.NANOSECONDS PID ACTION RWBS ...

Taken are issues to the driver (action D), not what programs queued: a drive is sent what the
block layer made of that by merging and splitting, and a replay merges nothing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from leadline.drive.text import plain
from leadline.errors import Misuse
from leadline.trace.header import MOST_IN_FLIGHT
from leadline.trace.trace import READ, SYNC, TRIM, WRITE, Trace, trace_of

SECTOR = 512  # of the block layer, whatever the drive's
_EVENT = re.compile(
    rb" *(\d+,\d+) +\d+ +\d+ +(\d+)\.(\d{9}) +\d+ +([A-Z]{1,2}|m) +([A-Z]+) (?:(\d+) \+ (\d+))?"
)
_SUMMARY = (b"CPU", b"Total ", b"Throughput", b"Events ")
_BESIDE = (b"Input file ", b"\n")  # blkparse says so on stdout, also when it is quiet
_LONGEST_TIME = 10  # digits of its seconds
_LONGEST_SECTOR = 16  # digits: in bytes, 64 bits hold no more
_ISSUE, _COMPLETE, _REQUEUE = b"D", b"C", b"R"
_TAKEN = (_ISSUE, _COMPLETE, _REQUEUE)


@dataclass(frozen=True)
class Recorded:
    """A trace, and how many of its requests were in flight at most."""

    trace: Trace
    in_flight: int


@dataclass
class _Requests:
    """The requests so far, as they were issued; `open` has the places of those in flight."""

    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    requeued: set[int] = field(default_factory=set)
    open: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    in_flight: int = 0
    most: int = 0

    def issued(self, row: tuple[int, int, int, int]) -> None:
        self.open.setdefault(row[2:], []).append(len(self.rows))
        self.rows.append(row)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)

    def ended(self, where: tuple[int, int], *, requeued: bool) -> None:
        places = self.open.get(where)
        if not places:
            return  # it was issued before the recording began
        place = places.pop(0)
        self.in_flight -= 1
        if requeued:
            self.requeued.add(place)  # it will be issued again


def read_blkparse(lines: Iterable[bytes], name: str) -> Recorded:
    """The trace in blkparse's text; `name` is the file's, for messages.

    Requests that are neither read, write, discard nor flush (SMART, IDENTIFY) are left out.
    Raises Misuse for a line that is none of blkparse's, for events of several devices, and
    where nothing was issued.
    """
    found = _Requests()
    device = None
    for number, line in enumerate(lines, 1):
        if line.startswith(_SUMMARY):
            break
        if line.startswith(_BESIDE):
            continue
        match = _event(line, f"{name}:{number}")
        row = _row(match) if match[4] in _TAKEN else None
        if row is None:
            continue
        if device not in (None, match[1]):
            raise Misuse(
                f"{name}:{number}: found an event of device {match[1].decode()}, expected only "
                f"those of {device and device.decode()}; trace one disk, and not its partitions"
            )
        device = match[1]
        if match[4] == _ISSUE:
            found.issued(row)
        else:
            found.ended(row[2:], requeued=match[4] == _REQUEUE)
    rows = [row for place, row in enumerate(found.rows) if place not in found.requeued]
    if not rows:
        raise Misuse(
            f"{name}: no request was issued to a driver in it (action D); record while the "
            "drive is used"
        )
    trace = trace_of(*zip(*rows, strict=True)).by_time()
    return Recorded(trace, min(found.most, MOST_IN_FLIGHT))


def _event(line: bytes, where: str) -> "re.Match[bytes]":
    """The fields of an event; Misuse for a line that is none."""
    match = _EVENT.match(line)
    if match is None or len(match[2]) > _LONGEST_TIME or _is_beyond_all(match):
        said = plain(line[:80].decode("utf-8", "replace").rstrip("\n"))
        raise Misuse(
            f"{where}: found {said!r}, expected an event of blkparse in its default format; give "
            "what `blkparse -i FILE` prints, without -f"
        )
    return match


def _is_beyond_all(match: "re.Match[bytes]") -> bool:
    """Whether no drive is so large, or no request: blktrace has their bytes in 32 bits."""
    if match[6] is None:
        return False
    digits = max(len(match[6]), len(match[7]))
    return digits > _LONGEST_SECTOR or int(match[7]) * SECTOR >= 1 << 32


def _row(match: "re.Match[bytes]") -> tuple[int, int, int, int] | None:
    """Time in microseconds, kind, offset and length in bytes; None for other commands."""
    time_us = int(match[2]) * 1_000_000 + int(match[3]) // 1000
    flags = match[5]
    if match[6] is None:
        return (time_us, SYNC, 0, 0) if b"F" in flags else None  # a flush has no sectors
    offset, length = int(match[6]) * SECTOR, int(match[7]) * SECTOR
    if b"D" in flags:
        return time_us, TRIM, offset, length
    if b"W" in flags:
        return time_us, WRITE, offset, length
    return (time_us, READ, offset, length) if b"R" in flags else None
