"""The shape of a depth curve, for a report: knee, isotonic fit, scalability law.

None of it decides anything: each leans on a model of what a curve should look like, which
a drive need not share.  Verdicts are those of `leadline.verdict.dip` and of ratio claims.
"""

import math
from dataclasses import dataclass, replace
from itertools import accumulate

from leadline.verdict.curve import Sweep

KNEE_TOLERANCE = 0.5
"""How far from the number of channels a knee may lie, as a share of it, and still be said to fit:
on a drive whose path takes a tenth of the time of a read it lies a tenth further on, and a curve
that bends slowly has it where the range of depths puts it."""
FLAT = 0.05
"""A curve that rises by less than this share of its best rate has no knee worth showing."""


def knee(sweep: Sweep) -> int | None:
    """The depth at which a curve bends most, beyond which more depth buys little.

    That is Kneedle, for curves that are measured and done: with depth and rate each scaled
    to [0, 1], where the rate lies highest above the straight line from first to last; and
    only if that is more than the mean distance of the scaled depths, which is Kneedle's
    threshold at sensitivity 1.

        Satopaa, Albrecht, Irwin, Raghavan: Finding a "Kneedle" in a Haystack, 31st
        International Conference on Distributed Computing Systems Workshops, 2011.

    Not the depth at which a fitted saturation reaches 90 % of its asymptote: that
    extrapolates, beyond depth 32 often enough, and on a drive with c channels, whose curve
    is min(d, c), it is not c.  The rate is the best one up to each depth, so that a
    collapse or a dip further on moves nothing.  None for a curve that is flat or straight.
    The range counts: a smooth curve measured to depth 64 has its knee later than one
    measured to depth 16.
    """
    curve = sweep.curve
    depths = sweep.depths
    best = list(accumulate(curve.values(), max))
    rise, span = best[-1] - best[0], depths[-1] - depths[0]
    if rise <= FLAT * best[-1]:
        return None
    heights = {
        depth: (rate - best[0]) / rise - (depth - depths[0]) / span
        for depth, rate in zip(depths, best, strict=True)
    }
    bend = max(depths, key=heights.__getitem__)
    return bend if heights[bend] > 1.0 / (len(depths) - 1) else None


def knee_in_words(bend: int | None, channels: int | None) -> str:
    """A knee, and how it compares with the drive's `channels` where these are known.

    For people: that it lies elsewhere is no fault of the drive.
    """
    said = f"knee at depth {bend}" if bend else "no knee: flat or straight"
    if channels is None:
        return said
    fits = bend is not None and abs(bend - channels) <= KNEE_TOLERANCE * channels
    where = f"{'within' if fits else 'not within'} {KNEE_TOLERANCE:.0%} of the {channels} channels"
    return f"{said} ({where}: a figure and no verdict)"


def isotonic_fit(sweep: Sweep) -> dict[int, float]:
    """Rates by depth (requests a second) that never fall, nearest to those of the sweep.

    Least squares of the logs: pool adjacent violators, by `scipy.optimize`.  Where a drive
    lies below it, the rate falls with depth.
    """
    import numpy as np
    from scipy.optimize import isotonic_regression

    curve = sweep.curve
    fitted = isotonic_regression(np.log(list(curve.values()))).x
    return dict(zip(curve, np.exp(fitted).tolist(), strict=True))


@dataclass(frozen=True)
class Scalability:
    """A curve by the universal scalability law, and how far from it the rates are.

    X(N) = rate N / (1 + contention (N - 1) + coherency N (N - 1)), `rate` being that of
    depth 1 in requests a second; the other two have no unit and are at least 0.
    `residual` is the largest relative distance of a measured rate from the law.
    """

    rate: float
    contention: float
    coherency: float
    residual: float

    def at(self, depth: float) -> float:
        """The rate at a depth by the law, in requests a second."""
        slowed = 1.0 + self.contention * (depth - 1) + self.coherency * depth * (depth - 1)
        return self.rate * depth / slowed

    @property
    def peak(self) -> float | None:
        """The depth of the highest rate, sqrt((1 - contention)/coherency); None without one.

        It may lie far beyond the depths measured, and says little then.
        """
        if self.coherency == 0.0:
            return None
        return max(1.0, math.sqrt(max(0.0, 1.0 - self.contention) / self.coherency))


def scalability(sweep: Sweep) -> Scalability | None:
    """The universal scalability law nearest to a sweep; None when it has no rate at depth 1.

        Gunther: Guerrilla Capacity Planning, Springer 2007, chapter 4.

    N/X is linear in (1, N - 1, N (N - 1)), with coefficients that cannot be below 0; so
    non-negative least squares (Lawson and Hanson, by `scipy.optimize.nnls`) finds it
    without a guess to start from.  Each row is scaled by X/N, so that residuals are
    relative and no depth outweighs the others.
    """
    import numpy as np
    from scipy.optimize import nnls

    curve = sweep.curve
    depths = np.array(list(curve), dtype=float)
    rates = np.array(list(curve.values()))
    terms = np.column_stack([np.ones_like(depths), depths - 1.0, depths * (depths - 1.0)])
    # In units of the best rate: nnls knows nothing of units, and its tolerance is absolute.
    best = float(rates.max())
    weight = (rates / best / depths)[:, np.newaxis]
    alone, waiting, agreeing = nnls(terms * weight, np.ones_like(depths))[0].tolist()
    if alone <= 0.0:
        return None
    law = Scalability(best / alone, waiting / alone, agreeing / alone, 0.0)
    residual = max(abs(law.at(depth) / rate - 1.0) for depth, rate in curve.items())
    return replace(law, residual=residual)
