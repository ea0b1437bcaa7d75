"""How much more to measure before the next look.

Starting a load generator costs time in which no slice runs, so the next batch should be
about as long as the claim still needs.  It is a guess by the evidence so far, and only
that: the verdict looks at whatever was measured, and its error rate holds at all looks.
"""

import math

from leadline.verdict.interval import Interval, drift_term, width_factor

MOST = 4096
"""Blocks beyond which nobody plans."""


def blocks_needed(
    interval: Interval,
    edge: float,
    *,
    value_seconds: float,
    sigma_d: float,
    sigma_session: float = 0.0,
) -> int:
    """How many blocks in all will probably exclude `edge` (a log); at most MOST.

    By the mean and the spread seen so far, with the drift term as it will be by then.
    """
    distance = abs(interval.mean - edge)
    spread = interval.error * math.sqrt(interval.count)

    def settles(count: int) -> bool:
        drift = drift_term(count, value_seconds, sigma_d, sigma_session)
        return spread * width_factor(count) / math.sqrt(count) + drift < distance

    low, high = interval.count, MOST
    if not settles(high):
        return MOST
    while high > low:  # the width shrinks with the count, so halving finds the first
        middle = (low + high) // 2
        low, high = (low, middle) if settles(middle) else (middle + 1, high)
    return low
