"""Equivalence claims: agreement has to be shown, and is not what is left when nothing is seen."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.verdict.equivalence import judge_equivalence
from leadline.verdict.interval import ALPHA
from leadline.verdict.ratio import judge_ratio
from leadline.verdict.verdict import Outcome, Verdict

rates = st.lists(st.floats(10.0, 1e4), min_size=8, max_size=8)
deltas = st.floats(0.01, 0.9)


def judge(
    a: list[float],
    b: list[float],
    delta: float = 0.05,
    *,
    sigma_session: float = 0.0,
    sigma_d: float = 0.005,
    margin: float | None = None,
    spent_s: float = 1.0,
    voids: tuple[str, ...] = (),
) -> Verdict | None:
    return judge_equivalence(
        a,
        b,
        delta,
        pair_seconds=1.0,
        spent_s=spent_s,
        sigma_session=sigma_session,
        sigma_d=sigma_d,
        margin=margin,
        voids=voids,
    )


def last(a: list[float], b: list[float], delta: float = 0.05) -> Verdict:
    """The verdict when the budget is spent."""
    verdict = judge(a, b, delta, spent_s=1e6)
    assert verdict is not None
    return verdict


def noisy(rate: float, count: int, seed: int, noise: float = 0.01) -> list[float]:
    chance = random.Random(seed)
    return [rate * chance.lognormvariate(0, noise) for _ in range(count)]


@pytest.mark.parametrize(
    ("ratio", "outcome"),
    [(1.0, Outcome.PASS), (1.12, Outcome.FAIL), (1 / 1.12, Outcome.FAIL), (1.01, Outcome.PASS)],
)
def test_rigs_agree_or_do_not(ratio: float, outcome: Outcome) -> None:
    verdict = judge(noisy(500 * ratio, 40, 1), noisy(500, 40, 2))
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (outcome, "settled")
    assert (verdict.direction, verdict.threshold) == ("within", 0.05)
    assert (verdict.p_against <= ALPHA) == (outcome is Outcome.FAIL)


def test_what_cannot_be_told_apart_does_not_therefore_agree() -> None:
    """Noise of 20 %: no difference is seen, and none of 5 % could be."""
    verdict = last(noisy(500, 20, 1, 0.2), noisy(500, 20, 2, 0.2))
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "budget")


def test_pass_needs_the_whole_interval_inside() -> None:
    """An interval from -1 % to 9 % has its middle inside and settles nothing."""
    verdict = last(noisy(520, 12, 1, 0.03), noisy(500, 12, 2, 0.03))
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < 1.04
    assert verdict.high > 1.05
    assert verdict.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("ratio", [1.05, 1 / 1.05])
def test_narrow_and_astride_an_edge_is_marginal(ratio: float) -> None:
    verdict = judge(noisy(500 * ratio, 200, 1), noisy(500, 200, 2))
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "marginal")


def test_by_default_no_difference_at_all_is_never_marginal() -> None:
    """A margin of 3 % beside a delta of 2 % would stop at every drive there is."""
    reasons = [
        None
        if (verdict := judge(noisy(500, count, 1), noisy(500, count, 2), 0.02)) is None
        else verdict.reason
        for count in range(4, 400, 20)
    ]
    assert "marginal" not in reasons
    assert reasons[-1] == "settled"


def test_two_rigs_have_two_sessions() -> None:
    """1 % from session to session of each rig is 1.4 % of their ratio, at any length."""
    a, b = noisy(500, 400, 1), noisy(500, 400, 2)
    here, there = judge(a, b), judge(a, b, sigma_session=0.01, spent_s=1e6)
    assert here is not None
    assert there is not None
    assert here.interval is not None
    assert there.interval is not None
    assert there.interval.drift == pytest.approx(
        math.hypot(here.interval.drift, 2.6 * math.sqrt(2) * 0.01)
    )


@given(rates, rates, deltas)
def test_swapping_the_sides_changes_nothing(a: list[float], b: list[float], delta: float) -> None:
    here, there = last(a, b, delta), last(b, a, delta)
    assert (there.outcome, there.reason) == (here.outcome, here.reason)
    assert here.estimate is not None
    assert there.estimate == pytest.approx(1 / here.estimate)
    assert there.p_against == pytest.approx(here.p_against)


@given(rates, rates, deltas, st.sampled_from([1e-3, 7.0, 1e6]))
def test_only_the_ratio_counts(a: list[float], b: list[float], delta: float, scale: float) -> None:
    here, there = last(a, b, delta), last([r * scale for r in a], [r * scale for r in b], delta)
    assert there.outcome is here.outcome


@given(rates, deltas, st.floats(1.0, 3.0), st.floats(1.0, 3.0))
def test_more_distance_never_helps(
    a: list[float], delta: float, apart: float, farther: float
) -> None:
    rank = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1, Outcome.PASS: 2}
    near = last([rate * apart for rate in a], a, delta)
    far = last([rate * apart * farther for rate in a], a, delta)
    assert rank[far.outcome] <= rank[near.outcome]


@given(rates, rates, deltas)
def test_it_is_two_one_sided_tests(a: list[float], b: list[float], delta: float) -> None:
    """PASS exactly when both ratio claims pass, FAIL exactly when one of them fails."""
    sides = [
        judge_ratio(a, b, 1 + delta, "<=", pair_seconds=1, spent_s=1e6, sigma_d=0.005),
        judge_ratio(a, b, 1 / (1 + delta), ">=", pair_seconds=1, spent_s=1e6, sigma_d=0.005),
    ]
    outcomes = [side.outcome for side in sides if side is not None]
    verdict = last(a, b, delta)
    assert (verdict.outcome is Outcome.PASS) == (outcomes == [Outcome.PASS] * 2)
    assert (verdict.outcome is Outcome.FAIL) == (Outcome.FAIL in outcomes)


@pytest.mark.parametrize("voids", [(), ("littles-law",)])
@pytest.mark.parametrize(
    ("delta", "margin", "session", "said"),
    [
        (0.0, None, 0.0, "delta is 0.0"),
        (1.0, None, 0.0, "delta is 1.0"),
        (-0.05, None, 0.0, "delta is -0.05"),
        (math.nan, None, 0.0, "delta is nan"),
        (0.05, 0.05, 0.0, "margin is 0.05 and delta 0.05"),
        (0.05, 1.0, 0.0, "margin is 1.0"),
        (0.05, 0.0, 0.0, "margin is 0.0"),
        (0.05, math.nan, 0.0, "margin is nan"),
        (0.05, None, -1.0, "sigma_session is -1.0"),
        (0.05, None, math.nan, "sigma_session is nan"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(
    delta: float, margin: float | None, session: float, said: str, voids: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match=said):
        judge([500.0] * 8, [500.0] * 8, delta, margin=margin, sigma_session=session, voids=voids)


@pytest.mark.parametrize("bad", [[], [500.0], [500.0, 0.0], [math.nan, 500.0], [500.0, -1.0]])
def test_unusable_rates_are_refused_and_void_ones_never_pass(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="pair"):
        judge(bad, [500.0] * len(bad))
    verdict = judge(bad, [500.0] * len(bad), voids=("io-errors",))
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")


def test_identical_slices_never_agree() -> None:
    assert judge([500.0] * 3, [500.0] * 3) is None
    verdict = judge([500.0] * 4, [500.0] * 4)
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")


def test_slices_that_are_nearly_identical_settle_nothing_at_once() -> None:
    assert judge([500.0] * 4, [500.0, 500.0, 500.0, 500.1], 0.02) is None
