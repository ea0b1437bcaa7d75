"""A virtual rig and its firmware matrix, made up for the drives of one case; `leadline hil` on it.

All drives of a bus are of one model, so that what differs is what their profiles say.  The limits
are those of the shipped matrix, by class.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

import leadline
from leadline.drive.bind import bind
from leadline.host.connection import open_host
from leadline.inventory.document import read
from leadline.inventory.rig import Rig, load_rig
from leadline.virtual import rig as virtual
from leadline.virtual.state import State, made_up

PACKAGE = Path(leadline.__file__).parent
DEADLINE_S = 1800.0
MAKER = "BENCH"
HEALTHY: Mapping[str, object] = {"channels": 8, "read_ms": 20, "write_ms": 3}
"""Slow enough for a busy machine to keep up with eight of them."""
CAPACITY = 8 << 30
CACHE = 64 << 20
_SHOWN = 120
SETTINGS = ("device/queue_depth", "queue/scheduler", "queue/nomerges", "queue/nr_requests")
CONTROLLERS = [
    {"name": "ahci", "pci_address": "0000:00:1f.2", "pci_id": "8086:2922", "driver": "ahci"},
    {"name": "ide", "driver": "ata_piix"},
    {"name": "virtio-scsi", "driver": "virtio-pci"},
]


@dataclass(frozen=True)
class Seeded:
    """One drive: where it hangs, what the matrix calls it, and its profile.

    `kind` is the name of its model, `queue_depth` what the matrix promises of that; `limits` are
    the model's own.  A SCSI drive has an outlet of its own, the others the host's.
    """

    slot: str
    profile: Mapping[str, object] = field(default_factory=lambda: HEALTHY)
    bus: Literal["ahci", "ide", "virtio-scsi"] = "ahci"
    class_: Literal["ssd", "hdd"] = "ssd"
    kind: str = "SSD"
    queue_depth: int = 32
    limits: Mapping[str, object] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """As the drive says it."""
        return f"{MAKER} {self.kind}"

    @property
    def is_scsi(self) -> bool:
        """Whether it has INQUIRY data, and no IDENTIFY data."""
        return self.bus == "virtio-scsi"

    @property
    def serial(self) -> str:
        """Its serial number, by which it is bound."""
        return f"SN-{self.slot.upper()}"


@dataclass(frozen=True)
class Ran:
    """What one `leadline hil` came to: its exit code, its JSON object and what it said besides."""

    code: int
    summary: Mapping[str, Any]
    said: str = ""

    def outcomes(self, slot: str) -> dict[str, tuple[str, str]]:
        """Outcome and message by claim, of the tests on one drive."""
        rows = [row for row in self.summary["outcomes"] if slot_of(row["cell"]) == slot]
        return {row["claim"]: (row["outcome"], row["message"]) for row in rows}


def slot_of(cell: str) -> str:
    """The slot in a cell's id; none of ours has a hyphen."""
    return cell.split("-")[-3]


def in_short(said: str) -> str:
    """The first line of what a test says, and what voids its evidence."""
    first, *more = said.split("\n")
    return "; ".join([first[:_SHOWN], *(line.strip() for line in more if "  void: " in line)])


def write_files(
    folder: Path, name: str, drives: Sequence[Seeded], kernel_arguments: str = ""
) -> tuple[Path, Path]:
    """The rig file and the matrix, beside the profiles of the drives."""
    for number, drive in enumerate(drives):
        text = yaml.safe_dump(_profile(drive, number), sort_keys=False)
        (folder / f"{drive.slot}.yaml").write_text(text)
    rig, matrix = folder / f"{name}.yaml", folder / f"{name}-matrix.yaml"
    rig.write_text(yaml.safe_dump(_rig(name, drives, kernel_arguments), sort_keys=False))
    matrix.write_text(yaml.safe_dump(_matrix(drives), sort_keys=False))
    return rig, matrix


def _profile(drive: Seeded, number: int) -> dict[str, object]:
    named = {"vendor": MAKER, "product": drive.kind} if drive.is_scsi else {"model": drive.model}
    return {
        **named,
        "serial": drive.serial,
        "wwn": _wwn(number),
        "firmware": "1.0",
        "capacity_bytes": CAPACITY,
        **drive.profile,
    }


