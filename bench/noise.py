"""Noise of simulated drives: what slices measure where the true rates are known.

The models are not fitted to drives.  They were chosen once, for the drive time that a
verdict costs on them 5, 10 and 20 % from a threshold, and for how often two long runs on the
noisy one are wrong; they are no knobs to turn until a limit is kept.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NoiseModel:
    """How the rates of slices that are run back to back differ from the truth.

    Amplitudes are of the natural log of a rate (0.01 is 1 %), times are in seconds.

    `jitter`: standard deviation of a slice of 1 s, independent of its neighbours; it falls
    with the root of a slice's length.
    `drift`, `drift_s`: each setting of the drive drifts on its own, so that the log of the
    ratio of two settings has this standard deviation, and forgets over `drift_s`: an
    Ornstein-Uhlenbeck process, which is AR(1) in continuous time.  No order of slices
    cancels it; a judge is told of it as its sigma_d.
    `wander`, `wander_s`: the same for what all settings share (temperature, a busy host),
    slower and larger; pairs cancel most of it, long runs one after the other do not.
    `warm_up`, `warm_up_s`: a run begins slow by a random amount, exponentially distributed
    with mean `warm_up`, drawn for each setting on its own, that fades over `warm_up_s`.
    `stalls_per_minute`, `stall_s`: nothing completes for an exponential time of mean
    `stall_s`; stalls begin at random (Poisson).
    """

    jitter: float
    drift: float
    drift_s: float
    wander: float
    wander_s: float
    warm_up: float
    warm_up_s: float
    stalls_per_minute: float
    stall_s: float


QUIET = NoiseModel(
    jitter=0.011,
    drift=0.01,
    drift_s=10.0,
    wander=0.02,
    wander_s=300.0,
    warm_up=0.05,
    warm_up_s=2.0,
    stalls_per_minute=0.2,
    stall_s=0.03,
)
"""An SSD on a rig that does nothing else."""
NOISY = NoiseModel(
    jitter=0.01,
    drift=0.03,
    drift_s=10.0,
    wander=0.10,
    wander_s=300.0,
    warm_up=0.10,
    warm_up_s=5.0,
    stalls_per_minute=0.5,
    stall_s=0.1,
)
"""An SSD that stalls, on a rig that others use."""
DISK = NoiseModel(
    jitter=0.016,
    drift=0.025,
    drift_s=10.0,
    wander=0.08,
    wander_s=300.0,
    warm_up=0.03,
    warm_up_s=3.0,
    stalls_per_minute=0.2,
    stall_s=0.2,
)
"""A disk on a rig that others use; its slices are longer."""


def rates(rng: np.random.Generator, truth: Floats, seconds: Floats, model: NoiseModel) -> Floats:
    """What slices run back to back measure, in requests a second: one rate a slice, from 0.

    `truth` has the true rate of each slice's setting, `seconds` each slice's length; slices
    of the same true rate are slices of one setting.  Raises ValueError unless both are
    one-dimensional, equally long, finite and above 0.
    """
    if truth.ndim != 1 or truth.shape != seconds.shape:
        raise ValueError(f"shapes {truth.shape} and {seconds.shape}: one value a slice each")
    for name, values in (("truth", truth), ("seconds", seconds)):
        if not (np.isfinite(values) & (values > 0)).all():
            raise ValueError(f"{name} holds values that are not finite and above 0")
    begins = np.cumsum(seconds) - seconds
    logs = model.jitter / np.sqrt(seconds) * rng.standard_normal(seconds.size)
    logs += model.wander * _wandering(rng, seconds, model.wander_s)
    steps = seconds / model.warm_up_s
    cold = np.exp(-begins / model.warm_up_s) * -np.expm1(-steps) / steps
    for setting in np.unique(truth):
        own = model.drift / math.sqrt(2.0) * _wandering(rng, seconds, model.drift_s)
        own -= rng.exponential(model.warm_up) * cold
        logs += np.where(truth == setting, own, 0.0)
    measured: Floats = truth * np.exp(logs) * (1.0 - _stalled(rng, begins, seconds, model))
    return measured


def _wandering(rng: np.random.Generator, seconds: Floats, tau: float) -> Floats:
    """Mean over each slice of an Ornstein-Uhlenbeck process of variance 1.

    Exact, whatever the slices' lengths: where the process is at a slice's end and what its
    mean over the slice was are jointly normal, given where it began (Gillespie 1996,
    Physical Review E 54(2), 2084-2091).
    """
    steps = seconds / tau
    kept, gone = np.exp(-steps), -np.expm1(-steps)
    end_variance = -np.expm1(-2.0 * steps)
    covariance = gone**2 / steps
    mean_variance = (2.0 * steps - 4.0 * gone + end_variance) / steps**2
    slope = covariance / end_variance
    # Rounding may leave a little below 0 where slices are very short against tau.
    rest = np.sqrt(np.maximum(mean_variance - slope * covariance, 0.0))
    kicks = np.sqrt(end_variance) * rng.standard_normal(seconds.size)
    place = float(rng.standard_normal())
    begins = []
    for keep, kick in zip(kept.tolist(), kicks.tolist(), strict=True):
        begins.append(place)
        place = keep * place + kick
    means: Floats = gone / steps * np.array(begins) + slope * kicks
    return means + rest * rng.standard_normal(seconds.size)


def _stalled(
    rng: np.random.Generator, begins: Floats, seconds: Floats, model: NoiseModel
) -> Floats:
    """The share of each slice in which nothing completes, 0 to 1."""
    ends = begins + seconds
    whole = float(seconds.sum())
    count = rng.poisson(whole * model.stalls_per_minute / 60.0)
    starts = rng.uniform(0.0, whole, (count, 1))
    stops = starts + rng.exponential(model.stall_s, (count, 1))
    overlaps = np.minimum(stops, ends) - np.maximum(starts, begins)
    share: Floats = np.maximum(overlaps, 0.0).sum(axis=0) / seconds
    return np.minimum(share, 1.0)
