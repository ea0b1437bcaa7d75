"""A trace: what was asked of a drive, request by request, and when."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

READ, WRITE, TRIM, SYNC = range(4)
KINDS = ("read", "write", "trim", "sync")
"""fio's words for the kinds of request, each at the place of its number."""


@dataclass(frozen=True, eq=False)
class Trace:
    """The requests of a trace in the order of their issue, a column each; all of one length.

    `time_us` (int64) is in microseconds from the trace's beginning, fio's own resolution;
    `kind` (uint8) a place in KINDS; `offset` (int64) and `length` (uint32) are in bytes.
    """

    time_us: NDArray[np.int64]
    kind: NDArray[np.uint8]
    offset: NDArray[np.int64]
    length: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.time_us)

    def take(self, which: "slice | NDArray[np.bool_] | NDArray[np.intp]") -> "Trace":
        """Some of the requests: a slice, a mask, or places in the order wanted."""
        return Trace(self.time_us[which], self.kind[which], self.offset[which], self.length[which])

    @property
    def end(self) -> NDArray[np.int64]:
        """Where each request ends, in bytes."""
        return self.offset + self.length

    @property
    def seconds(self) -> float:
        """From the trace's beginning to its last request; 0 when there is none."""
        return float(self.time_us[-1]) / 1e6 if len(self) else 0.0

    def by_time(self) -> "Trace":
        """The same requests by their times; of equal times, in the order that they have."""
        if np.all(self.time_us[:-1] <= self.time_us[1:]):
            return self
        return self.take(np.argsort(self.time_us, kind="stable"))

    def equals(self, other: "Trace") -> bool:
        """Whether every request is the same."""
        return (
            np.array_equal(self.time_us, other.time_us)
            and np.array_equal(self.kind, other.kind)
            and np.array_equal(self.offset, other.offset)
            and np.array_equal(self.length, other.length)
        )


def trace_of(time_us: ArrayLike, kind: ArrayLike, offset: ArrayLike, length: ArrayLike) -> Trace:
    """A trace of columns of any number type; besides the times, one value may stand for all."""
    times = np.asarray(time_us, np.int64)
    return Trace(
        times,
        np.broadcast_to(np.asarray(kind, np.uint8), times.shape),
        np.broadcast_to(np.asarray(offset, np.int64), times.shape),
        np.broadcast_to(np.asarray(length, np.uint32), times.shape),
    )


def joined(pieces: Sequence[Trace]) -> Trace:
    """The pieces one after the other."""
    return _assembled(pieces, slice(None))


def merged(pieces: Sequence[Trace]) -> Trace:
    """The requests of several traces by their times; of equal times, in the pieces' order."""
    times = np.concatenate([piece.time_us for piece in pieces])
    return _assembled(pieces, np.argsort(times, kind="stable"))


def _assembled(pieces: Sequence[Trace], which: "slice | NDArray[np.intp]") -> Trace:
    """One column after the other: ten million requests are in memory twice, and not four times."""
    pieces = pieces or [trace_of([], [], [], [])]
    return Trace(
        np.concatenate([piece.time_us for piece in pieces])[which],
        np.concatenate([piece.kind for piece in pieces])[which],
        np.concatenate([piece.offset for piece in pieces])[which],
        np.concatenate([piece.length for piece in pieces])[which],
    )
