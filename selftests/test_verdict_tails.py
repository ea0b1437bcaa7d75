"""Stalls: what is one episode, and how many it takes to compare two sides."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from leadline.verdict.interval import ALPHA
from leadline.verdict.tails import Episode, episodes_needed, judge_stalls, stall_episodes
from leadline.verdict.verdict import Outcome, Verdict

RANK = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1, Outcome.PASS: 2}
counts = st.integers(0, 300)


def episodes(*requests: tuple[float, float], gap_s: float = 0.05) -> list[Episode]:
    return stall_episodes(requests, threshold_s=0.1, gap_s=gap_s)


def test_a_queue_held_up_by_one_stall_is_one_episode() -> None:
    """32 requests issued one after the other, all back at the same moment."""
    held = [(10.0, 0.5 - n / 1000) for n in range(32)]
    (found,) = episodes(*held, (9.0, 0.001), (10.5, 0.002))
    assert found == Episode(began=9.5, ended=10.0, requests=32, worst_s=0.5)


def test_gaps_part_episodes_and_overlaps_join_them() -> None:
    apart = [(1.0, 0.2), (1.26, 0.2), (2.0, 0.2)]
    assert [e.requests for e in episodes(*apart, gap_s=0.05)] == [1, 1, 1]
    assert [e.requests for e in episodes(*apart, gap_s=0.07)] == [2, 1]
    overlapping = [(1.0, 0.5), (1.2, 0.5), (0.8, 0.2)]
    (found,) = episodes(*overlapping, gap_s=0.0)
    assert (found.began, found.ended, found.requests) == (0.5, 1.2, 3)


def test_a_request_at_the_threshold_is_not_slow() -> None:
    assert episodes((1.0, 0.1)) == []
    assert episodes() == []


requests = st.lists(
    st.tuples(st.floats(0, 100), st.floats(0, 2)).map(lambda r: (r[0] + r[1], r[1])), max_size=40
)


@given(requests, st.randoms(use_true_random=False))
def test_order_of_the_log_does_not_matter(
    logged: list[tuple[float, float]], chance: random.Random
) -> None:
    shuffled = [*logged]
    chance.shuffle(shuffled)
    assert episodes(*shuffled) == episodes(*logged)


@given(requests, st.floats(0, 5), st.floats(0, 5))
def test_a_wider_gap_joins_and_never_parts(
    logged: list[tuple[float, float]], gap: float, wider: float
) -> None:
    narrow, wide = episodes(*logged, gap_s=gap), episodes(*logged, gap_s=gap + wider)
    assert len(wide) <= len(narrow)
    slow = sum(latency > 0.1 for _, latency in logged)
    assert sum(e.requests for e in wide) == sum(e.requests for e in narrow) == slow


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ((1.0, -0.1), "took -0.1 s"),
        ((1.0, math.nan), "took nan s"),
        ((math.inf, 0.1), "completed at inf"),
    ],
)
def test_impossible_requests_are_refused(request_: tuple[float, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        episodes((0.5, 0.2), request_)


@pytest.mark.parametrize(
    ("threshold", "gap", "said"),
    [(0.0, 0.1, "threshold_s is 0.0"), (math.nan, 0.1, "threshold_s"), (0.1, -1.0, "gap_s is -1")],
)
def test_impossible_thresholds_and_gaps_are_refused(
    threshold: float, gap: float, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        stall_episodes([(1.0, 0.2)], threshold_s=threshold, gap_s=gap)


def judge(
    a: int,
    b: int,
    *,
    a_seconds: float = 100.0,
    b_seconds: float = 100.0,
    threshold: float = 1.0,
    factor: float = 2.0,
    spent_s: float = 1.0,
    voids: tuple[str, ...] = (),
) -> Verdict | None:
    return judge_stalls(
        a,
        b,
        a_seconds=a_seconds,
        b_seconds=b_seconds,
        threshold=threshold,
        factor=factor,
        spent_s=spent_s,
        voids=voids,
    )


def last(a: int, b: int, **others: Any) -> Verdict:
    """The verdict when the budget is spent."""
    verdict = judge(a, b, spent_s=1e6, **others)
    assert verdict is not None
    return verdict


def test_stalls_of_both_sides_settle_a_clear_case() -> None:
    worse, same = judge(60, 25), judge(45, 45)
    assert worse is not None
    assert same is not None
    assert (worse.outcome, worse.unit, worse.count) == (Outcome.FAIL, "episode", 85)
    assert (same.outcome, same.threshold, same.direction) == (Outcome.PASS, 1.0, "<=")
    assert worse.estimate == pytest.approx(60 / 25)
    assert worse.p_against <= ALPHA < same.p_against


def test_a_few_episodes_settle_nothing_and_the_verdict_says_how_many_it_takes() -> None:
    assert judge(6, 3) is None
    verdict = last(6, 3)
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "budget")
    (note,) = verdict.notes
    assert note.startswith("6 episodes against 3")
    assert "takes about 82 in all" in note


def test_no_stall_on_either_side_proves_nothing() -> None:
    assert judge(0, 0) is None
    verdict = last(0, 0)
    assert (verdict.outcome, verdict.estimate) == (Outcome.INCONCLUSIVE, None)
    assert (verdict.low, verdict.high) == (0.0, math.inf)


def test_time_on_each_side_counts() -> None:
    """Twice the episodes in twice the time are the same rate."""
    assert last(80, 40, a_seconds=200.0).estimate == pytest.approx(1.0)
    assert last(80, 40, a_seconds=200.0).outcome is Outcome.PASS
    assert last(80, 40, a_seconds=100.0).outcome is Outcome.FAIL


def run(seed: int, ratio: float) -> tuple[Outcome, int]:
    """Stall by stall until it is settled: the outcome, and how many it took."""
    chance = random.Random(seed)
    a = b = 0
    while True:
        if chance.random() < ratio / (1 + ratio):
            a += 1
        else:
            b += 1
        verdict = judge(a, b)
        if verdict is not None:
            return verdict.outcome, a + b


@pytest.mark.parametrize(("ratio", "right"), [(1.0, Outcome.PASS), (2.0, Outcome.FAIL)])
def test_a_doubling_takes_about_eighty_episodes_looked_at_one_by_one(
    ratio: float, right: Outcome
) -> None:
    runs = [run(seed, ratio) for seed in range(300)]
    assert sum(outcome is not right for outcome, _ in runs) / 300 <= 0.01
    assert sum(taken for _, taken in runs) / 300 == pytest.approx(80, rel=0.12)
    assert episodes_needed() == 82


def test_a_subtler_difference_takes_more() -> None:
    assert episodes_needed(factor=1.5) > 200 > episodes_needed(factor=4.0)


@pytest.mark.parametrize(("a", "b"), [(0, 5), (5, 0), (30, 12), (400, 380)])
def test_interval_holds_the_ratios_that_a_uniform_mixture_does_not_refute(a: int, b: int) -> None:
    """At its ends the mixture of bets, the beta integral, is 1/ALPHA times as likely."""
    verdict = last(a, b)
    assert verdict.low is not None
    assert verdict.high is not None
    for ratio in (verdict.low, verdict.high):
        if 0.0 < ratio < math.inf:
            density = beta.pdf(ratio / (1 + ratio), a + 1, b + 1)
            assert 1 / density == pytest.approx(1 / ALPHA, rel=1e-6)
    assert (verdict.low == 0.0) == (a == 0)
    assert math.isinf(verdict.high) == (b == 0)


@given(counts, counts, st.sampled_from([1e-3, 7.0, 1e6]))
def test_the_unit_of_time_does_not_matter(a: int, b: int, scale: float) -> None:
    here = last(a, b)
    there = last(a, b, a_seconds=100 * scale, b_seconds=100 * scale)
    assert there.outcome is here.outcome
    assert there.estimate == pytest.approx(here.estimate)


@given(counts, counts, st.integers(0, 100))
def test_more_stalls_never_do_better_and_more_of_the_others_never_worse(
    a: int, b: int, more: int
) -> None:
    rank = RANK[last(a, b).outcome]
    assert RANK[last(a + more, b).outcome] <= rank
    assert RANK[last(a, b + more).outcome] >= rank


@given(counts, counts)
def test_swapping_the_sides_inverts_ratio_and_interval(a: int, b: int) -> None:
    here, there = last(a, b), last(b, a)
    assert here.low is not None
    assert there.high is not None
    assert there.high == pytest.approx(1 / here.low if here.low > 0 else math.inf, rel=1e-6)
    if a and b:
        assert here.estimate == pytest.approx(a / b)
    assert not (here.outcome is Outcome.FAIL and there.outcome is Outcome.FAIL)


def test_void_stalls_are_never_settled() -> None:
    verdict = judge(45, 45, voids=("neighbour",))
    assert verdict is not None
    assert (verdict.outcome, verdict.voids) == (Outcome.INCONCLUSIVE, ("neighbour",))
    assert last(60, 25, voids=("neighbour",)).p_against == 1.0


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"a": -1}, "a_episodes is -1"),
        ({"b": math.nan}, "b_episodes is nan"),
        ({"a": 2.5}, "a_episodes is 2.5"),
        ({"b": math.inf}, "b_episodes is inf"),
        ({"a_seconds": 0.0}, "a_seconds is 0.0"),
        ({"b_seconds": math.nan}, "b_seconds is nan"),
        ({"threshold": 0.0}, "threshold is 0.0"),
        ({"factor": 1.0}, "factor is 1.0"),
        ({"factor": math.inf}, "factor is inf"),
        ({"spent_s": -1.0}, "spent_s is -1.0"),
    ],
)
def test_bad_input_is_refused(given_: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        judge(**{"a": 3, "b": 3, **given_})


@pytest.mark.parametrize(("odds", "factor"), [(0.0, 2.0), (1.0, 1.0), (math.nan, 2.0)])
def test_needed_episodes_of_nonsense_are_refused(odds: float, factor: float) -> None:
    with pytest.raises(ValueError, match=r"(odds|factor) is"):
        episodes_needed(odds, factor)
