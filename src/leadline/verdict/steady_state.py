"""Steady state before write tests, by the window of the SNIA test specification.

    SNIA, Solid State Storage Performance Test Specification, version 2.0.2 (2020),
    definitions of Steady State and Measurement Window.

fio's own `steadystate` option is another rule (one slope or one deviation, over time).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

WINDOW = 5
"""Rounds in the measurement window: the last one and the four before."""
RANGE_LIMIT = 0.20
"""Most that the rounds of the window may differ by, as a share of their mean."""
EXCURSION_LIMIT = 0.10
"""Most that the fitted line may rise or fall within the window, as a share of the mean."""


@dataclass(frozen=True)
class SteadyState:
    """Whether the last WINDOW of `rounds` are steady, and by what figures.

    `mean` is in the unit of the rounds, `range_share` and `excursion_share` are shares of
    it; all are None while there are fewer rounds than a window.  `why_not` is empty when
    it is steady.
    """

    rounds: int
    mean: float | None
    range_share: float | None
    excursion_share: float | None
    why_not: tuple[str, ...]

    @property
    def steady(self) -> bool:
        """Whether a write test may be judged now."""
        return not self.why_not


def steady_state(rounds: Sequence[float]) -> SteadyState:
    """Hold the last five of `rounds` against the window; earlier ones do not count.

    A round is one number (rate, bandwidth or latency) of the tracked workload, in order.
    Raises ValueError on a round that is not finite and above 0.
    """
    for place, value in enumerate(rounds):
        if not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"round {place} is {value}: it must be finite and above 0")
    if len(rounds) < WINDOW:
        few = f"{len(rounds)} rounds: the window takes {WINDOW}"
        return SteadyState(len(rounds), None, None, None, (few,))
    window = rounds[-WINDOW:]
    mean = fmean(window)
    range_share = (max(window) - min(window)) / mean
    slope = linear_regression(range(WINDOW), window).slope
    excursion_share = abs(slope) * (WINDOW - 1) / mean
    why_not = []
    if range_share > RANGE_LIMIT:
        why_not.append(
            f"the last {WINDOW} rounds differ by {range_share:.1%} of their mean; "
            f"at most {RANGE_LIMIT:.0%} is steady"
        )
    if excursion_share > EXCURSION_LIMIT:
        direction = "rises" if slope > 0 else "falls"
        why_not.append(
            f"the line through the last {WINDOW} rounds {direction} by {excursion_share:.1%} "
            f"of their mean; at most {EXCURSION_LIMIT:.0%} is steady"
        )
    return SteadyState(len(rounds), mean, range_share, excursion_share, tuple(why_not))
