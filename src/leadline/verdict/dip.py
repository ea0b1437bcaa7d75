"""Dips of a depth curve: a suspect confirmed or cleared, and the verdict on the curve.

The unit is a triple: a slice at the depth and one at each neighbour, side by side.  Each
gives one contrast; what drifts slowly against a triple cancels in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from leadline.verdict.contrast import (
    MARGIN,
    SIGMA_D,
    judge_contrast,
    usable,
)
from leadline.verdict.curve import (
    DIP_TOLERANCE,
    MOST_PASSES,
    Suspect,
    Sweep,
    contrast_of,
    least_dip,
    passes_needed,
    sees_dips,
    to_confirm,
)
from leadline.verdict.verdict import Outcome, Verdict

CURVE_BUDGET_S = 2080.0
"""Drive time of the practice this replaces: a run of 65 s at each of 32 depths."""

Place = Literal["below", "at", "above"]
_ORDERS: tuple[tuple[Place, Place, Place], ...] = (
    ("below", "at", "above"),
    ("at", "above", "below"),
    ("above", "below", "at"),
    ("above", "at", "below"),
    ("at", "below", "above"),
    ("below", "above", "at"),
)


def triple_order(number: int) -> tuple[Place, Place, Place]:
    """The order in which triple `number` (from 0) is measured.

    Over three triples in a row each place has been first, second and last once, so that a
    steady drift cancels; over six each has followed each other equally often.
    """
    return _ORDERS[number % len(_ORDERS)]


def judge_dip(
    suspect: Suspect,
    below_rates: Sequence[float],
    at_rates: Sequence[float],
    above_rates: Sequence[float],
    *,
    triple_seconds: float,
    spent_s: float,
    budget_s: float = CURVE_BUDGET_S,
    sigma_d: float = SIGMA_D,
    margin: float = MARGIN,
    tolerance: float = DIP_TOLERANCE,
    voids: Sequence[str] = (),
) -> Verdict | None:
    """Settle "at this depth the rate is not below its chord by more than the tolerance".

    None asks for more triples.  The rates (requests a second) are those of each triple, in
    the order in which the triples were measured, never those of the screen, which chose
    the suspect for being low; `triple_seconds` is the drive time of one, `spent_s` that of
    the curve so far.  The rest, and the outcome, is as in `contrast.judge_contrast`; the
    verdict's `rates` are at the depth, below and above.  With `voids`, triples without
    three usable rates are left out, and there may be none.  Without, ValueError on fewer
    than two triples, rates that are not finite and above 0, or unequal numbers of them.
    """
    if not 0.0 < tolerance < 1.0:
        raise ValueError(f"tolerance is {tolerance}: it lies between 0 and 1, as 0.04 for 4 %")
    triples = _triples(below_rates, at_rates, above_rates, drop_unusable=bool(voids))
    below, at, above = zip(*triples, strict=True) if triples else ((), (), ())
    verdict = judge_contrast(
        [contrast_of(*triple, suspect.share) for triple in triples],
        1.0 - tolerance,
        ">=",
        unit="triple",
        unit_seconds=triple_seconds,
        spent_s=spent_s,
        budget_s=budget_s,
        sigma_d=sigma_d,
        margin=margin,
        sides=(at, below, above),
        voids=voids,
    )
    if verdict is None:
        return None
    others = str(suspect.below) if suspect.by_below else f"{suspect.below} and {suspect.above}"
    where = f"depth {suspect.depth} against {others}"
    return replace(verdict, notes=(where, *verdict.notes))


def judge_curve(
    sweep: Sweep,
    verdicts: Mapping[Suspect, Verdict],
    *,
    spent_s: float,
    tolerance: float = DIP_TOLERANCE,
) -> Verdict:
    """The verdict on a whole curve: the worst of those of its suspects.

    FAIL as soon as one failed, the deepest of them; INCONCLUSIVE as soon as one is, which
    is how a spent budget ends it.  PASS only when everything that `to_confirm` names has
    passed, and when the screen could see: one that may have missed a dip of twice the
    tolerance makes it INCONCLUSIVE.  `spent_s` is the drive time of the screen and of all
    triples.  Raises ValueError when all have passed but a suspect has no verdict.
    """
    for outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE):
        ended_so = [each for each in verdicts.values() if each.outcome is outcome]
        if ended_so:
            return replace(min(ended_so, key=_estimate), drive_seconds=spent_s)
    named = to_confirm(sweep, tolerance)
    for suspect in named:
        if suspect not in verdicts:
            raise ValueError(
                f"depth {suspect.depth} is suspected and has no verdict: confirm it with judge_dip"
            )
    passed = [verdicts[suspect] for suspect in named]
    worst = replace(min(passed, key=_estimate), drive_seconds=spent_s)
    if sees_dips(sweep, tolerance):
        return worst
    seen = least_dip(sweep, tolerance)
    note = f"so noisy was the sweep that it may have missed dips of up to {seen:.0%}"
    shortage = ""
    if sweep.passes > 1 and passes_needed(sweep, tolerance) > MOST_PASSES:
        shortage = (
            f"the screen of all depths is too noisy: {MOST_PASSES} passes, and it takes no more, "
            "would not see a dip of twice the tolerance; find what makes the rig noisy, or claim "
            "a larger tolerance"
        )
    return replace(
        worst,
        outcome=Outcome.INCONCLUSIVE,
        reason="budget",
        notes=(*worst.notes, note),
        shortage=shortage,
    )


def _estimate(verdict: Verdict) -> float:
    return 0.0 if verdict.estimate is None else verdict.estimate


def _triples(
    below: Sequence[float], at: Sequence[float], above: Sequence[float], *, drop_unusable: bool
) -> list[tuple[float, float, float]]:
    """The rates triple by triple; unusable ones left out or refused with ValueError."""
    if not len(below) == len(at) == len(above):
        raise ValueError(
            f"{len(below)} rates below, {len(at)} at and {len(above)} above the depth: "
            "a triple has one of each"
        )
    triples = [
        (float(low), float(mid), float(high))
        for low, mid, high in zip(below, at, above, strict=True)
    ]
    if drop_unusable:
        return [triple for triple in triples if all(map(usable, triple))]
    for number, triple in enumerate(triples):
        for side, rate in zip(("below", "at", "above"), triple, strict=True):
            if not usable(rate):
                raise ValueError(
                    f"triple {number}: the rate {side} the depth is {rate}; "
                    "a rate that can be compared is finite and above 0"
                )
    if len(triples) < 2:
        raise ValueError(f"{len(triples)} triple(s): a spread needs at least two")
    return triples
