"""How often a verdict is wrong: simulated, at a size that a test can afford.

Every look counts: a run is wrong when its interval leaves out the truth at any of them.
"""

import math
import random
from collections.abc import Callable

import pytest
from scipy.special import stdtrit

from leadline.verdict.interval import interval_of
from leadline.verdict.ratio import judge_ratio
from leadline.verdict.verdict import Outcome, Verdict

PAIRS = 130
LOOKS = range(4, PAIRS + 1, 4)
RUNS = 300


def ar1(chance: random.Random, count: int, rho: float, spread: float) -> list[float]:
    """Noise in which each value remembers a share `rho` of the one before."""
    value = chance.gauss(0, spread)
    values = []
    for _ in range(count):
        values.append(value)
        value = rho * value + math.sqrt(1 - rho * rho) * chance.gauss(0, spread)
    return values


def drifting(chance: random.Random) -> list[float]:
    """1 % of drift that forgets over 10 s, and 0.5 % of noise, in pairs of 1 s."""
    slow = ar1(chance, PAIRS, math.exp(-1 / 10), 0.01)
    return [each + chance.gauss(0, 0.005) for each in slow]


def share_wrong(noise: Callable[[random.Random], list[float]], sigma_d: float) -> float:
    """The share of runs in which some look excludes the truth, which is 0."""
    wrong = 0
    for seed in range(RUNS):
        values = noise(random.Random(seed))
        intervals = (
            interval_of(values[:count], value_seconds=1.0, sigma_d=sigma_d) for count in LOOKS
        )
        wrong += any(abs(each.mean) > each.half_width for each in intervals)
    return wrong / RUNS


def test_a_t_interval_that_is_peeked_at_is_wrong_far_more_often_than_it_says() -> None:
    """Why the interval is not the usual one: this, at 1 %, is wrong for one run in ten."""
    wrong = 0
    for seed in range(RUNS):
        values = ar1(random.Random(seed), PAIRS, 0.0, 0.02)
        for count in range(4, PAIRS + 1):
            seen = values[:count]
            mean = math.fsum(seen) / count
            spread = math.sqrt(math.fsum((v - mean) ** 2 for v in seen) / (count - 1))
            if abs(mean) > stdtrit(count - 1, 0.995) * spread / math.sqrt(count):
                wrong += 1
                break
    assert wrong / RUNS > 0.05


def test_independent_noise() -> None:
    assert share_wrong(lambda chance: ar1(chance, PAIRS, 0.0, 0.02), sigma_d=0.0) <= 0.01


def test_correlated_noise_needs_its_guard() -> None:
    """Without the inflation 3 % of these runs are wrong."""
    assert share_wrong(lambda chance: ar1(chance, PAIRS, 0.3, 0.02), sigma_d=0.0) <= 0.015


def test_drift_needs_its_guard() -> None:
    assert share_wrong(drifting, sigma_d=0.0) > 0.2
    assert share_wrong(drifting, sigma_d=0.01) <= 0.01


def run_to_verdict(chance: random.Random, truth: float, threshold: float) -> Verdict:
    """One claim on a simulated drive: the judge's loop, four pairs at a time."""
    drift = drifting(chance)
    tops = [700.0 * math.exp(chance.gauss(0, 0.01) + d) for d in drift]
    bottoms = [700.0 / truth * math.exp(chance.gauss(0, 0.01)) for _ in drift]
    for count in LOOKS:
        verdict = judge_ratio(
            tops[:count], bottoms[:count], threshold, ">=", pair_seconds=1.0, spent_s=count
        )
        if verdict is not None:
            return verdict
    raise AssertionError("the budget is spent at the last look, and the verdict is due")


@pytest.mark.parametrize(
    ("threshold", "right", "settled_share", "mean_s"),
    [
        (3.0 / 1.20, Outcome.PASS, 0.99, 10.0),
        (3.0 * 1.20, Outcome.FAIL, 0.99, 10.0),
        (3.0 / 1.10, Outcome.PASS, 0.99, 20.0),
        (3.0 * 1.05, Outcome.FAIL, 0.90, 60.0),
    ],
)
def test_verdicts_are_right_and_cheap(
    threshold: float, right: Outcome, settled_share: float, mean_s: float
) -> None:
    verdicts = [run_to_verdict(random.Random(seed), 3.0, threshold) for seed in range(200)]
    outcomes = [verdict.outcome for verdict in verdicts]
    assert set(outcomes) <= {right, Outcome.INCONCLUSIVE}
    assert outcomes.count(right) >= settled_share * len(outcomes)
    assert sum(verdict.drive_seconds for verdict in verdicts) / len(verdicts) < mean_s
