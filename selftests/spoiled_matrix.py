"""A firmware matrix for tests to spoil, and what the reference shows of what is said of it."""

import hashlib
import re
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "firmware-matrix.md"
NAME = "firmware_matrix.yaml"
IMAGES = {"1.0": b"one", "1.1": b"two"}
HASHES = {name: hashlib.sha256(data).hexdigest() for name, data in IMAGES.items()}

MATRIX = f"""\
classes:
  ssd:
    ratio:
      at_least: 3
      source: sweeps
      kernels:
        - {{kernel: 5.10.*, at_least: 2, source: a bug}}
controllers:
  - {{name: chipset, pci_id: "8086:a282", driver: ahci}}
  - {{name: hba, pci_id: "1000:0097", driver: mpt3sas}}
models:
  - model: MAKER SSD*
    class: ssd
    protocol: sata
    queue_depth: 32
    controllers: [chipset]
    firmware:
      - revision: "1.0"
        status: released
        image: 1.0.bin
        sha256: {HASHES["1.0"]}
      - revision: "1.1"
        predecessor: "1.0"
        status: candidate
        image: 1.1.bin
        sha256: {HASHES["1.1"]}
        known_issues:
          - claim: ratio
            summary: It serialises.
            link: https://tracker.example.org/1
            expires: 2027-01-31
  - model: OTHER*
    class: hdd
    protocol: sas
    queue_depth: 64
    controllers: [hba]
    firmware:
      - revision: "0007"
        status: released
"""
RIG = """\
rig: bench
host: {reach: local}
controllers: [{name: onboard, pci_id: "8086:A282", driver: ahci}]
drives:
  - slot: a
    model: MAKER SSD/1
    serial: S1
    firmware: "1.0"
    controller: onboard
    protocol: sata
    flash: {command: [f, "{image}"], runs_on: here, activates: at-once}
"""


def written(folder: Path, old: str = "", new: str = "") -> Path:
    for name, data in IMAGES.items():
        (folder / f"{name}.bin").write_bytes(data)
    (folder / "rig.yaml").write_text(RIG)
    assert old in MATRIX
    path = folder / NAME
    path.write_text(MATRIX.replace(old, new, 1))
    return path


def limited(folder: Path, of: str, limits: str) -> Path:
    """The matrix with limits, ``{claim: {...}}``, of a class, model, firmware or controller."""
    old, new = {
        "class": ("  ssd:\n", f"  hdd: {limits}\n  ssd:\n"),
        "model": ("queue_depth: 32\n", f"queue_depth: 32\n    limits: {limits}\n"),
        "firmware": ("status: candidate\n", f"status: candidate\n        limits: {limits}\n"),
        "controller": ("driver: ahci}", f"driver: ahci, classes: {{ssd: {limits}}}}}"),
    }[of]
    return written(folder, old, new)


def in_words(folder: Path, message: str) -> str:
    """A message as the reference shows it: no folder, and hashes cut short."""
    return re.sub(r"\b([0-9a-f]{4})[0-9a-f]{60}\b", r"\1...", message.replace(f"{folder}/", ""))


def assert_documented(message: str) -> None:
    """That the reference has the message, wherever in a file it is."""
    anywhere = re.sub(r"^firmware_matrix\.yaml:\d+: ", "", message)
    assert anywhere in REFERENCE.read_text(), f"not in {REFERENCE.name}: {anywhere}"
