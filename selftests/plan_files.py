"""A matrix and a rig file that each test fills: firmware by firmware, and drive by drive."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from leadline.inventory.coverage import Coverage, coverage
from leadline.inventory.matrix import Matrix, load_matrix
from leadline.inventory.plan import Gap, Visit, survey
from leadline.inventory.rig import Rig, load_rig

HEAD = """\
classes:
  ssd:
    claim_a: {at_least: 3, source: x}
    claim_b: {at_least: 3, source: x}
controllers:
  - {name: chipset, pci_id: "8086:0001", driver: ahci}
  - {name: hba, pci_id: "8086:0002", driver: mpt3sas}
  - {name: absent, pci_id: "8086:0003", driver: ahci}
models:
"""
MODEL = """\
  - model: {name}
    class: ssd
    protocol: sata
    queue_depth: 32
    firmware:
"""
FLASH = 'flash: {command: [f, "{image}"], runs_on: here, activates: at-once}, '
RIG = """\
rig: bench
host: {reach: local}
controllers:
  - {name: one, pci_id: "8086:0001", driver: ahci}
  - {name: two, pci_id: "8086:0002", driver: mpt3sas}
pdus: [{name: p, family: baytech-rpc3, port: /dev/ttyS0}]
outlets: [OUTLETS]
drives:
"""


@dataclass
class Files:
    """A matrix and a rig file, as a test fills them."""

    folder: Path
    models: list[str] = field(default_factory=list)
    drives: list[str] = field(default_factory=list)
    outlets: str = "{name: o, pdu: p, outlet: 1, feeds: [none]}"

    def model(self, name: str, *firmware: str) -> None:
        """One entry; each firmware as ``1.0`` or ``1.0 status: withdrawn, downgrade: refused``."""
        entry = MODEL.format(name=name)
        for words in firmware:
            revision, _, rest = words.partition(" ")
            image = self.folder / f"{revision}.bin"
            image.write_text(f"{name} {revision}")
            digest = hashlib.sha256(image.read_bytes()).hexdigest()
            rest = rest if "status" in rest else f"status: candidate, {rest}".removesuffix(", ")
            picture = "" if "no image" in rest else f", image: {image.name}, sha256: {digest}"
            rest = rest.replace(", no image", "")
            entry += f'      - {{revision: "{revision}", {rest}{picture}}}\n'
        self.models.append(entry)

    def drive(self, slot: str, model: str, firmware: str, on: str = "one", more: str = "") -> None:
        self.drives.append(
            f'  - {{slot: {slot}, model: {model}, serial: {slot}, firmware: "{firmware}", '
            f"{FLASH}{more}controller: {on}, protocol: sata}}\n"
        )

    def read(self) -> tuple[Rig, Matrix]:
        (self.folder / "matrix.yaml").write_text(HEAD + "".join(self.models))
        outlets = self.outlets.replace("none", self.drives[0].split()[2].strip(","))
        rig = RIG.replace("OUTLETS", outlets) + "".join(self.drives)
        (self.folder / "rig.yaml").write_text(rig)
        return load_rig(self.folder / "rig.yaml"), load_matrix(self.folder / "matrix.yaml")

    def survey(self) -> tuple[tuple[Visit, ...], tuple[Gap, ...]]:
        rig, matrix = self.read()
        return survey([rig], matrix)

    def coverage(self) -> Coverage:
        rig, matrix = self.read()
        return coverage([rig], matrix, *survey([rig], matrix))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)
