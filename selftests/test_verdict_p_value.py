"""The p-value that belongs to the interval: same mixture, same guards, over all looks."""

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import nct, norm, t

from leadline.verdict.interval import (
    ALPHA,
    LEAST_P_VALUE,
    PHI,
    interval_of,
    log_e_value,
    p_value,
    width_factor,
)
from leadline.verdict.many import p_over_looks

logs = st.lists(st.floats(-1, 1), min_size=2, max_size=40)
sigmas = st.sampled_from([0.0, 0.01, 0.03])


@pytest.mark.parametrize("count", [4, 8, 40])
@pytest.mark.parametrize("errors", [0.5, 2.0, 5.0])
def test_e_value_is_the_mixture_of_t_likelihoods(count: int, errors: float) -> None:
    """Against no effect: effects of unit precision PHI, each bet on in proportion."""
    wide = math.sqrt(count / PHI)
    mixture, _ = quad(
        lambda shift: nct.pdf(errors, count - 1, shift) * norm.pdf(shift, 0, wide),
        -6 * wide,
        6 * wide,
        limit=400,
        points=[0.0, errors],
    )
    expected = mixture / t.pdf(errors, count - 1)
    assert math.exp(log_e_value(errors, count)) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("count", [4, 5, 16, 130, 5000])
def test_e_value_is_one_over_alpha_where_the_interval_ends(count: int) -> None:
    assert log_e_value(width_factor(count), count) == pytest.approx(-math.log(ALPHA))
    assert log_e_value(width_factor(count, alpha=0.1), count) == pytest.approx(math.log(10))


@given(logs, sigmas, st.floats(-2, 2))
def test_p_value_is_at_most_alpha_just_when_the_interval_excludes(
    values: list[float], sigma_d: float, threshold: float
) -> None:
    interval = interval_of(values, value_seconds=1.0, sigma_d=sigma_d)
    beyond = abs(interval.mean - threshold) - interval.half_width
    assume(abs(beyond) > 1e-7)
    assert (p_value(interval, threshold) <= ALPHA) == (beyond > 0)


@given(logs, st.floats(-2, 2))
def test_drift_only_weakens(values: list[float], threshold: float) -> None:
    still = interval_of(values, value_seconds=1.0, sigma_d=0.0)
    moved = interval_of(values, value_seconds=1.0, sigma_d=0.02)
    assert p_value(moved, threshold) >= p_value(still, threshold)


@given(logs, sigmas, st.floats(-1, 1), st.floats(0.0, 1.0))
def test_more_distance_is_more_evidence(
    values: list[float], sigma_d: float, threshold: float, farther: float
) -> None:
    interval = interval_of(values, value_seconds=1.0, sigma_d=sigma_d)
    away = farther if threshold >= interval.mean else -farther
    assert p_value(interval, threshold + away) <= p_value(interval, threshold) * (1 + 1e-8)


def test_without_drift_p_is_one_over_e() -> None:
    interval = interval_of([0.1, 0.14, 0.08, 0.16, 0.12], value_seconds=1.0, sigma_d=0.0)
    evidence = math.exp(log_e_value(0.12 / interval.error, 5))
    assert evidence > 10
    assert p_value(interval, 0.0) == pytest.approx(1 / evidence)


def test_drift_bounds_what_any_number_of_slices_can_prove() -> None:
    """2 % from the threshold with 1 % of drift is two standard deviations, and no more."""
    steady = interval_of([0.02] * 100_000, value_seconds=1e-4, sigma_d=0.01)
    assert steady.drift == pytest.approx(0.026)
    assert p_value(steady, 0.0) == pytest.approx(2 * norm.cdf(-2.0 * 2.5758 / 2.6), rel=0.02)


def test_one_value_is_no_evidence_and_an_overwhelming_one_stays_above_zero() -> None:
    one = interval_of([3.0], value_seconds=1.0, sigma_d=0.0)
    assert p_value(one, 0.0) == 1.0
    many = interval_of([3.0] * 5000, value_seconds=1.0, sigma_d=0.0)
    assert p_value(many, 0.0) == pytest.approx(LEAST_P_VALUE)


def least_p(seed: int, sigma_d: float, slow: float) -> float:
    """The least p-value over the looks at one run without any effect."""
    chance = random.Random(seed)
    keeps = math.exp(-1 / 10)
    drift, values = chance.gauss(0, slow), []
    for _ in range(130):
        values.append(drift + chance.gauss(0, 0.01))
        drift = keeps * drift + math.sqrt(1 - keeps * keeps) * chance.gauss(0, slow)
    looks = [
        interval_of(values[:count], value_seconds=1.0, sigma_d=sigma_d)
        for count in range(4, 131, 6)
    ]
    return min(p_over_looks(looks, 1.0, ">="), p_over_looks(looks, 1.0, "<="))


@pytest.mark.parametrize(("sigma_d", "slow"), [(0.0, 0.0), (0.01, 0.01)])
def test_over_all_looks_p_is_seldom_small_without_an_effect(sigma_d: float, slow: float) -> None:
    least = [least_p(seed, sigma_d, slow) for seed in range(300)]
    for level in (0.2, 0.1, 0.05, 0.01):
        assert sum(p <= level for p in least) / len(least) <= level


def test_drift_that_is_not_allowed_for_looks_like_an_effect() -> None:
    least = [least_p(seed, 0.0, 0.01) for seed in range(100)]
    assert sum(p <= 0.01 for p in least) / len(least) > 0.1
