"""What a recorded run is worth as evidence: its rate, and the most that it may have been."""

from collections.abc import Iterator, Sequence
from math import inf

from leadline.load.recorded_job import RecordedRun
from leadline.load.slices import BUSY_THREAD, LITTLE_TOLERANCE
from leadline.verdict.contrast import MARGIN
from leadline.verdict.runs import Run


def as_run(recorded: RecordedRun) -> Run:
    """A recorded run as `verdict.runs` takes it.

    Its rate is too low by the share of time in which fio was busy between two requests
    (what Little's law lacks) and by that in which nothing completed; when a thread of fio
    used a whole CPU, nobody knows by how much.
    """
    figures = recorded.figures
    samples = figures.samples
    moving = max(1.0, samples.moving) if samples else 1.0
    still = _still_share(recorded)
    shortened = max(moving, 1.0 / (1.0 - still) if still < 1.0 else inf)
    most = figures.rate * shortened / min(1.0, recorded.little_ratio or 1.0)
    return Run(
        rate=figures.rate,
        most=inf if figures.cpu > BUSY_THREAD else most,
        seconds=figures.seconds,
        spread=samples.spread if samples else None,
        samples=samples.count if samples else 0,
    )


def weaknesses(recorded: RecordedRun) -> Iterator[str]:
    """What makes the run's interval wide, each in a sentence."""
    figures, latency, filled = recorded.figures, recorded.figures.latency, recorded.little_ratio
    if figures.cpu > BUSY_THREAD:
        yield (
            f"a thread of fio used {figures.cpu:.0%} of a CPU; how much faster the drive is "
            "than fio is not known"
        )
    if latency and filled is not None and filled < 1.0 - LITTLE_TOLERANCE:
        between = recorded.offered_depth / figures.rate - latency.mean
        yield (
            f"the queue was {filled:.1%} full, for fio took {1e6 * between:.1f} us from one "
            "request of a slot to the next"
        )
    if latency and _still_share(recorded) > MARGIN:
        yield (
            f"one request took {latency.longest:.1f} s of the run's {figures.seconds:.0f} s; the "
            "rate without that is not known"
        )
    if not as_run(recorded).sampled:
        yield "too few samples of the rate within the run to tell its noise"


def of_load(runs: Sequence[RecordedRun], rw: str) -> dict[int, RecordedRun]:
    """The runs of one kind of load by offered depth, in that order."""
    return {
        run.offered_depth: run
        for run in sorted(runs, key=lambda run: run.offered_depth)
        if run.asked.rw == rw
    }


def _still_share(recorded: RecordedRun) -> float:
    """The share of the run that its longest request took."""
    latency = recorded.figures.latency
    return latency.longest / recorded.figures.seconds if latency else 0.0
