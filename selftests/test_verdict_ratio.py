"""Ratio claims: what settles them, what does not, and what is refused."""

import math
import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.verdict.contrast import IDENTICAL
from leadline.verdict.ratio import judge_ratio
from leadline.verdict.verdict import Direction, Outcome, Verdict

rates = st.lists(st.floats(1.0, 1e5), min_size=8, max_size=8)
FLIPPED: dict[Direction, Direction] = {">=": "<=", "<=": ">="}


def judge(
    tops: list[float],
    bottoms: list[float],
    threshold: float = 3.0,
    direction: Direction = ">=",
    *,
    spent_s: float | None = None,
    budget_s: float = 130.0,
    sigma_d: float = 0.01,
    margin: float = 0.03,
    voids: tuple[str, ...] = (),
) -> Verdict | None:
    return judge_ratio(
        tops,
        bottoms,
        threshold,
        direction,
        pair_seconds=1.0,
        spent_s=len(tops) if spent_s is None else spent_s,
        budget_s=budget_s,
        sigma_d=sigma_d,
        margin=margin,
        voids=voids,
    )


def settled(verdict: Verdict | None) -> Verdict:
    assert verdict is not None
    return verdict


def noisy(rate: float, count: int, seed: int = 1, noise: float = 0.01) -> list[float]:
    chance = random.Random(seed)
    return [rate * chance.lognormvariate(0, noise) for _ in range(count)]


@pytest.mark.parametrize(
    ("top", "direction", "outcome"),
    [
        (700, ">=", Outcome.PASS),
        (150, ">=", Outcome.FAIL),
        (150, "<=", Outcome.PASS),
        (700, "<=", Outcome.FAIL),
    ],
)
def test_far_from_the_threshold_four_pairs_settle_it(
    top: float, direction: Direction, outcome: Outcome
) -> None:
    verdict = settled(judge(noisy(top, 4, 1), noisy(100, 4, 2), 3.0, direction))
    assert (verdict.outcome, verdict.reason, verdict.count) == (outcome, "settled", 4)
    assert verdict.estimate == pytest.approx(top / 100, rel=0.03)
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < top / 100 < verdict.high
    numerator, denominator = verdict.rates
    assert numerator.low < top < numerator.high
    assert denominator.low < 100 < denominator.high
    assert verdict.drive_seconds == 4


def test_three_pairs_settle_nothing_however_clear_they_are() -> None:
    assert judge([700.0] * 3, [100.0] * 3) is None


def test_near_the_threshold_more_pairs_are_asked_for() -> None:
    assert judge(noisy(310, 8, 1), noisy(100, 8, 2)) is None


def test_so_near_that_more_drive_time_is_not_worth_it_is_marginal() -> None:
    verdict = settled(judge(noisy(300, 100, 1), noisy(100, 100, 2)))
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "marginal")
    assert verdict.low is not None
    assert verdict.high is not None
    assert 3 / 1.03 < verdict.low < 3 < verdict.high < 3 * 1.03


def test_a_threshold_that_is_excluded_settles_before_the_margin_is_asked() -> None:
    """All of the interval within 3 % of the threshold, and all of it above: that is a PASS."""
    verdict = settled(judge(noisy(306, 400, 1), noisy(100, 400, 2), sigma_d=0.001))
    assert verdict.outcome is Outcome.PASS
    assert verdict.high is not None
    assert verdict.high < 3 * 1.03


def test_a_spent_budget_is_inconclusive_and_never_a_guess() -> None:
    tops, bottoms = noisy(310, 8, 1, 0.05), noisy(100, 8, 2, 0.05)
    assert judge(tops, bottoms, spent_s=129.9) is None
    verdict = settled(judge(tops, bottoms, spent_s=130.0))
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "budget")


def test_a_budget_spent_on_two_pairs_says_that_nothing_is_known() -> None:
    verdict = settled(judge([700.0, 700.0], [100.0, 100.0], spent_s=130.0))
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "budget")
    assert (verdict.low, verdict.high) == (0.0, math.inf)


def test_the_last_look_may_still_settle() -> None:
    verdict = settled(judge(noisy(700, 8, 1), noisy(100, 8, 2), spent_s=200.0))
    assert verdict.outcome is Outcome.PASS


@pytest.mark.parametrize("tops", [[700.0] * 8, [0.0] * 8, [math.nan] * 7 + [700.0], []])
def test_void_evidence_never_passes_and_names_why(tops: list[float]) -> None:
    verdict = settled(judge(tops, [100.0] * len(tops), voids=("littles-law", "io-errors")))
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")
    assert verdict.voids == ("littles-law", "io-errors")
    usable = sum(1 for top in tops if top > 0)
    assert verdict.count == usable
    assert (verdict.estimate is None) == (usable == 0)


def test_a_drive_too_regular_is_noted() -> None:
    verdict = settled(judge([700.0, 700.0, 700.0, 700.1], [100.0] * 4))
    assert verdict.outcome is Outcome.PASS
    assert any("0.4%" in note for note in verdict.notes)


@pytest.mark.parametrize("top", [700.0, 300.0, 150.0])
@pytest.mark.parametrize("spent_s", [4.0, 130.0])
def test_slices_that_are_all_the_same_are_no_measurement(top: float, spent_s: float) -> None:
    verdict = settled(judge([top] * 4, [100.0] * 4, spent_s=spent_s))
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")
    assert [void.partition(":")[0] for void in verdict.voids] == [IDENTICAL]
    assert verdict.p_against == 1.0