def _wwn(number: int) -> str:
    return f"0x5000c500000b{number:04x}"


def _rig(name: str, drives: Sequence[Seeded], kernel_arguments: str) -> dict[str, object]:
    state = State(name)
    outlets: list[dict[str, object]] = [
        {"name": "host", "pdu": "pdu", "outlet": 1, "feeds": "host"}
    ]
    for drive in drives:
        if drive.is_scsi:
            number = len(outlets) + 1
            outlets.append(
                {"name": drive.slot, "pdu": "pdu", "outlet": number, "feeds": [drive.slot]}
            )
    made = [{"slot": d.slot, "bus": d.bus, "profile": f"{d.slot}.yaml"} for d in drives]
    return {
        "rig": name,
        "host": {
            "reach": "ssh",
            "address": "leadline-virtual",
            "ssh_config": str(state.ssh_config),
            "shutdown": ["poweroff"],
            "shutdown_s": 1,
        },
        "controllers": CONTROLLERS,
        "pdus": [{"name": "pdu", "family": "baytech-rpc3", "port": str(state.root / "pdu")}],
        "outlets": outlets,
        "drives": [_drive(drive, number) for number, drive in enumerate(drives)],
        "virtual": {"kernel_arguments": kernel_arguments, "drives": made},
    }


def _drive(drive: Seeded, number: int) -> dict[str, object]:
    return {
        "slot": drive.slot,
        "model": drive.model,
        "serial": drive.serial,
        "wwn": _wwn(number),
        "firmware": "1.0",
        "controller": drive.bus,
        "protocol": "scsi" if drive.is_scsi else "sata",
        "writes": "allowed",
        "off_s": 1,
        "ready_s": 60,
    }


def _matrix(drives: Sequence[Seeded]) -> dict[str, object]:
    shipped = read(PACKAGE / "firmware_matrix.yaml").data
    models = {
        drive.model: {
            "model": drive.model,
            "class": drive.class_,
            "protocol": "scsi" if drive.is_scsi else "sata",
            "queue_depth": drive.queue_depth,
            "cache_bytes": drive.profile.get("cache_bytes", CACHE),
            "limits": dict(drive.limits),
            "firmware": [{"revision": "1.0", "status": "released"}],
        }
        for drive in drives
    }
    return {
        "classes": shipped["classes"],
        "controllers": shipped["controllers"],
        "models": list(models.values()),
    }


@contextmanager
def running(
    folder: Path, drives: Sequence[Seeded], kernel_arguments: str = ""
) -> Iterator[tuple[Rig, Path]]:
    """The rig, up for as long as the block lasts, and its matrix."""
    name = made_up("seeded")
    path, matrix = write_files(folder, name, drives, kernel_arguments)
    rig = load_rig(path)
    try:
        with virtual.running(rig, say=lambda _: None):
            yield rig, matrix
    finally:
        State(name).forget()


def hil(
    rig: Rig, matrix: Path, results: Path, words: Sequence[str], deadline_s: float = DEADLINE_S
) -> Ran:
    """`leadline hil`, the front door, on a rig that is up."""
    argv = [sys.executable, "-m", "leadline.cli", "hil", "--json", f"--rig={rig.path}"]
    argv += [f"--matrix={matrix}", f"--results={results}", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=deadline_s, check=False)
    if not done.stdout:
        raise RuntimeError(f"leadline hil ended with {done.returncode}: {done.stderr[-2000:]}")
    return Ran(done.returncode, json.loads(done.stdout), done.stderr)


def settings_of(rig: Rig) -> dict[str, str]:
    """What a run changes on the drives, as the rig's kernel has it now, by slot and attribute."""
    found = {}
    with open_host(rig.host) as host:
        for spec in rig.drives:
            block = f"/sys/block/{bind(host, spec).name}"
            values = host.read_files([f"{block}/{name}" for name in SETTINGS])
            for path, data in values.items():
                said = (data or b"").decode("ascii", "replace").strip()
                found[f"{spec.slot} {path.removeprefix(block)}"] = said
    return found
