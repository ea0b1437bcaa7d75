"""A verdict on recorded runs in words."""

from collections.abc import Iterator
from math import isinf

from leadline.load.recorded_job import RecordedRun
from leadline.sweep.evidence import weaknesses
from leadline.verdict.verdict import Outcome, Verdict

_OPEN = {
    "void": "the evidence does not count",
    "marginal": "the ratio is too near the threshold for anything to tell",
    "budget": (
        "one run a depth does not tell so near the threshold; measure it in pairs (leadline hil)"
    ),
}


def explain(
    verdict: Verdict, top: RecordedRun, bottom: RecordedRun, *, source: str, failing: str = ""
) -> str:
    """The whole story of one verdict on the ratio of two runs.

    `source` is where the threshold comes from, `failing` the diagnosis when it is a FAIL.
    """
    lines = [_headline(verdict, top, bottom, failing)]
    for run, rate in zip((top, bottom), verdict.rates, strict=True):
        spanned = _interval(rate.rate, rate.low, rate.high, ".0f" if rate.rate >= 1000 else ".4g")
        lines.append(f"  depth {run.offered_depth}: {spanned} requests/s ({run.file})")
    lines.append(f"  ratio: {_ratio(verdict)}, one run a depth; {'; '.join(verdict.notes)}")
    lines.append(f"  threshold: {verdict.direction} {verdict.threshold:g} ({source})")
    lines += [f"  void: {void}" for void in verdict.voids]
    lines += [f"  note: {note}" for run in (top, bottom) for note in _notes(run)]
    return "\n".join(lines)


def _ratio(verdict: Verdict) -> str:
    if verdict.estimate is None or verdict.low is None or verdict.high is None:
        return ""
    return _interval(verdict.estimate, verdict.low, verdict.high, ".3g")


def _interval(value: float, low: float, high: float, form: str) -> str:
    """A figure with its ends; an upper end that nobody knows is a question mark."""
    return f"{value:{form}} [{low:{form}}, {'?' if isinf(high) else f'{high:{form}}'}]"


def _headline(verdict: Verdict, top: RecordedRun, bottom: RecordedRun, failing: str) -> str:
    what = (
        f"{top.asked.rw} at depth {top.offered_depth} {verdict.direction} "
        f"{verdict.threshold:g} x that at depth {bottom.offered_depth}"
    )
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return f"INCONCLUSIVE ({verdict.reason}): {what}: {_OPEN[verdict.reason]}"
    if verdict.outcome is Outcome.PASS:
        return f"PASS: {what} holds"
    return f"FAIL: {failing}{what} does not hold"


def _notes(run: RecordedRun) -> Iterator[str]:
    for note in (*run.notes, *weaknesses(run)):
        yield f"{run.file}: {note}"
