"""What is kept of a visit's power cycle: every phase, what it cost, and how it came out."""

import json
import time
from dataclasses import asdict, replace

import pytest

from leadline import cycling
from leadline.cycling import cycle
from leadline.drive import smart
from leadline.drive.smart import SmartSnapshot
from leadline.errors import DriveFault, RigTrouble
from leadline.inventory.rig import PowerBudget
from leadline.power.byte_log_line import SENT
from leadline.power.byte_log_read import read_log
from leadline.power.phases import NotReady
from selftests.cycling_world import Cycled, cycled
from selftests.outlet_rig import OF_A
from selftests.power_world import OFF_S, quick, stage
from selftests.test_cycled import done as finished
from selftests.visit_world import Bench, bench, kept

__all__ = ["bench", "cycled", "quick", "stage"]  # fixtures

PHASES = (
    "announce_s",
    "command_s",
    "readback_s",
    "gone_s",
    "off_s",
    "on_s",
    "link_up_s",
    "back_s",
    "identify_s",
    "ready_s",
)


@pytest.mark.parametrize("abrupt", [False, True], ids=["graceful", "abrupt"])
@pytest.mark.parametrize("rotates", [False, True], ids=["ssd", "disk"])
def test_a_cycle_is_on_record_with_every_phase_and_what_it_cost(
    cycled: Cycled, bench: Bench, abrupt: bool, rotates: bool
) -> None:
    cycled.rotates = rotates
    bench.crc_errors = 4
    with cycled.visit(OF_A) as visit:
        done = cycle(visit, abrupt=abrupt)
    (row,) = kept(bench.folder, "power_cycles")
    assert {name: row[name] for name in PHASES} == asdict(done.phases)
    assert (row["cell"], row["serial"], row["outlets"]) == ("bench-a-MODEL-1.0", "SERIAL-a", "a")
    assert (row["feeds"], row["abrupt"], row["outcome"]) == ("drive", int(abrupt), "pass")
    assert (row["power_cycles"], row["emergency_unloads"]) == (1, int(abrupt and rotates))
    assert 0 <= time.time() - row["began"] < 600
    details = json.loads(row["details"], parse_constant=pytest.fail)
    for when in ("before", "after"):
        assert details[when]["queue_depth"] == 32
        assert details[when]["link"]["speed"] == "6.0 Gbps"
        assert details[when]["identity"]["serial"] == "SERIAL-a"
        assert details[when]["smart"]["crc_errors"] == 4


def test_counts_go_on_from_run_to_run(cycled: Cycled, bench: Bench) -> None:
    for _ in range(2):
        with cycled.visit(OF_A) as visit:
            cycle(visit)
    assert [row["power_cycles"] for row in kept(bench.folder, "power_cycles")] == [1, 2]


def test_a_drive_that_is_late_is_on_record_as_far_as_it_came(cycled: Cycled, bench: Bench) -> None:
    cycled.read_fails = True
    with cycled.visit(OF_A) as visit, pytest.raises(NotReady):
        cycle(visit)
    (row,) = kept(bench.folder, "power_cycles")
    assert (row["outcome"], row["ready_s"]) == ("fail", None)
    assert row["off_s"] >= OFF_S
    assert 0 <= row["identify_s"] < 60
    assert "not ready" in json.loads(row["details"])["message"]


def test_a_cycle_that_the_rig_broke_off_is_on_record_once_it_has_cut(
    cycled: Cycled, bench: Bench
) -> None:
    cycled.stage.world.dead_after.add("a")
    with cycled.visit(OF_A) as visit, pytest.raises(RigTrouble, match="no link shows"):
        cycle(visit)
    (row,) = kept(bench.folder, "power_cycles")
    assert (row["outcome"], row["ready_s"], row["power_cycles"]) == ("error", None, 1)


def test_a_budget_that_is_spent_cuts_nothing_and_leaves_no_record(
    cycled: Cycled, bench: Bench
) -> None:
    with cycled.visit(OF_A) as visit:
        spent = visit.spec.model_copy(update={"power_budget": PowerBudget(power_cycles=0)})
        visit.drive = replace(visit.drive, spec=spent)
        with pytest.raises(RigTrouble, match=r"had 0 power cycles, .* allows 0"):
            cycle(visit)
    assert cycled.stage.world.did == []
    assert kept(bench.folder, "power_cycles") == []


def test_a_cycle_whose_outlet_cannot_be_read_back_proves_nothing(
    cycled: Cycled, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    unverified = replace(finished(3.0), verified=False)
    monkeypatch.setattr(cycling, "power_cycle", lambda *_, **__: unverified)
    with cycled.visit(OF_A) as visit:
        cycle(visit)
    (row,) = kept(bench.folder, "power_cycles")
    assert (row["outcome"], row["ready_s"]) == ("inconclusive", 3.0)


def test_a_drive_that_comes_back_with_a_smaller_queue_fails_it(
    cycled: Cycled, bench: Bench
) -> None:
    cycled.after = {"queue_depth": 1}
    with cycled.visit(OF_A) as visit, pytest.raises(DriveFault, match="queue depth of 1"):
        cycle(visit)
    (row,) = kept(bench.folder, "power_cycles")
    assert row["outcome"] == "fail"


def test_an_error_that_the_drive_counted_meanwhile_fails_it(
    cycled: Cycled, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = iter([0, 8])
    with cycled.visit(OF_A) as visit:
        monkeypatch.setattr(smart, "snapshot", lambda *_: SmartSnapshot(pending=next(pending)))
        with pytest.raises(DriveFault, match="pending from 0 to 8"):
            cycle(visit)
    (row,) = kept(bench.folder, "power_cycles")
    assert row["outcome"] == "fail"


def test_what_was_said_to_the_pdu_is_kept_with_the_run(cycled: Cycled, bench: Bench) -> None:
    with cycled.visit(OF_A) as visit:
        cycle(visit)
        folder = bench.folder / "results" / "serial" / visit.station.run.id
        reading = read_log(bench.folder, str(folder))
    sent = b"".join(each.data for each in reading.entries if each.kind == SENT)
    assert sent.count(b"off 2\r") == sent.count(b"on 2\r") == 1
    assert reading.pdus == ["p"]
