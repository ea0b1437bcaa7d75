"""Depths that deserve a second look.  Screening picks and confirming decides: none is a FAIL."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline.load.recorded_job import RecordedRun
from leadline.sweep.evidence import as_run, of_load
from leadline.verdict.curve import CONCAVE_FROM
from leadline.verdict.runs import RunRatio, ratio_of

STALL_S = 1.0
STALL_FACTOR = 10.0
"""A stall takes STALL_S, and this many times the mean."""
SCSI_TIMEOUT_S = 30.0
"""SD_TIMEOUT in Linux's drivers/scsi/sd.h; at its end the kernel's error handling runs."""
FLAT_FROM = 16
FLAT_GAIN = 1.1
"""A disk with FLAT_FROM requests to choose from, the nearest first, gains more than this."""


@dataclass(frozen=True)
class Suspect:
    """One run that looks wrong: `kind` is dip, collapse, flat or stall."""

    kind: str
    rw: str
    depth: int
    file: str
    why: str


def suspects(runs: Sequence[RecordedRun], class_: str) -> list[Suspect]:
    """What looks wrong in `runs`, of a drive of `class_`, by load.  Void runs are left out."""
    found: list[Suspect] = []
    for rw in sorted({run.asked.rw for run in runs}):
        curve = [run for run in of_load(runs, rw).values() if not run.voids]
        found += [*_dips(curve, CONCAVE_FROM.get(class_, 1)), *_collapse(curve), *_stalls(curve)]
        if class_ == "hdd" and rw == "randread":
            found += _flat(curve)
    return found


def _dips(curve: Sequence[RecordedRun], concave_from: int) -> Iterator[Suspect]:
    """Points below the chord of their neighbours, which a concave curve does not have.

    Where it is not concave yet, the neighbour below is the chord: see `verdict.curve.Sweep`.
    """
    triples = zip(curve, curve[1:], curve[2:], strict=False)
    for left, middle, right in triples:
        low, at, high = (each.offered_depth for each in (left, middle, right))
        way = 0.0 if low < concave_from else (at - low) / (high - low)
        chord = ratio_of(as_run(middle), [(1.0 - way, as_run(left)), (way, as_run(right))])
        if chord.high < 1.0:
            line = f"the line between depths {low} and {high}" if way else f"depth {low}"
            yield _suspect("dip", middle, f"{_less(chord)} below {line}")


def _collapse(curve: Sequence[RecordedRun]) -> Iterator[Suspect]:
    if not curve:
        return
    best = max(curve, key=lambda run: run.figures.rate)
    last = curve[-1]
    if best is not last:
        fall = ratio_of(as_run(last), [(1.0, as_run(best))])
        if fall.high < 1.0:
            why = f"{_less(fall)} below the best, which is at depth {best.offered_depth}"
            yield _suspect("collapse", last, why)


def _flat(curve: Sequence[RecordedRun]) -> Iterator[Suspect]:
    """A disk that no depth makes faster, so that nobody seems to sort its requests."""
    if not curve or curve[0].offered_depth != 1 or curve[-1].offered_depth < FLAT_FROM:
        return
    gains = [ratio_of(as_run(run), [(1.0, as_run(curve[0]))]) for run in curve[1:]]
    if all(gain.high < FLAT_GAIN for gain in gains):
        best = max(gain.estimate for gain in gains)
        why = f"no depth is faster than depth 1 (the best is {best:.3g} times it); is it queueing?"
        yield _suspect("flat", curve[-1], why)


def _stalls(curve: Sequence[RecordedRun]) -> Iterator[Suspect]:
    for run in curve:
        latency = run.figures.latency
        if latency and latency.longest >= max(STALL_S, STALL_FACTOR * latency.mean):
            why = f"a request took {latency.longest:.1f} s of the run's {run.figures.seconds:.0f} s"
            if latency.longest >= SCSI_TIMEOUT_S:
                why += (
                    ", beyond the kernel's usual SCSI timeout of 30 s: look for error handling in "
                    "the kernel log of that time (leadline kernel-log)"
                )
            yield _suspect("stall", run, why)


def _suspect(kind: str, run: RecordedRun, why: str) -> Suspect:
    return Suspect(kind, run.asked.rw, run.offered_depth, run.file, why)


def _less(ratio: RunRatio) -> str:
    return f"{1.0 - ratio.estimate:.1%} (at least {1.0 - ratio.high:.1%})"
