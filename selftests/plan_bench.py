"""A rig file and a firmware matrix that fit each other, as tests of plans change them."""

import hashlib
from pathlib import Path

import pytest

from leadline.errors import Misuse
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import Gap, Visit, survey
from leadline.inventory.rig import Rig, load_rig

RIG = """\
rig: bench-a
host: {{reach: local}}
controllers:
  - {{name: onboard, pci_id: "8086:a282", driver: ahci}}
  - {{name: hba, driver: mpt3sas}}
pdus:
  - {{name: pdu, family: baytech-rpc3, port: /dev/ttyS0}}
outlets:
  - {{name: a, pdu: pdu, outlet: 1, feeds: [slot1]}}
  - {{name: b, pdu: pdu, outlet: 2, feeds: [slot2]}}
drives:
  - slot: slot1
    model: MAKER SSD/1
    serial: S1
    wwn: 0x5000c50000000001
    firmware: {firmware}
    controller: onboard
    protocol: {protocol}
{flash}
  - {{slot: slot2, model: {model}, serial: S2, firmware: 01, controller: hba, protocol: sas}}
"""
FLASH = '    flash: {command: [f, "{image}"], runs_on: here, activates: power-cycle}'
IMAGES = {"1.0": b"one", "1.1": b"two"}

MATRIX = """\
classes:
  ssd: {{claim_a: {{at_least: 3, source: x}}}}
controllers:
  - {{name: chipset, pci_id: "8086:A282", driver: ahci}}
models:
  - model: MAKER SSD/1
    class: ssd
    protocol: sata
    queue_depth: 32
    firmware:
      - {{revision: 2.0, status: candidate}}
      - {{revision: 1.1, status: candidate, image: 1.1.bin, sha256: {hashes[1.1]}}}
      - {{revision: 1.0, status: released, image: 1.0.bin, sha256: {hashes[1.0]}}}
      - {{revision: 0.9, status: withdrawn, image: 1.0.bin, sha256: {hashes[1.0]}}}
"""


class Bench:
    """A rig file and a matrix in a folder, as a test changes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, data in IMAGES.items():
            (folder / f"{name}.bin").write_bytes(data)

    def rig(
        self,
        *,
        firmware: str = "1.0",
        model: str = "UNKNOWN",
        protocol: str = "sata",
        flash: str = FLASH,
        name: str = "bench-a",
    ) -> Rig:
        text = RIG.format(firmware=firmware, model=model, flash=flash, protocol=protocol)
        path = self.folder / f"{name}.yaml"
        path.write_text(text.replace("bench-a", name))
        return load_rig(path)

    def survey(
        self, *rigs: Rig, old: str = "", new: str = ""
    ) -> tuple[tuple[Visit, ...], tuple[Gap, ...]]:
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in IMAGES.items()}
        path = self.folder / "matrix.yaml"
        path.write_text(MATRIX.format(hashes=hashes).replace(old, new))
        return survey(rigs, load_matrix(path))

    def refusal(self, *rigs: Rig, old: str = "", new: str = "") -> list[str]:
        with pytest.raises(Misuse) as caught:
            self.survey(*rigs, old=old, new=new)
        return str(caught.value).replace(f"{self.folder}/", "").splitlines()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)
