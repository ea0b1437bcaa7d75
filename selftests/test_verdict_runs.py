"""Single long runs: what one run a setting settles, and how often it is wrong."""

import math
import random
import statistics

import pytest

from leadline.verdict.runs import UNSAMPLED_SPREAD, Run, error_of, judge_runs, ratio_of
from leadline.verdict.verdict import Direction, Outcome


def run(rate: float, *, most: float = 1.0, spread: float | None = 0.02, samples: int = 120) -> Run:
    """A run that may have had `most` times its rate."""
    return Run(rate, rate * most, 60.0, spread, samples)


@pytest.mark.parametrize(
    ("top", "direction", "outcome"),
    [
        (3300, ">=", Outcome.PASS),
        (2700, ">=", Outcome.FAIL),
        (2700, "<=", Outcome.PASS),
        (3300, "<=", Outcome.FAIL),
        (3100, ">=", Outcome.INCONCLUSIVE),
        (2900, "<=", Outcome.INCONCLUSIVE),
    ],
)
def test_a_ratio_is_settled_when_it_is_further_off_than_the_allowance(
    top: float, direction: Direction, outcome: Outcome
) -> None:
    verdict = judge_runs(run(top), run(1000), 3.0, direction)
    assert verdict.outcome is outcome
    assert verdict.reason == ("budget" if outcome is Outcome.INCONCLUSIVE else "settled")
    assert verdict.drive_seconds == 120


def test_the_allowance_is_noise_within_the_runs_and_drift_between_them() -> None:
    ratio = ratio_of(run(3000, spread=0.05, samples=100), [(1.0, run(1000, spread=0.02))])
    within = 19 * (0.05**2 / 100 + 0.02**2 / 120)
    assert ratio.allowance == pytest.approx(2.6 * math.sqrt(within + 2 * 0.01**2))
    assert ratio.low == pytest.approx(3 * math.exp(-ratio.allowance))
    assert ratio.high == pytest.approx(3 * math.exp(ratio.allowance))


@pytest.mark.parametrize(("spread", "samples"), [(None, 0), (None, 120), (0.001, 9)])
def test_runs_without_samples_may_be_as_far_apart_as_identical_ones_were_seen(
    spread: float | None, samples: int
) -> None:
    bare = run(3000, spread=spread, samples=samples)
    assert ratio_of(bare, [(1.0, bare)]).allowance == pytest.approx(UNSAMPLED_SPREAD)
    assert math.exp(UNSAMPLED_SPREAD) == pytest.approx(4.8 / 3.9)


def test_a_drive_that_is_too_regular_is_not_believed() -> None:
    assert error_of(run(1000, spread=0.0)) == error_of(run(1000, spread=0.004))
    assert error_of(run(1000, spread=0.0)) > 0.01


def test_what_kept_a_queue_short_widens_one_end_only() -> None:
    plain = judge_runs(run(3500), run(1000), 3.0, ">=")
    starved_top = judge_runs(run(3500, most=1.3), run(1000), 3.0, ">=")
    starved_bottom = judge_runs(run(3500), run(1000, most=1.3), 3.0, ">=")
    assert plain.high is not None
    assert plain.low is not None
    assert (starved_top.low, starved_bottom.high) == (plain.low, plain.high)
    assert starved_top.high == pytest.approx(1.3 * plain.high)
    assert starved_bottom.low == pytest.approx(plain.low / 1.3)
    assert plain.outcome is starved_top.outcome is Outcome.PASS
    assert starved_bottom.outcome is Outcome.INCONCLUSIVE


def test_a_drive_faster_than_its_load_generator_can_pass_and_cannot_fail() -> None:
    def busy(rate: float) -> Run:
        return run(rate, most=math.inf)

    assert judge_runs(busy(3500), run(1000), 3.0, ">=").outcome is Outcome.PASS
    assert judge_runs(busy(2000), run(1000), 3.0, ">=").outcome is Outcome.INCONCLUSIVE
    assert judge_runs(run(9000), busy(1000), 3.0, ">=").outcome is Outcome.INCONCLUSIVE


def test_a_void_verdict_keeps_its_figures_and_decides_nothing() -> None:
    verdict = judge_runs(run(9000), run(1000), 3.0, ">=", voids=["littles-law: it was empty"])
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")
    assert verdict.estimate == 9
    assert verdict.voids == ("littles-law: it was empty",)


def test_a_ratio_within_the_margin_is_marginal() -> None:
    top, bottom = (run(rate, spread=0.001, samples=10_000) for rate in (3000, 1000))
    verdict = judge_runs(top, bottom, 3.0, ">=", sigma_d=0.001)
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "marginal")


def test_a_point_is_held_against_the_line_between_its_neighbours() -> None:
    ratio = ratio_of(run(900), [(0.5, run(800)), (0.5, run(1200, most=2.0))])
    assert ratio.estimate == pytest.approx(0.9)
    assert ratio.low == pytest.approx(900 / 1600 * math.exp(-ratio.allowance))
    alone = ratio_of(run(900), [(1.0, run(1000))])
    assert ratio.allowance < alone.allowance  # two neighbours say more than one


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="rate"):
        Run(rate, rate, 60.0)
    with pytest.raises(ValueError, match="threshold"):
        judge_runs(run(1), run(1), rate, ">=")


def test_a_run_cannot_have_had_less_than_it_had() -> None:
    with pytest.raises(ValueError, match="at most"):
        Run(100.0, 99.0, 60.0)


def recorded(chance: random.Random, rate: float, noise: float) -> Run:
    """A run as fio would record it: 120 samples, each resembling the one before, on a rig
    that is a little different each time."""
    level = rate * math.exp(chance.gauss(0, 0.01))
    deviation, samples = chance.gauss(0, noise), []
    for _ in range(120):
        deviation = 0.85 * deviation + chance.gauss(0, noise * math.sqrt(1 - 0.85**2))
        samples.append(level * math.exp(deviation))
    mean = statistics.fmean(samples)
    return Run(mean, mean, 60.0, statistics.stdev(samples) / mean, len(samples))


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.15])
@pytest.mark.parametrize("truth", [0.95, 1.05])
def test_verdicts_5_percent_from_the_threshold_are_seldom_wrong(noise: float, truth: float) -> None:
    """Comparing the two numbers alone is wrong up to one time in six here."""
    chance = random.Random(f"{noise} {truth}")
    wrong = naive = 0
    right = Outcome.PASS if truth > 1 else Outcome.FAIL
    for _ in range(500):
        top, bottom = recorded(chance, 3000 * truth, noise), recorded(chance, 1000, noise)
        outcome = judge_runs(top, bottom, 3.0, ">=").outcome
        wrong += outcome not in (right, Outcome.INCONCLUSIVE)
        naive += (top.rate / bottom.rate > 3) != (right is Outcome.PASS)
    assert wrong <= 2
    if noise == 0.15:
        assert naive > 50