def test_slices_that_differ_in_their_last_digits_are_a_measurement() -> None:
    """Rates that drift in step give one ratio, but not one rate."""
    tops = [700.0 * (1 + n * 1e-9) for n in range(4)]
    assert settled(judge(tops, [100.0] * 4)).outcome is Outcome.PASS
    assert settled(judge(tops, [rate / 7 for rate in tops])).outcome is Outcome.PASS


def test_signs_that_contradict_the_mean_are_noted() -> None:
    """One pair in five carries the mean; the others lie on the other side."""
    tops = [290.0, 290.0, 400.0, 290.0, 290.0] * 120
    verdict = settled(judge(tops, [100.0] * 600, sigma_d=0.0))
    assert verdict.outcome is Outcome.PASS
    assert any("signs alone say the opposite" in note for note in verdict.notes)


@given(rates, rates, st.floats(0.01, 100), st.sampled_from([0.001, 7.0, 1e6]))
def test_only_the_ratio_counts(
    tops: list[float], bottoms: list[float], threshold: float, scale: float
) -> None:
    here = settled(judge(tops, bottoms, threshold, spent_s=130.0))
    there = settled(
        judge([r * scale for r in tops], [r * scale for r in bottoms], threshold, spent_s=130.0)
    )
    assert there.outcome is here.outcome
    assert there.estimate == pytest.approx(here.estimate)
    assert there.low == pytest.approx(here.low, rel=1e-6)


@given(rates, rates, st.floats(0.01, 100))
def test_swapping_the_sides_inverts_everything(
    tops: list[float], bottoms: list[float], threshold: float
) -> None:
    here = settled(judge(tops, bottoms, threshold, spent_s=130.0))
    there = settled(judge(bottoms, tops, 1 / threshold, FLIPPED[">="], spent_s=130.0))
    assert there.outcome is here.outcome
    assert here.estimate is not None
    assert here.low is not None
    assert here.high is not None
    assert there.estimate == pytest.approx(1 / here.estimate)
    assert there.low == pytest.approx(1 / here.high if here.high < math.inf else 0.0)
    assert there.high == pytest.approx(1 / here.low if here.low > 0 else math.inf)


@given(rates, rates, st.floats(0.01, 100), st.floats(1.0, 10.0))
def test_a_faster_numerator_never_does_worse(
    tops: list[float], bottoms: list[float], threshold: float, faster: float
) -> None:
    rank = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1, Outcome.PASS: 2}
    slow = settled(judge(tops, bottoms, threshold, spent_s=130.0))
    fast = settled(judge([rate * faster for rate in tops], bottoms, threshold, spent_s=130.0))
    assert rank[fast.outcome] >= rank[slow.outcome]


@given(rates, rates, st.floats(0.01, 100))
def test_the_opposite_claim_gets_the_opposite_verdict(
    tops: list[float], bottoms: list[float], threshold: float
) -> None:
    opposite = {
        Outcome.PASS: Outcome.FAIL,
        Outcome.FAIL: Outcome.PASS,
        Outcome.INCONCLUSIVE: Outcome.INCONCLUSIVE,
    }
    least = settled(judge(tops, bottoms, threshold, ">=", spent_s=130.0))
    most = settled(judge(tops, bottoms, threshold, "<=", spent_s=130.0))
    assert most.outcome is opposite[least.outcome]


@pytest.mark.parametrize(
    ("tops", "bottoms", "said"),
    [
        ([], [], "0 pair"),
        ([700.0], [100.0], "1 pair"),
        ([700.0] * 4, [100.0] * 3, "4 numerator rates against 3"),
        ([700.0, 0.0], [100.0] * 2, "pair 1: the numerator rate is 0.0"),
        ([700.0, 700.0], [100.0, -1.0], "pair 1: the denominator rate is -1.0"),
        ([700.0, math.nan], [100.0] * 2, "numerator rate is nan"),
        ([700.0, 700.0], [math.inf, 100.0], "pair 0: the denominator rate is inf"),
    ],
)
def test_unusable_rates_are_refused_by_place(
    tops: list[float], bottoms: list[float], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        judge(tops, bottoms)


@pytest.mark.parametrize("threshold", [0.0, -1.0, math.nan, math.inf])
def test_a_threshold_that_no_ratio_can_meet_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold is"):
        judge([700.0] * 4, [100.0] * 4, threshold)


@pytest.mark.parametrize("margin", [0.0, 1.0, -0.03, math.nan])
def test_a_margin_of_nothing_or_everything_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="margin is"):
        judge([700.0] * 4, [100.0] * 4, margin=margin)


def test_times_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="spent_s is -1"):
        judge([700.0] * 4, [100.0] * 4, spent_s=-1.0)
    with pytest.raises(ValueError, match="budget_s is 0"):
        judge([700.0] * 4, [100.0] * 4, budget_s=0.0)


def test_a_direction_is_one_of_two() -> None:
    equal: Any = "=="
    with pytest.raises(ValueError, match="direction is '=='"):
        judge([700.0] * 4, [100.0] * 4, 3.0, equal)


def test_ten_thousand_slices_are_judged_in_no_time() -> None:
    tops, bottoms = noisy(700, 5000, 1), noisy(100, 5000, 2)
    best = math.inf
    for _ in range(5):
        began = time.thread_time()  # what runs beside it is not counted
        settled(judge(tops, bottoms))
        best = min(best, time.thread_time() - began)
    assert best < 0.1
