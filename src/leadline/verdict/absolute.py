"""Absolute claims: a rate against a figure, and times against a limit.

Nothing is compared, so nothing cancels: the interval on a rate allows for what the rig does
differently in another session, and is wider for it.  Events such as a power-on are few and
each of them counts: they are claimed one and all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from leadline.verdict.contrast import BUDGET_S, MARGIN, SIGMA_D, check_times, judge_contrast, usable
from leadline.verdict.interval import ALPHA
from leadline.verdict.sessions import checked_session_sd
from leadline.verdict.verdict import Direction, Outcome, Verdict


def judge_absolute(
    rates: Sequence[float],
    figure: float,
    direction: Direction,
    *,
    slice_seconds: float,
    spent_s: float,
    sigma_session: float,
    budget_s: float = BUDGET_S,
    sigma_d: float = SIGMA_D,
    margin: float = MARGIN,
    voids: Sequence[str] = (),
) -> Verdict | None:
    """Settle `rate direction figure`, or None: measure another slice.

    `rates` are those of single slices in the order in which they were measured, in the unit
    of `figure` (requests a second, MB/s).  `sigma_session` is the standard deviation of the
    rig's log rate between sessions (`sessions.session_spread` of its A/A repeats); its
    variance is added to that of the drift, see `interval.drift_term`.  The rest as in
    `contrast.judge_contrast`.  With `voids`, unusable rates are left out; without,
    ValueError on fewer than two slices and on rates that are not finite and above 0.
    """
    if direction == "within":
        raise ValueError("direction is 'within': a rate is claimed to be >= or <= a figure")
    used = [rate for rate in rates if usable(rate)] if voids else list(rates)
    for place, rate in enumerate(used):
        if not usable(rate):
            raise ValueError(f"slice {place}: the rate is {rate}; it must be finite and above 0")
    if not voids and len(used) < 2:
        raise ValueError(f"{len(used)} slice(s): a spread needs at least two")
    return judge_contrast(
        [math.log(rate) for rate in used],
        figure,
        direction,
        unit="slice",
        unit_seconds=slice_seconds,
        spent_s=spent_s,
        budget_s=budget_s,
        sigma_d=sigma_d,
        sigma_session=checked_session_sd(sigma_session),
        sigma_lasting=sigma_session,
        margin=margin,
        voids=voids,
        notes=(
            "nothing cancels in a single rate: the interval allows for a spread of "
            f"{sigma_session:.2%} between sessions of this rig",
        ),
    )


def judge_times(
    events: Sequence[float], limit: float, *, spent_s: float = 0.0, voids: Sequence[str] = ()
) -> Verdict:
    """Settle `every event took at most limit`: one that took longer is a FAIL.

    `events` are seconds, one for every event of the run, none left out; infinite for what
    never came.  The estimate is the slowest.  A PASS is about these events, and a note says
    how little a few of them promise of the next.  Without any event, or with `voids`, the
    verdict is void.  Raises ValueError on a time that is negative or not a number and on a
    limit that is not finite and above 0.
    """
    check_times(spent_s, limit=limit)
    _check_events(events)
    if not events:
        voids = (*voids, "no-event: nothing was timed, so nothing is known")
    met = sum(event <= limit for event in events)
    outcome = Outcome.PASS if met == len(events) else Outcome.FAIL
    if voids:
        outcome = Outcome.INCONCLUSIVE
    return Verdict(
        outcome=outcome,
        reason="void" if voids else "settled",
        direction="<=",
        threshold=limit,
        count=len(events),
        unit="event",
        drive_seconds=spent_s,
        estimate=max(events, default=None),
        voids=tuple(voids),
        p_against=0.0 if outcome is Outcome.FAIL else 1.0,
        notes=(_met_note(met, len(events), limit),) if events else (),
    )


def late_share(count: int) -> float:
    """The share of late events that `count` punctual ones leave possible at level ALPHA.

    1 - ALPHA^(1/count), the exact binomial bound (Clopper and Pearson 1934, Biometrika 26).
    """
    if count < 1:
        raise ValueError(f"{count} events: a bound needs at least one")
    return -math.expm1(math.log(ALPHA) / count)


@dataclass(frozen=True)
class TypicalTime:
    """The median of some events, seconds, and the ends of its interval at level ALPHA.

    The ends are order statistics, so the times may have any distribution; with fewer than
    eight events nothing bounds the median, and they are 0 and infinity.  It is for the
    report: unlike a verdict's interval it does not hold at many looks together.
    """

    count: int
    median: float
    low: float
    high: float


def typical_time(events: Sequence[float]) -> TypicalTime:
    """The median of `events` (seconds, at least one) with its exact binomial interval.

    Raises ValueError on none, and on a time that is negative or not a number.
    """
    _check_events(events)
    if not events:
        raise ValueError("no event: a median needs at least one")
    from scipy.stats import binom

    # The rank whose order statistic lies above the median with chance ALPHA/2 at most.
    rank = int(binom.ppf(0.5 * ALPHA, len(events), 0.5))
    ordered = sorted(float(event) for event in events)
    low, high = (ordered[rank - 1], ordered[-rank]) if rank else (0.0, math.inf)
    return TypicalTime(len(events), median(ordered), low, high)


def _check_events(events: Sequence[float]) -> None:
    for place, event in enumerate(events):
        if not event >= 0.0:
            raise ValueError(f"event {place}: it took {event} s; a time is at least 0")


def _met_note(met: int, count: int, limit: float) -> str:
    said = f"{met} of {count} events took at most {limit:g} s"
    if met < count:
        return said
    return f"{said}; of all events to come up to {late_share(count):.0%} may still take longer"
