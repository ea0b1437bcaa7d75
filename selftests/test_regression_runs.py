"""Regression claims in a run: four visits, each with its own bench; results and judges are real."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from leadline.calibration import store
from leadline.claims import ClaimFailed, NotJudgedHere, Unsettled
from leadline.drive.scsi_pages import INQUIRY
from leadline.errors import Inconclusive
from leadline.inventory.stations import Stay
from leadline.load.workload import random_read
from leadline.recompute import differences
from leadline.released import released_of
from leadline.results.stored import read_run
from leadline.running import CHANGES, RECORDED, VERDICTS, Run
from leadline.verdict.calibration import RigNoise
from leadline.visiting import OpenVisit
from selftests.calibrated import TimedDrive, calibration, kept_session
from selftests.identify_images import image
from selftests.regression_stays import CANDIDATE, HOME, SIDE
from selftests.scsi_answers import answers, with_byte
from selftests.test_calibrate_visit import NOW_WITH
from selftests.visit_world import Bench, bench, kept, make_run, open_station, sysfs_drive

__all__ = ["bench"]  # a fixture


@dataclass
class Compared:
    """A run over the stations of one drive; `slower` is what the candidate loses."""

    bench: Bench
    slower: float = 0.0
    skip: int = 0
    run: Run = field(init=False)
    items: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        made = make_run(self.bench.folder)
        self.run = replace(made, visits=(HOME, CANDIDATE), drive_time_s=40.0)

    def item(self, stay: Stay) -> Any:
        return SimpleNamespace(
            nodeid=f"test_regression.py::test_r[{stay.id}]",
            path=self.bench.folder / "test_regression.py",
            config=SimpleNamespace(
                invocation_params=SimpleNamespace(dir=self.bench.folder), stash=pytest.Stash()
            ),
            name="test_r",
            originalname="test_r",
            callspec=SimpleNamespace(params={"visit": stay.visit, "stay": stay}),
            stash=pytest.Stash(),
            get_closest_marker=lambda name: None,
        )

    def at(self, opened: OpenVisit, stay: Stay) -> None:
        """The test of one station."""
        item = self.items[stay.number] = self.item(stay)
        released = released_of(opened, stay, item)
        with opened.test(item):
            reads = opened.load(random_read(), item)
            assert reads.at(depth=8).has_not_regressed(released, within=0.03)

    def all_stations(self) -> None:
        """Every station, in its visit; the outcome is that of the last one."""
        with open_station(self.bench, self.run) as rig:
            for visit in self.run.route.visits:
                self.put_on(visit.cell.firmware)
                with OpenVisit(rig, visit) as opened:
                    for stay in self.run.route.stays:
                        if stay.visit is not visit or stay.number == self.skip:
                            continue
                        if stay.judges:
                            self.at(opened, stay)
                            continue
                        with pytest.raises(pytest.skip.Exception):
                            self.at(opened, stay)

    def put_on(self, firmware: str) -> None:
        rate = 7000.0 * (1.0 - (self.slower if firmware == "1.1" else 0.0))
        self.bench.load = TimedDrive({8: rate}, noise=0.002, clock=time.time())


@pytest.fixture
def compared(bench: Bench) -> Compared:
    noise = RigNoise(0.002, 0.0, 0.002, 0.03, 60, 60.0, sigma_session_deep=0.003)
    session = kept_session(date=datetime.now(UTC), conditions=NOW_WITH)
    store.save(calibration(noise=noise, sessions=(session, session, session)))
    return Compared(bench)


def test_a_run_over_all_four_stations_fails_the_candidate_and_not_the_released(
    compared: Compared,
) -> None:
    compared.slower = 0.06
    with pytest.raises(ClaimFailed, match=r"does not hold on bench-a-MODEL-1\.1"):
        compared.all_stations()
    (verdict,) = kept(compared.bench.folder, "verdicts")
    assert (verdict["cell"], verdict["outcome"]) == ("bench-a-MODEL-1.1", "FAIL")
    slices = kept(compared.bench.folder, "slices")
    assert [(row["cell"][-3:], row["side"]) for row in slices[::20]] == [
        (firmware, SIDE.format(number))
        for number, firmware in enumerate(("1.0", "1.1", "1.1", "1.0"), 1)
    ]
    assert [compared.items[n].stash.get(RECORDED, False) for n in (1, 2, 3, 4)] == [
        *(True, True, True),
        False,
    ]
    (facts,) = compared.items[4].stash[VERDICTS]
    assert facts["explanation"].endswith(" test_regression.py::test_r"), "at all its stations"
    drive = [row for row in kept(compared.bench.folder, "phases") if row["name"] == "drive"]
    assert sum(row["seconds"] for row in drive) == pytest.approx(verdict["drive_seconds"])
    results = read_run(compared.bench.folder / "results", "run-1")
    (row,) = results.verdicts
    assert differences(row, results.slices[row.settling]) == ()


def test_a_run_of_two_rounds_is_judged_once_at_the_last_of_eight_stations(
    compared: Compared,
) -> None:
    compared.run, compared.slower = replace(compared.run, rounds=2), 0.06
    with pytest.raises(ClaimFailed, match=r"2 block\(s\) of four stations"):
        compared.all_stations()
    slices = kept(compared.bench.folder, "slices")
    assert [(row["cell"][-3:], row["side"]) for row in slices[::10]] == [
        (firmware, SIDE.format(number))
        for number, firmware in enumerate(("1.0", "1.1", "1.1", "1.0") * 2, 1)
    ]
    results = read_run(compared.bench.folder / "results", "run-1")
    (row,) = results.verdicts
    assert differences(row, results.slices[row.settling]) == ()


def test_a_station_that_was_left_out_makes_it_void(compared: Compared) -> None:
    compared.skip = 2
    with pytest.raises(Unsettled, match=r"station 2 of 4, with 1\.1, recorded nothing"):
        compared.all_stations()


def test_what_an_earlier_run_stored_stands_in(compared: Compared) -> None:
    compared.all_stations()
    compared.run = replace(compared.run, id="run-2", stored_baseline=True)
    compared.slower = 0.06
    with pytest.raises(ClaimFailed, match=r"baseline: 1\.0 was not run again; what stood in: run"):
        compared.all_stations()
    slices = [row for row in kept(compared.bench.folder, "slices") if row["run"] == "run-2"]
    assert {row["cell"] for row in slices} == {"bench-a-MODEL-1.1"}
    results = read_run(compared.bench.folder / "results", "run-2")
    (row,) = results.verdicts
    assert differences(row, results.slices[row.settling]) == ()


def test_what_is_stored_does_not_stand_in_without_a_calibration_that_is_fresh(
    compared: Compared,
) -> None:
    compared.all_stations()
    compared.run = replace(compared.run, id="run-2", stored_baseline=True)
    noise = RigNoise(0.002, 0.0, 0.002, 0.003, 60, 60.0)
    later = kept_session(date=datetime.now(UTC) + timedelta(hours=1), conditions=NOW_WITH)
    store.save(calibration(noise=noise, sessions=(later, later, later)))
    with pytest.raises(Inconclusive, match=r"nothing of random_read.* is stored that may stand"):
        compared.all_stations()
    other = replace(NOW_WITH, kernel="5.4")
    store.save(calibration(noise=noise, sessions=(replace(later, conditions=other),) * 3))
    with pytest.raises(Inconclusive, match=r"is stale \(the kernel was 5\.4"):
        compared.all_stations()
    store.save(calibration(noise=noise, sessions=(later, later)))
    with pytest.raises(Inconclusive, match="takes 3 sessions of leadline calibrate"):
        compared.all_stations()
    assert {row["run"] for row in kept(compared.bench.folder, "slices")} == {"run-1"}, (
        "no drive time is spent on what cannot be judged"
    )


def sata_drive_that_queues_16(bench: Bench, firmware: str) -> None:
    words = {75: 15 if firmware == "1.1" else 31}
    said = image(model="MODEL", serial="SERIAL-a", firmware=firmware, words=words)
    bench.drive = sysfs_drive(bench.folder, said)


def scsi_drive_that_does_not_queue(bench: Bench, firmware: str) -> None:
    bench.drive = replace(sysfs_drive(bench.folder), identify=None)
    bench.pages = answers(firmware=firmware)
    if firmware == "1.1":
        bench.pages = with_byte(bench.pages, INQUIRY, 7, 0)


def said_at_last(compared: Compared, put_on: Callable[[Bench, str], None]) -> tuple[str, ...]:
    """What `released.changes()` has at the last station of a drive with this candidate."""
    told: list[str] = []
    with open_station(compared.bench, compared.run) as rig:
        for visit in compared.run.route.visits:
            put_on(compared.bench, visit.cell.firmware)
            with OpenVisit(rig, visit) as opened:
                for stay in compared.run.route.stays:
                    if stay.visit is visit:
                        item = compared.item(stay)
                        released = released_of(opened, stay, item)
                        if not stay.judges:
                            with pytest.raises(NotJudgedHere):
                                released.changes()
                            continue
                        told += map(str, released.changes())
                        assert item.stash[CHANGES] == told
    return tuple(told)


def test_what_the_drive_says_of_itself_is_compared_at_the_last_station(compared: Compared) -> None:
    assert said_at_last(compared, sata_drive_that_queues_16) == (
        "queue depth was 32 and is 16 (word 75.4:0): fewer commands are queued at once",
    )
    told = [row for row in kept(compared.bench.folder, "environment") if "against" in row["name"]]
    assert told[0]["name"] == "bench-a-MODEL-1.1 against 1.0"


def test_what_a_scsi_drive_says_of_itself_is_compared_there_too(compared: Compared) -> None:
    assert said_at_last(compared, scsi_drive_that_does_not_queue) == (
        "command queueing (CMDQUE) was yes and is no (INQUIRY, byte 7 bit 1): commands are not "
        "queued any more",
    )
