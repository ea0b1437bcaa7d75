"""Ratio claims: two settings of a drive compared by interleaved pairs of slices.

Each pair gives one value, the log of the ratio of its two rates; drift that is slow
against a pair cancels in it.  `judge_ratio` looks at all pairs so far and either settles
the claim or says that more are needed.
"""

import math
from collections.abc import Sequence
from typing import get_args

from leadline.verdict.interval import (
    SPREAD_FLOOR,
    Interval,
    SignOpinion,
    interval_of,
    sign_opinion,
)
from leadline.verdict.verdict import Direction, Outcome, RateEstimate, Reason, Verdict

BUDGET_S = 130.0
"""Drive time of the practice this replaces: two runs of 65 s."""
SIGMA_D = 0.01
"""Drift of a quiet rig, from runs of the same against the same."""
MARGIN = 0.03


def judge_ratio(
    numerator_rates: Sequence[float],
    denominator_rates: Sequence[float],
    threshold: float,
    direction: Direction,
    *,
    pair_seconds: float,
    spent_s: float,
    budget_s: float = BUDGET_S,
    sigma_d: float = SIGMA_D,
    margin: float = MARGIN,
    voids: Sequence[str] = (),
) -> Verdict | None:
    """Settle `numerator / denominator direction threshold`, or None: measure another pair.

    The rates (requests a second) are those of each pair, in the order in which the pairs
    were measured; `pair_seconds` is the drive time of one pair, `spent_s` that of the
    claim so far.  PASS or FAIL when the always-valid interval excludes the threshold;
    INCONCLUSIVE when it lies within a factor of 1 + `margin` of it, or when the budget is
    spent.  `voids` names what spoilt the evidence: the verdict is then INCONCLUSIVE at
    once, pairs without two usable rates are left out of its estimate, and there may be
    none.  Without `voids`, ValueError on fewer than two pairs, rates that are not finite
    and above 0, sequences of unequal length, or parameters that make no sense.
    """
    _check_claim(threshold, direction, margin)
    _check_times(pair_seconds, spent_s, budget_s)
    pairs = _pairs(numerator_rates, denominator_rates, drop_unusable=bool(voids))
    if not pairs:
        return Verdict(
            Outcome.INCONCLUSIVE, "void", direction, threshold, 0, spent_s, voids=tuple(voids)
        )
    tops = [math.log(top) for top, _ in pairs]
    bottoms = [math.log(bottom) for _, bottom in pairs]
    ratios = [top - bottom for top, bottom in zip(tops, bottoms, strict=True)]
    interval = interval_of(ratios, value_seconds=pair_seconds, sigma_d=sigma_d)
    outcome, reason = _rule(interval, threshold, direction, margin)
    if voids:
        outcome, reason = Outcome.INCONCLUSIVE, "void"
    elif reason == "budget" and spent_s < budget_s:
        return None
    signs = sign_opinion(ratios, math.log(threshold))
    return Verdict(
        outcome=outcome,
        reason=reason,
        direction=direction,
        threshold=threshold,
        pairs=len(pairs),
        drive_seconds=spent_s,
        estimate=interval.middle,
        low=interval.low,
        high=interval.high,
        numerator=_rate(interval_of(tops, value_seconds=pair_seconds, sigma_d=sigma_d)),
        denominator=_rate(interval_of(bottoms, value_seconds=pair_seconds, sigma_d=sigma_d)),
        interval=interval,
        signs=signs,
        voids=tuple(voids),
        notes=_notes(outcome, direction, interval, signs),
    )


def _rule(
    interval: Interval, threshold: float, direction: Direction, margin: float
) -> tuple[Outcome, Reason]:
    """The outcome and its reason, if this evidence is the last; "budget" asks for more."""
    distance = interval.mean - math.log(threshold)
    if abs(distance) > interval.half_width:
        holds = (distance > 0) == (direction == ">=")
        return (Outcome.PASS if holds else Outcome.FAIL), "settled"
    if abs(distance) + interval.half_width <= math.log1p(margin):
        return Outcome.INCONCLUSIVE, "marginal"
    return Outcome.INCONCLUSIVE, "budget"


def _notes(
    outcome: Outcome, direction: Direction, interval: Interval, signs: SignOpinion
) -> tuple[str, ...]:
    """What a sceptical reader should know of the evidence, in plain words."""
    notes = []
    if interval.spread < SPREAD_FLOOR and interval.count > 1:
        notes.append(
            f"the pairs differ by {interval.spread:.2%} only; "
            f"{SPREAD_FLOOR:.1%} was assumed, for so regular a drive proves little"
        )
    if interval.correlation > 0.3:
        notes.append(
            f"neighbouring pairs are correlated ({interval.correlation:.2f}); "
            "the interval was widened for it"
        )
    if outcome is not Outcome.INCONCLUSIVE and signs.says:
        above = (outcome is Outcome.PASS) == (direction == ">=")
        if signs.says != ("above" if above else "below"):
            notes.append(
                f"the signs alone say the opposite: {signs.above} pairs above the "
                f"threshold, {signs.below} below; look at the slices"
            )
    return tuple(notes)


def _rate(interval: Interval) -> RateEstimate:
    return RateEstimate(interval.middle, interval.low, interval.high)


def _pairs(
    numerators: Sequence[float], denominators: Sequence[float], *, drop_unusable: bool
) -> list[tuple[float, float]]:
    """The rates pair by pair; unusable ones left out or refused with ValueError."""
    if len(numerators) != len(denominators):
        raise ValueError(
            f"{len(numerators)} numerator rates against {len(denominators)} denominator rates: "
            "a pair has one of each"
        )
    pairs = [(float(top), float(low)) for top, low in zip(numerators, denominators, strict=True)]
    if drop_unusable:
        return [pair for pair in pairs if all(map(_usable, pair))]
    for place, pair in enumerate(pairs):
        for side, rate in zip(("numerator", "denominator"), pair, strict=True):
            if not _usable(rate):
                raise ValueError(
                    f"pair {place}: the {side} rate is {rate}; "
                    "a rate that can be compared is finite and above 0"
                )
    if len(pairs) < 2:
        raise ValueError(f"{len(pairs)} pair(s): a spread needs at least two")
    return pairs


def _usable(rate: float) -> bool:
    return math.isfinite(rate) and rate > 0.0


def _check_claim(threshold: float, direction: str, margin: float) -> None:
    if direction not in get_args(Direction):
        raise ValueError(f"direction is {direction!r}: it is one of >=, <=")
    if not _usable(threshold):
        raise ValueError(f"threshold is {threshold}: a ratio is finite and above 0")
    if not 0.0 < margin < 1.0:
        raise ValueError(f"margin is {margin}: it lies between 0 and 1, as 0.03 for 3 %")


def _check_times(pair_seconds: float, spent_s: float, budget_s: float) -> None:
    for name, seconds in (("pair_seconds", pair_seconds), ("budget_s", budget_s)):
        if not _usable(seconds):
            raise ValueError(f"{name} is {seconds}: a time is finite and above 0")
    if not (math.isfinite(spent_s) and spent_s >= 0.0):
        raise ValueError(f"spent_s is {spent_s}: drive time is finite and at least 0")
