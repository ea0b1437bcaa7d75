"""A visit to a drive on a rig with a PDU on a pty, before which Leadline's power cycle runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from leadline import cycling
from leadline.drive.bind import Drive, Seen
from leadline.host.connection import Host
from leadline.inventory.rig import DriveSpec
from leadline.power import cycle as power
from leadline.visiting import OpenVisit
from selftests.outlet_rig import Eyes, Permit, rig_file
from selftests.power_world import Stage, drive
from selftests.visit_world import MATRIX, Bench, make_run, open_station, watch_of


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
