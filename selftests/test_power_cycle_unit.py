"""The verified power cycle, decided on a small world: who went, who stayed, who came back."""

import math
from collections.abc import Sequence

import pytest

from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import Finished, Host, HostLost
from leadline.host.journal import Journal
from leadline.inventory.rig import HostSpec
from leadline.power import dark
from leadline.power.cycle import Bench, go_dark, power_cycle
from leadline.power.dark import HotPlug, WholeHost
from leadline.power.phases import NotReady, Phases
from selftests.power_world import (
    OFF_S,
    FakeEyes,
    Leave,
    Stage,
    World,
    drive,
    here,
    quick,
    stage,
    toll_of,
)

__all__ = ["here", "quick", "stage"]  # fixtures


# One drive.


def test_a_graceful_cycle_deletes_first_and_proves_off_by_a_rescan(stage: Stage) -> None:
    phases = stage.cycle()
    assert stage.world.did == ["delete a", "outlet 2 off", "rescan", "outlet 2 on"]
    assert phases.off_s >= OFF_S
    assert phases.gone_s >= OFF_S, "until then a supply may hold it up"
    assert 0 <= phases.back_s <= phases.identify_s <= phases.ready_s < 1
    assert min(phases.announce_s, phases.command_s, phases.readback_s, phases.gone_s) >= 0


def test_an_abrupt_cycle_never_deletes_before_the_cut(stage: Stage) -> None:
    stage.cycle(abrupt=True)
    assert stage.world.did == ["outlet 2 off", "rescan", "outlet 2 on"]


def test_a_kernel_that_does_not_notice_is_told(stage: Stage) -> None:
    stage.world.notices = False
    stage.cycle(abrupt=True)
    assert stage.world.did == ["outlet 2 off", "delete a", "rescan", "outlet 2 on", "rescan"]


def test_the_guard_lets_go_before_the_drive_is_looked_for(stage: Stage) -> None:
    leave = Leave()
    eyes = FakeEyes(stage.world, "a")
    released_at_rescan: list[bool] = []
    eyes.after_rescan = lambda: released_at_rescan.append(leave.released)
    go_dark(HotPlug(eyes), stage.supplies(2), leave, toll_of(eyes), off_s=OFF_S, abrupt=False)
    assert released_at_rescan == [True]


def test_a_drive_that_lives_on_for_a_while_is_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dark, "HOLD_UP_S", 10.0)
    eyes = FakeEyes(stage.world, "a")
    left = iter([True, True])

    def held_up() -> None:
        if next(left, False):
            stage.world.kernel.add("a")

    eyes.after_rescan = held_up
    stage.cycle(eyes=eyes)
    assert stage.world.did.count("delete a") == 3


@pytest.mark.parametrize("abrupt", [False, True])
def test_a_welded_outlet_is_found_by_the_drive_that_stays(stage: Stage, abrupt: bool) -> None:
    stage.unit.faults.welded.add(2)
    with pytest.raises(RigTrouble, match=r"slot a: .* is still there .* outlet 2 of PDU 'p'"):
        stage.cycle(abrupt=abrupt)


def test_a_drive_on_another_outlet_is_named_with_the_one_that_went(stage: Stage) -> None:
    stage.world.fed = {2: "b", 3: "a"}
    with pytest.raises(RigTrouble, match=r"slot a: .*is still there.*; MODEL b went dark instead"):
        stage.cycle()


def test_a_neighbour_that_the_rig_file_does_not_know_of(stage: Stage) -> None:
    eyes = FakeEyes(stage.world, "a")
    stage.world.powered.discard("b")
    stage.world.fed[3] = ""
    with pytest.raises(RigTrouble, match=r"went dark when outlet 2 .* off, and so did MODEL b"):
        stage.cycle(eyes=eyes)


def test_a_neighbour_that_it_knows_of_goes_dark_and_comes_back(stage: Stage) -> None:
    both = [FakeEyes(stage.world, "a"), FakeEyes(stage.world, "b")]
    stage.carry_out(HotPlug(both[0], both[1:]), both[0], 2, 3)
    assert stage.world.did[:4] == ["delete a", "delete b", "outlet 2 off", "outlet 3 off"]
    assert stage.world.powered == {"host", "a", "b"}


@pytest.mark.parametrize(
    ("link", "fault", "words"),
    [
        (True, DriveFault, "though its SATA link is up"),
        (False, RigTrouble, "3.3 V on pin 3"),
        (None, RigTrouble, "no link shows that power reaches it"),
    ],
)
def test_a_drive_that_does_not_come_back(
    stage: Stage, link: bool | None, fault: type[Exception], words: str
) -> None:
    eyes = FakeEyes(stage.world, "a")
    eyes.link = link
    stage.world.dead_after.add("a")
    with pytest.raises(fault, match=f"slot a: MODEL SERIAL-a: not back .*{words}"):
        stage.cycle(eyes=eyes)
    assert stage.world.did.count("rescan") > 1


def test_a_drive_that_is_there_and_does_not_read_has_failed(stage: Stage) -> None:
    eyes = FakeEyes(stage.world, "a")
    eyes.read_fails = True
    with pytest.raises(DriveFault, match=r"not ready .* has it as sdb: dd: Input/output error"):
        stage.cycle(eyes=eyes)


