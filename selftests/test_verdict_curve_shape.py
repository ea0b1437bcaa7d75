"""What a report says of a curve's shape, against curves whose shape is known."""

import math
import random
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import curve_fit

from leadline.verdict.curve import Sweep
from leadline.verdict.shape import Scalability, isotonic_fit, knee, knee_in_words, scalability

Floats = NDArray[np.float64]
EVERY = range(1, 33)
curves = st.lists(st.floats(1.0, 1e4), min_size=5, max_size=20)


def sweep(rate: Callable[[int], float], depths: Iterable[int] = EVERY) -> Sweep:
    return Sweep({depth: (rate(depth),) for depth in depths})


def law(rate: float, contention: float, coherency: float) -> Callable[[int], float]:
    return Scalability(rate, contention, coherency, 0.0).at


@pytest.mark.parametrize("channels", [3, 4, 8, 16, 24])
def test_knee_of_so_many_channels_is_their_number(channels: int) -> None:
    assert knee(sweep(lambda depth: 100.0 * min(depth, channels))) == channels


@pytest.mark.parametrize(
    ("bend", "fits"), [(3, False), (4, True), (9, True), (12, True), (13, False)]
)
def test_a_knee_is_compared_with_the_channels_within_half_of_them(bend: int, fits: bool) -> None:
    said = knee_in_words(bend, 8)
    assert said.startswith(
        f"knee at depth {bend} ({'within' if fits else 'not within'} 50% of the 8"
    )


def test_without_a_knee_or_channels_what_is_known_is_said() -> None:
    assert knee_in_words(9, None) == "knee at depth 9"
    assert knee_in_words(None, 8).startswith("no knee: flat or straight (not within")


def test_knee_stands_noise_a_dip_and_a_collapse() -> None:
    chance = random.Random(1)

    def rate(depth: int) -> float:
        level = 100.0 * min(depth, 8) * (0.1 if depth > 24 else 1.0)
        return level * (0.8 if depth == 19 else 1.0) * chance.lognormvariate(0.0, 0.01)

    assert knee(sweep(rate)) == 8


@pytest.mark.parametrize(
    "rate", [lambda depth: 100.0 * depth, lambda _: 100.0, lambda d: 100.0 + d / 8, lambda d: 9 / d]
)
def test_a_straight_flat_or_falling_curve_has_no_knee(rate: Callable[[int], float]) -> None:
    assert knee(sweep(rate)) is None


@given(st.integers(0, 10**6), st.sampled_from([0.001, 7.0, 1e6]))
def test_scaling_all_rates_moves_no_knee(seed: int, scale: float) -> None:
    chance = random.Random(seed)
    values = [chance.uniform(1.0, 100.0) for _ in range(chance.randint(3, 30))]
    here = Sweep({n: (value,) for n, value in enumerate(values, 1)})
    there = Sweep({n: (value * scale,) for n, value in enumerate(values, 1)})
    assert knee(here) == knee(there)


@given(curves)
def test_isotonic_fit_never_falls_and_keeps_what_rises(values: list[float]) -> None:
    fitted = isotonic_fit(Sweep({n: (value,) for n, value in enumerate(values, 1)}))
    rates = list(fitted.values())
    assert rates == sorted(rates)
    assert math.prod(rates) == pytest.approx(math.prod(values), rel=1e-6)
    risen = isotonic_fit(Sweep({n: (value,) for n, value in enumerate(sorted(values), 1)}))
    assert list(risen.values()) == pytest.approx(sorted(values))


def test_isotonic_fit_pools_what_falls_to_its_geometric_mean() -> None:
    fitted = isotonic_fit(Sweep({1: (100.0,), 2: (400.0,), 4: (100.0,), 8: (900.0,)}))
    assert fitted == pytest.approx({1: 100.0, 2: 200.0, 4: 200.0, 8: 900.0})


@pytest.mark.parametrize("depths", [EVERY, (1, 2, 4, 8, 16, 32), (3, 7, 30)])
@pytest.mark.parametrize(
    ("rate", "contention", "coherency"),
    [(500.0, 0.03, 0.002), (90.0, 0.125, 0.0), (1e-3, 0.0, 0.0), (1e6, 0.0, 0.01)],
)
def test_scalability_finds_the_law_that_a_curve_follows(
    depths: Iterable[int], rate: float, contention: float, coherency: float
) -> None:
    found = scalability(sweep(law(rate, contention, coherency), depths))
    assert found is not None
    assert found.rate == pytest.approx(rate)
    assert found.contention == pytest.approx(contention, abs=1e-9)
    assert found.coherency == pytest.approx(coherency, abs=1e-9)
    assert found.residual < 1e-9


def test_peak_is_where_the_law_is_highest() -> None:
    bent = Scalability(500.0, 0.03, 0.002, 0.0)
    assert bent.peak is not None
    assert bent.at(bent.peak) > max(bent.at(bent.peak - 0.01), bent.at(bent.peak + 0.01))
    assert Scalability(500.0, 0.125, 0.0, 0.0).peak is None
    assert Scalability(500.0, 1.5, 0.1, 0.0).peak == 1.0


def test_scalability_agrees_with_an_iterative_fit_of_relative_residuals() -> None:
    """The same sum of squares, reached by another way and in the law's own parameters."""
    chance = random.Random(4)
    truth = law(500.0, 0.05, 0.001)
    noisy = sweep(lambda depth: truth(depth) * chance.lognormvariate(0.0, 0.03))
    found = scalability(noisy)
    assert found is not None

    def time_of(depth: Floats, /, *law: float) -> Floats:
        rate, contention, coherency = law
        return (1 + contention * (depth - 1) + coherency * depth * (depth - 1)) / (rate * depth)

    times = 1.0 / np.array(list(noisy.curve.values()))
    depths = np.array(noisy.depths, dtype=float)
    best, _ = curve_fit(time_of, depths, times, p0=(400.0, 0.1, 0.01), sigma=times)
    assert (found.rate, found.contention, found.coherency) == pytest.approx(best, rel=1e-3)


def test_residual_tells_a_curve_that_follows_no_such_law() -> None:
    found = scalability(sweep(lambda depth: 100.0 * min(depth, 8)))
    assert found is not None
    assert found.residual > 0.1
