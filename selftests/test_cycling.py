"""A visit's power cycle: which outlets, whose leave, which neighbours; and what is kept of it."""

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from leadline import cycling
from leadline.cycling import cycle
from leadline.drive import smart
from leadline.drive.bind import Drive, Seen
from leadline.drive.smart import SmartSnapshot
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import Host, open_host
from leadline.host.lease import LeaseTaken, take
from leadline.inventory.rig import DriveSpec, HostSpec, PowerBudget
from leadline.power import cycle as power
from leadline.power.byte_log_line import SENT
from leadline.power.byte_log_read import read_log
from leadline.power.dark import HotPlug
from leadline.power.pdu import open_pdu
from leadline.power.phases import NotReady
from leadline.power.turns import CUTS, of_pdu
from leadline.virtual.pdus.pty import VirtualPdu
from leadline.visiting import OpenVisit
from selftests.outlet_rig import (
    OF_A,
    OF_B,
    OF_BOTH,
    OF_HOST,
    SECOND,
    Eyes,
    Permit,
    rig_file,
)
from selftests.power_world import OFF_S, Stage, drive, pdu_spec, quick, stage
from selftests.test_cycled import done as finished
from selftests.test_visiting import is_free
from selftests.visit_world import MATRIX, Bench, bench, kept, make_run, open_station, watch_of

__all__ = ["bench", "quick", "stage"]  # fixtures


@dataclass
class Cycled:
    """A bench with a PDU on a pty, before which Leadline's own power cycle runs."""

    bench: Bench
    stage: Stage
    asked: dict[str, Any] = field(default_factory=dict)
    rotates: bool = False
    link: bool | None = None
    read_fails: bool = False
    says: str = "ata1.00: disable device"
    after: dict[str, Any] = field(default_factory=dict)  # what is changed of the drive

    @contextmanager
    def visit(self, *outlets: str, matrix: str = MATRIX) -> Iterator[OpenVisit]:
        """A visit to drive a, on a rig with such outlets."""
        run = make_run(self.bench.folder, rig_file(self.stage.tmp_path, *outlets), matrix)
        with open_station(self.bench, run) as station, OpenVisit(station, run.visits[0]) as opened:
            self.bench.did.clear()
            self.watch = watch_of(station)
            yield opened

    def admit_host(self, host: Host, drives: list[Drive], *, held: list[Permit]) -> Permit:
        names = " and ".join(each.spec.slot for each in drives)
        self.bench.did.append(f"admitted the host of {names}")
        assert [each.what for each in held] == [drives[0].spec.slot]
        return Permit("the host", self.bench.did)

    def bind(self, host: Host, spec: DriveSpec, **wanted: Any) -> Drive:
        self.asked |= wanted
        return drive(spec.slot)

    def eyes(self, host: Host, drive: Drive, disks: Sequence[Seen], *_: object) -> Eyes:
        made = Eyes(self.stage.world, drive.spec.slot)
        made.drive, made.after = drive, self.after
        made.rotates, made.link, made.read_fails = self.rotates, self.link, self.read_fails
        return made

    def switched(self, outlet: int, on: bool) -> None:
        """What the kernel says of it."""
        if not on:
            self.watch.says(self.says)