# When it came back.


def test_a_link_is_up_before_the_kernel_has_the_drive(stage: Stage) -> None:
    eyes = FakeEyes(stage.world, "a")
    assert stage.cycle(eyes=eyes).link_up_s is None, "nobody saw it"
    eyes.link_up = 0.0
    assert stage.cycle(eyes=eyes).link_up_s == 0.0, "before its outlet was read back"
    eyes.link_up = 60.0
    phases = stage.cycle(eyes=eyes)
    assert phases.link_up_s == pytest.approx(60.0 - phases.on_s)


@pytest.mark.parametrize("reads", [True, False])
def test_a_drive_that_never_came_ready_took_forever(stage: Stage, reads: bool) -> None:
    eyes = FakeEyes(stage.world, "a")
    eyes.link = True
    eyes.read_fails = True
    if not reads:
        stage.world.dead_after.add("a")
    with pytest.raises(NotReady) as caught:
        stage.cycle(eyes=eyes)
    phases = caught.value.phases
    assert phases
    assert phases.ready_s == math.inf
    assert (phases.identify_s < math.inf, phases.back_s < math.inf) == (reads, reads)
    assert phases.off_s >= OFF_S


def test_whoever_comes_to_look_is_shown_the_slot(stage: Stage) -> None:
    stage.world.dead_after.add("a")
    with pytest.raises(RigTrouble, match=r"check its cables .*\. a is lit"):
        stage.cycle()
    stage.unit.faults.welded.add(2)
    stage.world.powered.add("a")
    stage.world.kernel.add("a")
    with pytest.raises(RigTrouble, match=r"is still there .* does its relay move\?\. a is lit"):
        stage.cycle()


# A whole host.


class FakeMachine:
    """A host that lives by outlet 1 of the world."""

    name = "bench"

    def __init__(self, world: World) -> None:
        self.world = world
        self.up = True
        self.boot = 1
        self.obeys = True
        self.boots_anew = True

    def run(self, argv: Sequence[str], *, deadline: float, check: bool = True) -> Finished:
        self.world.did.append(" ".join(argv))
        if argv[0] == "poweroff" and self.obeys:
            self.up = False
            raise HostLost("closed")
        return Finished(tuple(argv), 0, b"", b"", 0.0)

    def alive(self) -> bool:
        self.world.settle()
        return self.up and "host" in self.world.powered

    def boot_id(self) -> str:
        return str(self.boot)

    def reconnect(self, deadline: float) -> None:
        self.world.settle()
        if "host" not in self.world.powered:
            raise HostLost("refused")
        self.up = True
        self.boot += self.boots_anew


SPEC = HostSpec(
    reach="ssh", address="bench", shutdown=("poweroff",), shutdown_s=0.01, boot_deadline_s=1
)


def host_cycle(stage: Stage, machine: FakeMachine, *, abrupt: bool) -> Phases:
    eyes = FakeEyes(stage.world, "a")
    subject = WholeHost(machine, SPEC, [eyes], ["/", "/boot"])
    return stage.carry_out(subject, eyes, 1, abrupt=abrupt)


def test_a_host_is_shut_down_its_drives_deleted_then_cut(stage: Stage) -> None:
    host_cycle(stage, FakeMachine(stage.world), abrupt=False)
    assert stage.world.did[:4] == ["delete a", "poweroff", "outlet 1 off", "outlet 1 on"]


def test_an_abrupt_cut_of_a_host_writes_out_its_own_file_systems_alone(stage: Stage) -> None:
    host_cycle(stage, FakeMachine(stage.world), abrupt=True)
    assert stage.world.did[:3] == ["sync -f / /boot", "outlet 1 off", "outlet 1 on"]


def test_a_host_that_does_not_shut_down_is_not_cut(stage: Stage) -> None:
    machine = FakeMachine(stage.world)
    machine.obeys = False
    with pytest.raises(RigTrouble, match=r"still answers .* `poweroff`; is that how"):
        host_cycle(stage, machine, abrupt=False)
    assert not [word for word in stage.world.did if word.startswith("outlet")]


def test_a_host_that_answers_with_its_outlet_off(stage: Stage) -> None:
    stage.unit.faults.welded.add(1)
    with pytest.raises(RigTrouble, match=r"bench: still answers, though outlet 1 of PDU 'p'"):
        host_cycle(stage, FakeMachine(stage.world), abrupt=True)


def test_a_host_that_comes_back_with_the_same_boot_never_lost_power(stage: Stage) -> None:
    machine = FakeMachine(stage.world)
    machine.boots_anew = False
    with pytest.raises(RigTrouble, match="with the boot it had before"):
        host_cycle(stage, machine, abrupt=True)


def test_the_machine_that_we_run_on_is_never_cut(stage: Stage, here: Host) -> None:
    with Journal(here, "r", directory=str(stage.tmp_path / "journal")) as journal:
        bench = Bench(here, HostSpec(reach="local"), journal)
        with pytest.raises(Misuse, match="the machine that Leadline runs on"):
            power_cycle(bench, drive(), stage.supplies(1), Leave(), feeds="host")
    assert stage.world.did == []
