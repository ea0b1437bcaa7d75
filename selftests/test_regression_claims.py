"""Claims of a candidate against the released firmware: recorded at stations, judged at the last."""

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
from leadline.errors import Inconclusive, Misuse
from leadline.inventory.stations import Stay
from leadline.judge import SliceJudge
from leadline.load.slices import FIO_CPU
from leadline.load.workload import random_read, random_write
from leadline.plans import Noise
from leadline.quantities import Load
from leadline.recompute import differences
from leadline.released import Released, released_of
from leadline.results.stored import read_run
from leadline.running import CHANGES, RECORDED, VERDICTS, Run
from leadline.selection import CURVE_BUDGETS
from leadline.statements import AtStation
from leadline.verdict.calibration import RigNoise
from leadline.verdict.verdict import Verdict
from leadline.visiting import OpenVisit
from selftests.calibrated import TimedDrive, calibration, kept_session
from selftests.identify_images import image
from selftests.regression_stays import CANDIDATE, HOME, TWO_ROUNDS, at_station
from selftests.scsi_answers import answers, with_byte
from selftests.slice_drive import SliceDrive
from selftests.test_calibrate_visit import NOW_WITH
from selftests.visit_world import Bench, bench, kept, make_run, open_station, sysfs_drive

__all__ = ["bench"]  # a fixture

QUIET = Noise(sigma_d=0.002, sigma_session=0.003, note="calibrated")
SIDE = "random_read.at(depth=8), station {} of 1.1 against 1.0"


@dataclass
class Judged:
    """A load on a drive, and what came of the claims about it."""

    drive: SliceDrive = field(default_factory=lambda: SliceDrive({8: 7000}, noise=0.002))
    noise: Noise = QUIET
    slice_s: float = 0.5
    sides: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    def load(self) -> Load:
        judge = SliceJudge(
            cell="bench-a-MODEL-1.1",
            measure=self.drive.measure,
            keep_slice=lambda side, _: self.sides.append(side),
            keep_verdict=lambda claim, verdict, text: self.verdicts.append(verdict),
            slice_s=self.slice_s,
            budget_s=40.0,
            curve_budget_s=CURVE_BUDGETS * 40.0,
            repeat="leadline hil",
            noise=self.noise,
        )
        return Load(random_read(), judge, full_depth=32, kernel_depth=32)


def station(number: int, rate: float, count: int = 20, **changes: Any) -> AtStation:
    """What a station recorded: rates within 0.2 % of `rate`."""
    rates = tuple(rate * (1 + 0.002 * (place % 3 - 1)) for place in range(count))
    return replace(AtStation(number, rates, 0.5, 0.5 * count, "this run"), **changes)


def others(slower: float = 0.0) -> list[AtStation]:
    """The first three stations, of a candidate that is so much slower."""
    rates = (7000.0, 7000.0 * (1 - slower), 7000.0 * (1 - slower))
    return [station(number, rate) for number, rate in enumerate(rates, 1)]


def claimed(judged: Judged, released: Released) -> Any:
    return judged.load().at(depth=8).has_not_regressed(released, within=0.03)


def test_a_station_before_the_last_records_and_judges_nothing() -> None:
    for number in (1, 2, 3):
        judged = Judged()
        with pytest.raises(NotJudgedHere, match=f"recorded at station {number} of 4"):
            assert claimed(judged, at_station(number, others()))
        assert judged.sides == [SIDE.format(number)] * 20, "a quarter of 40 s"
        assert judged.verdicts == []


def test_a_candidate_that_is_6_percent_slower_fails_and_1_percent_passes() -> None:
    slower = Judged()
    with pytest.raises(ClaimFailed) as failure:
        assert claimed(slower, at_station(4, others(0.06)))
    text = str(failure.value)
    assert (
        "FAIL: random_read.at(depth=8) has not regressed against 1.0 within 0.03 does not hold on "
        "bench-a-MODEL-1.1" in text
    )
    assert "  random_read.at(depth=8) with 1.1: 65" in text
    assert "  random_read.at(depth=8) with 1.0: 69" in text or " with 1.0: 70" in text
    assert "  candidate over released: 0.94" in text
    assert "  threshold: >= 0.97" in text
    assert "20 blocks of slices" in text
    assert slower.sides == [SIDE.format(4)] * 20
    assert slower.verdicts[0].drive_seconds == pytest.approx(40.0), "of all four stations"
    assert claimed(Judged(), at_station(4, others(0.01)))
    assert claimed(Judged(), at_station(4, others(-0.2))), "and one that is faster"