@pytest.fixture
def cycled(bench: Bench, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Cycled:
    made = Cycled(bench, stage)
    stage.pdu.close()
    stage.world.switched = made.switched
    bench.drive = drive("a")
    for module in (power, cycling):
        monkeypatch.setattr(module, "Sight", made.eyes)
        monkeypatch.setattr(module, "scan", lambda host: ())
    monkeypatch.setattr(cycling, "admit", bench.admit)
    for name in ("admit_host", "bind"):
        monkeypatch.setattr(cycling, name, getattr(made, name))
    return made


def phases(bench: Bench) -> dict[str, float]:
    return {row["name"]: row["seconds"] for row in kept(bench.folder, "phases")}


def test_a_drives_own_outlet_is_cycled_with_leave_and_the_drive_is_bound_anew(
    cycled: Cycled, bench: Bench
) -> None:
    with cycled.visit(OF_A) as visit:
        done = cycle(visit)
        assert visit.drive is done.after
        assert visit.drive.node == "/dev/sdz"
    assert cycled.stage.world.did == ["delete a", "outlet 2 off", "rescan", "outlet 2 on"]
    assert bench.did == ["admitted a to cut power", "released a"]
    assert bench.told.line == ""
    spent = phases(bench)
    assert spent.keys() == {"shutdown", "off", "switch", "ready"}
    assert spent["off"] >= OFF_S
    assert spent["ready"] == done.phases.ready_s
    assert spent["shutdown"] == done.phases.announce_s
    made = done.phases
    assert spent["switch"] == pytest.approx(made.command_s + made.readback_s + made.on_s)


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


@pytest.mark.parametrize("abrupt", [False, True], ids=["graceful", "abrupt"])
def test_that_the_kernel_slows_a_link_is_our_doing_after_an_abrupt_cut_alone(
    cycled: Cycled, bench: Bench, request: pytest.FixtureRequest, abrupt: bool
) -> None:
    cycled.says = "ata1: limiting SATA link speed to 1.5 Gbps"
    with cycled.visit(OF_A) as visit:
        if abrupt:
            with visit.test(request.node):
                cycle(visit, abrupt=True)
        else:
            with pytest.raises(DriveFault, match="link-speed-limited"), visit.test(request.node):
                cycle(visit)
    (event,) = kept(bench.folder, "kernel_events")
    assert event["excused"] == int(abrupt)


def test_a_cut_waits_for_another_on_the_same_rig_and_for_its_pdu(
    cycled: Cycled, bench: Bench
) -> None:
    """Else the drive of the other would pass for one that the outlet feeds, too."""
    port = of_pdu(pdu_spec(cycled.stage.tmp_path).port)
    with cycled.visit(OF_A) as visit, open_host(HostSpec(reach="local")) as other:
        for resource in (CUTS, port):
            theirs = take(other, resource, "another worker")
            with ThreadPoolExecutor() as pool:
                ours = pool.submit(cycle, visit)
                with pytest.raises(TimeoutError):
                    ours.result(0.5)
                assert cycled.stage.world.did == []
                theirs.release()
                ours.result(60)
            assert "outlet 2 off" in cycled.stage.world.did
            cycled.stage.world.did.clear()


def test_the_next_cut_waits_for_the_proof_of_this_one_and_not_for_the_drive(
    cycled: Cycled, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    free: list[bool] = []

    def come_back(self: HotPlug) -> None:
        with open_host(HostSpec(reach="local")) as other:
            take(other, CUTS, "another worker").release()
            free.append(True)

    def prove_gone(self: HotPlug, **_: object) -> None:
        with open_host(HostSpec(reach="local")) as other, pytest.raises(LeaseTaken):
            take(other, CUTS, "another worker")
        free.append(False)

    monkeypatch.setattr(HotPlug, "prove_gone", prove_gone)
    monkeypatch.setattr(HotPlug, "come_back", come_back)
    with cycled.visit(OF_A) as visit:
        cycle(visit)
    assert free == [False, True]


def test_the_pdu_is_let_go_and_nothing_stays_on_record(cycled: Cycled, bench: Bench) -> None:
    with cycled.visit(OF_A) as visit:
        cycle(visit)
        open_pdu(pdu_spec(cycled.stage.tmp_path)).close()
    assert list((bench.folder / "journal").iterdir()) == []


def test_what_was_said_to_the_pdu_is_kept_with_the_run(cycled: Cycled, bench: Bench) -> None:
    with cycled.visit(OF_A) as visit:
        cycle(visit)
        folder = bench.folder / "results" / "serial" / visit.station.run.id
        reading = read_log(bench.folder, str(folder))
    sent = b"".join(each.data for each in reading.entries if each.kind == SENT)
    assert sent.count(b"off 2\r") == sent.count(b"on 2\r") == 1
    assert reading.pdus == ["p"]


def test_what_the_kernel_says_of_the_cut_is_no_fault_of_the_drive(
    cycled: Cycled, bench: Bench, request: pytest.FixtureRequest
) -> None:
    with cycled.visit(OF_A) as visit, visit.test(request.node):
        cycle(visit)
    (event,) = kept(bench.folder, "kernel_events")
    assert (event["kind"], event["excused"]) == ("device-disabled", 1)
    with cycled.visit(OF_A) as visit, pytest.raises(DriveFault), visit.test(request.node):
        cycle(visit)
        cycled.watch.says("ata1.00: NCQ disabled due to excessive errors")


def test_a_cycle_that_the_rig_broke_off_is_no_fault_of_the_drive_either(
    cycled: Cycled, bench: Bench, request: pytest.FixtureRequest
) -> None:
    cycled.stage.world.dead_after.add("a")
    words = "no link shows that power reaches it"
    with (
        cycled.visit(OF_A) as visit,
        pytest.raises(RigTrouble, match=words),
        visit.test(request.node),
    ):
        cycle(visit)
    (event,) = kept(bench.folder, "kernel_events")
    assert event["excused"] == 1


def test_a_neighbour_is_bound_looked_over_and_watched(cycled: Cycled, bench: Bench) -> None:
    cycled.stage.world.fed = {2: "a", 3: "b"}
    words = r"slot b: .* is still there"
    matrix = MATRIX.replace('revision: "1.1"', 'revision: "1.1 as built", shows: "1.1"')
    with cycled.visit(OF_BOTH, matrix=matrix) as visit, pytest.raises(RigTrouble, match=words):
        cycle(visit)
    assert bench.did[:4] == [
        "admitted a to cut power",
        "admitted b to cut power",
        "released b",
        "released a",
    ]
    assert cycled.asked == {"or_firmware": ["1.0", "1.1"]}, "whichever of its firmware it shows"
    assert "delete b" in cycled.stage.world.did


def test_a_neighbour_that_another_run_tests_is_not_cut(cycled: Cycled) -> None:
    with (
        open_host(HostSpec(reach="local")) as other,
        cycled.visit(OF_BOTH) as visit,
        take(other, "serial:SERIAL-b", "ann run 7"),
        pytest.raises(LeaseTaken, match="ann run 7"),
    ):
        cycle(visit)
    assert cycled.stage.world.did == []


def test_a_neighbour_that_does_not_come_back_is_the_rigs_trouble_and_the_drive_is_bound(
    cycled: Cycled, bench: Bench
) -> None:
    def both_go_one_comes(outlet: int, on: bool) -> None:
        cycled.switched(outlet, on)
        if not on:
            for kept_ in (cycled.stage.world.powered, cycled.stage.world.kernel):
                kept_.discard("b")

    cycled.stage.world.fed = {2: "a"}
    cycled.stage.world.switched = both_go_one_comes
    with cycled.visit(OF_BOTH) as visit:
        before = visit.drive
        with pytest.raises(RigTrouble, match="slot b"):
            cycle(visit)
        assert visit.drive is not before
        assert is_free("serial:SERIAL-b")


def test_a_drive_with_two_supplies_loses_both(cycled: Cycled, tmp_path: Path) -> None:
    moves: list[tuple[int, bool]] = []
    with (
        VirtualPdu(4, lambda n, on: moves.append((n, on)), tmp_path / "second") as other,
        cycled.visit(OF_A, SECOND) as visit,
    ):
        cycle(visit)
        other.settle(5)
        assert moves == [(3, False), (3, True)]
    assert "outlet 2 off" in cycled.stage.world.did


def test_firmware_that_is_expected_must_come(cycled: Cycled) -> None:
    words = r"firmware is still '1\.0' and '1\.1' was to come"
    with cycled.visit(OF_A) as visit, pytest.raises(DriveFault, match=words):
        cycle(visit, expected_firmware="1.1")


def test_a_drive_on_the_hosts_outlet_goes_with_the_host_and_every_drive_in_it(
    cycled: Cycled, bench: Bench
) -> None:
    """This machine is its own rig, and is not cut: so it is refused by the cycle itself."""
    with cycled.visit(OF_HOST) as visit, pytest.raises(Misuse, match="runs on"):
        cycle(visit)
    admitted = ["admitted a to cut power", "admitted the host of a and b"]
    assert bench.did == [*admitted, "released the host", "released a"]


def test_a_drive_that_no_outlet_feeds_is_said_and_how_to_leave_it_out(cycled: Cycled) -> None:
    words = r"no outlet feeds slot a.*-k 'not power_cycle'"
    with cycled.visit(OF_B) as visit, pytest.raises(Misuse, match=words):
        cycle(visit)


def test_an_outlet_that_a_killed_run_leaves_off_is_on_record_on_this_machine(
    cycled: Cycled, monkeypatch: pytest.MonkeyPatch
) -> None:
    benches: list[power.Bench] = []

    def taken_down(made: power.Bench, *_: object, **__: object) -> None:
        benches.append(made)
        raise RigTrouble("noted")

    monkeypatch.setattr(cycling, "power_cycle", taken_down)
    with cycled.visit(OF_A) as visit:
        with pytest.raises(RigTrouble, match="noted"):
            cycle(visit)
        (made,) = benches
        assert made.journal is visit.station.here_journal
        assert made.host is visit.station.host
        assert made.watch is visit.station.watch
