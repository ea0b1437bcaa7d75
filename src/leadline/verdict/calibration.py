"""A rig's own noise, from A/A pairs: how far the same differs from the same.

A block is two pairs of slices that lie close together in time: twice the drive's queue deep,
and twice shallow.  The two halves of a pair have identical settings, so that all they differ
by is independent noise.  What the deep pair does against the shallow one has a constant truth,
and varies by that same noise and by the drift of the ratio, which no A/A pair can show: what
drifts with a setting moves both of its halves.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from leadline.verdict.interval import DRIFT_TIME_S, lag1_correlation
from leadline.verdict.sessions import session_spread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVEL = 0.90
"""Chance that the drift is no larger than it is said to be: few data err to the safe side."""
DRIFT_FLOOR = 0.002
"""Least sigma_d believed, a log: no rig is proven to be stiller by a minute of it."""
DRIFT_CAP = 1.0
"""Largest sigma_d looked for; a rig that drifts by more measures nothing."""
FEWEST_BLOCKS = 8
DEEP, SHALLOW = 8, 1
"""Device queue depths of the A/A pairs: those of the claim that a calibration is mostly for."""
_LEAST_NOISE = 1e-5
"""Standard deviation of a log that rounding alone leaves, so that a log of 0 is not taken."""

Block = tuple[float, float, float, float]
"""Rates in requests a second: deep, deep again, shallow, shallow again."""


@dataclass(frozen=True)
class Session:
    """The blocks of one session, in the order in which they were measured.

    `starts` has the time at which each block began, in seconds on any clock that runs on;
    `block_seconds` is how long a block takes.
    """

    blocks: Sequence[Block]
    starts: Sequence[float]
    block_seconds: float


@dataclass(frozen=True)
class RigNoise:
    """What A/A pairs say of a rig; deviations are of natural logs, 0.01 is 1 %.

    `pair_sd` is the standard deviation of the log ratio of an A/A pair and `correlation` its
    lag-1 correlation (clipped as by `interval.lag1_correlation`), each at the noisier of the
    two settings.  `sigma_d` is the upper confidence bound (at LEVEL) of the drift's standard
    deviation.  `sigma_session` is that of the setting which differs more between sessions,
    `sigma_session_deep` that of the deep one alone; both are None with fewer than two sessions.
    `pairs` and `seconds` count all sessions.
    """

    pair_sd: float
    correlation: float
    sigma_d: float
    sigma_session: float | None
    pairs: int
    seconds: float
    sigma_session_deep: float | None = None


def rig_noise(sessions: Sequence[Session]) -> RigNoise:
    """The noise of a rig, from A/A measurements of the same drive in one or more sessions.

    Raises ValueError without a session, and on a session with fewer than FEWEST_BLOCKS
    blocks, with times that make no sense, or with rates that are not finite and above 0.
    """
    if not sessions:
        raise ValueError("no session: a calibration needs at least one")
    for place, session in enumerate(sessions):
        _check(session, f"session {place}")
    blocks = sum(len(session.blocks) for session in sessions)
    contrasts = [_aa_contrasts(session) for session in sessions]
    sides = list(zip(*contrasts, strict=True))
    deep, shallow = _session_sds(sessions)
    return RigNoise(
        pair_sd=max(_root_mean_square([y for ys in side for y in ys]) for side in sides),
        correlation=max(fmean(map(lag1_correlation, side)) for side in sides),
        sigma_d=drift_bound(sessions),
        sigma_session=None if deep is None or shallow is None else max(deep, shallow),
        pairs=2 * blocks,
        seconds=sum(len(each.blocks) * each.block_seconds for each in sessions),
        sigma_session_deep=deep,
    )


def drift_bound(sessions: Sequence[Session]) -> float:
    """The `sigma_d` to allow for: an upper confidence bound (at LEVEL), at least DRIFT_FLOOR.

    The contrast of a block, the mean log of its deep slices less that of its shallow ones, is
    taken as a constant, plus independent noise of variance s^2, plus sigma_d times an
    Ornstein-Uhlenbeck process of variance 1 that forgets over tau = DRIFT_TIME_S, averaged
    over the block.  The constant is taken out by orthonormal contrasts, which leaves n - 1
    values (restricted maximum likelihood: Patterson and Thompson 1971, Biometrika 58(3));
    in the eigenvectors of the drift's covariance they are independent, of variances
    s^2 + sigma_d^2 w.  The A/A contrasts have s^2 alone: half of a block's two, squared and
    summed, has the mean s^2 (it is taken for one degree of freedom, for the two pairs may
    differ in noise).  The bound is the largest sigma_d whose profile deviance is within the
    one-sided quantile of the smallest (Venzon and Moolgavkar 1988, Applied Statistics 37(1)).
    A session that is short against tau sees little of the drift: its bound is wide.
    """
    import numpy as np
    from scipy.optimize import brentq
    from scipy.stats import norm

    parts = [_drift_components(session) for session in sessions]
    values = np.concatenate([z for z, _ in parts])
    weights = np.concatenate([w for _, w in parts])
    pairs = [(d, s) for each in sessions for d, s in zip(*_aa_contrasts(each), strict=True)]
    square = math.fsum(d * d + s * s for d, s in pairs) / 4.0
    deviance = _profile(values, weights, square, len(pairs))

    grid = np.concatenate([[0.0], np.geomspace(0.1 * DRIFT_FLOOR, DRIFT_CAP, 60)]).tolist()
    profile = [deviance(sigma) for sigma in grid]
    best = int(np.argmin(profile))
    allowed = profile[best] + float(norm.ppf(LEVEL)) ** 2
    inside = max(place for place, found in enumerate(profile) if found <= allowed)
    if inside == len(grid) - 1:
        return DRIFT_CAP
    bound = brentq(lambda sigma: deviance(sigma) - allowed, grid[inside], grid[inside + 1])
    return max(float(bound), DRIFT_FLOOR)


def _profile(
    values: "Floats", weights: "Floats", square: float, count: int
) -> Callable[[float], float]:
    """Minus twice the log likelihood of a sigma_d, at the noise that suits it best."""
    import numpy as np
    from scipy.optimize import minimize_scalar

    most = math.log((float(values @ values) + square) / (values.size + count) + _LEAST_NOISE**2)

    def deviance(sigma: float) -> float:
        drift = sigma * sigma * weights

        def at(log_noise: float) -> float:
            noise = math.exp(log_noise)
            variances = noise + drift
            seen = float(np.sum(np.log(variances) + values**2 / variances))
            return seen + count * log_noise + square / noise

        bounds = (2.0 * math.log(_LEAST_NOISE), most + 1.0)
        return float(minimize_scalar(at, bounds=bounds, method="bounded").fun)

    return deviance


def _drift_components(session: Session) -> "tuple[Floats, Floats]":
    """A session's contrasts without their mean, made independent, and how each weighs drift."""
    import numpy as np
    from scipy.linalg import eigh, helmert

    contrasts = np.array([_ratio_contrast(block) for block in session.blocks])
    without_mean = helmert(contrasts.size)
    covariance = _drift_covariance(np.array(session.starts), session.block_seconds)
    weights, vectors = eigh(without_mean @ covariance @ without_mean.T)
    return vectors.T @ (without_mean @ contrasts), np.maximum(weights, 0.0)


