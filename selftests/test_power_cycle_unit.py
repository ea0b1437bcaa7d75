"""The verified power cycle on a small world: a real virtual PDU on a pty, and drives made up."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from leadline.drive.ask import Identity
from leadline.drive.bind import Controller, Drive, Link, Seen
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import Finished, Host, HostLost, open_host
from leadline.host.journal import Journal, dead_entries
from leadline.inventory.rig import DriveSpec, HostSpec, PduSpec
from leadline.power import baytech, cycle, dark
from leadline.power import pdu as pdu_module
from leadline.power import port as port_module
from leadline.power.cycle import (
    Bench,
    as_fast_as_before,
    carry_out,
    go_dark,
    power_cycle,
    unchanged_but_for,
)
from leadline.power.dark import HotPlug, WholeHost
from leadline.power.outlets import ENTRY, Supply, lent, restore_outlets
from leadline.power.pdu import Pdu, open_pdu
from leadline.power.sight import Look
from leadline.virtual.pdu import Faults, VirtualPdu

OFF_S = 0.1


def drive(slot: str = "a", **changes: Any) -> Drive:
    serial = f"SERIAL-{slot}"
    spec = DriveSpec(
        slot=slot,
        model="MODEL",
        serial=serial,
        firmware="1.0",
        controller="c",
        protocol="sata",
        off_s=OFF_S,
        ready_s=0.4,
    )
    made = Drive(
        spec=spec,
        node="/dev/sda",
        name="sda",
        hctl="0:0:0:0",
        sg=None,
        controller=Controller("0000:00:1f.2", "8086:2922", "ahci", "host0"),
        link=Link("ata1", "ata1.00", "6.0 Gbps", 0, ""),
        queue_depth=32,
        identity=Identity("MODEL", serial, "0x5000c50000000001", "1.0", 1 << 30),
        identify=None,
    )
    return replace(made, **changes)


@dataclass
class World:
    """Slots by outlet, what has power, what the kernel has; and everything that was done."""

    fed: dict[int, str]
    kernel: set[str] = field(default_factory=set)
    powered: set[str] = field(default_factory=set)
    did: list[str] = field(default_factory=list)
    notices: bool = True  # the kernel sees by itself that a drive has gone or come
    dead_after: set[str] = field(default_factory=set)  # drives that do not come back

    def __post_init__(self) -> None:
        self.powered |= set(self.fed.values())
        self.kernel |= self.powered

    def switch(self, outlet: int, on: bool) -> None:
        self.did.append(f"outlet {outlet} {'on' if on else 'off'}")
        slot = self.fed.get(outlet, "")
        if on and slot and slot not in self.dead_after:
            self.powered.add(slot)
        elif not on:
            self.powered.discard(slot)
        if self.notices:
            self.kernel = self.kernel & self.powered | ({slot} & self.powered)


class FakeEyes:
    """`sight.Sight`, on a `World` instead of a rig."""

    def __init__(self, world: World, slot: str) -> None:
        self.world = world
        self.slot = slot
        self.drive = drive(slot)
        self.key = slot
        self.scan_path = "/sys/class/scsi_host/host0/scan"
        self.known: Mapping[str, str] = {s: f"MODEL {s}" for s in world.kernel if s != slot}
        self.read_fails = False
        self.link: bool | None = None
        self.after_rescan: Callable[[], None] = lambda: None

    def delete(self) -> None:
        if self.noticed():
            return
        self.world.did.append(f"delete {self.slot}")
        self.world.kernel.discard(self.slot)

    def noticed(self) -> bool:
        return self.slot not in self.world.kernel

    def rescan(self) -> None:
        self.world.did.append("rescan")
        self.world.kernel |= self.world.powered
        self.after_rescan()

    def look(self) -> Look:
        seen = Seen("sdb", self.slot, "", "MODEL", "", "0:0:0:0", "sata", 1 << 30)
        others = {s: f"MODEL {s}" for s in self.world.kernel if s != self.slot}
        return Look(seen if self.slot in self.world.kernel else None, others)

    def identity(self, seen: Seen) -> Identity:
        return self.drive.identity

    def read(self, seen: Seen) -> None:
        if self.read_fails:
            raise RigTrouble("dd: Input/output error")

    def link_is_up(self) -> bool | None:
        return self.link


class Leave:
    released = False

    def release(self) -> None:
        self.released = True


@dataclass
class Stage:
    world: World
    unit: VirtualPdu
    pdu: Pdu
    tmp_path: Path

    def has_power(self, outlet: int) -> bool:
        return self.unit.contacts[outlet]

    def supplies(self, *outlets: int) -> list[Supply]:
        return [Supply(self.pdu, outlet) for outlet in outlets]

    def cycle(self, *, abrupt: bool = False, eyes: FakeEyes | None = None) -> cycle.Phases:
        eyes = eyes or FakeEyes(self.world, "a")
        subject = HotPlug(eyes)
        return carry_out(subject, eyes, self.supplies(2), Leave(), off_s=OFF_S, abrupt=abrupt)[0]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The waits of real hardware, shortened; locks of these tests' own."""
    monkeypatch.setattr(port_module, "LOCK_DIRECTORY", tmp_path)
    monkeypatch.setattr(baytech, "SYNC_QUIETS_S", (0.05, 0.2, 0.5))
    monkeypatch.setattr(pdu_module, "READBACK_S", 0.2)
    monkeypatch.setattr(dark, "NOTICE_S", 0.2)
    monkeypatch.setattr(dark, "HOLD_UP_S", 0.2)
    monkeypatch.setattr(dark, "RETRY_S", 0.05)
    monkeypatch.setattr(dark, "UNREACHABLE_S", 0.2)
    monkeypatch.setattr(dark, "SHUTDOWN_S", 0.2)
    monkeypatch.setattr(dark, "GRACE_S", 0.0)
    monkeypatch.setattr(dark, "POLL_S", 0.01)
    monkeypatch.setattr(cycle, "LOOK_S", 0.01)
    monkeypatch.setattr(cycle, "FIRST_RESCAN_S", 0.05)
    monkeypatch.setattr(cycle, "RESCAN_EVERY_S", 0.1)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    world = World({1: "host", 2: "a", 3: "b"})
    with (
        VirtualPdu(4, world.switch, tmp_path / "pdu", faults=Faults()) as unit,
        open_pdu(pdu_spec(tmp_path)) as pdu,
    ):
        yield Stage(world, unit, pdu, tmp_path)
        unit.settle(5)


