"""The always-valid interval on a mean of logs, its guards, and a sign test beside it.

A test looks at its evidence after every pair of slices and stops as soon as it is
settled.  A t interval that is looked at so often is wrong far more often than it says;
this one holds at all looks together:

    Lindon, Ham, Tingley, Bojinov: Anytime-Valid Linear Models and Regression Adjusted
    Causal Inference in Randomized Experiments, 2022, arXiv:2210.08589.

Its error rate is proven for independent normal values.  Slices are neither quite, so three
guards widen it: for correlated neighbours, for slow drift, and for a drive so regular that
a handful of values would settle anything.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

ALPHA = 0.01
"""Chance that the interval ever leaves the truth out, over all looks together."""
PHI = 0.1
"""Prior precision of the effect, in values: where the interval is tightest."""
SPREAD_FLOOR = 0.004
"""Least standard deviation of a log believed: 0.4 %."""
CORRELATION_CAP = 0.9
DRIFT_FACTOR = 2.6
"""Standard deviations of drift allowed for: 99 % of a normal, two-sided."""
DRIFT_TIME_S = 10.0
"""Time over which a rig's drift forgets where it was (tau)."""


@dataclass(frozen=True)
class Interval:
    """An interval on the mean of logs, with what widened it.

    `mean`, `half_width`, `spread` (the standard deviation as seen, before its guards) and
    `drift` (the drift term, part of `half_width`) are natural logs: 0.01 is 1 %.
    `correlation` is the lag-1 correlation after clipping.  `half_width` is infinite while
    there are too few values.
    """

    count: int
    mean: float
    half_width: float
    spread: float
    correlation: float
    drift: float

    @property
    def low(self) -> float:
        """Lower end, back from the log: a ratio or a rate; 0 while the width is infinite."""
        return _exp(self.mean - self.half_width)

    @property
    def middle(self) -> float:
        """The estimate, back from the log: a geometric mean."""
        return _exp(self.mean)

    @property
    def high(self) -> float:
        """Upper end, back from the log; infinite while the width is."""
        return _exp(self.mean + self.half_width)


def _exp(log: float) -> float:
    try:
        return math.exp(log)
    except OverflowError:
        return math.inf


def width_factor(count: int, alpha: float = ALPHA, phi: float = PHI) -> float:
    """Half-width of the always-valid interval in standard errors of the mean.

    With n values, nu = n - 1, r = phi/(phi + n) and a = (r alpha^2)^(1/(nu + 1)) it is
    sqrt(nu (1 - a)/(a - r)), and infinite while a <= r (Lindon et al. 2022): at ALPHA and
    PHI, for fewer than four values.
    """
    if count < 2:
        return math.inf
    r = phi / (phi + count)
    a = (r * alpha**2) ** (1.0 / count)
    if a <= r:
        return math.inf
    return math.sqrt((count - 1) * (1.0 - a) / (a - r))


def lag1_correlation(values: Sequence[float]) -> float:
    """Correlation of each value with the one before, clipped to [0, CORRELATION_CAP].

    A negative correlation would narrow the interval, on evidence too thin for that.
    """
    mean = math.fsum(values) / len(values)
    deviations = [value - mean for value in values]
    square = math.fsum(d * d for d in deviations)
    if square == 0.0:
        return 0.0
    product = math.fsum(d * e for d, e in pairwise(deviations))
    return min(max(product / square, 0.0), CORRELATION_CAP)


def drift_term(count: int, value_seconds: float, sigma_d: float) -> float:
    """What slow drift of the rig may have moved the mean by, as a log.

    `sigma_d` is the standard deviation of the drift, `value_seconds` the drive time behind
    one value.  Drift averages out only over times much longer than DRIFT_TIME_S.
    """
    share = min(1.0, 2.0 * DRIFT_TIME_S / (count * value_seconds))
    return DRIFT_FACTOR * sigma_d * math.sqrt(share)


def interval_of(logs: Sequence[float], *, value_seconds: float, sigma_d: float) -> Interval:
    """The guarded always-valid interval on the mean of `logs`, at level ALPHA.

    `logs` are natural logs in the order in which they were measured.  Raises ValueError
    when there are none, when one is not finite, or when a parameter makes no sense.
    """
    if not logs:
        raise ValueError("an interval needs at least one value, and there is none")
    for place, log in enumerate(logs):
        if not math.isfinite(log):
            raise ValueError(f"value {place} of {len(logs)} is {log}, not a finite log")
    if not (math.isfinite(value_seconds) and value_seconds > 0):
        raise ValueError(f"a value took {value_seconds} s: it must be above 0")
    if not (math.isfinite(sigma_d) and sigma_d >= 0):
        raise ValueError(f"sigma_d is {sigma_d}: a standard deviation is at least 0")
    count = len(logs)
    mean = math.fsum(logs) / count
    spread = 0.0
    if count > 1:
        spread = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (count - 1))
    correlation = lag1_correlation(logs)
    drift = drift_term(count, value_seconds, sigma_d)
    inflation = math.sqrt((1.0 + correlation) / (1.0 - correlation))
    error = max(spread, SPREAD_FLOOR) * inflation / math.sqrt(count)
    half_width = error * width_factor(count) + drift
    return Interval(count, mean, half_width, spread, correlation, drift)


@dataclass(frozen=True)
class SignOpinion:
    """How many values lie above and below the threshold, and what their signs alone say.

    `e_above` is the evidence (an e-value: the factor by which a bet against the opposite
    would have grown) that values lie above more often than not, `e_below` that they lie
    below.  It needs no normal distribution and no standard deviation.
    """

    above: int
    below: int
    e_above: float
    e_below: float

    @property
    def says(self) -> str:
        """`"above"`, `"below"`, or `""` while the signs do not settle it at level ALPHA."""
        if self.e_above >= 1.0 / ALPHA:
            return "above"
        return "below" if self.e_below >= 1.0 / ALPHA else ""


def sign_opinion(logs: Sequence[float], threshold: float) -> SignOpinion:
    """The signs of `logs` against `threshold` (also a log); ties count on neither side."""
    above = sum(log > threshold for log in logs)
    below = sum(log < threshold for log in logs)
    return SignOpinion(above, below, sign_e_value(above, below), sign_e_value(below, above))


def sign_e_value(wins: int, losses: int) -> float:
    """Evidence that a win is likelier than a loss: a mixture of bets on p in [1/2, 1].

    With n = wins + losses: the integral over p, uniform on [1/2, 1], of
    2^n p^wins (1 - p)^losses.  By the beta integral and its binomial tail this is
    sum over j <= wins of C(n + 1, j), over (n + 1) C(n, wins).  Nine wins of nine give
    102, above 100 = 1/ALPHA.  (Robbins' mixture; Ramdas, Grünwald, Vovk, Shafer 2023,
    Statistical Science 38(4).)  Infinite when it is beyond a float.
    """
    trials = wins + losses
    term = (trials + 1) / (trials + 1 - wins)
    total = 0.0
    for j in range(wins, -1, -1):
        total += term
        term *= j / (trials + 2 - j)
    return total / (trials + 1)
