"""The always-valid interval and the sign test, against independent computations."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import nct, norm, t

from leadline.verdict.interval import (
    ALPHA,
    CORRELATION_CAP,
    DRIFT_FACTOR,
    PHI,
    SPREAD_FLOOR,
    drift_term,
    interval_of,
    lag1_correlation,
    sign_e_value,
    sign_opinion,
    width_factor,
)

logs = st.lists(st.floats(-5, 5), min_size=4, max_size=40)


def plain(values: list[float]) -> float:
    """The half-width that the formula alone gives, without any guard."""
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
    return spread / math.sqrt(len(values)) * width_factor(len(values))


@pytest.mark.parametrize("count", [4, 5, 8, 16, 40])
def test_width_is_where_the_mixture_of_t_likelihoods_reaches_one_over_alpha(count: int) -> None:
    """The interval holds what a bet on an effect of unit precision PHI does not refute."""
    at = width_factor(count)
    effect = math.sqrt(count / PHI)
    mixture, _ = quad(
        lambda shift: nct.pdf(at, count - 1, shift) * norm.pdf(shift, 0, effect),
        at - 12,
        at + 12,
        limit=200,
        points=[at],
    )
    tails = quad(
        lambda shift: nct.pdf(at, count - 1, shift) * norm.pdf(shift, 0, effect),
        -5 * effect,
        at - 12,
    )[0]
    tails += quad(
        lambda shift: nct.pdf(at, count - 1, shift) * norm.pdf(shift, 0, effect),
        at + 12,
        at + 12 + 5 * effect,
    )[0]
    assert (mixture + tails) / t.pdf(at, count - 1) == pytest.approx(1 / ALPHA, rel=1e-3)


def test_width_is_infinite_for_up_to_three_values_and_then_narrows() -> None:
    widths = [width_factor(count) for count in range(1, 60)]
    assert all(math.isinf(width) for width in widths[:3])
    assert all(math.isfinite(width) for width in widths[3:])
    errors = [width / math.sqrt(count) for count, width in enumerate(widths[3:], 4)]
    assert errors == sorted(errors, reverse=True)
    assert widths[3] == pytest.approx(13.8, abs=0.01)


def test_interval_by_hand() -> None:
    values = [0.10, 0.14, 0.08, 0.16, 0.12]
    found = interval_of(values, value_seconds=1.0, sigma_d=0.0)
    assert found.middle == pytest.approx(math.exp(0.12))
    assert found.spread == pytest.approx(math.sqrt(0.001))
    assert found.correlation == 0.0  # -0.76, clipped
    assert found.half_width == pytest.approx(plain(values))
    assert found.low * found.high == pytest.approx(math.exp(0.24))


def test_correlation_widens_and_never_narrows() -> None:
    rising = [0.0, 0.01, 0.02, 0.03, 0.04, 0.05]
    rho = lag1_correlation(rising)
    assert rho == pytest.approx(0.5)
    widened = interval_of(rising, value_seconds=1.0, sigma_d=0.0).half_width
    assert widened == pytest.approx(plain(rising) * math.sqrt(3.0))
    zigzag = [0.0, 0.05, 0.0, 0.05, 0.0, 0.05]
    assert lag1_correlation(zigzag) == 0.0
    assert interval_of(zigzag, value_seconds=1.0, sigma_d=0.0).half_width >= plain(zigzag)


def test_correlation_is_capped() -> None:
    assert lag1_correlation([float(n) for n in range(1000)]) == CORRELATION_CAP


def test_drift_term_averages_out_only_over_times_longer_than_its_own() -> None:
    assert drift_term(4, 1.0, 0.01) == pytest.approx(DRIFT_FACTOR * 0.01)
    assert drift_term(80, 1.0, 0.01) == pytest.approx(DRIFT_FACTOR * 0.01 / 2)
    assert drift_term(20, 4.0, 0.01) == drift_term(80, 1.0, 0.01)
    still = interval_of([0.1, 0.2, 0.1, 0.2], value_seconds=1.0, sigma_d=0.0)
    moved = interval_of([0.1, 0.2, 0.1, 0.2], value_seconds=1.0, sigma_d=0.01)
    assert moved.half_width - still.half_width == pytest.approx(0.026)


def test_identical_values_settle_nothing_for_free() -> None:
    found = interval_of([1.0] * 4, value_seconds=1.0, sigma_d=0.0)
    assert found.spread == 0.0
    assert found.half_width == pytest.approx(SPREAD_FLOOR / 2 * width_factor(4))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_nothing_is_said_before_the_fourth_value(count: int) -> None:
    found = interval_of([0.1] * count, value_seconds=1.0, sigma_d=0.01)
    assert (found.low, found.high) == (0.0, math.inf)


@given(logs, st.floats(-3, 3))
def test_shifting_every_log_shifts_the_interval(values: list[float], shift: float) -> None:
    here = interval_of(values, value_seconds=1.0, sigma_d=0.01)
    there = interval_of([v + shift for v in values], value_seconds=1.0, sigma_d=0.01)
    assert there.mean == pytest.approx(here.mean + shift, abs=1e-9)
    # Shifting rounds, and what is all but constant has nothing but rounding to correlate.
    if here.spread > 1e-6:
        assert there.half_width == pytest.approx(here.half_width, rel=1e-6)


@given(logs)
def test_guards_only_widen(values: list[float]) -> None:
    assert interval_of(values, value_seconds=1.0, sigma_d=0.0).half_width >= plain(values) * 0.999


@pytest.mark.parametrize(
    ("values", "seconds", "sigma_d", "said"),
    [
        ([], 1.0, 0.01, "none"),
        ([0.1, math.nan], 1.0, 0.01, "value 1 of 2 is nan"),
        ([0.1, math.inf], 1.0, 0.01, "value 1 of 2 is inf"),
        ([0.1, 0.2], 0.0, 0.01, "took 0.0 s"),
        ([0.1, 0.2], 1.0, -0.01, "sigma_d is -0.01"),
        ([0.1, 0.2], 1.0, math.nan, "sigma_d is nan"),
    ],
)
def test_bad_input_is_refused(
    values: list[float], seconds: float, sigma_d: float, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        interval_of(values, value_seconds=seconds, sigma_d=sigma_d)


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (9, 0), (0, 9), (7, 4), (3, 30)])
def test_sign_e_value_is_the_mixture_of_bets(wins: int, losses: int) -> None:
    grown, _ = quad(lambda p: 2 * (2 * p) ** wins * (2 - 2 * p) ** losses, 0.5, 1.0)
    assert sign_e_value(wins, losses) == pytest.approx(grown)


def test_sign_e_value_is_fair_when_signs_are_a_coin() -> None:
    """Its mean over all equally likely sequences is 1: no bet on a fair coin gains."""
    values = [sign_e_value(sum(heads), 7 - sum(heads)) for heads in product((0, 1), repeat=7)]
    assert sum(values) / len(values) == pytest.approx(1.0)


def test_signs_settle_after_nine_alike_and_ties_do_not_count() -> None:
    assert sign_opinion([0.1] * 8, 0.0).says == ""
    assert sign_opinion([0.1] * 9, 0.0).says == "above"
    assert sign_opinion([-0.1] * 9 + [0.0] * 5, 0.0).says == "below"
    assert sign_opinion([0.1, -0.1] * 20, 0.0).says == ""


def test_sign_e_value_of_very_many_values_is_a_number() -> None:
    assert sign_e_value(5000, 0) > 1e300
    assert 0 <= sign_e_value(0, 5000) < 1e-3
