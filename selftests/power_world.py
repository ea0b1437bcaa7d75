"""A small world for tests of power cycles: a real virtual PDU on a pty, and drives made up."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from leadline.drive.ask import Identity
from leadline.drive.bind import Controller, Drive, Link, Seen
from leadline.drive.kernel_events import KernelEvent
from leadline.errors import RigTrouble
from leadline.host.connection import Host, open_host
from leadline.inventory.pdu import PduSpec
from leadline.inventory.rig import DriveSpec, HostSpec
from leadline.power import command_line, cycle, dark
from leadline.power import pdu as pdu_module
from leadline.power import port as port_module
from leadline.power.cycle import carry_out
from leadline.power.dark import HotPlug, Subject
from leadline.power.pdu import Pdu, open_pdu
from leadline.power.phases import Phases
from leadline.power.sight import Look
from leadline.power.supplies import Supply
from leadline.power.wear import Cut, Toll
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.pty import VirtualPdu

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
    settle: Callable[[], None] = lambda: None  # waits until every switching has had its effect
    switched: Callable[[int, bool], None] = lambda *_: None  # is told of each afterwards

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
        self.switched(outlet, on)


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
        self.link_up: float | None = None  # seconds from the sending of "on"
        self.rotates = False
        self.after_rescan: Callable[[], None] = lambda: None

    def delete(self) -> None:
        if self.noticed():
            return
        self.world.did.append(f"delete {self.slot}")
        self.world.kernel.discard(self.slot)

    def noticed(self) -> bool:
        self.world.settle()
        return self.slot not in self.world.kernel

    def rescan(self) -> None:
        self.world.settle()
        self.world.did.append("rescan")
        self.world.kernel |= self.world.powered
        self.after_rescan()

    def look(self) -> Look:
        self.world.settle()
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

    def link_up_at(self, not_before: float) -> float | None:
        return None if self.link_up is None else not_before + self.link_up

    def said_since_attached(self, drive: Drive) -> tuple[KernelEvent, ...]:
        return ()

    def point_out(self) -> str:
        return f". {self.slot} is lit"


@dataclass
class Clock:
    """Stands in for the `time` module: a sleep takes no time, and is written down."""

    now: float = 1000.0
    sleeps: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(round(seconds, 6))
        self.now += seconds


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

    def cycle(self, *, abrupt: bool = False, eyes: FakeEyes | None = None) -> Phases:
        eyes = eyes or FakeEyes(self.world, "a")
        subject = HotPlug(eyes)
        return self.carry_out(subject, eyes, 2, abrupt=abrupt)

    def carry_out(
        self, subject: Subject, eyes: FakeEyes, *outlets: int, abrupt: bool = False
    ) -> Phases:
        """The cycle of these outlets, counted for the drive."""
        toll = toll_of(eyes, abrupt=abrupt)
        supplies = self.supplies(*outlets)
        return carry_out(subject, eyes, supplies, Leave(), toll, off_s=OFF_S, abrupt=abrupt)[0]


def toll_of(eyes: FakeEyes, *, abrupt: bool = False) -> Toll:
    """What a cut costs the drive."""
    return Toll([Cut(eyes.drive.spec, abrupt and eyes.rotates)], "run-1")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The waits of real hardware, shortened; locks and counts of these tests' own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(port_module, "LOCK_DIRECTORY", tmp_path)
    monkeypatch.setattr(command_line, "SYNC_QUIETS_S", (0.05, 0.2, 0.5))
    monkeypatch.setattr(pdu_module, "READBACK_S", 0.2)
    monkeypatch.setattr(dark, "NOTICE_S", 0.2)
    monkeypatch.setattr(dark, "HOLD_UP_S", 0.2)
    monkeypatch.setattr(dark, "RETRY_S", 0.05)
    monkeypatch.setattr(dark, "UNREACHABLE_S", 0.2)
    monkeypatch.setattr(dark, "SHUTDOWN_S", 0.2)
    monkeypatch.setattr(dark, "POLL_S", 0.01)
    monkeypatch.setattr(cycle, "LOOK_S", 0.01)
    monkeypatch.setattr(cycle, "FIRST_RESCAN_S", 0.05)
    monkeypatch.setattr(cycle, "RESCAN_EVERY_S", 0.1)


@pytest.fixture
def stage(tmp_path: Path, quick: None) -> Iterator[Stage]:
    """The world, its PDU running on a pty, and Leadline's own driver before it."""
    world = World({1: "host", 2: "a", 3: "b"})
    with (
        VirtualPdu(4, world.switch, tmp_path / "pdu", faults=Faults()) as unit,
        open_pdu(pdu_spec(tmp_path)) as pdu,
    ):
        world.settle = lambda: unit.settle(5)
        yield Stage(world, unit, pdu, tmp_path)
        world.settle()


def pdu_spec(tmp_path: Path) -> PduSpec:
    return PduSpec(name="p", family="baytech-rpc3", port=str(tmp_path / "pdu"), outlets=4)


@pytest.fixture(scope="module")
def here() -> Iterator[Host]:
    """This machine, where journals of outlets are."""
    with open_host(HostSpec(reach="local")) as host:
        yield host
