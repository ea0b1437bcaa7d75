"""A visit's power cycle: which outlets, whose leave, which neighbours, and what is excused."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from leadline import cycling
from leadline.cycling import cycle
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import open_host
from leadline.host.lease import LeaseTaken, take
from leadline.inventory.rig import HostSpec
from leadline.power import cycle as power
from leadline.power.dark import HotPlug
from leadline.power.pdu import open_pdu
from leadline.power.turns import CUTS, of_pdu
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.cycling_world import Cycled, cycled
from selftests.outlet_rig import OF_A, OF_B, OF_BOTH, OF_HOST, SECOND
from selftests.power_world import OFF_S, drive, pdu_spec, quick, stage
from selftests.test_visiting import is_free
from selftests.visit_world import MATRIX, Bench, bench, kept

__all__ = ["bench", "cycled", "quick", "stage"]  # fixtures


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


def test_what_new_firmware_changes_is_no_fault_of_the_cycle_that_activates_it(
    cycled: Cycled,
) -> None:
    """Some drives say their new revision before it is activated, so that it may be the same."""
    slower = drive("a").link
    assert slower is not None
    cycled.after = {
        "queue_depth": 8,
        "link": replace(slower, speed="3.0 Gbps"),
        "identity": replace(drive("a").identity, capacity_bytes=512),
    }
    with cycled.visit(OF_A) as visit:
        done = cycle(visit, expected_firmware="1.0")
        assert done.activates
        assert done.differences == ()
        assert visit.kernel_queue_depth == 8
    with cycled.visit(OF_A) as visit, pytest.raises(DriveFault, match=r"3 Gb/s"):
        cycle(visit)


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
