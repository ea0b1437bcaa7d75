"""What a trace is like, in figures."""

from dataclasses import dataclass

import numpy as np

from leadline.trace.trace import READ, SYNC, TRIM, WRITE, Trace

STREAMS = 32
"""A request is sequential when it begins where one of so many before it ended: programs that
run side by side interleave."""


@dataclass(frozen=True)
class Figures:
    """Counts by kind; shares and sizes (bytes) of what is read and written; seconds.

    `sequential_share` is the share of requests that begin where one of the STREAMS before
    them ended, of the same kind; `lowest` and `highest` bound the bytes that are touched.
    """

    requests: int
    reads: int
    writes: int
    trims: int
    syncs: int
    read_share: float
    bytes_read: int
    bytes_written: int
    mean_bytes: float
    median_bytes: float
    largest_bytes: int
    sequential_share: float
    lowest: int
    highest: int
    seconds: float


def figures_of(trace: Trace) -> Figures:
    """The figures of a trace that has requests."""
    counts = np.bincount(trace.kind, minlength=4).tolist()
    moved = trace.take(trace.kind <= WRITE)
    sizes = moved.length
    bytes_read = int(sizes[moved.kind == READ].sum(dtype=np.int64))
    return Figures(
        requests=len(trace),
        reads=counts[READ],
        writes=counts[WRITE],
        trims=counts[TRIM],
        syncs=counts[SYNC],
        read_share=counts[READ] / max(1, len(moved)),
        bytes_read=bytes_read,
        bytes_written=int(sizes.sum(dtype=np.int64)) - bytes_read,
        mean_bytes=float(sizes.mean()) if len(moved) else 0.0,
        median_bytes=float(np.median(sizes)) if len(moved) else 0.0,
        largest_bytes=int(sizes.max(initial=0)),
        sequential_share=_sequential_share(moved),
        lowest=int(moved.offset.min(initial=np.iinfo(np.int64).max)) if len(moved) else 0,
        highest=int(moved.end.max(initial=0)),
        seconds=trace.seconds,
    )


def _sequential_share(moved: Trace) -> float:
    if not len(moved):
        return 0.0
    end, follows = moved.end, np.zeros(len(moved), bool)
    for back in range(1, min(STREAMS, len(moved) - 1) + 1):
        same = moved.kind[back:] == moved.kind[:-back]
        follows[back:] |= same & (moved.offset[back:] == end[:-back])
    return float(follows.mean())
