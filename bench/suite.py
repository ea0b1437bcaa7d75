"""The quick suite on drives of a virtual rig that is up: wall time against drive time.

Drive time is what no framework can save: the seconds for which the drive was under load, from
the first request of a slice to its last completion (phase `drive` of the run's record), and
those of its power cycles, from the announcement until it had read from its medium again
(`shutdown`, `off`, `switch`, `ready`; for an AHCI drive its host's boot is part of that).  All
else is overhead: starting Python and pytest, reaching the rig, binding the drive, starting fio,
the gaps between slices, statistics.

Two drives that share no path (each on a controller and a PDU of its own) are then tested one
after the other, and side by side by two workers.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import yaml

import leadline
from leadline.inventory.document import read
from leadline.inventory.rig import load_rig
from leadline.virtual import rig as virtual
from leadline.virtual.state import State, made_up

PROFILES = Path(leadline.__file__).parent / "rigs" / "profiles"
UNDER_LOAD = ("drive",)
POWER_CYCLE = ("shutdown", "off", "switch", "ready")
ROUNDS = 3
RUN_S = 900.0
WALL_OVER_DRIVE_LIMIT = 1.2
SIDE_BY_SIDE_LIMIT = 0.6


@dataclass(frozen=True)
class Measured:
    """One run: its wall time, its phases in seconds, and how each test ended."""

    wall_s: float
    phases: dict[str, float]
    outcomes: dict[tuple[str, str], str]

    @property
    def loaded_s(self) -> float:
        """Drive time under load."""
        return sum(self.phases.get(name, 0.0) for name in UNDER_LOAD)

    @property
    def drive_s(self) -> float:
        """All drive time."""
        return self.loaded_s + sum(self.phases.get(name, 0.0) for name in POWER_CYCLE)

    def figures(self) -> dict[str, Any]:
        """The run in a line of JSON."""
        return {
            "wall_s": round(self.wall_s, 2),
            "drive_s": round(self.drive_s, 2),
            "under_load_s": round(self.loaded_s, 2),
            "overhead_s": round(self.wall_s - self.drive_s, 2),
            "wall_over_drive": round(self.wall_s / self.drive_s, 3),
        }


def measure() -> dict[str, object]:
    """Medians over a few runs of each kind; whether they are within the limits."""
    with tempfile.TemporaryDirectory(prefix="leadline-suite-") as folder:
        one = one_drive(Path(folder))
        two = two_drives(Path(folder))
    return {**one, **two, "within_limits": one["within_limits"] and two["within_limits"]}


def one_drive(folder: Path, rounds: int = ROUNDS) -> dict[str, Any]:
    """The AHCI drive by itself."""
    path = rig_file(folder, made_up("suite-one"), [ahci_drive()])
    with up(path):
        runs = [hil(path, folder) for _ in range(rounds)]
    ratio = median(run.wall_s / run.drive_s for run in runs)
    return {
        "one_drive": [run.figures() for run in runs],
        "wall_over_drive": round(ratio, 3),
        "wall_over_drive_limit": WALL_OVER_DRIVE_LIMIT,
        "within_limits": ratio <= WALL_OVER_DRIVE_LIMIT and all(map(_passed, runs)),
    }


def two_drives(folder: Path, rounds: int = ROUNDS) -> dict[str, Any]:
    """Two SCSI drives on controllers of their own, one after the other and side by side."""
    drives = [scsi_drive(folder, number) for number in (1, 2)]
    path = rig_file(folder, made_up("suite-two"), drives)
    pairs = []
    with up(path):
        for n in range(rounds):
            # Order alternates, as in a claim.
            options = [(), ("-n", "2")] if n % 2 == 0 else [("-n", "2"), ()]
            ran = {words: hil(path, folder, *words) for words in options}
            pairs.append((ran[()], ran["-n", "2"]))
    ratio = median(beside.wall_s / after.wall_s for after, beside in pairs)
    same = len({tuple(sorted(run.outcomes.items())) for pair in pairs for run in pair}) == 1
    return {
        "one_after_the_other_s": [round(after.wall_s, 2) for after, _ in pairs],
        "side_by_side_s": [round(beside.wall_s, 2) for _, beside in pairs],
        "side_by_side_ratio": round(ratio, 3),
        "side_by_side_limit": SIDE_BY_SIDE_LIMIT,
        "same_verdicts": same,
        "within_limits": ratio <= SIDE_BY_SIDE_LIMIT and same and all(_passed(p[0]) for p in pairs),
    }


def _passed(run: Measured) -> bool:
    return set(run.outcomes.values()) <= {"pass", "skipped"} and "pass" in run.outcomes.values()


@contextmanager
def up(path: Path) -> Iterator[None]:
    """A virtual rig while it is up; nothing of it is left."""
    rig = load_rig(path)
    try:
        with virtual.running(rig):
            yield
    finally:
        State(rig.name).forget()


def hil(rig: Path, folder: Path, *words: str) -> Measured:
    """`leadline hil -m quick` on a rig that is up, as a process of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as results:
        argv = [sys.executable, "-m", "leadline.cli", "hil", "--rig", str(rig), "--json"]
        argv += ["--results", results, "-m", "quick", *words]
        begun = time.monotonic()
        done = subprocess.run(argv, stdout=subprocess.PIPE, check=False, timeout=RUN_S)
        wall_s = time.monotonic() - begun
    summary = json.loads(done.stdout)
    outcomes = {(row["cell"], row["claim"]): row["outcome"] for row in summary["outcomes"]}
    return Measured(wall_s, summary["phases"], outcomes)


