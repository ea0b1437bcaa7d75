"""What it would take to settle a claim that its drive time did not settle."""

import math
from dataclasses import replace

from leadline.drive_time import CURVE_BUDGETS
from leadline.evidence import Evidence
from leadline.plans import Plan
from leadline.verdict.pace import MOST
from leadline.verdict.verdict import Verdict

OUT_OF_REASON = "as noisy as it was, no drive time within reason would settle it"


def priced(
    verdict: Verdict,
    plan: Plan,
    evidence: Evidence,
    *,
    screen_s: float = 0.0,
    more_s: float = 0.0,
    cure: str = "",
) -> Verdict:
    """`verdict`, and where its drive time was spent, what would probably do.

    Where nothing would, that is its shortage, and `cure` what may help.  Of a curve, `screen_s`
    of the time went before that, most of it to the screen, which needs `more_s` besides.
    """
    if verdict.reason != "budget":
        return verdict
    counted = evidence.counted()
    measured = len(counted.blocks)
    needed = plan.needed(counted.rates(), evidence.block_s(len(plan.sides)))
    if verdict.shortage or needed >= MOST:
        said = verdict.shortage or OUT_OF_REASON
        return replace(verdict, shortage=f"{said}; {cure}" if cure else said)
    block_s = (evidence.spent_s - screen_s) / measured
    seconds = screen_s + more_s + max(needed, measured + 1) * block_s
    note = price_of_curve(seconds) if screen_s else _price(_tens(seconds))
    return replace(verdict, notes=(*verdict.notes, note))


def price_of_curve(seconds: float) -> str:
    """In words, where a claim of a curve would probably cost so many seconds."""
    return _price(
        _tens(seconds / CURVE_BUDGETS),
        CURVE_BUDGETS,
        f"; a curve may cost {CURVE_BUDGETS} times that",
    )


def _price(asked: int, times: int = 1, why: str = "") -> str:
    return (
        f"as noisy as it was, about {asked * times} s would settle it (--drive-time {asked}{why})"
    )


def _tens(seconds: float) -> int:
    return math.ceil(seconds / 10) * 10
