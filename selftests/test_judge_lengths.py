"""How long the judge makes its slices, on drives that are too slow for those of 0.5 s."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from leadline.claims import Unsettled
from leadline.evidence import FEWEST_BLOCKS
from leadline.load.slices import (
    LATE_START,
    LEAST_OF_WINDOW,
    TOO_SHORT,
    WARM_UP_S,
    Slice,
    SliceSetting,
)
from leadline.load.workload import Workload
from leadline.verdict.verdict import Outcome
from selftests.slice_drive import SliceDrive
from selftests.test_judge import judged


def test_slices_too_short_for_a_slow_drive_are_lengthened() -> None:
    drive = SliceDrive({8: 70, 1: 10})
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    shallow = [each.seconds for each in drive.settings if each.device_depth == 1]
    assert shallow[-1] >= 5 * 5 / 10
    assert kept.verdicts[0].outcome is Outcome.PASS


def test_the_faster_side_is_lengthened_by_its_own_rate_or_not_at_all() -> None:
    """128 offered at depth 1 wait for a second, and for a tenth of it at depth 8."""
    drive = SliceDrive({8: 5000, 1: 100})
    reads, kept = judged(drive)
    assert reads.at(depth=8, offered=128) >= 3 * reads.at(depth=1, offered=128)
    assert {each.seconds for each in drive.settings if each.device_depth == 8} == {0.5}
    assert max(each.seconds for each in drive.settings) > 5 * 128 / 100
    drive = SliceDrive({8: 1000, 1: 100})
    reads, kept = judged(drive)
    assert reads.at(depth=8, offered=128) >= 3 * reads.at(depth=1, offered=128)
    deep = [each.seconds for each in drive.settings if each.device_depth == 8]
    assert 5 * 128 / 1000 < deep[-1] < 1.5 * 5 * 128 / 1000
    assert kept.verdicts[0].drive_seconds < 4 * (0.5 + 7) + 5 * (1 + 10)


def test_one_pair_tries_the_length_of_slices_of_which_a_batch_is_long() -> None:
    """A rough word that was wrong costs one pair, and one that was right none."""
    drive = SliceDrive({8: 70, 1: 10})
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    pair, first = 2, 2 * FEWEST_BLOCKS
    assert drive.batches == [first, pair, first - pair]
    assert kept.verdicts[0].count == FEWEST_BLOCKS


def test_what_was_measured_before_slices_were_lengthened_counts_for_nothing() -> None:
    drive = SliceDrive({8: 3300, 1: 1000}, noise=0.05, slows_after=2 * FEWEST_BLOCKS)
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    lengths = [measured.setting.seconds for side, measured in kept.slices if side == "left"]
    assert 0 < lengths.count(0.5) < len(lengths), "fast at first, then too short"
    assert kept.verdicts[0].count == len(lengths) - lengths.count(0.5)


def test_an_unclean_slice_before_they_were_lengthened_voids_nothing_either() -> None:
    batch = 2 * FEWEST_BLOCKS
    drive = SliceDrive(
        {8: 3600, 1: 1000}, noise=0.05, slows_after=batch, stalled=frozenset({3, 2 * batch + 3})
    )
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].outcome is Outcome.PASS


def test_a_single_stall_is_no_reason_to_begin_again() -> None:
    drive = SliceDrive({8: 7000, 1: 1000}, stalled=frozenset({3}))
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert {setting.seconds for setting in drive.settings} == {0.5}
    assert kept.verdicts[0].count == len(drive.settings) // 2 - 1


@dataclass
class SlowToBegin(SliceDrive):
    """On a rig where it takes `begins_s` before all of a slice's load is there."""

    begins_s: float = 0.7

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        return [self._late(each) for each in super().measure(workload, settings)]

    def _late(self, measured: Slice) -> Slice:
        meant = measured.setting.seconds - WARM_UP_S
        window = max(0.0, meant - self.begins_s)
        if window >= LEAST_OF_WINDOW * meant:
            return replace(measured, window_s=window)
        counted = measured.rate if window else 0.0
        return replace(measured, window_s=window, rate=counted, voids=(LATE_START,))


def test_on_a_rig_that_is_slow_to_begin_slices_are_lengthened_until_enough_is_counted() -> None:
    """Of slices of 0.5 s nothing is left there: no rate tells how long they are to be."""
    drive = SlowToBegin({8: 7000, 1: 1000})
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (verdict,) = kept.verdicts
    assert (verdict.outcome, verdict.voids, verdict.count) == (Outcome.PASS, (), FEWEST_BLOCKS)
    lengths = [each.seconds for each in drive.settings]
    assert lengths == sorted(lengths), "longer and longer"
    assert 2 * drive.begins_s < lengths[-1] < 3 * drive.begins_s


def test_on_a_rig_that_is_slow_to_begin_a_curve_is_lengthened_within_its_first_pass() -> None:
    drive = SlowToBegin({depth: 1000.0 * min(depth, 8) for depth in range(1, 33)})
    reads, kept = judged(drive)
    assert reads.curve().has_no_dip()
    assert kept.verdicts[0].outcome is Outcome.PASS
    clean = [each for _, each in kept.slices if each.clean]
    assert {each.setting.device_depth for each in clean[:32]} == set(range(1, 33))


def test_a_rig_that_never_begins_in_time_is_told_of_and_no_drive_blamed() -> None:
    reads, _ = judged(SlowToBegin({8: 7000, 1: 1000}, begins_s=60.0))
    with pytest.raises(Unsettled, match=LATE_START):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)


def test_a_drive_too_slow_for_any_slice_is_not_judged() -> None:
    drive = SliceDrive({8: 7, 1: 1})
    reads, _ = judged(drive)
    with pytest.raises(Unsettled, match=TOO_SHORT):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert {setting.seconds for setting in drive.settings} == {0.5}


def test_a_budget_that_ends_before_four_clean_pairs_is_said() -> None:
    reads, kept = judged(SliceDrive({8: 70, 1: 10}), budget_s=4)
    with pytest.raises(Unsettled, match="too-few: the budget was spent"):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert (kept.verdicts[0].reason, kept.verdicts[0].count) == ("void", 0)
