"""Fit a trace to the drive that it is to be replayed on: what of it, and where."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.errors import Misuse
from leadline.trace.trace import READ, SYNC, TRIM, WRITE, Trace

BLOCK = 4096
"""Places on a smaller drive are a multiple of this away from those in the trace."""


_STEP = 1 << 20


@dataclass(frozen=True, eq=False)
class Fitted:
    """What is replayed, and in a sentence each what was done to it.

    `step_bytes` is how far on the drive one replay lies from the next, of which there can be
    `steps` before the first place has its turn again; 0 for all at the same places.
    """

    trace: Trace
    notes: tuple[str, ...]
    step_bytes: int = 0
    steps: int = 1

    def of_replay(self, number: int) -> Trace:
        """The requests of a replay, counted from 0: the same ones, as far apart as ever."""
        by = number % self.steps * self.step_bytes
        trace = self.trace
        at = np.where(trace.kind == SYNC, trace.offset, trace.offset + by)
        return Trace(trace.time_us, trace.kind, at, trace.length)


@dataclass
class Reach:
    """How far on the drive replays have come, in bytes, as if there were room for all of them.

    Traces have places in common: the nine loads read the same large file from its beginning.
    """

    so_far: int = 0

    def next_of(self, fitted: Fitted) -> Trace:
        """The next replay of a trace, beyond all that there were, of whichever trace."""
        if not fitted.step_bytes:
            return fitted.trace
        number = -(-self.so_far // fitted.step_bytes)
        self.so_far = (number + 1) * fitted.step_bytes
        return fitted.of_replay(number)


def fit(
    trace: Trace,
    *,
    capacity_bytes: int,
    traced_bytes: int,
    block_bytes: int,
    writes: bool,
    most: int | None = None,
) -> Fitted:
    """A trace of a drive of `traced_bytes` for one of `capacity_bytes`.

    Its first `most` requests; only reads unless `writes` are allowed; widened to whole logical
    blocks of `block_bytes`; moved together where the drive is smaller.  Of a trace that is cut
    off each replay lies elsewhere, as far as there is room: so little would else be found in
    the drive's cache by the next one.  Raises Misuse when nothing is left, or the drive has too
    little room for what is touched.
    """
    kept, notes = _chosen(trace, writes=writes, most=most)
    aligned = _aligned(kept, block_bytes)
    if aligned is not kept:
        notes.append(f"places and sizes were widened to logical blocks of {block_bytes} bytes")
    if traced_bytes > capacity_bytes:
        aligned, touched = _moved_together(aligned, capacity_bytes, traced_bytes)
        notes.append(
            f"SCALED: the trace is of a drive of {traced_bytes / 1e9:.4g} GB and this one has "
            f"{capacity_bytes / 1e9:.4g} GB: the {touched / 1e9:.4g} GB that it touches are as "
            "they were, and lie closer together"
        )
    if most is None or most >= len(trace):
        return Fitted(aligned, tuple(notes))
    step, steps = _steps(aligned, capacity_bytes)
    if steps > 1:
        notes.append(f"each replay lies {step >> 20} MiB or more further on than the one before")
    return Fitted(aligned, tuple(notes), step, steps)


def _steps(trace: Trace, capacity_bytes: int) -> tuple[int, int]:
    """How far apart replays lie, which is more than a stream reaches, and how many there can be."""
    step = -(-int(trace.length.sum(dtype=np.int64)) // _STEP) * _STEP
    room = capacity_bytes - int(trace.end.max())
    return step, 1 + room // max(step, _STEP)


def _chosen(trace: Trace, *, writes: bool, most: int | None) -> tuple[Trace, list[str]]:
    """What of a trace is replayed at all, and why not the rest."""
    notes = []
    if most is not None and most < len(trace):
        notes.append(f"the first {most} of {len(trace)} requests")
        trace = trace.take(slice(most))
    kept = trace.take(trace.kind != TRIM if writes else trace.kind == READ)
    left_out = np.bincount(trace.kind, minlength=4) - np.bincount(kept.kind, minlength=4)
    if left_out[WRITE] or left_out[SYNC]:
        notes.append(
            f"reads alone: {left_out[WRITE]} writes and {left_out[SYNC]} syncs were left out, for "
            "writes need `writes: allowed` in the rig file and --allow-writes"
        )
    if left_out[TRIM]:
        notes.append(f"{left_out[TRIM]} trims were left out: fio before 3.34 replays none")
    if not np.any(kept.kind != SYNC):
        raise Misuse("nothing of the trace would be replayed; " + "; ".join(notes))
    return kept, notes


def _aligned(trace: Trace, block_bytes: int) -> Trace:
    """Each request widened to whole blocks; the same trace where all are whole."""
    if not (trace.offset % block_bytes).any() and not (trace.length % block_bytes).any():
        return trace
    begin = trace.offset // block_bytes * block_bytes
    end = -(-trace.end // block_bytes) * block_bytes
    return Trace(trace.time_us, trace.kind, begin, (end - begin).astype(np.uint32))


def _moved_together(trace: Trace, capacity_bytes: int, traced_bytes: int) -> tuple[Trace, int]:
    """The same requests on a smaller drive, and how many bytes they touch.

    What lies between the touched parts shrinks, and these stay whole: dividing every offset (as
    fio's replay_scale does) would make sequential requests overlap, and they would be answered
    from the drive's cache.
    """
    begins, ends = _touched(trace)
    touched = int((ends - begins).sum()) * BLOCK
    room, gap = capacity_bytes - touched, traced_bytes - touched
    if room < 0:
        raise Misuse(
            f"the trace touches {touched / 1e9:.4g} GB, and the drive has "
            f"{capacity_bytes / 1e9:.4g} GB: generate one for it (leadline trace generate "
            f"--capacity {capacity_bytes}), or replay a part (--requests)"
        )
    gaps = begins - np.concatenate(([0], ends[:-1]))
    smaller = (gaps * (room / max(1, gap))).astype(np.int64)
    # What a part moves by is what the gaps before it lost.
    moves = np.cumsum(gaps - smaller) * BLOCK
    part = np.searchsorted(begins, trace.offset // BLOCK, "right") - 1
    at = np.where(trace.kind == SYNC, 0, trace.offset - moves[part])
    return Trace(trace.time_us, trace.kind, at, trace.length), touched


def _touched(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each connected part that the trace touches begins and ends, in blocks of BLOCK."""
    moved = trace.take(trace.kind != SYNC)
    order = np.argsort(moved.offset, kind="stable")
    begin = moved.offset[order] // BLOCK
    reach = np.maximum.accumulate(-(-moved.end[order] // BLOCK))
    first = np.concatenate(([True], begin[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return begin[first], reach[last]
