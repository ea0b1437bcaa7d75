"""Absolute claims: a rate against a figure, and events against a limit."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, quantile_test

from leadline.verdict.absolute import judge_absolute, judge_times, late_share, typical_time
from leadline.verdict.interval import ALPHA, Interval
from leadline.verdict.sessions import session_spread
from leadline.verdict.verdict import Direction, Outcome, Verdict

rates = st.lists(st.floats(10.0, 1e4), min_size=8, max_size=8)
times = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=30)
RANK = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1, Outcome.PASS: 2}


def judge(
    measured: list[float],
    figure: float = 500.0,
    direction: Direction = ">=",
    *,
    sigma_session: float = 0.01,
    sigma_d: float = 0.01,
    margin: float = 0.03,
    spent_s: float = 1.0,
    voids: tuple[str, ...] = (),
) -> Verdict | None:
    return judge_absolute(
        measured,
        figure,
        direction,
        slice_seconds=1.0,
        spent_s=spent_s,
        sigma_session=sigma_session,
        sigma_d=sigma_d,
        margin=margin,
        voids=voids,
    )


def last(measured: list[float], figure: float = 500.0, direction: Direction = ">=") -> Verdict:
    """The verdict when the budget is spent."""
    verdict = judge(measured, figure, direction, spent_s=1e6)
    assert verdict is not None
    return verdict


def noisy(rate: float, count: int, seed: int = 1, noise: float = 0.01) -> list[float]:
    chance = random.Random(seed)
    return [rate * chance.lognormvariate(0, noise) for _ in range(count)]


@pytest.mark.parametrize(("rate", "figure"), [(500.0, 500.0), (520.0, 500.0), (480.0, 500.0)])
def test_what_no_drive_time_tells_ends_at_the_first_look_that_shows_it(
    rate: float, figure: float
) -> None:
    """2.6 times 3 % is 7.8 %: wider than the margin, and than what this session's noise leaves."""
    verdict = judge(noisy(rate, 8), figure, sigma_session=0.03)
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "budget")
    assert verdict.shortage.startswith(
        "sessions that differ by 3.00% cannot tell what is within 8.1%"
    )


@pytest.mark.parametrize(
    ("rate", "session", "noise"),
    [
        (560.0, 0.03, 0.01),  # beyond what sessions differ by: it may settle
        (520.0, 0.03, 0.20),  # or may be, by the noise of these few slices
        (500.0, 0.01, 0.01),  # it may become marginal
    ],
)
def test_what_may_still_be_told_is_measured_on(rate: float, session: float, noise: float) -> None:
    slices = noisy(rate, 4, noise=noise)
    assert judge(slices, sigma_session=session, sigma_d=0.03) is None
    spent = judge(slices, sigma_session=session, sigma_d=0.03, spent_s=130.0)
    assert spent is not None
    assert (spent.reason, spent.shortage) == ("budget", "")


@pytest.mark.parametrize(
    ("rate", "direction", "outcome"),
    [
        (600, ">=", Outcome.PASS),
        (400, ">=", Outcome.FAIL),
        (400, "<=", Outcome.PASS),
        (600, "<=", Outcome.FAIL),
    ],
)
def test_a_rate_far_from_the_figure_is_settled_by_a_few_slices(
    rate: float, direction: Direction, outcome: Outcome
) -> None:
    verdict = judge(noisy(rate, 8), direction=direction)
    assert verdict is not None
    assert (verdict.outcome, verdict.unit, verdict.count) == (outcome, "slice", 8)
    assert verdict.estimate == pytest.approx(rate, rel=0.02)
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < rate < verdict.high


def interval_with(measured: list[float], sigma_session: float) -> Interval:
    verdict = judge(measured, sigma_session=sigma_session, sigma_d=0.005, spent_s=1e6)
    assert verdict is not None
    assert verdict.interval is not None
    return verdict.interval


def test_the_session_is_in_the_interval_and_no_number_of_slices_takes_it_out() -> None:
    """2 % between sessions: 5.2 % remain, however long this one is."""
    interval = interval_with(noisy(505, 4000), 0.02)
    assert interval.half_width == pytest.approx(2.6 * 0.02, rel=0.1)
    assert interval_with(noisy(505, 40), 0.02).half_width > interval.half_width


