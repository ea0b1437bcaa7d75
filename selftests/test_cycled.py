"""Claims of power cycles: every one of a visit, counted, settled, kept, and computed again."""

import json
import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from leadline.claims import ClaimFailed, Unsettled
from leadline.cycled import Cycled, Cycles
from leadline.drive.smart import SmartSnapshot
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.expected import Limit
from leadline.power.cycle import PowerCycle
from leadline.power.phases import Arrival, NotReady, Phases
from leadline.power.wear import Wear
from leadline.results.stored import read_run
from leadline.verdict.verdict import Outcome
from selftests.kept_claims import Kept, change, details, fields, unlike
from selftests.power_world import drive
from selftests.slice_drive import SliceDrive


def done(ready_s: float, *, link_up_s: float | None = 0.5, abrupt: bool = False) -> PowerCycle:
    phases = Phases(
        announce_s=0.1,
        command_s=0.1,
        readback_s=0.1,
        gone_s=10.0,
        off_s=10.0,
        on_s=0.2,
        link_up_s=link_up_s,
        back_s=ready_s / 4,
        identify_s=ready_s / 2,
        ready_s=ready_s,
    )
    smart = SmartSnapshot(), SmartSnapshot()
    return PowerCycle(drive(), drive(), "drive", abrupt, phases, None, True, smart, Wear(1))


@dataclass
class Power:
    """Cycles that take as long as they are told; an exception is raised."""

    ready_s: list[float | Exception]
    link_up_s: float | None = 0.5
    cuts: list[bool] = field(default_factory=list)

    def __call__(self, *, abrupt: bool) -> PowerCycle:
        self.cuts.append(abrupt)
        came = self.ready_s.pop(0)
        if isinstance(came, Exception):
            raise came
        return done(came, link_up_s=self.link_up_s, abrupt=abrupt)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path, SliceDrive({}))


def cycled(kept: Kept, *ready_s: float | Exception, abrupt: bool = False, **how: Any) -> Cycled:
    power = Power(list(ready_s), **how)
    return Cycled(Cycles(power), kept.reads.judge, abrupt).times(len(ready_s))


def verdict_of(kept: Kept) -> Any:
    (row,) = kept.record.verdicts()
    return row


def test_every_cycle_in_time_is_true_and_says_how_many_there_were(kept: Kept) -> None:
    limit = Limit(10, "ready_s", "a data sheet")
    claim = cycled(kept, 3.0, 9.5, 4.0).ready_within(limit)
    assert claim
    row = verdict_of(kept)
    assert (row.outcome, row.reason, row.estimate, row.threshold) == ("PASS", "settled", 9.5, 10)
    assert row.statement == "power_cycle.ready_within(10)"
    told = row.details["explanation"]
    assert "slowest: 9.5 s, over 3 power cycles" in told
    assert "threshold: <= 10 s (a data sheet)" in told
    assert "3 of 3 events took at most 10 s; of all events to come up to 78% may" in told
    assert "in their order: 3 s, 9.5 s, 4 s" in told
    assert "calibration" not in told, "the rig's noise is nothing to a time"
    assert kept.drive.settings == [], "nothing is measured for it"


def test_one_that_is_late_raises(kept: Kept) -> None:
    claim = cycled(kept, 3.0, 10.1, 4.0).ready_within(10)
    for _ in range(2):
        with pytest.raises(ClaimFailed, match=r"FAIL: power_cycle\.ready_within\(10\) does") as it:
            assert claim
    assert it.value.verdict.outcome is Outcome.FAIL
    assert "2 of 3 events" in str(it.value)
    assert verdict_of(kept).outcome == "FAIL", "once, though it was asked twice"


def test_at_the_limit_is_in_time(kept: Kept) -> None:
    assert cycled(kept, 10.0).ready_within(10)


def test_each_milestone_has_its_time(kept: Kept) -> None:
    cycles = cycled(kept, 8.0)
    assert cycles.link_up_within(0.5)
    assert cycles.identified_within(4.0)
    for claim in (cycles.link_up_within(0.4), cycles.identified_within(3.9)):
        with pytest.raises(ClaimFailed):
            assert claim
    said = [row.statement for row in kept.record.verdicts()]
    assert said[:2] == ["power_cycle.link_up_within(0.5)", "power_cycle.identified_within(4)"]


def test_what_nobody_saw_settles_nothing(kept: Kept) -> None:
    claim = cycled(kept, 8.0, link_up_s=None).link_up_within(60)
    said = r"not-seen: in 1 of 1 power cycles nobody saw when\n  remedy: claim another milestone"
    with pytest.raises(Unsettled, match=said):
        assert claim
    assert verdict_of(kept).reason == "void"


def test_one_that_is_known_to_be_late_does_whatever_nobody_saw(kept: Kept) -> None:
    cycles = cycled(kept, 8.0)
    cycles._cycles.done[False].append(done(8.0, link_up_s=None))
    with pytest.raises(Unsettled):
        assert cycles.link_up_within(0.6)
    with pytest.raises(ClaimFailed):
        assert cycles.link_up_within(0.4)