def test_a_missing_station_makes_it_void_and_is_named() -> None:
    judged = Judged()
    with pytest.raises(Unsettled) as failure:
        assert claimed(judged, at_station(4, [others()[0], station(3, 7000.0, count=7)]))
    text = str(failure.value)
    assert "void: no-station: station 2 of 4, with 1.1, recorded nothing" in text
    assert "station 3 of 4, with 1.1, recorded 7 slices that count, and 8 are needed" in text
    assert "remedy: see how the tests at that station ended" in text
    assert judged.verdicts[0].estimate is None


def test_slices_that_do_not_count_make_it_void_wherever_they_were() -> None:
    spoilt = station(2, 7000.0, voids=("fio-cpu: why (9 slices at station 2)",))
    with pytest.raises(Unsettled, match="void: fio-cpu: why"):
        assert claimed(Judged(), at_station(4, [others()[0], spoilt, others()[2]]))
    busy = SliceDrive({8: 7000}, noise=0.002, spoil=FIO_CPU, spoilt_share=0.5)
    with pytest.raises(Unsettled, match="slices at station 4"):
        assert claimed(Judged(busy), at_station(4, others()))


def test_a_rig_of_unknown_noise_settles_what_is_far_off_and_says_what_it_lacks() -> None:
    unknown = Noise()
    with pytest.raises(Unsettled) as failure:
        assert claimed(Judged(noise=unknown), at_station(4, others(0.06)))
    said = "stations that differ by 3.00% between repeats cannot tell a rate within 8.4% of"
    assert said in str(failure.value).splitlines()[0]
    assert "leadline calibrate" in str(failure.value).splitlines()[0]
    assert "--drive-time" not in str(failure.value)
    with pytest.raises(Unsettled):
        assert claimed(Judged(noise=Noise(sigma_d=0.0)), at_station(4, others(0.1075)))
    with pytest.raises(ClaimFailed):
        assert claimed(Judged(noise=unknown), at_station(4, others(0.2)))


def test_a_second_round_settles_what_stations_differ_by_too_much_for_one_to_tell() -> None:
    noise = Noise(sigma_d=0.0, sigma_session=0.01)
    one, two = Judged(noise=noise), Judged(noise=noise)
    loss = 0.056
    with pytest.raises(Unsettled) as failure:
        assert claimed(one, at_station(4, others(loss)))
    first = str(failure.value).splitlines()[0]
    assert "cannot tell a rate within 2.8% of the threshold" in first
    assert "--rounds 2 tells one that is 2.2% from it; three sessions" in first
    rates = [7000.0 * (1 - loss * (firmware == "candidate")) for firmware in TWO_ROUNDS[7].order]
    recorded = [station(number, rate) for number, rate in enumerate(rates[:7], 1)]
    with pytest.raises(NotJudgedHere, match="recorded at station 4 of 8"):
        assert claimed(two, at_station(4, recorded[:3], stays=TWO_ROUNDS))
    assert two.sides == [SIDE.format(4)] * 10, "an eighth of 40 s"
    with pytest.raises(ClaimFailed, match=r"2 block\(s\) of four stations"):
        assert claimed(two, at_station(8, recorded, stays=TWO_ROUNDS))
    with pytest.raises(Unsettled, match=r"station 6 of 8, with 1\.1, recorded nothing"):
        rest = [*recorded[:5], recorded[6]]
        assert claimed(two, at_station(8, rest, stays=TWO_ROUNDS))


