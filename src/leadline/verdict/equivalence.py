"""Equivalence: two rigs, or two drives, give the same rate within a stated difference.

Not finding a difference is no proof that there is none, so the claim is turned round: PASS
needs the whole interval inside the bounds, which is both one-sided tests at once (Schuirmann
1987, Journal of Pharmacokinetics and Biopharmaceutics 15(6), 657-680).  To tell a rig from
the drive on it, swap the drives and claim again: what moves along is the drive's.
"""

import math
from collections.abc import Sequence

from leadline.verdict.contrast import BUDGET_S, SIGMA_D, margin_below
from leadline.verdict.ratio import judge_ratio
from leadline.verdict.verdict import Verdict


def judge_equivalence(
    a_rates: Sequence[float],
    b_rates: Sequence[float],
    delta: float,
    *,
    pair_seconds: float,
    spent_s: float,
    sigma_session: float,
    budget_s: float = BUDGET_S,
    sigma_d: float = SIGMA_D,
    margin: float | None = None,
    voids: Sequence[str] = (),
) -> Verdict | None:
    """Settle `a and b differ by at most delta` (0.05 is 5 %), or None: measure another pair.

    PASS when the always-valid interval of the ratio lies inside 1/(1 + delta) to 1 + delta,
    FAIL when it lies wholly outside; else INCONCLUSIVE, "marginal" when all of it lies
    within a factor of 1 + `margin` (by default half of `delta`, at most 3 %) of one of the
    two bounds.  The verdict's direction is "within", its threshold `delta`.

    `sigma_session` is the standard deviation of one rig's log rate from session to session.
    Two rigs have a session each, and the square root of 2 of it enters; so it does for two
    drives that were not measured in one session.  0, and only 0, says that the slices of a
    pair were adjacent on one rig; `sigma_d` is that of the pairs' contrast in either case.
    The rest as in `ratio.judge_ratio`, which also says what raises ValueError.
    """
    if not (math.isfinite(sigma_session) and sigma_session >= 0.0):
        raise ValueError(f"sigma_session is {sigma_session}: it is finite and at least 0")
    return judge_ratio(
        a_rates,
        b_rates,
        delta,
        "within",
        pair_seconds=pair_seconds,
        spent_s=spent_s,
        budget_s=budget_s,
        sigma_d=sigma_d,
        sigma_session=math.sqrt(2.0) * sigma_session,
        margin=margin_below(delta, margin, "delta"),
        voids=voids,
    )
