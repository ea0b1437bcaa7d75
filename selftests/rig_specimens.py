"""Rig files for tests: those that are shipped, and a small one that each test changes."""

from pathlib import Path

import pytest

from leadline.errors import Misuse
from leadline.inventory.fields import packaged
from leadline.inventory.rig import Rig, load_rig

VIRTUAL = packaged("rigs/virtual.yaml")
BENCH = packaged("rigs/example-bench.yaml")

SMALL = """\
rig: small
host:
  reach: local
controllers:
  - name: onboard
    driver: ahci
pdus:
  - name: left
    family: baytech-rpc3
    port: /dev/ttyS0
outlets:
  - name: one
    pdu: left
    outlet: 1
    feeds: [a]
drives:
  - slot: a
    model: MODEL A
    serial: 00123456
    wwn: 0x5000c500a1b2c3d4
    firmware: 0007
    controller: onboard
    protocol: sata
"""
SECOND = """\
  - slot: b
    model: MODEL B
    serial: off
    firmware: 1e3
    controller: onboard
    protocol: sas
"""


def load(folder: Path, text: str) -> Rig:
    path = folder / "rig.yaml"
    path.write_text(text)
    return load_rig(path)


def refusal(folder: Path, text: str) -> list[str]:
    with pytest.raises(Misuse) as caught:
        load(folder, text)
    return str(caught.value).replace(f"{folder}/", "").splitlines()
