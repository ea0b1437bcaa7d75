"""The rule that every verdict on rates goes by: a contrast of logs against a threshold.

A contrast is one number a block of slices that lie close together in time: the log of a
ratio for a pair, of a point over the mean of its neighbours for a triple, of a single
slice's rate where nothing is compared.  The always-valid interval of their mean decides.
"""

import math
from collections.abc import Sequence
from typing import get_args

from leadline.verdict.interval import (
    DRIFT_FACTOR,
    ROUNDING,
    SPREAD_FLOOR,
    Interval,
    SignOpinion,
    interval_of,
    p_value,
    sign_opinion,
)
from leadline.verdict.verdict import Direction, Outcome, RateEstimate, Reason, Unit, Verdict

BUDGET_S = 130.0
"""Drive time of the practice this replaces: two runs of 65 s."""
SIGMA_D = 0.01
"""Drift of a quiet rig, from runs of the same against the same."""
MARGIN = 0.03
IDENTICAL = "identical"
"""A void of this rule's own, by the name that its remedy goes by."""


def judge_contrast(
    logs: Sequence[float],
    threshold: float,
    direction: Direction,
    *,
    unit: Unit,
    unit_seconds: float,
    spent_s: float,
    budget_s: float = BUDGET_S,
    sigma_d: float = SIGMA_D,
    sigma_session: float = 0.0,
    sigma_lasting: float = 0.0,
    margin: float = MARGIN,
    sides: Sequence[Sequence[float]] = (),
    voids: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Verdict | None:
    """Settle `exp(mean of logs) direction threshold`, or None: measure another block.

    `logs` has one natural log a block, in the order in which the blocks were measured;
    `unit` says what a block is, `unit_seconds` its drive time, `spent_s` that of the claim
    so far; `sigma_d` and `sigma_session` are as in `interval.drift_term`.  PASS or FAIL when
    the always-valid interval excludes the threshold; INCONCLUSIVE when it lies within a
    factor of 1 + `margin` of it, or when the budget is spent.  The direction "within" has
    two thresholds, 1 + `threshold` and its inverse.  `sigma_lasting` is what of `sigma_session`
    stays however many blocks there are: where nothing can be decided because of it, the verdict
    is INCONCLUSIVE at once, "budget", and that is its shortage.  `voids` names what spoilt the
    evidence: INCONCLUSIVE at once, too, and there may be no logs.  `sides` are the rates
    of all slices of each quantity compared: where not one differs from another, nor a log,
    that is void too.  `notes` are kept with the verdict's own.  Raises ValueError on
    parameters that make no sense.
    """
    _check_claim(threshold, direction, margin)
    check_times(spent_s, budget_s=budget_s, unit_seconds=unit_seconds)
    if not logs and voids:
        return Verdict(
            Outcome.INCONCLUSIVE, "void", direction, threshold, 0, unit, spent_s, voids=tuple(voids)
        )
    interval = interval_of(
        logs, value_seconds=unit_seconds, sigma_d=sigma_d, sigma_session=sigma_session
    )
    outcome, reason = decide(interval, threshold, direction, margin)
    if not voids and math.isfinite(interval.half_width) and _identical(logs, sides):
        voids = (f"{IDENTICAL}: the {unit}s do not differ in any digit, as measured ones would",)
    if voids:
        outcome, reason = Outcome.INCONCLUSIVE, "void"
    edge = edge_of(interval.mean, threshold, direction)
    shortage = _out_of_reach(interval, edge, sigma_lasting, margin) if reason == "budget" else ""
    if reason == "budget" and not shortage and spent_s < budget_s:
        return None
    signs = sign_opinion(logs, edge)
    return Verdict(
        outcome=outcome,
        reason=reason,
        direction=direction,
        threshold=threshold,
        count=len(logs),
        unit=unit,
        drive_seconds=spent_s,
        estimate=interval.middle,
        low=interval.low,
        high=interval.high,
        rates=tuple(_rate_of(side, unit_seconds, sigma_d) for side in sides),
        interval=interval,
        signs=signs,
        voids=tuple(voids),
        p_against=1.0 if voids else p_against(interval, threshold, direction),
        shortage=shortage,
        notes=(*_notes(outcome, edge, interval, signs, unit), *notes),
    )


def decide(
    interval: Interval, threshold: float, direction: Direction, margin: float
) -> tuple[Outcome, Reason]:
    """The outcome and its reason, if this evidence is the last; "budget" asks for more."""
    distance = abs(interval.mean - edge_of(interval.mean, threshold, direction))
    if distance > interval.half_width:
        holds = holds_at(interval.mean, threshold, direction)
        return (Outcome.PASS if holds else Outcome.FAIL), "settled"
    if distance + interval.half_width <= math.log1p(margin):
        return Outcome.INCONCLUSIVE, "marginal"
    return Outcome.INCONCLUSIVE, "budget"


def edge_of(log: float, threshold: float, direction: Direction) -> float:
    """Where (as a log) the claim begins to fail; "within" has two edges: the nearer one.

    An interval around `log` that excludes the nearer of two edges that are equally far from
    0 excludes the other, too: two one-sided tests are this one (Schuirmann 1987, Journal of
    Pharmacokinetics and Biopharmaceutics 15(6)).
    """
    if direction == "within":
        return math.copysign(math.log1p(threshold), log)
    return math.log(threshold)


def holds_at(log: float, threshold: float, direction: Direction) -> bool:
    """Whether the claim is true of a contrast of exactly `log`, not on the edge."""
    edge = edge_of(log, threshold, direction)
    if direction == "within":
        return abs(log) < abs(edge)
    return log > edge if direction == ">=" else log < edge


def p_against(interval: Interval, threshold: float, direction: Direction) -> float:
    """The always-valid p-value of the claim being true; 1 where the estimate meets it.

    The least evidence against all contrasts that the claim allows is that against its
    nearest edge.
    """
    if holds_at(interval.mean, threshold, direction):
        return 1.0
    return p_value(interval, edge_of(interval.mean, threshold, direction))


def _out_of_reach(interval: Interval, edge: float, sigma_lasting: float, margin: float) -> str:
    """Why no number of blocks settles this nor makes it marginal, in words; "" where one may.

    However much is measured, the interval stays wider than what sessions differ by.  So what
    counts is how far from the edge the mean of this session can be by its own noise.
    """
    least = DRIFT_FACTOR * sigma_lasting
    noise = interval.half_width - interval.drift
    distance = abs(interval.mean - edge)
    if distance + noise > least or max(distance - noise, 0.0) + least <= math.log1p(margin):
        return ""
    return (
        f"sessions that differ by {sigma_lasting:.2%} cannot tell what is within "
        f"{math.expm1(least):.1%} of the threshold from what is at it, whatever the drive time"
    )


def _identical(logs: Sequence[float], sides: Sequence[Sequence[float]]) -> bool:
    """Whether nothing that was measured differs from its own repeats by more than rounding.

    The clock of a rate counts nanoseconds, so that even the most regular drive differs from
    itself.  What does not was copied, computed or cached, and the floor would let it settle.
    """
    series = [logs, *([math.log(rate) for rate in side] for side in sides)]
    return all(max(each) - min(each) <= ROUNDING for each in series)


def _rate_of(rates: Sequence[float], unit_seconds: float, sigma_d: float) -> RateEstimate:
    """What one side of a contrast did by itself; the rates are above 0."""
    logs = [math.log(rate) for rate in rates]
    interval = interval_of(logs, value_seconds=unit_seconds, sigma_d=sigma_d)
    return RateEstimate(interval.middle, interval.low, interval.high)


def usable(rate: float) -> bool:
    """Whether a rate can be compared: finite and above 0."""
    return math.isfinite(rate) and rate > 0.0


def margin_below(bound: float, margin: float | None, name: str) -> float:
    """The margin for a claim whose `bound` (called `name`) is itself a small share.

    Drives that just meet the bound are the marginal ones; with a margin as wide as the
    bound, so would be a drive that shows no difference at all.  By default half the bound,
    at most MARGIN.  ValueError when the bound or the margin makes no sense.
    """
    if not 0.0 < bound < 1.0:
        raise ValueError(f"{name} is {bound}: it lies between 0 and 1, as 0.05 for 5 %")
    if margin is None:
        return min(MARGIN, bound / 2.0)
    if not 0.0 < margin < bound:
        raise ValueError(
            f"margin is {margin} and {name} {bound}: the margin lies between 0 and {name}, "
            "or a drive without any difference would be called marginal"
        )
    return margin


def _notes(
    outcome: Outcome, edge: float, interval: Interval, signs: SignOpinion, unit: Unit
) -> tuple[str, ...]:
    """What a sceptical reader should know of the evidence, in plain words."""
    notes = []
    if interval.spread < SPREAD_FLOOR and interval.count > 1:
        notes.append(
            f"the {unit}s differ by {interval.spread:.2%} only; "
            f"{SPREAD_FLOOR:.1%} was assumed, for so regular a drive proves little"
        )
    if interval.correlation > 0.3:
        notes.append(
            f"neighbouring {unit}s are correlated ({interval.correlation:.2f}); "
            "the interval was widened for it"
        )
    opposite = "below" if interval.mean > edge else "above"
    if outcome is not Outcome.INCONCLUSIVE and signs.says == opposite:
        notes.append(
            f"the signs alone say the opposite: {signs.above} {unit}s above the "
            f"threshold, {signs.below} below; look at the slices"
        )
    return tuple(notes)


def _check_claim(threshold: float, direction: str, margin: float) -> None:
    if direction not in get_args(Direction):
        raise ValueError(f"direction is {direction!r}: it is one of >=, <=, within")
    if not usable(threshold):
        raise ValueError(f"threshold is {threshold}: a ratio or a rate is finite and above 0")
    if direction == "within":
        margin_below(threshold, margin, "threshold")
    if not 0.0 < margin < 1.0:
        raise ValueError(f"margin is {margin}: it lies between 0 and 1, as 0.03 for 3 %")


def check_times(spent_s: float, **others: float) -> None:
    """ValueError unless all are times, and only `spent_s` may be 0."""
    for name, seconds in others.items():
        if not usable(seconds):
            raise ValueError(f"{name} is {seconds}: a time is finite and above 0")
    if not (math.isfinite(spent_s) and spent_s >= 0.0):
        raise ValueError(f"spent_s is {spent_s}: drive time is finite and at least 0")
