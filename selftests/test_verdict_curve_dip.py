"""Confirming a dip on fresh triples, and what a whole curve ends in."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.verdict.curve import DIP_TOLERANCE, Suspect, Sweep, suspects, to_confirm
from leadline.verdict.dip import CURVE_BUDGET_S, Place, judge_curve, judge_dip, triple_order
from leadline.verdict.verdict import Outcome, Verdict

MIDDLE = Suspect(19, 18, 20, -0.08)
rates = st.lists(st.floats(1.0, 1e5), min_size=6, max_size=6)


def judge(
    below: Sequence[float],
    at: Sequence[float],
    above: Sequence[float],
    *,
    suspect: Suspect = MIDDLE,
    spent_s: float = 10.0,
    budget_s: float = CURVE_BUDGET_S,
    tolerance: float = DIP_TOLERANCE,
    sigma_d: float = 0.01,
    voids: tuple[str, ...] = (),
) -> Verdict | None:
    return judge_dip(
        suspect,
        below,
        at,
        above,
        triple_seconds=1.5,
        spent_s=spent_s,
        budget_s=budget_s,
        sigma_d=sigma_d,
        tolerance=tolerance,
        voids=voids,
    )


def settled(verdict: Verdict | None) -> Verdict:
    assert verdict is not None
    return verdict


def around(rate: float, count: int, seed: int, noise: float = 0.02) -> list[float]:
    chance = random.Random(seed)
    return [rate * chance.lognormvariate(0, noise) for _ in range(count)]


def measured(dip: float, count: int = 60, noise: float = 0.02) -> tuple[list[float], ...]:
    level = 1000.0 * (1.0 - dip)
    return tuple(
        around(rate, count, seed, noise) for seed, rate in enumerate((1000.0, level, 1000.0))
    )


@pytest.mark.parametrize(
    ("dip", "outcome"), [(0.0, Outcome.PASS), (0.08, Outcome.FAIL), (0.5, Outcome.FAIL)]
)
def test_a_dip_fails_and_a_flat_curve_passes(dip: float, outcome: Outcome) -> None:
    verdict = settled(judge(*measured(dip)))
    assert (verdict.outcome, verdict.reason, verdict.unit) == (outcome, "settled", "triple")
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < 1.0 - dip < verdict.high
    assert verdict.threshold == pytest.approx(0.96)
    assert verdict.notes[0] == "depth 19 against 18 and 20"


def test_rates_of_a_verdict_are_at_the_depth_below_and_above() -> None:
    sides = (around(700, 40, 1), around(500, 40, 2), around(900, 40, 3))
    at, below, above = settled(judge(*sides)).rates
    assert (at.rate, below.rate, above.rate) == pytest.approx((500, 700, 900), rel=0.02)


def test_a_clear_dip_is_settled_by_four_triples_and_none_by_three() -> None:
    assert judge(*measured(0.5, 3)) is None
    assert settled(judge(*measured(0.5, 4))).outcome is Outcome.FAIL


def test_a_dip_of_the_tolerance_itself_is_marginal() -> None:
    verdict = settled(judge(*measured(0.04, 600)))
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "marginal")


def test_a_spent_budget_is_inconclusive_and_never_a_guess() -> None:
    sides = measured(0.0, 6, noise=0.1)
    assert judge(*sides, spent_s=CURVE_BUDGET_S - 1) is None
    verdict = settled(judge(*sides, spent_s=CURVE_BUDGET_S))
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "budget")


def test_between_uneven_neighbours_the_straight_line_counts() -> None:
    """At 4 between 2 and 16 a straight line from 200 to 600 gives 257, not 400."""
    sides = (around(200, 40, 1), around(257, 40, 2), around(600, 40, 3))
    assert settled(judge(*sides, suspect=Suspect(4, 2, 16, -0.1))).outcome is Outcome.PASS
    assert settled(judge(*sides, suspect=Suspect(9, 2, 16, -0.1))).outcome is Outcome.FAIL


def test_by_the_neighbour_below_alone_a_rate_has_only_to_keep_up_with_it() -> None:
    arm = Suspect(2, 1, 3, 0.1, by_below=True)
    sides = (around(66, 40, 1), around(73, 40, 2), around(87, 40, 3))
    verdict = settled(judge(*sides, suspect=arm))
    assert (verdict.outcome, verdict.notes[0]) == (Outcome.PASS, "depth 2 against 1")
    assert verdict.estimate == pytest.approx(73 / 66, rel=0.02)
    sides = (around(66, 40, 1), around(60, 40, 2), around(87, 40, 3))
    assert settled(judge(*sides, suspect=arm)).outcome is Outcome.FAIL


def test_slow_drift_cancels_in_a_triple() -> None:
    moving = [math.exp(0.02 * n) for n in range(60)]
    sides = [[rate * by for rate, by in zip(side, moving, strict=True)] for side in measured(0.0)]
    still, moved = settled(judge(*measured(0.0))), settled(judge(*sides))
    assert moved.estimate == pytest.approx(still.estimate)
    assert moved.low == pytest.approx(still.low)


def test_orders_put_each_place_everywhere_equally_often() -> None:
    for start in range(6):
        orders = [triple_order(start // 3 * 3 + n) for n in range(3)]
        for position in range(3):
            assert len({order[position] for order in orders}) == 3
    followers: Counter[tuple[Place, Place]] = Counter()
    for number in range(6):
        order = triple_order(number)
        followers.update(pairwise(order))
    assert set(followers.values()) == {2}
    assert len(followers) == 6
    assert triple_order(6) == triple_order(0)


@given(rates, rates, rates, st.sampled_from([0.001, 7.0, 1e6]))
def test_scaling_all_rates_changes_nothing(
    below: list[float], at: list[float], above: list[float], scale: float
) -> None:
    here = settled(judge(below, at, above, spent_s=CURVE_BUDGET_S))
    scaled = ([rate * scale for rate in side] for side in (below, at, above))
    there = settled(judge(*scaled, spent_s=CURVE_BUDGET_S))
    assert there.outcome is here.outcome
    assert there.estimate == pytest.approx(here.estimate)


@given(rates, rates, rates)
def test_neighbours_at_equal_distance_may_be_swapped(
    below: list[float], at: list[float], above: list[float]
) -> None:
    here = settled(judge(below, at, above, spent_s=CURVE_BUDGET_S))
    there = settled(judge(above, at, below, spent_s=CURVE_BUDGET_S))
    assert there.outcome is here.outcome
    assert there.estimate == pytest.approx(here.estimate)


@given(rates, rates, rates, st.floats(1.0, 10.0))
def test_a_faster_depth_never_does_worse(
    below: list[float], at: list[float], above: list[float], faster: float
) -> None:
    rank = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1, Outcome.PASS: 2}
    slow = settled(judge(below, at, above, spent_s=CURVE_BUDGET_S))
    fast = settled(judge(below, [r * faster for r in at], above, spent_s=CURVE_BUDGET_S))
    assert rank[fast.outcome] >= rank[slow.outcome]


@pytest.mark.parametrize("at", [[500.0] * 8, [0.0] * 8, [math.nan] * 7 + [500.0], []])
def test_void_evidence_never_passes_and_names_why(at: list[float]) -> None:
    good = [1000.0] * len(at)
    verdict = settled(judge(good, at, good, voids=("littles-law",)))
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")
    assert verdict.voids == ("littles-law",)
    assert verdict.count == sum(1 for rate in at if rate > 0)


@pytest.mark.parametrize(
    ("below", "at", "above", "said"),
    [
        ([], [], [], "0 triple"),
        ([1.0], [1.0], [1.0], "1 triple"),
        ([1.0] * 4, [1.0] * 3, [1.0] * 4, "4 rates below, 3 at and 4 above"),
        ([1.0, 0.0], [1.0] * 2, [1.0] * 2, "triple 1: the rate below the depth is 0.0"),
        ([1.0] * 2, [math.nan, 1.0], [1.0] * 2, "triple 0: the rate at the depth is nan"),
        ([1.0] * 2, [1.0] * 2, [1.0, -2.0], "triple 1: the rate above the depth is -2.0"),
        ([1.0] * 2, [1.0] * 2, [1.0, math.inf], "the rate above the depth is inf"),
    ],
)
def test_unusable_rates_are_refused_by_place(
    below: list[float], at: list[float], above: list[float], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        judge(below, at, above)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -0.04, math.nan])
def test_a_tolerance_of_nothing_or_everything_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance is"):
        judge(*measured(0.0), tolerance=tolerance)


def curve(dips: dict[int, float], *, passes: int = 3, noise: float = 0.0) -> Sweep:
    chance = random.Random(1)
    levels = {depth: 1000.0 * (1.0 - dips.get(depth, 0.0)) for depth in range(1, 33)}
    return Sweep(
        {
            depth: tuple(level * chance.lognormvariate(0.0, noise) for _ in range(passes))
            for depth, level in levels.items()
        }
    )


def verdicts_on(sweep: Sweep, **dips: float) -> dict[Suspect, Verdict]:
    """What fresh triples say of every suspect, the dips being as given: `d12=0.2`."""
    return {
        suspect: settled(judge(*measured(dips.get(f"d{suspect.depth}", 0.0), 200), suspect=suspect))
        for suspect in to_confirm(sweep)
    }


def test_a_curve_passes_when_its_suspects_are_cleared() -> None:
    sweep = curve({5: 0.1, 12: 0.2})
    verdict = judge_curve(sweep, verdicts_on(sweep), spent_s=123.0)
    assert (verdict.outcome, verdict.drive_seconds) == (Outcome.PASS, 123.0)


def test_a_curve_without_suspects_still_needs_its_lowest_contrast_confirmed() -> None:
    sweep = curve({7: 0.01})
    assert suspects(sweep) == ()
    with pytest.raises(ValueError, match="depth 7 is suspected and has no verdict"):
        judge_curve(sweep, {}, spent_s=1.0)
    verdict = judge_curve(sweep, verdicts_on(sweep), spent_s=1.0)
    assert verdict.outcome is Outcome.PASS
    assert verdict.notes[0] == "depth 7 against 6 and 8"


def test_one_confirmed_dip_fails_the_curve_and_the_deepest_is_named() -> None:
    sweep = curve({5: 0.1, 12: 0.2, 20: 0.3})
    verdict = judge_curve(sweep, verdicts_on(sweep, d5=0.1, d12=0.2), spent_s=99.0)
    assert (verdict.outcome, verdict.drive_seconds) == (Outcome.FAIL, 99.0)
    assert verdict.notes[0] == "depth 12 against 11 and 13"


def test_a_confirmed_dip_settles_a_curve_before_the_other_suspects_are_looked_at() -> None:
    sweep = curve({5: 0.1, 12: 0.2})
    every = verdicts_on(sweep, d12=0.2)
    first = to_confirm(sweep)[0]
    assert judge_curve(sweep, {first: every[first]}, spent_s=9.0).outcome is Outcome.FAIL


def test_a_confirmed_dip_fails_a_curve_though_another_suspect_is_undecided() -> None:
    sweep = curve({5: 0.1, 12: 0.2})
    undecided_and_failed = verdicts_on(sweep, d5=0.1, d12=0.04)
    assert judge_curve(sweep, undecided_and_failed, spent_s=9.0).outcome is Outcome.FAIL


def test_a_suspect_left_out_is_an_error_and_never_a_pass() -> None:
    sweep = curve({5: 0.1, 12: 0.2})
    every = verdicts_on(sweep)
    del every[to_confirm(sweep)[1]]
    with pytest.raises(ValueError, match="depth 5 is suspected and has no verdict"):
        judge_curve(sweep, every, spent_s=9.0)


def test_one_undecided_suspect_leaves_the_curve_undecided() -> None:
    sweep = curve({5: 0.1, 12: 0.2})
    every = verdicts_on(sweep, d5=0.04)
    verdict = judge_curve(sweep, every, spent_s=9.0)
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "marginal")
    first, _ = to_confirm(sweep)
    spent = settled(judge(*measured(0.0, 6, noise=0.1), spent_s=CURVE_BUDGET_S))
    verdict = judge_curve(sweep, {first: spent}, spent_s=CURVE_BUDGET_S)
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "budget")
    void = settled(judge([], [], [], voids=("io-errors",)))
    verdict = judge_curve(sweep, verdicts_on(sweep) | {first: void}, spent_s=9.0)
    assert (verdict.outcome, verdict.voids) == (Outcome.INCONCLUSIVE, ("io-errors",))


@pytest.mark.parametrize("sweep", [curve({}, passes=1), curve({}, passes=3, noise=0.08)])
def test_a_screen_that_may_have_missed_dips_is_inconclusive(sweep: Sweep) -> None:
    verdict = judge_curve(sweep, verdicts_on(sweep), spent_s=9.0)
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "budget")
    assert "may have missed dips of up to" in verdict.notes[-1]