def pdu_spec(tmp_path: Path) -> PduSpec:
    return PduSpec(name="p", family="baytech-rpc3", port=str(tmp_path / "pdu"), outlets=4)


@pytest.fixture(scope="module")
def here() -> Iterator[Host]:
    with open_host(HostSpec(reach="local")) as host:
        yield host


# One drive.


def test_a_graceful_cycle_deletes_first_and_proves_off_by_a_rescan(stage: Stage) -> None:
    phases = stage.cycle()
    assert stage.world.did == ["delete a", "outlet 2 off", "rescan", "outlet 2 on"]
    assert phases.off_s >= OFF_S
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
    go_dark(HotPlug(eyes), stage.supplies(2), leave, off_s=OFF_S, abrupt=False)
    assert released_at_rescan == [True]


def test_a_drive_that_lives_on_for_a_while_is_waited_for(stage: Stage) -> None:
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
    with pytest.raises(RigTrouble, match=r"went dark with outlet 2 .* and so did MODEL b"):
        stage.cycle(eyes=eyes)


def test_a_neighbour_that_it_knows_of_goes_dark_and_comes_back(stage: Stage) -> None:
    both = [FakeEyes(stage.world, "a"), FakeEyes(stage.world, "b")]
    carry_out(
        HotPlug(both[0], both[1:]),
        both[0],
        stage.supplies(2, 3),
        Leave(),
        off_s=OFF_S,
        abrupt=False,
    )
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


# Who came back.


def identity(**changes: Any) -> Identity:
    return replace(drive().identity, **changes)


def test_the_same_drive_is_no_fault() -> None:
    unchanged_but_for(drive(), identity(), None)
    unchanged_but_for(drive(), identity(firmware="1.1"), "1.1")


