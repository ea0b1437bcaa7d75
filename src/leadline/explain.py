"""A verdict in words that a sceptical performance engineer can act on."""

import math

from leadline.drive.request_limits import in_binary
from leadline.on_record import Recorded
from leadline.quantities import REQUESTS_PER_S, SECONDS
from leadline.remedies import remedy_of
from leadline.statements import (
    Against,
    Agreement,
    Arrival,
    AsRecorded,
    Gain,
    NoCollapse,
    NoDip,
    NotRegressed,
    Ratio,
    Statement,
    Within,
)
from leadline.verdict.verdict import Outcome, Verdict

_REASONS = {
    "marginal": "it is so near the threshold that more drive time would not tell; decide by "
    "the interval, or move the limit",
    "budget": "the drive time allowed for one claim is spent; raise it with --drive-time",
    "void": "the evidence does not count",
}
_ESTIMATES: dict[type, str] = {
    Ratio: "ratio",
    Against: "rate",
    Agreement: "ratio",
    AsRecorded: "ratio",
    NotRegressed: "candidate over released",
    NoDip: "rate over its neighbours' chord",
    NoCollapse: "last over best",
    Within: "slowest",
    Arrival: "arrived as",
    Gain: "mean service time, NCQ on over off",
}


def explain(verdict: Verdict, statement: Statement, *, cell: str, repeat: str) -> str:
    """The whole story of one verdict: what was claimed, what was found, what to do.

    `repeat` is the command that measures the same again.
    """
    lines = [_headline(verdict, cell, statement)]
    for (name, unit), rate in zip(_names(verdict, statement), verdict.rates, strict=False):
        middle, low, high = (_figure(each, 4) for each in (rate.rate, rate.low, rate.high))
        lines.append(f"  {name}: {middle} {unit} [{low}, {high}]")
    if verdict.estimate is not None:
        what = "time" if _unit(statement) == f" {SECONDS}" else _ESTIMATES[type(statement)]
        found = f"{estimate_text(verdict)}{_unit(statement)}, over {_counted(verdict)}"
        lines.append(f"  {what}: {found}")
        lines += _bandwidth(verdict, statement)
    cited = f" ({statement.source})" if statement.source else ""
    lines.append(f"  threshold: {_threshold(verdict, statement)}{cited}")
    lines.append(f"  cost: {verdict.drive_seconds:.1f} drive-seconds")
    for void in verdict.voids:
        lines.append(f"  void: {void}")
        lines += [f"  remedy: {remedy}"] if (remedy := remedy_of(void)) else []
    lines += [f"  note: {note}" for note in verdict.notes]
    lines.append(f"  repeat: {repeat}")
    return "\n".join(lines)


def _headline(verdict: Verdict, cell: str, statement: Statement) -> str:
    if verdict.outcome is Outcome.INCONCLUSIVE:
        why = verdict.shortage or _REASONS[verdict.reason]
        return f"INCONCLUSIVE ({verdict.reason}): {statement} on {cell}: {why}"
    does = "holds" if verdict.outcome is Outcome.PASS else "does not hold"
    cause = f"{verdict.cause}: " if verdict.cause else ""
    return f"{verdict.outcome}: {cause}{statement} {does} on {cell}"


def _names(verdict: Verdict, statement: Statement) -> list[tuple[str, str]]:
    """What the verdict's rates are rates of, and their unit."""
    match statement:
        case NoDip():
            return [(name, REQUESTS_PER_S) for name in ("at the depth", "below it", "above it")]
        case NoCollapse():
            return [(name, REQUESTS_PER_S) for name in ("last", "best")]
        case Within() | Arrival() | Gain():
            return []
        case NotRegressed(quantity=quantity, released=released, candidate=candidate):
            return [(f"{quantity} with {each}", REQUESTS_PER_S) for each in (candidate, released)]
        case AsRecorded(quantity, Recorded(_, whose)):
            return [(str(quantity), REQUESTS_PER_S), (whose, REQUESTS_PER_S)]
        case _:
            return [(str(quantity), quantity.unit) for quantity in statement.quantities]


def _bandwidth(verdict: Verdict, statement: Statement) -> list[str]:
    """A line beside a time: what its volume is read or written at, as data sheets have it."""
    if not isinstance(statement, Against) or statement.quantity.volume_bytes is None:
        return []
    if not verdict.estimate or verdict.low is None or verdict.high is None:
        return []
    megabytes, size = statement.quantity.volume_bytes / 1e6, statement.quantity.request_bytes
    # The longest time is the lowest bandwidth; a time of which nothing is known begins at 0.
    times = (verdict.estimate, verdict.high, verdict.low)
    rate, low, high = (_figure(megabytes / each if each else math.inf, 4) for each in times)
    return [f"  bandwidth: {rate} [{low}, {high}] MB/s in requests of {in_binary(size)}"]


def _counted(verdict: Verdict) -> str:
    if verdict.unit == "event":
        return f"{verdict.count} power cycle{'' if verdict.count == 1 else 's'}"
    if verdict.unit == "request":
        return f"{verdict.count} requests"
    if verdict.unit == "round":
        return f"{verdict.count} round{'' if verdict.count == 1 else 's'} of replays"
    slices = "slices" if verdict.unit == "slice" else f"{verdict.unit}s of slices"
    return f"{verdict.count} {slices}"


def _threshold(verdict: Verdict, statement: Statement) -> str:
    if verdict.direction == "within":
        return f"within {100 * verdict.threshold:.3g} % of each other"
    if isinstance(statement, Within):
        return f"{verdict.direction} {_figure(verdict.threshold, 4)} s"
    return f"{verdict.direction} {_figure(verdict.threshold, 4)}{_unit(statement)}"


def _unit(statement: Statement) -> str:
    """Of the estimate and its threshold; a ratio has none, and a time tells it itself."""
    if isinstance(statement, Arrival):
        return " KiB"
    return f" {statement.quantity.unit}" if isinstance(statement, Against) else ""


def estimate_text(verdict: Verdict) -> str:
    """The estimate with its interval, as in "7.21 [6.98, 7.45]"; "" when there is none.

    The slowest of some events has no interval, nor the size that requests reach.
    """
    if verdict.estimate is not None and verdict.unit == "event":
        return f"{verdict.estimate:.3g} s"
    if verdict.estimate is not None and verdict.unit == "request":
        return f"{verdict.estimate:g}"
    if verdict.estimate is None or verdict.low is None or verdict.high is None:
        return ""
    estimate, low, high = map(_figure, (verdict.estimate, verdict.low, verdict.high))
    return f"{estimate} [{low}, {high}]"


def _figure(value: float, digits: int = 3) -> str:
    """So many digits; more where they stand before the point, which nobody wants as 2.48e+03."""
    return f"{value:.{digits}g}" if abs(value) < 10**digits - 0.5 else f"{value:.0f}"
