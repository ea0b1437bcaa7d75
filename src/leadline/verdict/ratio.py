"""Ratio claims: two settings of a drive compared by interleaved pairs of slices.

Each pair gives one value, the log of the ratio of its two rates; drift that is slow
against a pair cancels in it.
"""

import math
from collections.abc import Sequence

from leadline.verdict.contrast import (
    BUDGET_S,
    MARGIN,
    SIGMA_D,
    judge_contrast,
    usable,
)
from leadline.verdict.verdict import Direction, Verdict


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
    sigma_session: float = 0.0,
    margin: float = MARGIN,
    voids: Sequence[str] = (),
) -> Verdict | None:
    """Settle `numerator / denominator direction threshold`, or None: measure another pair.

    The rates (requests a second) are those of each pair, in the order in which the pairs
    were measured; `pair_seconds` is the drive time of one pair, the rest as in
    `contrast.judge_contrast`.  With `voids`, pairs without two usable rates are left out
    of the estimate, and there may be none.  Without, ValueError on fewer than two pairs,
    rates that are not finite and above 0, or sequences of unequal length.
    """
    pairs = _pairs(numerator_rates, denominator_rates, drop_unusable=bool(voids))
    tops, bottoms = [top for top, _ in pairs], [bottom for _, bottom in pairs]
    return judge_contrast(
        [math.log(top) - math.log(bottom) for top, bottom in pairs],
        threshold,
        direction,
        unit="pair",
        unit_seconds=pair_seconds,
        spent_s=spent_s,
        budget_s=budget_s,
        sigma_d=sigma_d,
        sigma_session=sigma_session,
        sigma_lasting=sigma_session,
        margin=margin,
        sides=(tops, bottoms),
        voids=voids,
    )


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
        return [pair for pair in pairs if all(map(usable, pair))]
    for place, pair in enumerate(pairs):
        for side, rate in zip(("numerator", "denominator"), pair, strict=True):
            if not usable(rate):
                raise ValueError(
                    f"pair {place}: the {side} rate is {rate}; "
                    "a rate that can be compared is finite and above 0"
                )
    if len(pairs) < 2:
        raise ValueError(f"{len(pairs)} pair(s): a spread needs at least two")
    return pairs