def test_session_and_drift_are_added_as_variances() -> None:
    verdict = judge(noisy(505, 10), sigma_session=0.04, sigma_d=0.03, spent_s=1e6)
    assert verdict is not None
    assert verdict.interval is not None
    assert verdict.interval.drift == pytest.approx(2.6 * 0.05)


def test_the_wider_interval_is_said() -> None:
    verdict = judge(noisy(600, 8), sigma_session=0.02)
    assert verdict is not None
    assert any("2.00% between sessions" in note for note in verdict.notes)


def wrong_share(sigma_session: float) -> float:
    """How often a drive of just the figure, in a rig that differs by 2 %, is settled."""
    wrong = 0
    for seed in range(200):
        chance = random.Random(seed)
        session = chance.gauss(0, 0.02)
        measured = [500 * math.exp(session + chance.gauss(0, 0.01)) for _ in range(60)]
        looks = [judge(measured[:n], sigma_session=sigma_session, sigma_d=0.0) for n in (8, 20, 60)]
        wrong += any(look is not None and look.reason == "settled" for look in looks)
    return wrong / 200


def test_a_rate_is_settled_wrongly_as_seldom_as_it_says_over_sessions() -> None:
    """And far more often if the session is left out: that is what the slices alone would do."""
    assert wrong_share(0.02) <= 0.01
    assert wrong_share(1e-6) > 0.5


@given(rates, st.floats(1.0, 1e5), st.sampled_from([1e-3, 7.0, 1e6]))
def test_the_unit_does_not_matter(measured: list[float], figure: float, scale: float) -> None:
    here, there = last(measured, figure), last([r * scale for r in measured], figure * scale)
    assert there.outcome is here.outcome


@given(rates, st.floats(1.0, 1e5))
def test_the_opposite_claim_gets_the_opposite_verdict(measured: list[float], figure: float) -> None:
    least, most = last(measured, figure, ">="), last(measured, figure, "<=")
    assert RANK[least.outcome] + RANK[most.outcome] == 2


@given(rates, st.floats(1.0, 1e5), st.floats(1.0, 10.0))
def test_a_faster_drive_never_does_worse(
    measured: list[float], figure: float, faster: float
) -> None:
    slow, fast = last(measured, figure), last([rate * faster for rate in measured], figure)
    assert RANK[fast.outcome] >= RANK[slow.outcome]