def test_a_median_with_its_interval_from_eight_cycles_on(kept: Kept) -> None:
    assert cycled(kept, *map(float, range(1, 8))).ready_within(10)
    assert cycled(kept, *map(float, range(1, 9))).ready_within(10)
    few, enough = (row.details["explanation"] for row in kept.record.verdicts())
    assert "median" not in few
    assert "median 4.5 s [1, 8]" in enough


@pytest.mark.parametrize("seconds", [0, -1.0, math.inf, math.nan, "10", None])
def test_a_limit_is_a_number_of_seconds(kept: Kept, seconds: Any) -> None:
    with pytest.raises(Misuse, match=r"power_cycle\.ready_within\(.*\): seconds, more than 0"):
        cycled(kept, 1.0).ready_within(seconds)


def test_a_claim_that_nobody_asserts_is_known_to_the_judge(kept: Kept) -> None:
    claim = cycled(kept, 1.0).ready_within(10)
    judge: Any = kept.reads.judge
    assert judge.unasserted() == [claim]


# Cycles are carried out when they are asked for.


def test_only_those_that_are_missing_are_carried_out(kept: Kept) -> None:
    power = Power([1.0, 2.0, 3.0, 4.0])
    cycles = Cycles(power)
    first = Cycled(cycles, kept.reads.judge).times(1)
    assert first.ready_s == 1.0
    assert first.times(3).ready_s == 3.0
    assert first.times(2).ready_s == 3.0
    assert power.cuts == [False, False, False]
    abrupt = Cycled(cycles, kept.reads.judge, abrupt=True).times(1)
    assert power.cuts == [False, False, False, True]
    assert (abrupt.ready_s, abrupt.last.abrupt, abrupt.verified) == (4.0, True, True)
    assert str(abrupt.ready_within(5)) == "abrupt_power_cycle.ready_within(5)"
    with pytest.raises(Misuse, match="1 or more"):
        first.times(0)


LATE = NotReady("not ready", Arrival(None, 1.0, 1.0, math.inf))


def test_a_fault_of_the_drive_ends_them_and_no_power_is_cut_any_more(kept: Kept) -> None:
    power = Power([1.0, LATE, 1.0])
    cycles = Cycles(power)
    with pytest.raises(NotReady):
        Cycled(cycles, kept.reads.judge).times(3)
    for abrupt in (True, False):
        with pytest.raises(DriveFault, match="not ready"):
            Cycled(cycles, kept.reads.judge, abrupt).times(2)
    with pytest.raises(DriveFault, match="not ready"):
        Cycled(cycles, kept.reads.judge).times(1)
    assert len(power.cuts) == 2


def test_one_more_is_carried_out_whatever_there_has_been() -> None:
    power = Power([1.0, 2.0, 3.0, DriveFault("it is another one")])
    cycles = Cycles(power)
    cycles.at_least(1, abrupt=False)
    assert cycles.one_more(abrupt=False).ready_s == 2.0
    assert cycles.one_more(abrupt=True).ready_s == 3.0
    for _ in range(2):
        with pytest.raises(DriveFault, match="another one"):
            cycles.one_more(abrupt=True)
    assert power.cuts == [False, False, True, True], "and none after a fault"


def test_trouble_of_the_rig_does_not(kept: Kept) -> None:
    power = Power([RigTrouble("the PDU is silent"), 1.0])
    cycles = Cycles(power)
    with pytest.raises(RigTrouble):
        Cycled(cycles, kept.reads.judge).times(1)
    assert Cycled(cycles, kept.reads.judge).times(1).ready_s == 1.0


# They are kept, and computed again.

TIMES = st.lists(st.floats(0.0, 1e4) | st.none(), min_size=1, max_size=20)


@given(times=TIMES, limit=st.floats(0.001, 1e4), abrupt=st.booleans())
@settings(max_examples=50, deadline=None)
def test_any_verdict_comes_out_the_same_again(
    times: list[float | None], limit: float, abrupt: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Kept(Path(folder), SliceDrive({}))
        cycles = Cycles(Power([]))
        cycles.done[abrupt] += [done(1.0, link_up_s=each, abrupt=abrupt) for each in times]
        run.settle(Cycled(cycles, run.reads.judge, abrupt).link_up_within(limit))
        run.close()
        (row,) = read_run(Path(folder), None).verdicts
        event(f"{row.outcome}, {row.reason}")
        late = any(each is not None and each > limit for each in times)
        assert (row.outcome == "FAIL") is late
        assert (row.outcome == "PASS") is (not late and None not in times)
        assert unlike(Path(folder)) == []


@pytest.mark.parametrize("changed", ["times", "limit"])
def test_what_was_changed_since_is_found(kept: Kept, changed: str) -> None:
    assert cycled(kept, 3.0, 9.5).ready_within(10)
    kept.close()
    basis = details(kept.folder, "verdicts", 1, "basis")
    assert basis["statement"]["times"] == [3.0, 9.5]
    basis["statement"][changed] = [3.0, 10.5] if changed == "times" else 9
    change(kept.folder, "update verdicts set basis = ?", json.dumps(basis))
    assert fields(kept.folder) >= {"outcome"}
