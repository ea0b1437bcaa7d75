"""Verdicts on what was measured while a hypervisor kept processors from the rig."""

from collections import Counter
from collections.abc import Sequence

import pytest

from leadline.claims import ClaimFailed, NothingOnRecord, Unsettled
from leadline.drive.finding import STEAL_TIME
from leadline.errors import Inconclusive
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


def test_a_first_batch_of_them_is_outlasted() -> None:
    reads, kept = judged(Robbed({8: 2000, 1: 1000}))
    with pytest.raises(ClaimFailed):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].count >= 12, "three in four count"


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