@pytest.mark.parametrize(
    ("after", "expected", "words"),
    [
        (identity(serial="OTHER"), None, "serial was 'SERIAL-a' and is 'OTHER'"),
        (identity(capacity_bytes=512), None, "capacity"),
        (identity(firmware="1.1"), None, "firmware was '1.0' and is '1.1'"),
        (identity(), "1.1", "firmware is still '1.0' and '1.1' was to come"),
        (identity(firmware="1.2"), "1.1", "firmware was '1.0' and is '1.2'"),
        (identity(firmware="1.1", serial="OTHER"), "1.1", "serial"),
    ],
)
def test_another_drive_is_a_fault(after: Identity, expected: str | None, words: str) -> None:
    with pytest.raises(DriveFault, match=words):
        unchanged_but_for(drive(), after, expected)


def slow(lowered: int) -> Drive:
    return drive(link=Link("ata1", "ata1.00", "3.0 Gbps", lowered, ""))


def test_a_slower_link_is_the_drives_fault_unless_our_cut_lowered_it() -> None:
    for abrupt in (False, True):
        with pytest.raises(DriveFault, match="came back at 3 Gb/s and was at 6 Gb/s"):
            as_fast_as_before(drive(), slow(0), abrupt=abrupt)
    with pytest.raises(DriveFault):
        as_fast_as_before(drive(), slow(1), abrupt=False)
    with pytest.raises(RigTrouble, match="our own abrupt cut"):
        as_fast_as_before(drive(), slow(1), abrupt=True)
    as_fast_as_before(slow(0), drive(), abrupt=False)
    as_fast_as_before(drive(link=None), drive(link=None), abrupt=False)


def test_a_smaller_queue_is_a_fault() -> None:
    with pytest.raises(DriveFault, match="queue depth of 1, and had 32"):
        as_fast_as_before(drive(), drive(queue_depth=1), abrupt=False)
    as_fast_as_before(drive(queue_depth=8), drive(), abrupt=False)


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
        return self.up and "host" in self.world.powered

    def boot_id(self) -> str:
        return str(self.boot)

    def reconnect(self, deadline: float) -> None:
        if "host" not in self.world.powered:
            raise HostLost("refused")
        self.up = True
        self.boot += self.boots_anew


SPEC = HostSpec(reach="ssh", address="bench", shutdown=("poweroff",), boot_deadline_s=1)


def host_cycle(stage: Stage, machine: FakeMachine, *, abrupt: bool) -> cycle.Phases:
    eyes = FakeEyes(stage.world, "a")
    subject = WholeHost(machine, SPEC, [eyes], ["/", "/boot"])
    return carry_out(subject, eyes, stage.supplies(1), Leave(), off_s=OFF_S, abrupt=abrupt)[0]


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


# On again, whatever happens.


def borrowed(stage: Stage, journal: Journal, eyes: FakeEyes) -> None:
    """A whole cycle, as `power_cycle` does it."""
    subject = HotPlug(eyes)
    with lent(journal, stage.supplies(2), subject.put_back):
        carry_out(subject, eyes, stage.supplies(2), Leave(), off_s=OFF_S, abrupt=False)


def test_an_error_puts_power_and_drive_back(stage: Stage, here: Host) -> None:
    eyes = FakeEyes(stage.world, "a")
    eyes.read_fails = True
    directory = str(stage.tmp_path / "journal")
    with Journal(here, "r", directory=directory) as journal, pytest.raises(DriveFault):
        borrowed(stage, journal, eyes)
    assert "a" in stage.world.kernel
    assert dead_entries(here, ENTRY, directory=directory) == []


def test_what_cannot_be_put_back_is_noted_and_stays_on_record(stage: Stage, here: Host) -> None:
    directory = str(stage.tmp_path / "journal")
    journal = Journal(here, "r", directory=directory)
    with pytest.raises(KeyboardInterrupt) as caught, lent(journal, stage.supplies(2), lambda: None):
        stage.pdu.switch(2, False)
        stage.unit.faults.stuck.add(2)
        raise KeyboardInterrupt
    assert "still off after 3 commands" in caught.value.__notes__[0]
    assert stage.unit.contacts[2] is False
    journal.give_back()
    stage.unit.faults.stuck.clear()
    stage.pdu.close()
    with open_host(HostSpec(reach="local")) as other:
        assert dead_entries(other, ENTRY, directory=directory) == [], "its run still lives"


