"""What queueing gains: (off - on) / off, of mean service times; pure.

Each round has a replay with NCQ off and one with it on, one right after the other, in an order
that alternates: what drifts slowly favours neither.  So the rounds' gains are paired, and their
mean has a t interval (scipy's).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from leadline.errors import Inconclusive, Misuse
from leadline.trace.rounds import Replayed, Round, Times

CONFIDENCE = 0.95
FEWEST_ROUNDS = 2


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval; `low` and `high` are None where `count` values bound nothing."""

    mean: float
    low: float | None
    high: float | None
    count: int


@dataclass(frozen=True)
class TraceGain:
    """What one trace showed.  Times are mean service times in seconds.

    `reads` and `writes` are the gains of these alone, None where the trace has none.  Of a drive
    without NCQ there is `off_s` alone: the baseline.
    """

    trace: str
    off_s: Estimate
    on_s: Estimate | None
    gain: Estimate | None
    reads: Estimate | None
    writes: Estimate | None


def gain_of(trace: str, rounds: Sequence[Round]) -> TraceGain:
    """The gain on one trace, by the rounds that are not void.

    Raises Misuse for fewer than FEWEST_ROUNDS rounds, and Inconclusive where fewer count.
    """
    clean = [each for each in rounds if not each.voids]
    if len(clean) < FEWEST_ROUNDS <= len(rounds):
        names = ", ".join(dict.fromkeys(name for each in rounds for name in each.voids))
        raise Inconclusive(
            f"{trace}: {len(rounds) - len(clean)} of {len(rounds)} rounds count for nothing "
            f"({names}), and at least {FEWEST_ROUNDS} must: see docs/how-to/mend-a-void.md, and "
            "replay it again"
        )
    rounds = clean
    if len(rounds) < FEWEST_ROUNDS:
        raise Misuse(f"{len(rounds)} rounds of {trace}: at least {FEWEST_ROUNDS} are needed")
    pairs = [(each.off, each.on) for each in rounds if each.on is not None]
    return TraceGain(
        trace,
        off_s=estimate([each.off.all.mean_s for each in rounds]),
        on_s=estimate([on.all.mean_s for _, on in pairs]) if pairs else None,
        gain=_gain(pairs, lambda replayed: replayed.all),
        reads=_gain(pairs, lambda replayed: replayed.reads),
        writes=_gain(pairs, lambda replayed: replayed.writes),
    )


def overall(gains: Sequence[TraceGain]) -> Estimate | None:
    """The mean gain over the traces, each of the same weight; None for a drive without NCQ.

    The interval takes them for a sample of such loads: how far the mean over others like these
    may lie from this one.
    """
    means = [each.gain.mean for each in gains if each.gain is not None]
    return estimate(means) if means else None


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of values that are independent and about normal, with its t interval."""
    from scipy import stats

    mean = fmean(values)
    if len(values) < 2:
        return Estimate(mean, None, None, len(values))
    error = float(stats.sem(values))
    if error == 0.0:
        return Estimate(mean, mean, mean, len(values))
    low, high = stats.t.interval(CONFIDENCE, len(values) - 1, loc=mean, scale=error)
    return Estimate(mean, float(low), float(high), len(values))


def share_text(estimate: Estimate | None) -> str:
    """A gain with its interval, in percent."""
    if estimate is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.mean:+.1%}"
    return f"{estimate.mean:+.1%} [{estimate.low:+.1%}, {estimate.high:+.1%}]"


def _gain(
    pairs: Sequence[tuple[Replayed, Replayed]], kind: Callable[[Replayed], Times]
) -> Estimate | None:
    """The gain on requests of one kind; None where a replay has none."""
    times = [(kind(off), kind(on)) for off, on in pairs]
    if not times or not all(off.count and on.count for off, on in times):
        return None
    return estimate([(off.mean_s - on.mean_s) / off.mean_s for off, on in times])
