"""A FAIL of agreement is of the drive that is the odd one, and of no healthy one beside it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from leadline.claims import ClaimFailed, Unsettled
from leadline.load.slices import offered_for
from leadline.on_record import Beside, History, Recorded
from leadline.results.history import before, own_session, twins, twins_sessions
from selftests.slice_drive import SliceDrive
from selftests.test_agreement_on_record import (
    CELL,
    HEALTHY,
    OFF_SIDE,
    SIDE,
    Keep,
    Settled,
    keep,
)

__all__ = ["keep"]  # a fixture


def session(serial: str, rate: float, gain: float = 7.0) -> Recorded:
    """One of a drive that gives about `rate`, and so many times less with NCQ off."""
    rates = tuple(rate * each / 7000.0 for each in HEALTHY)
    return Recorded(rates, f"that of {serial}", alone=tuple(each / gain for each in rates))


def of_drives(newest: Recorded, *others: Recorded, own: Recorded | None = None) -> History:
    return History("its like", lambda side: newest, lambda side: Beside(others, own))


def ends(drive: SliceDrive, record: History) -> str:
    """FAIL, PASS or what voided it, and the whole explanation."""
    settled = Settled(drive, kernel_depth=max(drive.rates))
    try:
        assert settled.load().at(offered=32).agrees_with(record, within=0.25)
    except ClaimFailed as failed:
        return str(failed)
    except Unsettled as unsettled:
        return str(unsettled)
    return f"PASS {settled.verdicts[0].notes}"


GOOD = {32: 7000.0, 1: 1000.0}
NO_QUEUE = {1: 1000.0}


def test_a_healthy_drive_does_not_fail_against_one_without_a_queue() -> None:
    said = ends(SliceDrive(GOOD), of_drives(session("SN2", 1000.0, gain=1.0)))
    assert said.startswith("INCONCLUSIVE (void)")
    assert "void: no-difference: that of SN2: NCQ on over off was 1 [" in said


def test_a_record_of_its_own_from_a_day_without_a_queue_fails_nobody() -> None:
    record = History("its own", lambda side: session("SN1", 1000.0, gain=1.0))
    assert "void: no-difference: that of SN1: NCQ on over off was" in ends(SliceDrive(GOOD), record)


def test_a_record_of_its_own_that_tells_fails_a_drive_that_became_slower() -> None:
    record = History("its own", lambda side: session("SN1", 14000.0))
    said = ends(SliceDrive(GOOD), record)
    assert said.startswith("FAIL")
    assert "note: held against that of SN1: NCQ on over off was 7 [" in said
    assert "there, which tells" in said


def test_a_record_of_which_nobody_knows_how_it_stood_fails_nobody() -> None:
    unknown = Recorded((1000.0,) * 8, "that of SN2", alone=())
    assert "too few of its slices with NCQ off are on record" in ends(
        SliceDrive(GOOD), of_drives(unknown)
    )


def test_the_one_without_a_queue_is_the_one_that_fails() -> None:
    said = ends(SliceDrive(NO_QUEUE), of_drives(session("SN2", 7000.0)))
    assert said.startswith("FAIL")
    assert "the odd one is this drive now: NCQ on over off is " in said


@pytest.mark.parametrize(("was", "fails"), [(14000.0, True), (7000.0, False), (None, False)])
def test_of_two_that_queue_its_own_record_tells(was: float | None, fails: bool) -> None:
    own = session("SN1", was) if was else None
    said = ends(SliceDrive(GOOD), of_drives(session("SN2", 14000.0), own=own))
    assert said.startswith("FAIL") == fails
    assert ("void: which-is-off: " in said) != fails


def test_an_own_record_that_does_not_tell_blames_nobody() -> None:
    own = session("SN1", 14000.0, gain=1.0)
    said = ends(SliceDrive(GOOD), of_drives(session("SN2", 14000.0), own=own))
    assert "void: which-is-off: " in said


@pytest.mark.parametrize(
    ("now", "others", "outcome"),
    [
        (7000.0, (3500.0, 7000.0), "PASS"),
        (7000.0, (7000.0, 3500.0), "PASS"),
        (3500.0, (7000.0, 7000.0), "FAIL"),
        (3500.0, (7000.0, 3500.0, 7000.0), "INCONCLUSIVE"),
        (7000.0, (14000.0, 3500.0), "INCONCLUSIVE"),
        (3500.0, (7000.0, 7000.0, 3500.0, 7000.0), "FAIL"),
    ],
)
def test_of_several_the_one_nearest_to_the_median_is_the_yardstick(
    now: float, others: Sequence[float], outcome: str
) -> None:
    drives = [session(f"SN{number}", rate) for number, rate in enumerate(others, 2)]
    said = ends(SliceDrive({32: now, 1: now / 7.0}), of_drives(*drives))
    assert said.startswith(outcome), said


def test_what_it_was_held_against_is_what_is_shown() -> None:
    said = ends(SliceDrive(GOOD), of_drives(session("SN2", 3500.0), session("SN3", 7000.0)))
    assert "held against that of SN3" in said


def test_a_session_that_tells_is_taken_before_one_that_does_not(keep: Keep) -> None:
    keep("run-1", "SN1", [7.0] * 16, alone=[1.0] * 16)
    keep("run-1", "SN2", [7.0] * 16, alone=[1.0] * 16)
    keep("run-2", "SN1", [1.0] * 16, alone=[1.0] * 16)
    keep("run-2", "SN2", [1.0] * 16, alone=[1.0] * 16)
    keep("run-2", "SN3", [1.0] * 16, alone=[1.0] * 16)
    now = keep("run-3", "SN1", [])
    own = own_session(now, CELL, "SN1", SIDE)
    assert own and own.run == "run-1" and own.alone == (1.0,) * 16
    (twin,) = twins_sessions(now, CELL, "SN1", SIDE)
    assert twin.run == "run-1"


def test_where_none_tells_there_is_still_one_to_be_named(keep: Keep) -> None:
    keep("run-1", "SN1", [1.0] * 16, alone=[1.0] * 16)
    keep("run-1", "SN2", [1.0] * 16, alone=[1.0] * 16)
    now = keep("run-2", "SN1", [])
    found = before(now, CELL, "SN1").find(SIDE), twins(now, CELL, "SN1").find(SIDE)
    assert all(each and each.alone == (1.0,) * 16 for each in found)


def test_every_other_drive_is_beside_the_one_it_is_held_against(keep: Keep) -> None:
    keep("run-0", "SN1", [7.0] * 16, alone=[1.0] * 16)
    for serial in ("SN2", "SN3", "SN4"):
        keep("run-1", serial, [7.0] * 16, alone=[1.0] * 16)
    found = twins(keep("run-2", "SN1", []), CELL, "SN1")
    newest, beside = found.find(SIDE), found.beside(SIDE)
    assert newest and beside and beside.own
    assert " of SN4, " in newest.whose
    assert [each.whose.split()[2][:3] for each in beside.others] == ["SN3", "SN2"]
    assert before(keep("run-3", "SN1", []), CELL, "SN1").beside(SIDE) is None


def test_the_side_with_ncq_off_has_the_name_under_which_it_is_looked_for() -> None:
    reads = Settled(SliceDrive(GOOD)).load().at(offered=32)
    assert (str(reads), str(reads.without_ncq)) == (SIDE, OFF_SIDE)


def test_with_ncq_off_no_more_waits_in_the_host_than_keeps_the_drive_busy() -> None:
    """Thirty-two would turn over in ten times as long."""
    load = Settled(SliceDrive(GOOD)).load()
    assert load.at(offered=32).without_ncq.setting == load.at(depth=1).setting
    assert load.at(offered=3).without_ncq.offered_depth == 3
    assert load.at(threads=16).without_ncq.offered_depth == 16, "one each"
    beside = replace(load, most_drives=2)
    assert beside.at(offered=32, drives=2).without_ncq.offered_depth == 2 * offered_for(1)
