"""A calibration in a visit: measured as load is, kept with its conditions, told to verdicts."""

import platform
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leadline.calibration import noise_run, store
from leadline.calibration.store import Conditions
from leadline.calibration.visited import noise_on
from leadline.drive.ladder import Rung
from leadline.errors import DriveFault, Inconclusive, Misuse
from leadline.load.slices import IO_ERRORS
from leadline.load.workload import random_read
from leadline.plans import Noise
from leadline.running import VERDICTS
from leadline.station import Station
from leadline.verdict.calibration import RigNoise
from leadline.visiting import OpenVisit
from selftests.calibrated import TimedDrive, calibration, kept_session
from selftests.visit_world import Bench, bench, kept, opened, station

__all__ = ["bench", "opened", "station"]  # fixtures

NOW_WITH = Conditions(firmware="1.0", kernel=platform.release(), fio="7.3")


@pytest.fixture
def timed(bench: Bench) -> Bench:
    bench.load = TimedDrive({8: 7000, 1: 1000})
    return bench


def found() -> store.Calibration:
    calibrated = store.load("bench", "SERIAL-a")
    assert calibrated is not None
    return calibrated


def keep(age: timedelta = timedelta(0), conditions: Conditions = NOW_WITH) -> None:
    session = kept_session(date=datetime.now(UTC) - age, conditions=conditions)
    store.save(calibration(sessions=(session,)))


def test_it_is_kept_with_its_date_its_drive_and_what_it_was_measured_with(
    timed: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    before = datetime.now(UTC)
    noise_run.test_noise(opened, request)
    calibrated = found()
    assert (calibrated.rig, calibrated.slot) == ("bench", "a")
    assert (calibrated.model, calibrated.serial) == ("MODEL", "SERIAL-a")
    assert before <= calibrated.date <= datetime.now(UTC)
    assert calibrated.newest.conditions == NOW_WITH
    assert calibrated.newest.run == "run-1"
    assert calibrated.noise.pair_sd == pytest.approx(0.014, rel=0.5)
    assert calibrated.noise.sigma_session is None
    assert calibrated.noise.seconds == pytest.approx(20.0, abs=8.0)
    assert calibrated.noise.pairs == 2 * len(calibrated.newest.blocks)


def test_its_slices_are_on_record_and_the_drive_is_as_it_was(
    timed: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    noise_run.test_noise(opened, request)
    slices = kept(timed.folder, "slices")
    assert len(slices) == len(timed.load.settings)
    assert {row["side"] for row in slices} == {"deep", "deep again", "shallow", "shallow again"}
    (phase,) = kept(timed.folder, "phases")
    assert phase["seconds"] == pytest.approx(sum(each.seconds for each in timed.load.settings))
    assert timed.file("device/queue_depth").read_text() == "32"
    assert timed.told.line == ""
    (facts,) = request.node.stash[VERDICTS]
    assert facts["estimate"].startswith("pair sd ")
    assert "sigma_d" in facts["estimate"]


def test_a_second_session_is_added_to_the_first(
    timed: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    noise_run.test_noise(opened, request)
    once = found()
    noise_run.test_noise(opened, request)
    twice = found()
    assert twice.sessions[0] == once.newest
    assert twice.noise.pairs == once.noise.pairs + 2 * len(twice.newest.blocks)
    assert twice.noise.sigma_session is not None


def test_a_session_with_another_kernel_begins_anew(
    timed: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    keep(conditions=replace(NOW_WITH, kernel="1.0"))
    noise_run.test_noise(opened, request)
    assert len(found().sessions) == 1


def test_a_session_at_another_depth_begins_anew(
    timed: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    keep(conditions=replace(NOW_WITH, deep=4))
    noise_run.test_noise(opened, request)
    assert len(found().sessions) == 1
    assert found().newest.conditions.deep == 8


def test_the_depth_that_the_kernel_was_left_at_is_not_the_one_measured(
    timed: Bench, station: Station, request: pytest.FixtureRequest
) -> None:
    """Left at 1 by somebody: deep slices are deep all the same, as those of a claim are."""
    timed.drive = replace(timed.drive, queue_depth=1)
    timed.file("device/queue_depth").write_text("1")
    with OpenVisit(station, station.run.visits[0]) as opened:
        noise_run.test_noise(opened, request)
    assert [each.device_depth for each in timed.load.settings[:4]] == [8, 8, 1, 1]
    assert timed.file("device/queue_depth").read_text() == "1"


UNQUEUED = Rung("controller", False, "the controller cannot queue")


def test_a_drive_that_cannot_queue_is_not_calibrated_and_its_ladder_says_why(
    timed: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    timed.rungs = (UNQUEUED,)
    with pytest.raises(DriveFault, match="the controller cannot queue"):
        noise_run.test_noise(opened, request)
    assert not timed.load.settings


def test_a_drive_of_which_no_queue_is_promised_is_nothing_to_calibrate(
    timed: Bench, station: Station, request: pytest.FixtureRequest
) -> None:
    timed.rungs = (UNQUEUED,)
    with OpenVisit(station, station.run.visits[0]) as opened:
        opened.model = opened.model.model_copy(update={"queue_depth": 1})
        with pytest.raises(Misuse, match=r"depth 8 against depth 1.*promises no queue"):
            noise_run.test_noise(opened, request)
    assert not timed.load.settings


def test_a_broken_file_is_replaced_and_that_is_said(
    timed: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    path = store.save(calibration())
    path.write_text("{")
    noise_run.test_noise(opened, request)
    assert len(found().sessions) == 1
    assert any(str(path) in sentence for sentence in timed.told.said)


def test_slices_that_do_not_count_leave_the_calibration_as_it_was(
    timed: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    keep()
    before = found()
    timed.load = TimedDrive({8: 7000, 1: 1000}, spoil=IO_ERRORS)
    with pytest.raises(Inconclusive, match="no calibration"):
        noise_run.test_noise(opened, request)
    assert found() == before


# What the verdicts of a visit are told.


def test_without_a_calibration_the_note_says_so_and_fio_is_not_asked(
    bench: Bench, opened: OpenVisit
) -> None:
    bench.did.clear()
    assert noise_on(opened) == Noise()
    assert "no calibration" in noise_on(opened).note
    assert bench.did == []


def test_a_verdict_uses_the_calibration_and_says_so(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    keep()
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    reads = opened.load(random_read(), request.node)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (facts,) = request.node.stash[VERDICTS]
    said = facts["explanation"]
    assert f"noise: calibrated {date} (pair sd 1.23%, sigma_d 2.34%" in said
    assert "STALE" not in said
    assert "has no calibration" not in said


def test_its_drift_is_what_a_verdict_allows_for(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    wild = RigNoise(0.01, 0.0, 0.9, None, 60, 60.0)
    session = kept_session(date=datetime.now(UTC), conditions=NOW_WITH)
    store.save(calibration(noise=wild, sessions=(session,)))
    reads = opened.load(random_read(), request.node)
    with pytest.raises(Inconclusive):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)


def test_a_stale_one_is_used_and_the_verdict_warns(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    keep(timedelta(days=40), replace(NOW_WITH, fio="3.1"))
    reads = opened.load(random_read(), request.node)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (facts,) = request.node.stash[VERDICTS]
    assert "STALE: it is 40 days old, fio was 3.1 and is 7.3" in facts["explanation"]
    assert "sigma_d 2.34%" in facts["explanation"]


def test_a_broken_one_is_the_rigs_trouble_and_no_guess(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    store.save(calibration()).write_text("{")
    with pytest.raises(store.BrokenCalibration, match="run leadline calibrate again"):
        opened.load(random_read(), request.node)
