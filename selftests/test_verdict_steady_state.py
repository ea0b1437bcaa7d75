"""The SNIA window: what is steady, what is not, and why."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.verdict.steady_state import steady_state

rounds = st.lists(st.floats(1.0, 1e5), min_size=5, max_size=9)


def test_five_quiet_rounds_are_steady() -> None:
    found = steady_state([100.0, 103.0, 98.0, 101.0, 99.0])
    assert found.steady
    assert found.why_not == ()
    assert found.mean == pytest.approx(100.2)
    assert found.range_share == pytest.approx(5 / 100.2)
    # Least squares by hand: (-2*100 - 103 + 101 + 2*99)/10 = -0.4 a round, over four.
    assert found.excursion_share == pytest.approx(1.6 / 100.2)


def test_a_range_above_a_fifth_of_the_mean_is_not_steady() -> None:
    """An outlier in the middle: the line is flat."""
    found = steady_state([100.0, 100.0, 126.0, 100.0, 100.0])
    assert not found.steady
    assert found.excursion_share == pytest.approx(0.0)
    (why,) = found.why_not
    assert "differ by 24.7%" in why


@pytest.mark.parametrize(("step", "word"), [(2.7, "rises"), (-2.7, "falls")])
def test_a_slope_is_not_steady_within_any_range(step: float, word: str) -> None:
    """10.8 % over the window, which is far less than a fifth."""
    found = steady_state([100.0 + step * n for n in range(-2, 3)])
    assert found.excursion_share == pytest.approx(0.108)
    (why,) = found.why_not
    assert f"{word} by 10.8%" in why


def test_limits_themselves_are_steady() -> None:
    assert steady_state([90.0, 110.0, 100.0, 110.0, 90.0]).steady
    assert steady_state([95.0, 97.5, 100.0, 102.5, 105.0]).steady


def test_both_reasons_are_given() -> None:
    assert len(steady_state([100.0, 120.0, 140.0, 160.0, 180.0]).why_not) == 2


def test_only_the_last_five_rounds_count() -> None:
    found = steady_state([900.0, 400.0, 100.0, 101.0, 99.0, 100.0, 100.0])
    assert found.steady
    assert found.rounds == 7


@pytest.mark.parametrize("count", range(5))
def test_fewer_than_five_rounds_are_not_steady_however_equal(count: int) -> None:
    found = steady_state([100.0] * count)
    assert not found.steady
    assert found.why_not == (f"{count} rounds: the window takes 5",)
    assert found.mean is None


@given(rounds, st.sampled_from([1e-3, 2.0, 1e6]))
def test_the_unit_does_not_matter(values: list[float], scale: float) -> None:
    here, there = steady_state(values), steady_state([value * scale for value in values])
    assert there.range_share == pytest.approx(here.range_share)
    assert there.excursion_share == pytest.approx(here.excursion_share, abs=1e-9)


@given(rounds)
def test_time_reversed_is_as_steady(values: list[float]) -> None:
    window = values[-5:]
    here, there = steady_state(window), steady_state(window[::-1])
    assert there.range_share == here.range_share
    assert there.excursion_share == pytest.approx(here.excursion_share, abs=1e-9)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_impossible_rounds_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=f"round 2 is {bad}"):
        steady_state([100.0, 100.0, bad, 100.0, 100.0])