def test_the_rate_that_a_calibration_measures_has_its_own_spread_between_sessions() -> None:
    """Others have the larger one: of requests one at a time, and of what was not calibrated."""
    noise = Noise(sigma_d=0.002, sigma_session=0.03, sigma_session_deep=0.003)
    with pytest.raises(ClaimFailed, match=r"allows for a spread of 0\.30% between repeats"):
        assert claimed(Judged(noise=noise), at_station(4, others(0.06)))
    single = Judged(SliceDrive({1: 7000}, noise=0.002), noise)
    other = Judged(noise=noise)
    writes = replace(other.load(), workload=random_write())
    released = at_station(4, others(0.06))
    for quantity in (
        single.load().at(depth=1),
        writes.at(depth=8),
        other.load().at(depth=8, offered=128),
    ):
        with pytest.raises(Unsettled, match=r"differ by 3\.00% between repeats"):
            assert quantity.has_not_regressed(released, within=0.03)


def test_slices_are_lengthened_for_a_slow_drive_and_those_of_one_length_count() -> None:
    slow = Judged(SliceDrive({8: 40}, noise=0.002))
    with pytest.raises(NotJudgedHere, match="slices of random_read"):
        assert claimed(slow, at_station(1))
    lengths = [setting.seconds for setting in slow.drive.settings]
    assert lengths[0] == 0.5 < lengths[-1]
    assert lengths.count(lengths[-1]) >= 8


def test_what_no_station_records_is_refused() -> None:
    reads = Judged().load()
    with pytest.raises(Misuse, match="rates without factors are recorded"):
        (2 * reads.at(depth=8)).has_not_regressed(at_station(4), within=0.03)
    with pytest.raises(Misuse, match="rates without factors are recorded"):
        reads.at(depth=8).mb_per_s.has_not_regressed(at_station(4), within=0.03)
    with pytest.raises(Misuse, match="a share lies between 0 and 1"):
        reads.at(depth=8).has_not_regressed(at_station(4), within=3)


def test_the_verdict_says_which_firmware_was_passed_over() -> None:
    judged, over = Judged(), "of those before 1.1, 1.0.1 is a candidate"
    assert claimed(judged, replace(at_station(4, others()), passed_over=over))
    assert f"held against 1.0: {over}" in judged.verdicts[0].notes


def test_the_whole_queue_is_one_rate_however_deep_it_is() -> None:
    """A station is found by the rate's name, and the depth that it was measured at is said."""
    judged = Judged(SliceDrive({16: 7000}, noise=0.002))
    shallow = replace(judged.load(), full_depth=16)
    deep = [replace(each, depth=16 if each.number == 1 else 32) for each in others()]
    came_with_it = replace(at_station(4).stay, candidate=replace(CANDIDATE, installed=True))
    released = replace(at_station(4, deep), stay=came_with_it)
    assert shallow.whole_queue.has_not_regressed(released, within=0.03)
    assert judged.sides[0] == "random_read.at(whole queue), station 4 of 1.1 against 1.0"
    (verdict,) = judged.verdicts
    assert "32 deep against 16 deep: queues of 1.0 and of 1.1" in verdict.notes
    assert judged.drive.settings[0].device_depth == 16, "the drive came with the candidate"
    alike = Judged(SliceDrive({32: 7000}, noise=0.002))
    released = at_station(4, [replace(each, depth=32) for each in others()])
    assert alike.load().whole_queue.has_not_regressed(released, within=0.03)
    assert not any("deep against" in note for note in alike.verdicts[0].notes)


def test_a_stored_baseline_is_said_to_have_stood_in() -> None:
    stay = replace(at_station(3).stay, stored_baseline=True)
    stored = [station(n, 7000.0, whose=f"run {n}", spent_s=0.0) for n in (1, 4)]
    released = replace(at_station(3, [*stored, station(2, 7000.0)]), stay=stay)
    judged = Judged()
    assert claimed(judged, released)
    note = "baseline: 1.0 was not run again; what stood in: run 1; run 4"
    assert note in judged.verdicts[0].notes
    with pytest.raises(Unsettled, match=r"cannot tell a rate within 8\.4%") as failure:
        assert claimed(Judged(noise=Noise()), released)
    assert "--rounds" not in str(failure.value), "what is stored is of one"
    assert judged.verdicts[0].drive_seconds == pytest.approx(20.0), "of the candidate's two"


# In a run: four visits, each with its own bench; results and judges are the real ones.


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