@pytest.mark.parametrize(
    ("figure", "session", "margin", "said"),
    [
        (0.0, 0.01, 0.03, "threshold is 0.0"),
        (math.nan, 0.01, 0.03, "threshold is nan"),
        (500.0, 0.0, 0.03, "sigma_session is 0.0.*session_spread"),
        (500.0, -0.01, 0.03, "sigma_session is -0.01"),
        (500.0, math.inf, 0.03, "sigma_session is inf"),
        (500.0, 0.01, 1.0, "margin is 1.0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(
    figure: float, session: float, margin: float, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        judge([600.0] * 8, figure, sigma_session=session, margin=margin)


def test_a_rate_is_not_within_a_figure() -> None:
    with pytest.raises(ValueError, match="direction is 'within'"):
        judge([600.0] * 8, direction="within")


@pytest.mark.parametrize("bad", [[], [600.0], [600.0, 0.0], [math.nan, 600.0], [600.0, -1.0]])
def test_unusable_rates_are_refused_and_void_ones_never_pass(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="slice"):
        judge(bad)
    verdict = judge(bad, voids=("io-errors",))
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")


def test_three_identical_slices_settle_nothing() -> None:
    assert judge([600.0] * 3) is None


def test_identical_sessions_are_no_spread() -> None:
    with pytest.raises(ValueError, match=r"sigma_session is 0\.0"):
        judge([600.0] * 8, sigma_session=session_spread([500.0, 500.0]))


def test_every_event_counts() -> None:
    verdict = judge_times([3.0, 9.9, 10.0], 10.0, spent_s=4.0)
    assert (verdict.outcome, verdict.reason) == (Outcome.PASS, "settled")
    assert (verdict.estimate, verdict.count, verdict.unit) == (10.0, 3, "event")
    assert (verdict.direction, verdict.threshold, verdict.drive_seconds) == ("<=", 10.0, 4.0)
    assert verdict.p_against == 1.0
    one_late = judge_times([3.0, 10.001, 9.9], 10.0)
    assert (one_late.outcome, one_late.estimate) == (Outcome.FAIL, 10.001)
    assert one_late.p_against == 0.0
    assert one_late.notes == ("2 of 3 events took at most 10 s",)


def test_what_never_came_is_late() -> None:
    assert judge_times([3.0, math.inf], 10.0).outcome is Outcome.FAIL


def test_a_pass_says_how_little_a_few_events_promise() -> None:
    (note,) = judge_times([3.0] * 5, 10.0).notes
    assert note.startswith("5 of 5 events took at most 10 s")
    assert "60%" in note


@pytest.mark.parametrize("count", [1, 5, 100])
def test_late_share_is_the_exact_binomial_bound(count: int) -> None:
    exact = binomtest(0, count, alternative="less").proportion_ci(1 - ALPHA).high
    assert late_share(count) == pytest.approx(float(exact))


def test_nothing_timed_is_void() -> None:
    verdict = judge_times([], 10.0)
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")
    assert verdict.voids[0].startswith("no-event")
    assert verdict.estimate is None


@pytest.mark.parametrize("event", [3.0, 30.0])
def test_void_events_are_never_settled(event: float) -> None:
    verdict = judge_times([event], 10.0, voids=("unverified-off",))
    assert (verdict.outcome, verdict.voids) == (Outcome.INCONCLUSIVE, ("unverified-off",))
    assert verdict.p_against == 1.0


@given(times, st.floats(0.1, 100.0), st.floats(0.0, 100.0))
def test_slower_events_or_one_more_never_do_better(
    events: list[float], limit: float, slower: float
) -> None:
    rank = RANK[judge_times(events, limit).outcome]
    assert RANK[judge_times([event + slower for event in events], limit).outcome] <= rank
    assert RANK[judge_times([*events, slower], limit).outcome] <= rank


@pytest.mark.parametrize(
    ("events", "limit", "said"),
    [
        ([1.0, -0.1], 10.0, "event 1: it took -0.1 s"),
        ([math.nan], 10.0, "event 0: it took nan s"),
        ([1.0], 0.0, "limit is 0.0"),
        ([1.0], math.inf, "limit is inf"),
        ([1.0], math.nan, "limit is nan"),
    ],
)
def test_bad_times_are_refused(events: list[float], limit: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        judge_times(events, limit)


@pytest.mark.parametrize("count", [8, 9, 12, 20, 21, 150])
def test_typical_time_is_the_median_with_scipys_exact_interval(count: int) -> None:
    events = [random.Random(n).uniform(5, 9) for n in range(count)]
    found = typical_time(events)
    exact: Any = quantile_test(events, p=0.5).confidence_interval(confidence_level=1 - ALPHA)
    assert (found.low, found.high) == (exact.low, exact.high)
    assert found.low <= found.median <= found.high


def test_seven_events_bound_no_median() -> None:
    found = typical_time([5.0, 6.0, 7.0, 5.0, 6.0, 7.0, 5.5])
    assert (found.median, found.low, found.high) == (6.0, 0.0, math.inf)


def test_typical_time_covers_the_true_median() -> None:
    """Exponential times of median log 2; eight of them are enough to bound it."""
    missed = 0
    for seed in range(1000):
        chance = random.Random(seed)
        found = typical_time([chance.expovariate(1.0) for _ in range(12)])
        missed += not found.low <= math.log(2) <= found.high
    assert missed / 1000 <= 0.015


@pytest.mark.parametrize(
    ("events", "said"), [([], "no event"), ([-1.0], "event 0"), ([math.nan], "event 0")]
)
def test_typical_time_of_bad_events_is_refused(events: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        typical_time(events)
