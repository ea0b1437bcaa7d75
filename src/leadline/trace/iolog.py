"""fio's iolog, version 3: traces as text.

fio's HOWTO, "Trace file format v3" (fio 3.31 and later): a first line
`fio version 3 iolog`, then `TIME NAME add|open|close` and
`TIME NAME read|write|trim|sync|datasync OFFSET LENGTH`, times in microseconds
(`log_io_u` in fio's iolog.c, tag fio-3.31).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedIOBase

import numpy as np
from numpy.typing import NDArray

from leadline.drive.text import plain
from leadline.errors import Misuse
from leadline.trace.trace import KINDS, SYNC, Trace, trace_of

FIRST_LINE = b"fio version 3 iolog\n"
NAME = "/proc/redirect-me"
"""The file that a trace names.  Nothing can make a file there: a replay that forgets
`replay_redirect` fails to open it, where it would else write to the drive that was recorded."""

_REQUESTS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 1 << 22
_LONGEST_LINE = 4096  # fio reads lines of at most so many bytes
_NUMBER_OF = {word.encode(): number for number, word in enumerate(KINDS)} | {b"datasync": SYNC}
_OF_FILES = (b"add", b"open", b"close")
_FIELDS = 5


@dataclass(frozen=True)
class Piece:
    """Some requests of a trace, and the number of the line on which each stands."""

    trace: Trace
    lines: NDArray[np.int64]


def write_iolog(
    out: BufferedIOBase, trace: Trace, *, opened_us: int = 0, closed: bool = True
) -> None:
    """Write a trace as an iolog.

    `opened_us` is when it says that the file was opened, `closed` whether it says that it was
    closed in the end.
    """
    out.write(FIRST_LINE)
    out.write(f"{opened_us} {NAME} add\n{opened_us} {NAME} open\n".encode())
    line = f"%d {NAME} %s %d %d\n"
    words = np.array(KINDS, object)
    for begin in range(0, len(trace), _REQUESTS_AT_ONCE):
        part = trace.take(slice(begin, begin + _REQUESTS_AT_ONCE))
        columns = (part.time_us, words[part.kind], part.offset, part.length)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        out.write("".join(map(line.__mod__, rows)).encode())
    if closed:
        last = int(trace.time_us[-1]) if len(trace) else opened_us
        out.write(f"{last} {NAME} close\n".encode())


def read_iolog(text: BufferedIOBase, name: str) -> Iterator[Piece]:
    """The requests of an iolog, some at a time; `name` is the file's, for messages.

    Raises Misuse on a line that fio would not understand, on a trace of another version or
    of more than one file; EOFError and OSError as `text` does.
    """
    first = text.read(len(FIRST_LINE))
    if first != FIRST_LINE:
        found = plain(first.split(b"\n")[0].decode("ascii", "replace"))
        raise Misuse(
            f"{name}:1: found {found!r}, expected {FIRST_LINE.decode().strip()!r}: this is no "
            "iolog of fio 3.31 or later; record it again (leadline trace record)"
        )
    number, files = 2, set[bytes]()
    for block in _blocks(text):
        piece = _quickly(block, number, files) or _by_line(block, number, files, name)
        number += block.count(b"\n")
        if len(piece.trace):
            yield piece


def _blocks(text: BufferedIOBase) -> Iterator[bytes]:
    """The rest of a file in blocks that end where a line does; the last one perhaps not."""
    rest = b""
    while got := text.read(_BYTES_AT_ONCE):
        whole, newline, rest_of = (rest + got).rpartition(b"\n")
        rest = rest_of
        if newline:
            yield whole + newline
        if len(rest) > _LONGEST_LINE:
            break
    if rest:
        yield rest


def _quickly(block: bytes, number: int, files: set[bytes]) -> Piece | None:
    """A block that has nothing but requests of one file, which nearly all have; else None."""
    words = block.split()
    count = block.count(b"\n")
    if len(words) != _FIELDS * count:
        return None
    names = files | set(words[1::_FIELDS])
    if len(names) > 1:
        return None
    try:
        trace = _columns(*(words[place::_FIELDS] for place in (0, 2, 3, 4)))
    except (ValueError, KeyError, OverflowError):
        return None
    files |= names
    return Piece(trace, np.arange(number, number + count))


def _columns(
    times: Iterable[bytes], kinds: Iterable[bytes], offsets: Iterable[bytes], sizes: Iterable[bytes]
) -> Trace:
    return Trace(
        np.fromiter(map(int, times), np.int64),
        np.fromiter(map(_NUMBER_OF.__getitem__, kinds), np.uint8),
        np.fromiter(map(int, offsets), np.int64),
        np.fromiter(map(int, sizes), np.uint32),
    )


def _by_line(block: bytes, number: int, files: set[bytes], name: str) -> Piece:
    """The same one line after the other: to read past adding and opening, and to find a fault."""
    rows, lines = [], []
    for place, line in enumerate(block.splitlines(keepends=True), number):
        words = line.split()
        files |= set(words[1:2])
        if not line.endswith(b"\n"):
            raise _fault(name, place, line, "a whole line: the file is cut off; copy it again")
        if len(files) > 1:
            raise _fault(name, place, line, "one file in a trace; keep one drive's requests")
        if len(words) == 3 and words[0].isdigit() and words[2] in _OF_FILES:
            continue
        try:
            rows.append(_row(*words))
        except (TypeError, ValueError, KeyError):
            expected = f"TIME {NAME} {'|'.join(KINDS)} OFFSET LENGTH; record the trace again"
            raise _fault(name, place, line, expected) from None
        lines.append(place)
    return Piece(trace_of(*(zip(*rows, strict=True) if rows else ([],) * 4)), np.array(lines))


def _row(time: bytes, _: bytes, kind: bytes, offset: bytes, length: bytes) -> tuple[int, ...]:
    row = int(time), _NUMBER_OF[kind], int(offset), int(length)
    if max(map(abs, row)) >= 1 << 63 or not 0 <= row[3] < 1 << 32:
        raise ValueError("no number that fio would hold")
    return row


def _fault(name: str, number: int, line: bytes, expected: str) -> Misuse:
    found = plain(line[:80].decode("utf-8", "replace").rstrip("\n"))
    return Misuse(f"{name}:{number}: found {found!r}, expected {expected}")
