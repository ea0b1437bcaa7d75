"""`leadline power` before a rig whose drives are made up, and whose PDU is on a pty."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from leadline.cli import main
from leadline.commands import power_dark as command
from leadline.drive import smart
from leadline.drive.bind import Drive, Seen
from leadline.drive.smart import SmartSnapshot
from leadline.errors import RigTrouble
from leadline.host import journal, lease
from leadline.host.connection import Host
from leadline.inventory.rig import DriveSpec
from leadline.power import cycle
from selftests.outlet_rig import OF_A, Eyes, Permit, rig_file
from selftests.power_world import Stage, drive

GRACEFUL = ["delete a", "outlet 2 off", "rescan", "outlet 2 on"]


@dataclass
class Rig:
    """The command before a rig whose drives are made up, and whose PDU is on a pty."""

    stage: Stage
    capsys: pytest.CaptureFixture[str]
    did: list[str] = field(default_factory=list)
    after: dict[str, str] = field(default_factory=dict)  # serial numbers that come back, by slot

    def run(self, *words: str, outlets: Sequence[str] = (OF_A,)) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        path = self.stage.tmp_path / "bench.yaml"
        path.write_text(rig_file(self.stage.tmp_path, *outlets))
        code = main(["power", "--rig", str(path), *words])
        self.stage.unit.settle(5)
        return code, *self.capsys.readouterr()

    def json(self, *words: str, outlets: Sequence[str] = (OF_A,)) -> dict[str, Any]:
        code, out, err = self.run(*words, "--json", outlets=outlets)
        assert code == 0, err
        said: dict[str, Any] = json.loads(out)
        return said

    def admit(self, host: Host, spec: DriveSpec, drive: Drive, purpose: str) -> Permit:
        self.did.append(f"admitted {spec.slot} to {purpose}")
        return Permit(spec.slot, self.did)

    def admit_host(self, host: Host, drives: Sequence[Drive]) -> Permit:
        self.did.append(f"admitted the host of {len(drives)}")
        return Permit("the host", self.did)

    def eyes(self, host: Host, drive: Drive, disks: Sequence[Seen], *_: object) -> Eyes:
        slot = drive.spec.slot
        made = Eyes(self.stage.world, slot)
        if slot in self.after:
            changed = replace(made.drive.identity, serial=self.after[slot])
            made.identity = lambda _: changed  # type: ignore[assignment, method-assign]
        return made

    def both_go(self, outlet: int, on: bool) -> None:
        """Drive b hangs on the outlet of drive a, too."""
        for kept in (self.stage.world.powered, self.stage.world.kernel):
            (kept.add if on else kept.discard)("b")


@pytest.fixture
def rig(stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Rig:
    made = Rig(stage, capsys)
    stage.pdu.close()
    monkeypatch.setattr(journal, "default_directory", lambda _: str(stage.tmp_path / "journal"))
    monkeypatch.setenv("XDG_STATE_HOME", str(stage.tmp_path / "state"))
    monkeypatch.setattr(lease, "DIRECTORY", str(stage.tmp_path / "leases"))
    monkeypatch.setattr(command, "bind", lambda _, spec: drive(spec.slot))
    monkeypatch.setattr(command, "admit", made.admit)
    monkeypatch.setattr(command, "admit_host", made.admit_host)
    monkeypatch.setattr(smart, "snapshot", lambda *_: SmartSnapshot())
    for module in (cycle, command):
        monkeypatch.setattr(module, "scan", lambda host: ())
        monkeypatch.setattr(module, "Sight", made.eyes)
    return made


@pytest.fixture
def absent(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """Its drives are not there, so that they cannot be checked."""

    def not_there(*_: object) -> Drive:
        raise RigTrouble("slot a: the drive is not there")

    monkeypatch.setattr(command, "bind", not_there)
    return rig
