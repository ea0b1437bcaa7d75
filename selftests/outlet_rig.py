"""Rig files with outlets, and what stands in for the guard's leave and the rig's eyes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from leadline.drive.bind import Drive
from selftests.power_world import FakeEyes, World, drive

RIG_FILE = """\
rig: bench
host: {{reach: local}}
controllers: [{{name: c, driver: ahci}}]
pdus:
  - {{name: p, family: baytech-rpc3, port: {folder}/pdu, outlets: 4}}
  - {{name: q, family: baytech-rpc3, port: {folder}/second, outlets: 4}}
outlets: [{outlets}]
drives:
  - {{slot: a, model: MODEL, serial: SERIAL-a, wwn: "0x5000c50000000001", firmware: "1.0",
     controller: c, protocol: sata, off_s: 0.1}}
  - {{slot: b, model: MODEL, serial: SERIAL-b, firmware: "1.0",
     controller: c, protocol: sata, off_s: 0.2}}
"""
OF_A = "{name: a, pdu: p, outlet: 2, feeds: [a]}"
OF_B = "{name: b, pdu: p, outlet: 3, feeds: [b]}"
OF_BOTH = "{name: both, pdu: p, outlet: 2, feeds: [a, b]}"
SECOND = "{name: second, pdu: q, outlet: 3, feeds: [a]}"
OF_HOST = "{name: host, pdu: p, outlet: 1, feeds: host}"
OF_HOST_TOO = "{name: host2, pdu: q, outlet: 1, feeds: host}"


def rig_file(folder: Path, *outlets: str) -> str:
    """The text of a rig file with these outlets, its PDUs' ports in `folder`."""
    return RIG_FILE.format(folder=folder, outlets=", ".join(outlets))


class Eyes(FakeEyes):
    """Binds, too: the drive has a new node, and whatever else is to be changed of it."""

    def __init__(self, world: World, slot: str) -> None:
        super().__init__(world, slot)
        self.after: dict[str, Any] = {}

    def bind(self, firmware: str) -> Drive:
        return drive(self.slot, node="/dev/sdz", name="sdz", **self.after)


@dataclass
class Permit:
    """The guard's leave; says when it is taken and when it is given up."""

    what: str
    did: list[str]
    purpose: str = "cut power"
    held: bool = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def confirm(self) -> None:
        assert self.held
        self.did.append(f"confirmed {self.what}")

    def release(self) -> None:
        if self.held:
            self.did.append(f"released {self.what}")
        self.held = False