def _drift_covariance(starts: "Floats", seconds: float) -> "Floats":
    """Covariance of the means over blocks of an Ornstein-Uhlenbeck process of variance 1.

    With h = seconds/tau: for blocks a gap g apart exp(-g/tau) ((1 - exp(-h))/h)^2, and for a
    block with itself 2 (h - 1 + exp(-h))/h^2 (Gillespie 1996, Physical Review E 54(2)).
    """
    import numpy as np

    h = seconds / DRIFT_TIME_S
    gone = -math.expm1(-h)
    gaps = np.maximum(np.abs(starts[:, np.newaxis] - starts) - seconds, 0.0)
    covariance: Floats = np.exp(-gaps / DRIFT_TIME_S) * (gone / h) ** 2
    np.fill_diagonal(covariance, 2.0 * (h - gone) / h**2)
    return covariance


def _ratio_contrast(block: Block) -> float:
    deep, deep_again, shallow, shallow_again = map(math.log, block)
    return 0.5 * (deep + deep_again - shallow - shallow_again)


def _aa_contrasts(session: Session) -> tuple[list[float], list[float]]:
    """The log ratio within each pair, of the deep ones and of the shallow ones."""
    deep = [math.log(block[0]) - math.log(block[1]) for block in session.blocks]
    shallow = [math.log(block[2]) - math.log(block[3]) for block in session.blocks]
    return deep, shallow


def _root_mean_square(contrasts: Sequence[float]) -> float:
    """Around 0, which is the truth of an A/A contrast."""
    return math.sqrt(fmean(y * y for y in contrasts))


def _session_sds(sessions: Sequence[Session]) -> tuple[float, float] | tuple[None, None]:
    """The spread between sessions of the mean rate: of the deep setting, and of the shallow one.

    A slice at depth 1 has a tenth of the requests of a deep one, so that of two spreads which are
    the rig's alike, the shallow one is seen as larger.
    """
    if len(sessions) < 2:
        return None, None
    deep = [_mean_rate([block[:2] for block in session.blocks]) for session in sessions]
    shallow = [_mean_rate([block[2:] for block in session.blocks]) for session in sessions]
    return session_spread(deep), session_spread(shallow)


def _mean_rate(pairs: Sequence[tuple[float, float]]) -> float:
    return math.exp(fmean(math.log(rate) for pair in pairs for rate in pair))


def _check(session: Session, name: str) -> None:
    count = len(session.blocks)
    if count < FEWEST_BLOCKS:
        raise ValueError(f"{name}: {count} block(s); a calibration needs {FEWEST_BLOCKS}")
    if len(session.starts) != count:
        raise ValueError(f"{name}: {count} blocks and {len(session.starts)} times")
    if not (math.isfinite(session.block_seconds) and session.block_seconds > 0):
        raise ValueError(f"{name}: a block of {session.block_seconds} s; it must be above 0")
    for place, (block, start) in enumerate(zip(session.blocks, session.starts, strict=True)):
        if not all(math.isfinite(rate) and rate > 0 for rate in block):
            raise ValueError(f"{name}, block {place}: a rate of {block} is not finite and above 0")
        if not math.isfinite(start) or (place and start <= session.starts[place - 1]):
            raise ValueError(f"{name}, block {place}: began at {start}, not after the one before")
