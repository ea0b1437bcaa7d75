"""Is a trace fit to be replayed?  What is wrong with it, by line."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from leadline.trace.header import Header
from leadline.trace.iolog import Piece
from leadline.trace.trace import SYNC, Trace

Look = tuple[str, NDArray[np.bool_], Callable[[Trace], str], str]
"""A kind of problem: its name, which requests have it, what one has in words, the remedy."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: the first line that has it, what is there, what to do, and on
    how many lines it is found."""

    line: int
    found: str
    remedy: str
    count: int = 1

    def __str__(self) -> str:
        more = f" (and {self.count - 1} more lines)" if self.count > 1 else ""
        return f"{self.line}: {self.found}; {self.remedy}{more}"


@dataclass
class Inspector:
    """Looks at a trace piece by piece, in order; `problems` has the first of each kind."""

    header: Header
    requests: int = 0
    last_us: int = 0
    last_line: int = 1
    _seen: dict[str, Problem] = field(default_factory=dict)

    def look(self, piece: Piece) -> None:
        """Look at the next piece."""
        for name, wrong, found, remedy in self._looks(piece.trace):
            places = np.flatnonzero(wrong)
            if not len(places):
                continue
            first = int(places[0])
            said = found(piece.trace.take(slice(first, first + 1)))
            problem = self._seen.get(name) or Problem(int(piece.lines[first]), said, remedy, 0)
            self._seen[name] = replace(problem, count=problem.count + len(places))
        self.requests += len(piece.trace)
        self.last_us = int(piece.trace.time_us[-1])
        self.last_line = int(piece.lines[-1])

    def problems(self) -> tuple[Problem, ...]:
        """All that is wrong, when the last piece has been looked at."""
        found = list(self._seen.values())
        wanted = self.header.requests
        if self.requests == 0:
            found.append(Problem(self.last_line, "the trace holds no request", "record it again"))
        elif self.requests != wanted:
            said = f"{self.requests} requests, and the header says {wanted}"
            remedy = "the file is cut off, or the header is another trace's: copy both again"
            found.append(Problem(self.last_line, said, remedy))
        return tuple(sorted(found, key=lambda each: each.line))

    def _looks(self, trace: Trace) -> Iterator[Look]:
        header = self.header
        # Not by where it ends: that may be more than the column's type holds.
        last = header.capacity_bytes - trace.length.astype(np.int64)
        yield (
            "order",
            np.diff(trace.time_us, prepend=self.last_us) < 0,
            lambda one: f"a request at {one.time_us[0]} us after one that is later",
            "requests stand in the order of their times: sort the lines",
        )
        yield (
            "capacity",
            (trace.offset < 0) | (trace.offset > last),
            lambda one: (
                f"a request at offset {one.offset[0]} for {one.length[0]} bytes, and the "
                f"header's capacity is {header.capacity_bytes}"
            ),
            "correct the header's capacity_bytes if the drive was larger",
        )
        yield (
            "alignment",
            ((trace.offset % header.block_bytes) != 0) | ((trace.length % header.block_bytes) != 0),
            lambda one: (
                f"offset {one.offset[0]} and length {one.length[0]} are no multiples of "
                f"{header.block_bytes} bytes"
            ),
            "record the block device and not a file, or correct the header's block_bytes",
        )
        yield (
            "length",
            (trace.length == 0) & (trace.kind != SYNC),
            lambda one: f"a request of no bytes at offset {one.offset[0]}",
            "leave the line out",
        )
