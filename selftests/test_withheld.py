"""Processors that a hypervisor keeps from the rig are waited for, and not for ever."""

import time
from collections.abc import Sequence

import pytest

from leadline.drive.finding import STEAL_TIME
from leadline.load.slices import Slice, SliceSetting
from leadline.load.workload import Workload, random_read
from leadline.withheld import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    ONE_TEST_S,
    PATIENCE_S,
    Patience,
    outlasting,
)
from selftests.slice_drive import SliceDrive

SETTINGS = [SliceSetting(8, 16), SliceSetting(1, 2)]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


class Rig:
    """Its processors are kept from it in so many batches; each says in the remarks that it ran."""

    robs: int | None = None
    """So many slices of a batch, the first ones; all if None."""

    def __init__(self, stolen: int) -> None:
        self.left = stolen
        self.batches = 0
        self.remarks = {"neighbour": "sdb did 51 requests"}
        self.spent: list[float] = []
        self.said: list[str] = []
        self.patience = Patience(self.said.append)

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> Sequence[Slice]:
        self.batches += 1
        spoil = STEAL_TIME if self.left > 0 else ""
        self.left -= 1
        if spoil:
            self.remarks.setdefault(spoil, f"batch {self.batches}")
        drive = SliceDrive({8: 800.0, 1: 100.0}, spoil=spoil)
        robbed = drive.measure(workload, settings)[: self.robs]
        drive.spoil = ""
        return [*robbed, *drive.measure(workload, settings[len(robbed) :])]

    def slices(self, settings: Sequence[SliceSetting] = SETTINGS) -> Sequence[Slice]:
        measured = outlasting(self.measure, self.patience, self.remarks, self.spent.append)
        return measured(random_read(), settings)


@pytest.mark.parametrize(("robbed", "batches"), [(2, 1), (3, 2)])
@pytest.mark.usefixtures("pauses")
def test_a_batch_is_kept_while_half_of_its_slices_had_the_processors(
    robbed: int, batches: int
) -> None:
    rig = Rig(stolen=1)
    rig.robs = robbed
    rig.slices([*SETTINGS, *SETTINGS])
    assert rig.batches == batches


@pytest.mark.usefixtures("pauses")
def test_nobody_waits_to_see_how_large_requests_arrive() -> None:
    rig = Rig(stolen=1)
    rig.slices([SliceSetting(8, 16, watched=True)])
    assert (rig.batches, rig.said) == (1, [])


@pytest.mark.usefixtures("pauses")
def test_what_is_measured_with_the_processors_there_is_taken_at_once() -> None:
    rig = Rig(stolen=0)
    assert len(rig.slices()) == 2
    assert (rig.batches, rig.said, rig.spent, rig.patience.left_s) == (1, [], [], PATIENCE_S)


def test_a_batch_is_measured_again_when_the_processors_are_back(pauses: list[float]) -> None:
    rig = Rig(stolen=3)
    assert not any(each.voids for each in rig.slices())
    assert rig.batches == 4
    assert pauses == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert rig.spent == [1.0, 1.0, 1.0], "the drive time of what was given up is on record"
    assert "measuring again in 2 s" in rig.said[0]
    assert rig.remarks == {"neighbour": "sdb did 51 requests"}, "of slices that are given up: none"


def test_patience_ends_and_then_the_slices_come_as_they_are(pauses: list[float]) -> None:
    """What is given up takes time, too: 1 s of the drive a batch."""
    rig = Rig(stolen=1000)
    assert all(each.voids == (STEAL_TIME,) for each in rig.slices())
    assert sum(pauses) + len(rig.spent) == pytest.approx(ONE_TEST_S, abs=1.0)
    assert rig.batches == len(pauses) + 1
    assert max(pauses) == LONGEST_PAUSE_S
    assert rig.remarks[STEAL_TIME] == f"batch {rig.batches}"
    was = rig.batches
    assert all(each.voids == (STEAL_TIME,) for each in rig.slices())
    assert rig.batches == was + 1, "one test does not wait twice"


def test_the_next_test_waits_in_its_turn_until_the_visit_has_no_patience_left(
    pauses: list[float],
) -> None:
    rig = Rig(stolen=1000)
    of_tests: list[float] = []
    for _ in range(4):
        rig.patience.next_test()
        rig.slices()
        of_tests.append(sum(pauses) + len(rig.spent) - sum(of_tests))
    assert of_tests == pytest.approx([ONE_TEST_S, PATIENCE_S - ONE_TEST_S, 0.0, 0.0], abs=2.0)


def test_long_batches_leave_less_for_pauses(pauses: list[float]) -> None:
    rig = Rig(stolen=1000)
    assert [rig.patience.again([STEAL_TIME], took_s=50.0) for _ in range(4)] == [
        True,
        True,
        True,
        False,
    ]
    assert pauses == [2.0, 4.0, 8.0]
    assert rig.said[-1].endswith("measuring again in 8 s; there are 14 s for that")


def test_the_first_pause_is_short_again_after_a_quiet_batch(pauses: list[float]) -> None:
    rig = Rig(stolen=2)
    rig.slices()
    rig.left = 1
    rig.slices()
    assert pauses == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, FIRST_PAUSE_S]
