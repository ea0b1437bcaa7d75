"""What single long runs settle: one run a setting, so that nothing cancels as it does in pairs.

Two numbers from two runs differ by the noise within each run, by what the rig did
differently between them, and by whatever kept the queue short.  The first two are allowed
for on both sides of a ratio; the third can only have lowered a rate, so it widens the
interval on one side.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leadline.verdict.contrast import MARGIN, SIGMA_D, usable
from leadline.verdict.interval import CORRELATION_CAP, DRIFT_FACTOR, SPREAD_FLOOR
from leadline.verdict.verdict import Direction, Outcome, RateEstimate, Reason, Verdict

FEWEST_SAMPLES = 10
"""Samples within a run from which its noise can be told."""
UNSAMPLED_SPREAD = math.log(4.80 / 3.90)
"""How far ratios of identical pairs of 65 s runs lay apart on a shared rig, as a log: the
allowance on a ratio of runs of which nothing else is known."""


@dataclass(frozen=True)
class Run:
    """One long run at one setting.

    `rate` is its mean over `seconds`, in requests a second; `most` the rate that it may
    have had with the queue full all the time (at least `rate`; infinite when the load
    generator was the limit).  `spread` is the standard deviation of its `samples` shorter
    means over their mean, None when it is not known.  Raises ValueError on what cannot be.
    """

    rate: float
    most: float
    seconds: float
    spread: float | None = None
    samples: int = 0

    def __post_init__(self) -> None:
        if not usable(self.rate):
            raise ValueError(f"a run's rate is {self.rate}: it is finite and above 0")
        if not self.most >= self.rate:
            raise ValueError(f"a run of rate {self.rate} had at most {self.most}")
        if self.spread is not None and not (math.isfinite(self.spread) and self.spread >= 0):
            raise ValueError(f"a run's spread is {self.spread}: it is finite and at least 0")

    @property
    def sampled(self) -> bool:
        """Whether the run's own samples tell its noise."""
        return self.spread is not None and self.samples >= FEWEST_SAMPLES


@dataclass(frozen=True)
class RunRatio:
    """A ratio of runs with what it may have been, and the allowance (a log) in both ends."""

    estimate: float
    low: float
    high: float
    allowance: float


def error_of(run: Run, sigma_d: float = SIGMA_D) -> float:
    """Standard error of the log of a run's rate.

    The noise within the run, as of a mean of correlated samples (nobody recorded their
    correlation, so CORRELATION_CAP is assumed), and `sigma_d`, the standard deviation of
    the rig's drift, in full: drift between two runs does not average out within them.
    Without samples, the run's share of UNSAMPLED_SPREAD.
    """
    if run.spread is None or not run.sampled:
        return UNSAMPLED_SPREAD / (DRIFT_FACTOR * math.sqrt(2.0))
    inflation = (1.0 + CORRELATION_CAP) / (1.0 - CORRELATION_CAP)
    noise = max(run.spread, SPREAD_FLOOR) ** 2 * inflation / run.samples
    return math.sqrt(noise + sigma_d**2)


def ratio_of(run: Run, over: Sequence[tuple[float, Run]], *, sigma_d: float = SIGMA_D) -> RunRatio:
    """The rate of `run` over the weighted sum of the rates `over`, (weight, run) each.

    The allowance is DRIFT_FACTOR standard errors; `low` and `high` hold the most that
    either side may have been, too.  Raises ValueError when `over` sums to nothing.
    """
    below = math.fsum(weight * other.rate for weight, other in over)
    if not usable(below):
        raise ValueError(f"the rates below sum to {below}: they are above 0")
    shares = [(weight * other.rate / below, other) for weight, other in over]
    square = error_of(run, sigma_d) ** 2
    square += math.fsum((share * error_of(other, sigma_d)) ** 2 for share, other in shares)
    allowance = DRIFT_FACTOR * math.sqrt(square)
    most_below = math.fsum(weight * other.most for weight, other in over)
    return RunRatio(
        estimate=run.rate / below,
        low=run.rate / most_below * math.exp(-allowance),
        high=run.most / below * math.exp(allowance),
        allowance=allowance,
    )


def judge_runs(
    numerator: Run,
    denominator: Run,
    threshold: float,
    direction: Direction,
    *,
    sigma_d: float = SIGMA_D,
    margin: float = MARGIN,
    voids: Sequence[str] = (),
) -> Verdict:
    """Settle `numerator / denominator direction threshold` on one run each.

    PASS or FAIL when the whole interval of `ratio_of` lies on one side of the threshold;
    otherwise INCONCLUSIVE: "marginal" when all of it lies within a factor of 1 + `margin`,
    else "budget", for nothing more was recorded.  With `voids` it is INCONCLUSIVE, "void".
    """
    if not usable(threshold):
        raise ValueError(f"threshold is {threshold}: a ratio is finite and above 0")
    ratio = ratio_of(numerator, [(1.0, denominator)], sigma_d=sigma_d)
    outcome, reason = _decide(ratio, threshold, direction, margin)
    if voids:
        outcome, reason = Outcome.INCONCLUSIVE, "void"
    return Verdict(
        outcome=outcome,
        reason=reason,
        direction=direction,
        threshold=threshold,
        count=1,
        unit="pair",
        drive_seconds=numerator.seconds + denominator.seconds,
        estimate=ratio.estimate,
        low=ratio.low,
        high=ratio.high,
        rates=(_rate(numerator, sigma_d), _rate(denominator, sigma_d)),
        voids=tuple(voids),
        notes=(f"{math.expm1(ratio.allowance):.1%} is allowed for what differs from run to run",),
    )


def _decide(
    ratio: RunRatio, threshold: float, direction: Direction, margin: float
) -> tuple[Outcome, Reason]:
    if ratio.low > threshold or ratio.high < threshold:
        holds = (ratio.low > threshold) == (direction == ">=")
        return (Outcome.PASS if holds else Outcome.FAIL), "settled"
    if threshold / (1.0 + margin) <= ratio.low and ratio.high <= threshold * (1.0 + margin):
        return Outcome.INCONCLUSIVE, "marginal"
    return Outcome.INCONCLUSIVE, "budget"


def _rate(run: Run, sigma_d: float) -> RateEstimate:
    factor = math.exp(DRIFT_FACTOR * error_of(run, sigma_d))
    return RateEstimate(run.rate, run.rate / factor, run.most * factor)
