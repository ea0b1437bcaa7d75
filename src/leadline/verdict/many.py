"""Many cells: what a FAIL among a thousand claims is worth.

A thousand claims at level 1 % are ten false FAILs.  Each verdict has the always-valid p-value
of its claim (`Verdict.p_against`); here they are corrected for their number.  For a
dashboard, Benjamini-Hochberg: of the claims shown as failing, at most that share is false.
For a release, every FAIL is confirmed in a fresh run, and Holm's correction is made over
those alone: the first run picks, the second decides, so that the claims that passed cost
the others nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from leadline.verdict.contrast import p_against
from leadline.verdict.interval import ALPHA, Interval
from leadline.verdict.verdict import Direction, Outcome, Verdict

ClaimKey = tuple[str, str]
"""A claim and the cell it was made of: what is the same in two runs."""
Standing = Literal["confirmed", "refuted", "open"]


def p_over_looks(looks: Iterable[Interval], threshold: float, direction: Direction) -> float:
    """The always-valid p-value of one claim after several looks: one over the greatest E.

    The running minimum, which no later look can take back (Ville's inequality covers all
    looks together); that of the last look alone, as a verdict has it, is valid as well and
    never smaller.  `looks` are the intervals of one claim, at least one.
    """
    return min(p_against(look, threshold, direction) for look in looks)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: below ALPHA, the chance of any false one is below ALPHA.

    Holm 1979, Scandinavian Journal of Statistics 6(2): the k-th smallest of m times m - k + 1,
    made to rise.  Whatever the claims have in common.  In the order of `p_values`; raises
    ValueError on what is no p-value.
    """
    _check(p_values)
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = least
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: of those below a level, at most that share is false on average.

    Benjamini and Hochberg 1995, Journal of the Royal Statistical Society B 57(1); for
    claims that are independent or, as cells on one rig are, positively dependent.  In the
    order of `p_values`; raises ValueError on what is no p-value.
    """
    _check(p_values)
    if not p_values:
        return []
    from scipy.stats import false_discovery_control

    return [float(p) for p in false_discovery_control(p_values, method="bh")]


def _check(p_values: Sequence[float]) -> None:
    for place, p in enumerate(p_values):
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"p-value {place} is {p}: it lies between 0 and 1")


@dataclass(frozen=True)
class Confirmation:
    """A FAIL of one run beside the same claim in a fresh run.

    `fresh` is None when the claim was not made again.  `p_adjusted` is Holm's, of the
    fresh runs' p-values alone, 1 without one.
    """

    key: ClaimKey
    first: Verdict
    fresh: Verdict | None
    p_adjusted: float

    @property
    def standing(self) -> Standing:
        """What is known now: "open" asks for another fresh run, or a longer one."""
        if self.fresh is None or self.fresh.outcome is Outcome.INCONCLUSIVE:
            return "open"
        if self.fresh.outcome is Outcome.PASS:
            return "refuted"
        return "confirmed" if self.p_adjusted <= ALPHA else "open"


def confirm(
    first: Mapping[ClaimKey, Verdict], fresh: Mapping[ClaimKey, Verdict]
) -> list[Confirmation]:
    """Every FAIL of the `first` run, beside what a `fresh` run said of it.

    In the order of `first`.  Raises ValueError when a claim was made of another threshold
    or direction the second time.
    """
    failed = {key: each for key, each in first.items() if each.outcome is Outcome.FAIL}
    for key, verdict in failed.items():
        again = fresh.get(key, verdict)
        was, now = (verdict.direction, verdict.threshold), (again.direction, again.threshold)
        if was != now:
            raise ValueError(
                f"{key[0]} of {key[1]} was {was[0]} {was[1]:g} in the first run and {now[0]} "
                f"{now[1]:g} in the fresh one: a FAIL is confirmed by the same claim"
            )
    adjusted = holm([fresh[key].p_against if key in fresh else 1.0 for key in failed])
    return [
        Confirmation(key, verdict, fresh.get(key), p)
        for (key, verdict), p in zip(failed.items(), adjusted, strict=True)
    ]
