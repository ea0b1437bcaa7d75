"""Claims of a candidate against the released firmware: recorded at stations, judged at the last."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from leadline.claims import ClaimFailed, NotJudgedHere, Unsettled
from leadline.errors import Misuse
from leadline.judge import SliceJudge
from leadline.load.slices import FIO_CPU
from leadline.load.workload import random_read, random_write
from leadline.plans import Noise
from leadline.quantities import Load
from leadline.released import Released
from leadline.selection import CURVE_BUDGETS
from leadline.statements import AtStation
from leadline.verdict.verdict import Verdict
from selftests.regression_stays import CANDIDATE, SIDE, TWO_ROUNDS, at_station
from selftests.slice_drive import SliceDrive

QUIET = Noise(sigma_d=0.002, sigma_session=0.003, note="calibrated")


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
