"""A guest of its own for a test module: the virtual rig's image, with drives as a test wants them.

The virtual rig's drives are well or ill as a whole; these are for tests that want a healthy
drive and several sick ones side by side, and need no timing, no PDU and no power cycles.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.drive.bind import Drive
from leadline.host.connection import Host
from leadline.inventory.rig import DriveSpec, HostSpec
from leadline.virtual import accel, qmp
from leadline.virtual.image import ensure_image
from leadline.virtual.initrd import Keys, compose
from leadline.virtual.machine import Machine, let_in

READY = b"leadline: ready"
BOOT_S = 300.0
SILENT_S = 30.0  # emulated, one boot in some hundred hangs: see leadline.virtual.power
RESETS = 2
DEADLINE_S = 180.0
MEDIUM_BYTES = 1 << 30
BAD_SECTOR = 1_000_000  # of the drive that `bad_sector` describes

Description = tuple[dict[str, object], dict[str, object]]


def ata(folder: Path, serial: str, bus: str) -> Description:
    """A SATA drive, on a bus such as ide.0 (AHCI) or pata.0 (IDE)."""
    return _drive(folder, serial, {"driver": "ide-hd", "bus": bus, "model": "LEADLINE VSSD"})


def bad_sector(folder: Path, serial: str, bus: str) -> Description:
    """A SATA drive whose sector BAD_SECTOR cannot be read."""
    node, device = ata(folder, serial, bus)
    error = {"event": "none", "iotype": "read", "sector": BAD_SECTOR, "errno": 5, "once": False}
    node["file"] = {"driver": "blkdebug", "image": node["file"], "inject-error": [error]}
    return node, device


def scsi(folder: Path, serial: str, number: int) -> Description:
    """A SCSI drive at an address of the virtio-scsi controller."""
    named = {"vendor": "LEADLINE", "product": "VSCSI", "scsi-id": number}
    return _drive(folder, serial, {"driver": "scsi-hd", "bus": "scsi.0", **named})


def _drive(folder: Path, serial: str, device: dict[str, object]) -> Description:
    path = folder / f"{serial}.img"
    with path.open("ab") as file:
        file.truncate(MEDIUM_BYTES)
    node: dict[str, object] = {
        "driver": "raw",
        "node-name": f"medium-{serial}",
        "file": {"driver": "file", "filename": str(path)},
    }
    wwn = int(wwn_of(serial), 16)
    common = {"id": serial, "serial": serial, "ver": "1.0", "wwn": wwn, "rotation_rate": 1}
    return node, {**device, **common, "drive": f"medium-{serial}"}


def wwn_of(serial: str) -> str:
    """The world wide name that goes with a serial number ending in digits."""
    return f"0x5000c50000{'b' if serial.startswith('VSCSI') else 'a'}0{serial[-4:]}"


def spec_of(serial: str) -> DriveSpec:
    """What a rig file would say of one of these drives."""
    is_scsi = serial.startswith("VSCSI")
    return DriveSpec(
        slot=serial.lower(),
        model="LEADLINE VSCSI" if is_scsi else "LEADLINE VSSD",
        serial=serial,
        wwn=wwn_of(serial),
        firmware="1.0",
        controller="any",
        protocol="scsi" if is_scsi else "sata",
        writes="allowed",
    )


@dataclass(frozen=True)
class Guest:
    """A running guest."""

    spec: HostSpec
    monitor: Path
    folder: Path
    process: subprocess.Popen[bytes]

    def reset(self) -> None:
        """Press its reset button, and wait until it is up again."""
        qmp.execute(self.monitor, "system_reset", {})
        _await_ready(self.process, self.monitor, self.folder, boots=2)


@contextmanager
def booted(
    folder: Path, drives: Sequence[Description], *, kernel_arguments: str = ""
) -> Iterator[Guest]:
    """A guest with these drives, until the block ends; skips where no QEMU is installed."""
    if shutil.which(accel.QEMU) is None:
        pytest.skip(f"{accel.QEMU} is not installed")
    image = ensure_image(lambda _: None)
    keys = Keys(_keygen(folder / "host")[0], _keygen(folder / "user")[1])
    compose(image, keys, None, folder / "initrd")
    machine = Machine(
        accelerator=accel.choose(image.kernel),
        kernel=image.kernel,
        initrd=folder / "initrd",
        memory_mib=1024,
        cpus=None,
        kernel_arguments=kernel_arguments,
    )
    monitor = Path(f"/tmp/leadline-selftest-{os.getpid()}.qmp")  # sockets have short names
    words = machine.arguments(drives, ide=True, console=folder / "console.log", qmp=str(monitor))
    with (folder / "qemu.log").open("wb") as log:
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words], stderr=log)
    try:
        _await_ready(process, monitor, folder, boots=1)
        port = _free_port()
        qmp.monitor(monitor, let_in(port))
        yield Guest(_host_spec(folder, port), monitor, folder, process)
    finally:
        process.kill()
        process.wait()
        monitor.unlink(missing_ok=True)


def _await_ready(
    process: subprocess.Popen[bytes], monitor: Path, folder: Path, *, boots: int
) -> None:
    """The guest says on its console when it takes logins; there is no event to wait for."""
    console, resets = folder / "console.log", RESETS
    heard, since, limit = b"", time.monotonic(), time.monotonic() + BOOT_S
    while heard.count(READY) < boots:
        assert process.poll() is None, (folder / "qemu.log").read_text()
        assert time.monotonic() < limit, heard.decode(errors="replace")[-2000:]
        time.sleep(0.1)
        before, heard = heard, console.read_bytes() if console.exists() else b""
        if heard != before:
            since = time.monotonic()
        elif resets and time.monotonic() - since > SILENT_S:
            resets, since = resets - 1, time.monotonic()
            qmp.execute(monitor, "system_reset", {})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _keygen(path: Path) -> tuple[bytes, bytes]:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "selftest", "-f", str(path)]
    subprocess.run(words, check=True, timeout=DEADLINE_S)
    return path.read_bytes(), path.with_suffix(".pub").read_bytes()


def _host_spec(folder: Path, port: int) -> HostSpec:
    kind, key, *_ = (folder / "host.pub").read_text().split()
    (folder / "known_hosts").write_text(f"guest {kind} {key}\n")
    (folder / "ssh_config").write_text(
        f"Host guest\n  HostName 127.0.0.1\n  Port {port}\n  User root\n"
        f"  IdentityFile {folder / 'user'}\n  IdentitiesOnly yes\n  IdentityAgent none\n"
        f"  HostKeyAlias guest\n  UserKnownHostsFile {folder / 'known_hosts'}\n"
        "  StrictHostKeyChecking yes\n  ConnectTimeout 3\n"
    )
    return HostSpec(reach="ssh", address="guest", ssh_config=folder / "ssh_config")


def shell(host: Host, script: str, drive: Drive | None = None) -> str:
    """Run a script on the guest, with $dev the drive's node; its output."""
    dev = drive.node if drive else ""
    argv = ["sh", "-euc", f"dev={dev}; {script}"]
    return host.run(argv, deadline=DEADLINE_S).stdout.decode()