@dataclass(frozen=True)
class Drive:
    """A drive of a rig file: its entries there, and what it hangs on."""

    entry: dict[str, Any]
    bus: str
    profile: Path
    controller: dict[str, str]
    feeds: str | list[str]


def ahci_drive() -> Drive:
    """The healthy SATA SSD, whose outlet feeds its host."""
    identity = {"model": "LEADLINE VSSD", "serial": "VSSD0001", "wwn": "0x5000c5000000a001"}
    controller = {"name": "ahci", "pci_id": "8086:2922", "driver": "ahci"}
    entry = {"slot": "ssd1", **identity, "protocol": "sata"}
    return Drive(entry, "ahci", PROFILES / "vssd-1.0.yaml", controller, "host")


def scsi_drive(folder: Path, number: int) -> Drive:
    """A healthy SCSI SSD on an outlet of its own; its profile is written to `folder`."""
    identity = {"serial": f"VSCSI{number:04}", "wwn": f"0x5000c5000000b{number:03}"}
    profile = folder / f"vscsi-{number}.yaml"
    given = read(PROFILES / "vscsi-1.0.yaml").data
    profile.write_text(yaml.safe_dump({**given, **identity}), "utf-8")
    slot = f"scsi{number}"
    entry = {"slot": slot, "model": "LEADLINE VSCSI", **identity, "protocol": "scsi"}
    controller = {"name": f"virtio-scsi-{number}", "pci_id": "1af4:1004", "driver": "virtio-pci"}
    return Drive(entry, "virtio-scsi", profile, controller, [slot])


def rig_file(folder: Path, name: str, drives: Sequence[Drive]) -> Path:
    """A rig with these drives, each on a controller, a PDU and an outlet of its own."""
    state = f"~/.cache/leadline/virtual/{name}"
    common = {"firmware": "1.0", "off_s": "1", "ready_s": "60"}
    pdus = [f"pdu{n}" for n, _ in enumerate(drives)]
    content = {
        "rig": name,
        "host": {
            "reach": "ssh",
            "address": "leadline-virtual",
            "ssh_config": f"{state}/ssh_config",
            "shutdown": ["poweroff"],
            "shutdown_s": "1",
        },
        "controllers": [drive.controller for drive in drives],
        "pdus": [
            {"name": pdu, "family": "baytech-rpc3", "port": f"{state}/{pdu}", "outlets": "8"}
            for pdu in pdus
        ],
        "outlets": [
            {"name": f"outlet-{pdu}", "pdu": pdu, "outlet": "1", "feeds": drive.feeds}
            for pdu, drive in zip(pdus, drives, strict=True)
        ],
        "drives": [
            {**drive.entry, **common, "controller": drive.controller["name"]} for drive in drives
        ],
        "virtual": {
            "drives": [
                {"slot": drive.entry["slot"], "bus": drive.bus, "profile": str(drive.profile)}
                for drive in drives
            ]
        },
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
    return path
