"""Passes over a curve's depths: which slices are measured again within one, and when it is lost."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from leadline.claims import Unsettled
from leadline.drive.finding import STEAL_TIME
from leadline.judge_curve import SPOILT_PASSES, TRIES_AGAIN
from leadline.load.slices import DRIVE_DEPTH, ROUNDS, TOO_SHORT, Slice, SliceSetting
from leadline.load.workload import Workload
from leadline.remedies import TOO_FEW
from leadline.verdict.curve import fewest_passes
from leadline.verdict.verdict import Outcome
from selftests.slice_drive import SliceDrive
from selftests.test_judge import judged
from selftests.test_judge_curve import DEPTHS, healthy


class Flattering(SliceDrive):
    """What a slice that was too short tells of the rate: that 1.3 times as long would do."""

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        return [
            replace(each, rate=1.2 * ROUNDS * setting.offered_depth / (1.3 * setting.seconds))
            if TOO_SHORT in each.voids
            else each
            for setting, each in zip(settings, super().measure(workload, settings), strict=True)
        ]


def test_a_pass_that_only_makes_slices_longer_is_not_lost() -> None:
    """However often: each depth until it is long enough, and no other is measured again."""
    slow = Flattering({depth: healthy(depth) / 60 for depth in DEPTHS})
    reads, kept = judged(slow)
    assert reads.curve().has_no_dip()
    lengths = [measured.setting.seconds for side, measured in kept.slices if side == "screen 32"]
    assert len(set(lengths)) > SPOILT_PASSES + 2, "more often than passes may be spoilt"
    screened = [measured for side, measured in kept.slices if side.startswith("screen ")]
    assert sum(measured.clean for measured in screened) % len(DEPTHS) == 0
    assert {measured.setting.device_depth for measured in screened[:32]} == set(DEPTHS)
    assert len(slow.batches) >= len(set(lengths))
    assert sorted(slow.batches[:6], reverse=True) == slow.batches[:6]


class Disturbed(SliceDrive):
    """In each pass the slices at some depths meet this, so often; then they are clean."""

    why, depths, times = DRIVE_DEPTH, frozenset({20}), 1

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        if len(settings) == len(DEPTHS):
            self.met = Counter[int]()
        return [self._met(each) for each in super().measure(workload, settings)]

    def _met(self, measured: Slice) -> Slice:
        depth = measured.setting.device_depth
        if depth not in self.depths or self.met[depth] == self.times:
            return measured
        self.met[depth] += 1
        return replace(measured, rate=0.8 * measured.rate, voids=(self.why,))


def test_a_slice_that_met_what_passes_costs_itself_and_not_its_pass() -> None:
    """On a busy rig one of 32 does in nearly every pass."""
    disturbed = Disturbed({depth: healthy(depth) for depth in DEPTHS})
    reads, kept = judged(disturbed)
    assert reads.curve().has_no_dip()
    assert kept.verdicts[0].outcome is Outcome.PASS
    sides = Counter(side for side, _ in kept.slices)
    assert sides["screen 20"] == 2 * sides["screen 1"]


@pytest.mark.parametrize(
    ("depths", "times", "each_pass"),
    [
        (range(20, 21), 1, 2),
        (range(1, 17), 1, 2),
        (range(20, 21), 99, 1 + TRIES_AGAIN),
        (range(1, 18), 99, 1),
    ],
    ids=["one", "half", "lasting", "most"],
)
def test_slices_robbed_of_processors_are_measured_again_in_their_pass(
    depths: Sequence[int], times: int, each_pass: int
) -> None:
    """Where most were, or they are so again, they count: a pass is not lost, and no dip that is
    seen in them stands once there are others."""
    disturbed = Disturbed({depth: healthy(depth) for depth in DEPTHS})
    disturbed.why, disturbed.depths, disturbed.times = STEAL_TIME, frozenset(depths), times
    reads, kept = judged(disturbed, budget_s=500.0)
    assert reads.curve().has_no_dip()
    sides = Counter(side for side, _ in kept.slices)
    assert sides[f"screen {depths[0]}"] == each_pass * sides["screen 32"]
    assert disturbed.batches[0] == len(DEPTHS)


@pytest.mark.parametrize(
    ("why", "depths", "each_pass"),
    [
        (DRIVE_DEPTH, range(20, 21), 1 + TRIES_AGAIN),
        (DRIVE_DEPTH, range(1, 10), 1),
        ("errors", range(20, 21), 1),
    ],
)
def test_what_lasts_or_is_everywhere_or_is_the_drives_own_voids_the_curve(
    why: str, depths: Sequence[int], each_pass: int
) -> None:
    disturbed = Disturbed({depth: healthy(depth) for depth in DEPTHS})
    disturbed.why, disturbed.depths, disturbed.times = why, frozenset(depths), 99
    reads, kept = judged(disturbed)
    with pytest.raises(Unsettled, match=why):
        assert reads.curve().has_no_dip()
    sides = Counter(side for side, _ in kept.slices)
    passes = sides["screen 32"]
    assert passes == SPOILT_PASSES + 1
    assert sides[f"screen {depths[0]}"] == each_pass * passes


class Stuttering(SliceDrive):
    """In each pass the slice at depth 20 comes out too short, and a little longer it does not."""

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        measured = super().measure(workload, settings)
        if len(settings) < len(DEPTHS):
            return measured
        return [
            replace(each, rate=0.9 * enough(each.setting), voids=(TOO_SHORT,))
            if each.setting.device_depth == 20
            else each
            for each in measured
        ]


def enough(setting: SliceSetting) -> float:
    """The rate at which the queue turns over often enough in such a slice."""
    return ROUNDS * setting.offered_depth / setting.seconds


def test_a_slice_that_was_too_short_costs_itself_and_not_its_pass() -> None:
    stuttering = Stuttering({depth: healthy(depth) for depth in DEPTHS})
    reads, kept = judged(stuttering)
    assert reads.curve().has_no_dip()
    passes = sum(side == "screen 1" for side, _ in kept.slices)
    assert passes <= fewest_passes(len(DEPTHS)) + 1
    assert stuttering.batches[: 2 * passes] == [len(DEPTHS), 1] * passes


class Slowing(SliceDrive):
    """Its rates fall with each batch, so that slices are too short each time."""

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        self.rates = {depth: 0.7 * rate for depth, rate in self.rates.items()}
        return super().measure(workload, settings)


def test_a_curve_whose_slices_are_ever_too_short_ends_with_the_budget_and_says_so() -> None:
    slowing = Slowing({depth: healthy(depth) / 12 for depth in DEPTHS})
    reads, kept = judged(slowing, budget_s=6.0)
    with pytest.raises(Unsettled, match=f"{TOO_FEW}: the budget was spent") as failure:
        assert reads.curve().has_no_dip()
    assert "remedy: raise --drive-time" in str(failure.value)
    assert len(slowing.batches) < 9
    assert kept.verdicts[0].reason == "void"