class Interruption:
    """Raises KeyboardInterrupt at the nth line of Leadline's power layer, once."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, _: object) -> "Interruption | None":
        if "leadline/power" not in frame.f_code.co_filename:
            return None
        if event == "line" and self.left > 0:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


@contextmanager
def interrupted(at: int) -> Iterator[Interruption]:
    interruption = Interruption(at)
    before = sys.gettrace()
    sys.settrace(interruption)
    try:
        yield interruption
    finally:
        sys.settrace(before)


def test_ctrl_c_at_any_line_leaves_the_outlet_on(stage: Stage, here: Host) -> None:
    """Sampled more densely at the beginning, where one line in the wrong place would tell."""
    directory = str(stage.tmp_path / "journal")
    at, broken_off = 1, 0
    while True:
        eyes = FakeEyes(stage.world, "a")
        journal = Journal(here, "r", directory=directory)
        with interrupted(at) as interruption:
            try:
                borrowed(stage, journal, eyes)
            except KeyboardInterrupt:
                broken_off += 1
        stage.unit.settle(5)
        assert stage.unit.contacts[2] is True, f"at line {at}"
        journal.give_back()
        eyes.rescan()
        if interruption.left:
            break
        at += 1 + at // 8
    assert broken_off > 20


CHILD = """
import sys
from pathlib import Path
from leadline.host.connection import open_host
from leadline.host.journal import Journal
from leadline.inventory.rig import HostSpec, PduSpec
from leadline.power import port
from leadline.power.outlets import Supply, lent
from leadline.power.pdu import open_pdu
tmp = Path(sys.argv[1])
port.LOCK_DIRECTORY = tmp
spec = PduSpec(name="p", family="baytech-rpc3", port=str(tmp / "pdu"), outlets=4)
with open_host(HostSpec(reach="local")) as here, open_pdu(spec) as pdu:
    with lent(Journal(here, "dead", directory=str(tmp / "journal")), [Supply(pdu, 2)], print):
        pdu.switch(2, False)
        print("off", flush=True)
        sys.stdin.read()
"""


def restored(here: Host, directory: str) -> list[str]:
    """What was restored, once the dead run's agent has let its journal go."""
    let_go = threading.Event()
    for _ in range(100):
        if said := restore_outlets(here, directory=directory):
            return said
        let_go.wait(0.1)
    return []


def test_what_a_killed_run_left_off_the_next_one_switches_on(stage: Stage, here: Host) -> None:
    stage.pdu.close()
    directory = str(stage.tmp_path / "journal")
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(stage.tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == b"off\n"
        assert not stage.has_power(2)
        assert restore_outlets(here, directory=directory) == [], "while its run lives"
        child.send_signal(signal.SIGKILL)
    (sentence,) = restored(here, directory)
    assert "outlet 2 of PDU 'p'" in sentence
    assert "is on again, after run dead" in sentence
    assert stage.has_power(2)
    assert restore_outlets(here, directory=directory) == []


def test_an_outlet_that_cannot_be_restored_stays_on_record(stage: Stage, here: Host) -> None:
    directory = str(stage.tmp_path / "journal")
    with open_host(HostSpec(reach="local")) as dying:
        journal = Journal(dying, "dead", directory=directory)
        journal.open_entry(
            ENTRY,
            {
                "outlets": [{"pdu": pdu_spec(stage.tmp_path).model_dump(), "outlet": 2}],
                "rescan": None,
            },
        )
    stage.pdu.close()
    stage.unit.unplug()
    for _ in range(2):
        with pytest.raises(RigTrouble, match=r"left off by run dead.*no such port.*remove /"):
            restore_outlets(here, directory=directory)
    stage.unit.plug_in()
    (sentence,) = restore_outlets(here, directory=directory)
    assert "was on already" in sentence
