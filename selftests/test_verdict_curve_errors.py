"""How often a verdict on a curve is wrong: simulated, at a size that a test can afford."""

import math
import random
from collections.abc import Callable

import pytest

from leadline.verdict.curve import (
    Suspect,
    another_pass,
    collapse_depths,
    pass_order,
    sweep_of,
    to_confirm,
)
from leadline.verdict.dip import judge_curve, judge_dip, triple_order
from leadline.verdict.ratio import judge_ratio
from leadline.verdict.verdict import Outcome, Verdict

DEPTHS = range(1, 33)
SLICE_S = 0.5
RUNS = 60


class SimulatedDrive:
    """Slices with 2 % of noise, on a rig that drifts by 5 % a minute and starts cold."""

    def __init__(self, curve: Callable[[int], float], seed: int) -> None:
        self.curve = curve
        self.chance = random.Random(seed)
        self.spent_s = 0.0

    def slice(self, depth: int) -> float:
        moved = 0.05 * self.spent_s / 60.0 - 0.05 * math.exp(-self.spent_s / 3.0)
        self.spent_s += SLICE_S
        return self.curve(depth) * math.exp(moved + self.chance.gauss(0.0, 0.02))


def judged(drive: SimulatedDrive, seed: int) -> tuple[Verdict, int]:
    """The verdict on the drive's curve, and the depth that was best in its sweep."""
    passes = [[(depth, drive.slice(depth)) for depth in pass_order(DEPTHS, seed, 0)]]
    while another_pass(sweep := sweep_of(passes)):
        order = pass_order(DEPTHS, seed, len(passes))
        passes.append([(depth, drive.slice(depth)) for depth in order])
    verdicts: dict[Suspect, Verdict] = {}
    for suspect in to_confirm(sweep):
        verdicts[suspect] = confirmed(drive, suspect)
        if verdicts[suspect].outcome is Outcome.FAIL:
            break
    return judge_curve(sweep, verdicts, spent_s=drive.spent_s), collapse_depths(sweep)[1]


def confirmed(drive: SimulatedDrive, suspect: Suspect) -> Verdict:
    depths = {"below": suspect.below, "at": suspect.depth, "above": suspect.above}
    sides: dict[str, list[float]] = {name: [] for name in depths}
    verdict = None
    while verdict is None:
        for _ in range(3):
            for place in triple_order(len(sides["at"])):
                # The last of three appends makes the triple whole.
                sides[place].append(drive.slice(depths[place]))
        verdict = judge_dip(
            suspect,
            sides["below"],
            sides["at"],
            sides["above"],
            triple_seconds=3 * SLICE_S,
            spent_s=drive.spent_s,
        )
    return verdict


def saturating(channels: int) -> Callable[[int], float]:
    return lambda depth: 100.0 * min(depth, channels)


def with_dip(curve: Callable[[int], float], at: int) -> Callable[[int], float]:
    chord = (curve(at - 1) + curve(at + 1)) / 2.0
    return lambda depth: 0.92 * chord if depth == at else curve(depth)


def test_healthy_curves_pass_and_cost_a_twentieth_of_the_practice() -> None:
    spent = 0.0
    for seed in range(RUNS):
        drive = SimulatedDrive(saturating(2 + seed % 23), seed)
        verdict, _ = judged(drive, seed)
        assert verdict.outcome is Outcome.PASS
        spent += verdict.drive_seconds
    assert spent / RUNS < 32 * 65 / 20


def test_dips_of_eight_percent_are_found_where_they_are() -> None:
    found = 0
    spent = 0.0
    for seed in range(RUNS):
        at = 2 + seed % 30
        verdict, _ = judged(SimulatedDrive(with_dip(saturating(8), at), seed), seed)
        at_it = verdict.notes[0] == f"depth {at} against {at - 1} and {at + 1}"
        found += verdict.outcome is Outcome.FAIL and at_it
        spent += verdict.drive_seconds
    assert found >= 0.95 * RUNS
    assert spent / RUNS < 32 * 65 / 20


def falling(level: float) -> Callable[[int], float]:
    return lambda depth: 1000.0 * (level if depth > 24 else 1.0)


@pytest.mark.parametrize(("level", "outcome"), [(1.0, Outcome.PASS), (0.8, Outcome.FAIL)])
def test_collapse_is_judged_on_pairs_measured_afresh(level: float, outcome: Outcome) -> None:
    for seed in range(10):
        drive = SimulatedDrive(falling(level), seed)
        _, best = judged(drive, seed)
        tops: list[float] = []
        bottoms: list[float] = []
        verdict = None
        while verdict is None:
            tops.append(drive.slice(DEPTHS[-1]))
            bottoms += [drive.slice(best), drive.slice(best)]
            tops.append(drive.slice(DEPTHS[-1]))
            verdict = judge_ratio(tops, bottoms, 0.9, ">=", pair_seconds=1.0, spent_s=len(tops))
        assert verdict.outcome is outcome
