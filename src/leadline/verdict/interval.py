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
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import NormalDist

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
ROUNDING = 1e-12
"""Logs that differ by less differ by nothing but rounding, which has no correlation."""
LEAST_P_VALUE = 1e-300
"""What is below it is told apart by nobody, and would leave the range of a float."""


@dataclass(frozen=True)
class Interval:
    """An interval on the mean of logs, with what widened it.

    `mean`, `half_width`, `spread` (the standard deviation as seen, before its guards) and
    `drift` (the drift term, part of `half_width`; other sessions of the rig are in it where
    the claim is about them) are natural logs: 0.01 is 1 %.
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
    def error(self) -> float:
        """Standard error of the mean, its guards included and the drift term not."""
        inflation = math.sqrt((1.0 + self.correlation) / (1.0 - self.correlation))
        return max(self.spread, SPREAD_FLOOR) * inflation / math.sqrt(self.count)

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


def log_e_value(errors: float, count: int, phi: float = PHI) -> float:
    """Log of the e-value that belongs to the interval, against a mean `errors` away.

    `errors` is the distance in standard errors of the mean (Student's t): the log of
    sqrt(r) ((1 + t^2/nu)/(1 + r t^2/nu))^((nu + 1)/2), the ratio of likelihoods whose level
    1/alpha is `width_factor` (Lindon et al. 2022).  0 with fewer than two values.
    """
    if count < 2:
        return 0.0
    r = phi / (phi + count)
    square = errors * errors / (count - 1)
    return 0.5 * math.log(r) + 0.5 * count * (math.log1p(square) - math.log1p(r * square))


def p_value(interval: Interval, threshold: float) -> float:
    """The level at which `interval` would just exclude `threshold` (a log); at most 1.

    At or below ALPHA exactly when the interval excludes it.  Without drift it is one over
    the e-value.  What is allowed for drift is ALPHA's quantile of a normal, and so is wider
    at a smaller level: evidence grows with more slices only until drift explains it.
    """
    distance = abs(interval.mean - threshold)
    if interval.count < 2 or not math.isfinite(distance / interval.error):
        return 1.0

    def excludes(log_level: float) -> bool:
        quantile = NormalDist().inv_cdf(0.5 * math.exp(log_level))
        drift = interval.drift * quantile / NormalDist().inv_cdf(0.5 * ALPHA)
        errors = max(distance - drift, 0.0) / interval.error
        return log_e_value(errors, interval.count) > -log_level

    low, high = math.log(LEAST_P_VALUE), 0.0
    if not excludes(high):
        return 1.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excludes(middle) else (middle, high)
    return math.exp(high)


def lag1_correlation(values: Sequence[float]) -> float:
    """Correlation of each value with the one before, clipped to [0, CORRELATION_CAP].

    A negative correlation would narrow the interval, on evidence too thin for that.
    """
    mean = math.fsum(values) / len(values)
    deviations = [value - mean for value in values]
    return _lag1(deviations, math.fsum(d * d for d in deviations))


def _lag1(deviations: Sequence[float], square: float) -> float:
    if square <= len(deviations) * ROUNDING**2:
        return 0.0
    product = math.fsum(d * e for d, e in pairwise(deviations))
    return min(max(product / square, 0.0), CORRELATION_CAP)


def drift_term(
    count: int, value_seconds: float, sigma_d: float, sigma_session: float = 0.0
) -> float:
    """What slow drift of the rig may have moved the mean by, as a log.

    `sigma_d` is the standard deviation of the drift, `value_seconds` the drive time behind
    one value.  Drift averages out only over times much longer than DRIFT_TIME_S.
    `sigma_session` is the standard deviation from one session of the rig to another, which
    no length of a single session averages out.  The two have different causes (minutes of
    temperature and neighbours; a reboot, a remount, a reseated drive), so that their
    variances add; adding the deviations would count both at their worst at once.
    """
    share = min(1.0, 2.0 * DRIFT_TIME_S / (count * value_seconds))
    return DRIFT_FACTOR * math.hypot(sigma_d * math.sqrt(share), sigma_session)


def interval_of(
    logs: Sequence[float], *, value_seconds: float, sigma_d: float, sigma_session: float = 0.0
) -> Interval:
    """The guarded always-valid interval on the mean of `logs`, at level ALPHA.

    `logs` are natural logs in the order in which they were measured; the rest as in
    `drift_term`.  Raises ValueError when there are none, when one is not finite, or when a
    parameter makes no sense.
    """
    if not logs:
        raise ValueError("an interval needs at least one value, and there is none")
    for place, log in enumerate(logs):
        if not math.isfinite(log):
            raise ValueError(f"value {place} of {len(logs)} is {log}, not a finite log")
    if not (math.isfinite(value_seconds) and value_seconds > 0):
        raise ValueError(f"a value took {value_seconds} s: it must be above 0")
    for name, sigma in (("sigma_d", sigma_d), ("sigma_session", sigma_session)):
        if not (math.isfinite(sigma) and sigma >= 0):
            raise ValueError(f"{name} is {sigma}: a standard deviation is at least 0")
    count = len(logs)
    mean = math.fsum(logs) / count
    deviations = [log - mean for log in logs]
    square = math.fsum(d * d for d in deviations)
    spread = math.sqrt(square / (count - 1)) if count > 1 else 0.0
    correlation = _lag1(deviations, square)
    drift = drift_term(count, value_seconds, sigma_d, sigma_session)
    bare = Interval(count, mean, math.inf, spread, correlation, drift)
    return replace(bare, half_width=bare.error * width_factor(count) + drift)


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
