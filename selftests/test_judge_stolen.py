"""Verdicts on what was measured while a hypervisor kept processors from the rig."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from leadline.claims import ClaimFailed, NothingOnRecord, Unsettled
from leadline.drive.finding import STEAL_TIME
from leadline.errors import Inconclusive
from leadline.evidence import FEWEST_BLOCKS
from leadline.judge import BLOCKS_ON_RECORD
from leadline.load.slices import Slice, SliceSetting
from leadline.load.workload import Workload
from leadline.on_record import History
from leadline.verdict.verdict import Outcome
from selftests.slice_drive import SliceDrive
from selftests.test_agreement_on_record import Settled
from selftests.test_judge import judged
from selftests.test_judge_curve import DEPTHS, healthy


def test_what_is_plain_through_it_passes_and_it_is_said() -> None:
    reads, kept = judged(SliceDrive({8: 7000, 1: 1000}, spoil=STEAL_TIME))
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (verdict,) = kept.verdicts
    told = [note for note in verdict.notes if "makes all rates scatter" in note]
    assert len(told) == 1
    assert f"{STEAL_TIME}: " in told[0]
    assert not any("can only have lowered" in note for note in verdict.notes)


def test_no_drive_fails_by_it() -> None:
    reads, kept = judged(SliceDrive({8: 2000, 1: 1000}, spoil=STEAL_TIME))
    with pytest.raises(Unsettled, match=STEAL_TIME):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].reason == "void"


def test_it_fails_by_the_slices_in_which_the_rig_had_its_processors() -> None:
    drive = SliceDrive({8: 2700, 1: 1000}, spoil=STEAL_TIME, spoilt_share=0.1, noise=0.05)
    reads, kept = judged(drive)
    with pytest.raises(ClaimFailed):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert any(STEAL_TIME in measured.voids for _, measured in kept.slices)


class Robbed(SliceDrive):
    """In the first batch alone the processors were taken."""

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        self.spoil = "" if self.batches else STEAL_TIME
        return super().measure(workload, settings)


def test_a_first_batch_of_them_is_left_out() -> None:
    reads, kept = judged(Robbed({8: 2000, 1: 1000}))
    with pytest.raises(ClaimFailed):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].count == FEWEST_BLOCKS, "those that were not robbed alone"


class Bursts(SliceDrive):
    """Of the slices that meet steal time, each loses another share of its rate."""

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        return [
            replace(each, rate=each.rate * self.chance.uniform(0.3, 1.0)) if each.voids else each
            for each in super().measure(workload, settings)
        ]


@pytest.mark.parametrize("seed", range(5))
def test_bursts_leave_what_was_measured_between_them(seed: int) -> None:
    """One pair in four has none that was robbed: they settle what all would not in 130 s."""
    drive = Bursts({8: 3450, 1: 1000}, spoil=STEAL_TIME, spoilt_share=0.5, noise=0.02)
    drive.chance.seed(seed)
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (verdict,) = kept.verdicts
    assert verdict.estimate == pytest.approx(3.45, rel=0.05)
    assert not verdict.voids
    assert not any("scatter" in note for note in verdict.notes), "what was left out is no limit"


def test_what_the_few_left_do_not_settle_all_may() -> None:
    """When the budget is spent: of a noisy drive ten pairs are too few, and a hundred are not."""
    drive = SliceDrive({8: 3400, 1: 1000}, spoil=STEAL_TIME, spoilt_share=0.7, noise=0.15)
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (verdict,) = kept.verdicts
    assert verdict.count >= 120
    assert any("scatter" in note for note in verdict.notes)


def test_a_curve_counts() -> None:
    drive = SliceDrive({depth: healthy(depth) for depth in DEPTHS}, spoil=STEAL_TIME)
    reads, kept = judged(drive)
    assert reads.curve().has_no_dip()
    assert kept.verdicts[0].outcome is Outcome.PASS
    sides = Counter(side for side, _ in kept.slices)
    assert sides["screen 20"] == sides["screen 1"]


def test_a_dip_that_is_seen_meanwhile_is_none_yet() -> None:
    dipped = SliceDrive({depth: healthy(depth) for depth in DEPTHS} | {20: 0.7 * healthy(20)})
    dipped.spoil = STEAL_TIME
    reads, kept = judged(dipped)
    with pytest.raises(Unsettled, match=STEAL_TIME):
        assert reads.curve().has_no_dip()
    assert kept.verdicts[0].reason == "void"


@pytest.mark.parametrize(
    ("spoil", "error"), [("", NothingOnRecord), (STEAL_TIME, Inconclusive)], ids=["quiet", "stolen"]
)
def test_it_is_no_record_for_others_to_be_held_against(spoil: str, error: type[Exception]) -> None:
    """Of a record the clean slices alone are found."""
    first = Settled(SliceDrive({32: 7000, 1: 1000}, spoil=spoil))
    nobody = History("this drive's own record", lambda side: None)
    with pytest.raises(error, match="on record"):
        assert first.load().at(offered=32).agrees_with(nobody, within=0.25)


def test_a_record_is_of_the_slices_between_bursts() -> None:
    drive = Bursts({32: 7000, 1: 1000}, spoil=STEAL_TIME, spoilt_share=0.3)
    first = Settled(drive)
    nobody = History("this drive's own record", lambda side: None)
    with pytest.raises(NothingOnRecord, match="has been measured and is on record now: 7"):
        assert first.load().at(offered=32).agrees_with(nobody, within=0.25)
    assert len(first.sides) > 2 * BLOCKS_ON_RECORD, "as many as there are to be without any"
