"""How far a rig differs from itself: between sessions, between reflashes of the same image.

Slices of one session say nothing of it.  It is learned from A/A repeats: the same drive, the
same firmware, the same load, after everything that a new session does.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist, stdev

from leadline.verdict.interval import ALPHA


def session_spread(rates: Sequence[float]) -> float:
    """The `sigma_session` to allow for, from the mean rate of each of some A/A sessions.

    The standard deviation of their logs, times Student's t over the normal quantile at
    level ALPHA: few sessions know their own spread badly (24.7 times with two, 1.8 with
    five, 1.3 with ten).  What the slices of a session left uncertain of its mean is in it,
    so it errs to the safe side.  Raises ValueError on fewer than two sessions and on rates
    that are not finite and above 0.
    """
    if len(rates) < 2:
        raise ValueError(
            f"{len(rates)} session(s): a spread between sessions needs at least two A/A "
            "repeats, and five are a good deal better"
        )
    for place, rate in enumerate(rates):
        if not (math.isfinite(rate) and rate > 0.0):
            raise ValueError(f"session {place}: its mean rate is {rate}, not finite and above 0")
    from scipy.special import stdtrit

    level = 1.0 - 0.5 * ALPHA
    few = float(stdtrit(len(rates) - 1, level)) / NormalDist().inv_cdf(level)
    return few * stdev(math.log(rate) for rate in rates)


def checked_session_sd(sigma_session: float) -> float:
    """`sigma_session` itself; ValueError unless it is finite and above 0."""
    if not (math.isfinite(sigma_session) and sigma_session > 0.0):
        raise ValueError(
            f"sigma_session is {sigma_session}: what differs from session to session does not "
            "cancel here, so it has to be known and above 0; measure A/A repeats and take "
            "session_spread of their rates"
        )
    return sigma_session
