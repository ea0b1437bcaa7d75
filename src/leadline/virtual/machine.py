"""The virtual rig's machine: QEMU's command line, and how a drive is attached to it."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.errors import Misuse
from leadline.inventory.rig import Rig
from leadline.virtual.accel import QEMU, Accelerator
from leadline.virtual.profile import Profile

_GUEST_ADDRESS = "10.0.2.15"  # as guest/init sets it
_NETWORK = "net0"
_AHCI_PORTS = 6  # of the ICH9 that is part of q35
_IDE_UNITS = 4
_SCSI_ADDRESS = 5
_SCSI_ADAPTERS = 8
_VENDOR_LENGTH = 8  # SPC-4 INQUIRY bytes 8-15
_BOOT_MIB = 192
_KERNEL_ARGUMENTS = "console=ttyS0 panic=-1 net.ifnames=0"


@dataclass(frozen=True)
class Identity:
    """What a drive says of itself.  `vendor` and `model` are INQUIRY's for a SCSI drive."""

    model: str
    serial: str
    firmware: str
    wwn: str | None
    vendor: str = ""
    rotation_rate: int = 1
    """ATA8-ACS word 217, SBC-3 VPD page B1h: revolutions a minute, or 1 for a drive that does not
    turn."""


def profile_identity(profile: Profile) -> Identity:
    """The identity of a drive that runs on this profile."""
    if profile.is_scsi:
        model, vendor = profile.product or "", profile.vendor or ""
    else:
        model, vendor = profile.model or "", ""
    rate = profile.rotation.rpm if profile.rotation is not None else 1
    return Identity(model, profile.serial, profile.firmware, profile.wwn, vendor, rate)


def spec_identity(rig: Rig, slot: str) -> Identity:
    """The identity that the rig file expects: for a medium that has none, an NBD export."""
    spec = rig.drive(slot)
    model, vendor = spec.model, ""
    if spec.protocol != "sata":
        first, _, rest = model.partition(" ")
        if rest and len(first) <= _VENDOR_LENGTH:  # else a product without its vendor
            vendor, model = first, rest
    return Identity(model, spec.serial, spec.firmware, spec.wwn, vendor)


@dataclass(frozen=True)
class Attachment:
    """Where a slot's drive sits in the machine."""

    slot: str
    bus: str
    name: str
    """QEMU's id of the device; slots may have names that QEMU does not take."""
    port: int
    controller: int = 0
    """Which of the machine's controllers for this bus, from 0."""

    @property
    def node(self) -> str:
        """QEMU's name of the block node behind the device."""
        return f"{self.name}-medium"

    def block(self, medium: Path | str) -> dict[str, object]:
        """The block node: a file, or an NBD URI."""
        file = nbd(medium) if isinstance(medium, str) else _file(medium)
        cache = {"direct": True}
        return {"driver": "raw", "node-name": self.node, "cache": cache, "file": file}

    def device(self, identity: Identity) -> dict[str, object]:
        """The device: errors go to the guest, and never stop the machine."""
        common: dict[str, object] = {
            "id": self.name,
            "drive": self.node,
            "serial": identity.serial,
            "ver": identity.firmware,
            "rotation_rate": identity.rotation_rate,
            "rerror": "report",
            "werror": "report",
        }
        if identity.wwn is not None:
            common["wwn"] = int(identity.wwn, 16)
        if self.bus == "virtio-scsi":
            named = {"vendor": identity.vendor, "product": identity.model}
            bus = f"{_scsi(self.controller)}.0"
            return {"driver": "scsi-hd", "bus": bus, "scsi-id": self.port, **named, **common}
        if self.bus == "ide":
            bus, unit = f"pata.{self.port // 2}", self.port % 2
            return {"driver": "ide-hd", "bus": bus, "unit": unit, "model": identity.model, **common}
        return {"driver": "ide-hd", "bus": f"ide.{self.port}", "model": identity.model, **common}


def attachments(rig: Rig) -> tuple[Attachment, ...]:
    """Every slot's place.  Misuse when the machine has no such place."""
    assert rig.virtual is not None
    taken = {"ahci": 0, "ide": 0, "virtio-scsi": 0}
    adapters: dict[str, int] = {}
    places = []
    for index, drive in enumerate(rig.virtual.drives):
        which = 0
        if drive.bus == "virtio-scsi":  # the only one of which there may be several
            which = adapters.setdefault(rig.drive(drive.slot).controller, len(adapters))
        places.append(Attachment(drive.slot, drive.bus, f"drive{index}", taken[drive.bus], which))
        taken[drive.bus] += 1
        own_outlet = any(outlet.feeds != "host" for outlet in rig.outlets_of(rig.drive(drive.slot)))
        if own_outlet and drive.bus != "virtio-scsi":
            raise Misuse(
                f"{rig.path}: outlets: found slot {drive.slot} on bus {drive.bus} with an outlet "
                "of its own, expected virtio-scsi: no other bus of the virtual machine lets a "
                "drive come and go; let the outlet feed the host"
            )
    if len(adapters) > _SCSI_ADAPTERS:
        raise Misuse(
            f"{rig.path}: controllers: found {len(adapters)} with drives on virtio-scsi, expected "
            f"at most {_SCSI_ADAPTERS}: the machine has no room for more"
        )
    for bus, most in (("ahci", _AHCI_PORTS), ("ide", _IDE_UNITS)):
        if taken[bus] > most:
            raise Misuse(
                f"{rig.path}: virtual.drives: found {taken[bus]} on bus {bus}, expected at most "
                f"{most}: the machine has no more ports"
            )
    return tuple(places)


