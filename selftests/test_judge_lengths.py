"""How long the judge makes its slices, on drives that are too slow for those of 0.5 s."""

import pytest

from leadline.claims import Unsettled
from leadline.judge import FEWEST_BLOCKS
from leadline.load.slices import TOO_SHORT
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