def _scsi(number: int) -> str:
    """QEMU's id of a virtio-scsi controller."""
    return f"scsi{number or ''}"


def _file(path: Path) -> dict[str, object]:
    # `native` and not `threads`: Linux holds a FUSE file's lock for as long as a synchronous
    # direct write takes, and would let one write at a time through.
    cache = {"direct": True}
    return {"driver": "file", "filename": str(path), "aio": "native", "cache": cache}


def nbd(uri: str) -> dict[str, object]:
    """An NBD URI (github.com/NetworkBlockDevice/nbd, doc/uri.md) as QEMU's block options.

    Misuse when it names no server.
    """
    try:
        parts = urllib.parse.urlsplit(uri)
        port = parts.port or 10809
    except ValueError as wrong:
        raise Misuse(f"{uri}: found {wrong}, expected nbd://host:port/name") from None
    # A + stands for itself there, and not for a space as in a form.
    query = urllib.parse.parse_qs(parts.query.replace("+", "%2B"))
    server: dict[str, object]
    if parts.scheme == "nbd+unix":
        path = query.get("socket", [""])[0]
        if not path.startswith("/"):
            found = f"the socket {path}" if path else "no socket"
            raise Misuse(f"{uri}: found {found}, expected nbd+unix:///name?socket=/path")
        server = {"type": "unix", "path": path}
    else:
        server = {"type": "inet", "host": parts.hostname or "localhost", "port": str(port)}
    export = urllib.parse.unquote(parts.path.removeprefix("/"))
    return {"driver": "nbd", "server": server, "export": export}


@dataclass(frozen=True)
class Machine:
    """All that QEMU is started with, but for the drives."""

    accelerator: Accelerator
    kernel: Path
    initrd: Path
    memory_mib: int
    cpus: int | None
    """None: as many as suit the accelerator."""
    kernel_arguments: str
    own_kernel: bool = False
    """Whether the kernel is the user's, not the image's."""

    def arguments(
        self,
        drives: Sequence[tuple[dict[str, object], dict[str, object]]],
        *,
        ide: bool,
        console: Path,
        qmp: str,
        adapters: int = 1,
    ) -> list[str]:
        """QEMU's argument vector; `drives` are block nodes with their devices.

        `adapters` is how many virtio-scsi controllers there are.
        """
        words = [QEMU, "-name", "leadline", "-machine", "q35", *self.accelerator.arguments()]
        words += ["-smp", str(self.cpus or self.accelerator.cpus), "-m", str(self.memory_mib)]
        words += ["-nodefaults", "-no-user-config", "-display", "none"]
        words += ["-chardev", f"file,id=console,path={_comma(console)},append=on"]
        words += ["-serial", "chardev:console", "-qmp", f"unix:{qmp},server=on,wait=off"]
        words += ["-kernel", str(self.kernel), "-initrd", str(self.initrd)]
        own = f"{self.accelerator.kernel_arguments()} {self.kernel_arguments}"
        words += ["-append", f"{_KERNEL_ARGUMENTS} {own}".strip()]
        # No way out of the guest; the way in is opened once it listens (see `let_in`).
        words += ["-netdev", f"user,id={_NETWORK},restrict=on"]
        words += ["-device", f"virtio-net-pci,netdev={_NETWORK},romfile=,addr=3"]
        if ide:
            words += ["-device", "piix3-ide,id=pata,addr=4"]
        # A request has as many segments as the queue has entries, less two: 126, as few as the
        # SATA controllers have that split a request of 1 MiB.
        for n in range(adapters):
            place = f"id={_scsi(n)},addr={_SCSI_ADDRESS + n}"
            words += ["-device", f"virtio-scsi-pci,{place},virtqueue_size=128"]
        for node, device in drives:
            words += ["-blockdev", json.dumps(node), "-device", json.dumps(device)]
        return words


def memory_mib(asked: int, initrd: Path) -> int:
    """The machine's memory, so that `asked` is left beside the root file system, which is in it.

    While that is unpacked it is there twice.
    """
    root = initrd.stat().st_size // (1 << 20) + 1
    return max(asked + root, _BOOT_MIB + 2 * root)


def let_in(port: int) -> str:
    """The monitor command that forwards a port of this machine to the guest's sshd.

    Not from the start: QEMU would accept connections that nobody answers, and a client would
    hang on one of them instead of being refused and trying again.
    """
    return f"hostfwd_add {_NETWORK} tcp:127.0.0.1:{port}-{_GUEST_ADDRESS}:22"


def _comma(path: Path) -> str:
    """QEMU's options are separated by commas; one in a value is doubled."""
    return str(path).replace(",", ",,")
