"""Bind a rig file's drive to a device node: found by serial and WWN, confirmed by the drive.

``/dev/sdX`` is a result here and never an input.  Nothing is changed on the rig; what
does not agree with the rig file is said before the first command that could.
"""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from leadline.drive import ask
from leadline.drive.ask import Identity, read_identify
from leadline.drive.identify import Identify
from leadline.drive.place import Controller, Link, place_of
from leadline.drive.text import plain
from leadline.errors import Misuse, RigTrouble
from leadline.host.connection import Host
from leadline.host.trouble import FileTrouble
from leadline.inventory.rig import ControllerSpec, DriveSpec

__all__ = [
    "Controller",
    "Drive",
    "Identity",
    "Link",
    "Seen",
    "bind",
    "differences",
    "read_identify",
    "scan",
]

LSBLK_DEADLINE_S = 30.0
_COLUMNS = "NAME,SERIAL,WWN,VENDOR,MODEL,REV,HCTL,TRAN,TYPE,SIZE"


@dataclass(frozen=True, slots=True)
class Seen:
    """One disk as the rig's kernel and udev know it; what they do not know is empty."""

    name: str  # the kernel's: "sda"
    serial: str
    wwn: str  # "0x" and 16 or 32 hex digits
    model: str
    revision: str  # the INQUIRY revision: of an ATA drive only four characters of eight
    hctl: str
    transport: str  # "sata", "sas", "usb", ...
    size_bytes: int

    def __str__(self) -> str:
        serial, wwn = self.serial or "unknown", self.wwn or "none"
        return f"{self.name}: {self.model or 'unknown model'}, serial {serial}, WWN {wwn}"


@dataclass(frozen=True, slots=True)
class Drive:
    """A drive under test, bound to the node it has until it is next powered or replugged."""

    spec: DriveSpec
    node: str  # "/dev/sda"
    name: str  # "sda"
    hctl: str  # "0:0:0:0"
    sg: str | None  # "/dev/sg0"; None without the sg driver
    controller: Controller
    link: Link | None  # None where libata does not drive it: a SAS HBA, virtio-scsi
    queue_depth: int | None  # the device queue depth when it was bound
    identity: Identity
    identify: Identify | None  # None for a SCSI or SAS drive

    @property
    def ata_port(self) -> str | None:
        """``ata1``, or None where libata does not drive it."""
        return self.link.port if self.link else None


def bind(
    host: Host,
    spec: DriveSpec,
    *,
    firmware: str | None = None,
    or_firmware: Collection[str] = (),
    any_firmware: bool = False,
    controller: ControllerSpec | None = None,
) -> Drive:
    """Find the drive of ``spec`` on the rig and have it confirm who it is.

    ``firmware`` is the revision to expect when it is not the rig file's, as after
    flashing; ``or_firmware`` are others that will do, for a drive that an earlier run left
    with one of them; with ``any_firmware`` whichever will, and whatever capacity, for
    one that was just flashed; ``controller`` the rig file's entry, held against the HBA when given.

    Raises RigTrouble when the drive is not there, is there twice, does not answer, or hangs
    on another controller; Misuse when it is there and is not what the rig file says;
    DriveFault when its own IDENTIFY data cannot be trusted.
    """
    found = choose(host.name, spec, scan(host))
    node = f"/dev/{found.name}"
    handle = host.hold_device(node, exclusive=False)
    try:
        # While the node is held open its name cannot pass to another drive.
        identity, identify = ask.who_is(host, handle, node, spec.protocol)
        drive = _describe(host, spec, found, identity, identify)
    finally:
        host.release_device(handle)
    wanted = firmware or spec.firmware
    accepted = any_firmware or identity.firmware in or_firmware
    known = identity.firmware if accepted else wanted
    wrong = disagreements(spec, identity, known)
    if wrong:
        raise Misuse(
            f"slot {spec.slot}: the drive at {node} on {host.name} is not the one that the rig "
            "file describes: "
            + "; ".join(wrong)
            + ". Nothing was changed. Correct the rig file, or attach the drive that it names"
        )
    if controller and (elsewhere := controller_disagreements(controller, drive.controller)):
        raise RigTrouble(
            f"slot {spec.slot}: the drive at {node} on {host.name} hangs on another controller "
            f"than the rig file says: {'; '.join(elsewhere)}. Found: {drive.controller}. Nothing "
            "was changed. Connect it where the rig file has it, or correct `controllers` there"
        )
    # After a flash the drive may say another: whoever asked for any firmware compares the two.
    known_bytes = None if any_firmware else identity.capacity_bytes
    if known_bytes is not None and known_bytes != found.size_bytes:
        raise RigTrouble(
            f"slot {spec.slot}: the kernel on {host.name} takes {node} for {found.size_bytes} "
            f"bytes and the drive says {known_bytes}; rescan it "
            f"(write 1 to /sys/block/{found.name}/device/rescan) or power-cycle it"
        )
    return drive


def differences(before: Identity, after: Identity) -> list[str]:
    """What a drive says of itself after a power cycle that it did not say before."""
    pairs = (
        ("firmware", before.firmware, after.firmware),
        ("capacity in bytes", before.capacity_bytes, after.capacity_bytes),
    )
    return [*another(before, after), *_changed(pairs)]


def another(before: Identity, after: Identity) -> list[str]:
    """By what it is another drive: all else, new firmware may change."""
    pairs = (
        ("model", before.model, after.model),
        ("serial", before.serial, after.serial),
        ("WWN", before.wwn, after.wwn),
    )
    return _changed(pairs)


def _changed(pairs: Sequence[tuple[str, object, object]]) -> list[str]:
    return [f"{what} was {old!r} and is {new!r}" for what, old, new in pairs if old != new]


def scan(host: Host) -> tuple[Seen, ...]:
    """Every SCSI or ATA disk that the rig's kernel sees, in one run of lsblk.

    Raises RigTrouble when lsblk is missing or prints what it should not.
    """
    argv = ["lsblk", "--json", "--bytes", "--nodeps", "--output", _COLUMNS]
    output = host.run(argv, deadline=LSBLK_DEADLINE_S).stdout
    return tuple(_without_udev(host, parse_disks(host.name, output)))


def parse_disks(host_name: str, output: bytes) -> tuple[Seen, ...]:
    """The SCSI and ATA disks in lsblk's JSON; RigTrouble when it is none."""
    try:
        rows = json.loads(output)["blockdevices"] if output.strip() else []
        return tuple(_seen(row) for row in rows if row["type"] == "disk" and row["hctl"])
    except (ValueError, KeyError, TypeError) as error:
        raise RigTrouble(
            f"{host_name}: lsblk printed something other than its JSON ({error!r}); "
            "install util-linux 2.33 or newer there"
        ) from error


def choose(host_name: str, spec: DriveSpec, seen: Sequence[Seen]) -> Seen:
    """The one disk with the serial and the WWN of ``spec``.

    Raises RigTrouble when there is none or more than one, Misuse when serial and WWN
    belong to different drives.
    """
    wanted = f"serial {spec.serial}, WWN {spec.wwn or 'not given'}"
    who = f"slot {spec.slot}: drive {spec.model} ({wanted})"
    by_serial = [disk for disk in seen if _same_serial(disk.serial, spec.serial)]
    by_wwn = [disk for disk in seen if spec.wwn and disk.wwn == spec.wwn]
    for matches, what in ((by_serial, "serial number"), (by_wwn, "WWN")):
        if len(matches) > 1:
            raise RigTrouble(
                f"{who} is there {len(matches)} times on {host_name}, by its {what}:"
                f"{_listing(matches)}\n  If these are two paths to one drive, leave one connected; "
                "if they are two drives, they cannot be told apart: detach one"
            )
    if by_serial and spec.wwn and by_serial[0].wwn and by_serial[0].wwn != spec.wwn:
        raise Misuse(
            f"{who}: on {host_name} the drive with that serial number has another WWN:"
            f"{_listing(by_serial)}\n  Correct `wwn` or `serial` in the rig file, or attach the "
            "drive that it names; nothing was changed"
        )
    if by_serial:
        return by_serial[0]
    if by_wwn:
        raise Misuse(
            f"{who}: on {host_name} the drive with that WWN has another serial number:"
            f"{_listing(by_wwn)}\n  Correct `serial` or `wwn` in the rig file, or attach the drive "
            "that it names; nothing was changed"
        )
    raise RigTrouble(
        f"{who} is not there on {host_name}. Drives seen:{_listing(seen)}\n  Check its power "
        "(is its outlet on?), its cables and the controller's ports, or correct the rig file"
    )


def disagreements(spec: DriveSpec, identity: Identity, firmware: str) -> list[str]:
    """What the drive says of itself that the rig file says otherwise."""
    model = identity.model
    if spec.protocol != "sata" and spec.model == model.partition(" ")[2]:
        model = spec.model  # a SCSI product may be written without its vendor
    pairs = [
        ("model", spec.model, model),
        ("serial", spec.serial, identity.serial),
        ("firmware", firmware, identity.firmware),
    ]
    if spec.wwn:
        pairs.append(("WWN", spec.wwn, identity.wwn or "none"))
    return [
        f"{what}: {said!r} in the rig file, {found!r} by the drive's own word"
        for what, said, found in pairs
        if said != found
    ]


def controller_disagreements(spec: ControllerSpec, found: Controller) -> list[str]:
    """Where the rig file's controller is not the HBA that the drive hangs on."""
    pairs = (
        ("PCI address", spec.pci_address, found.pci_address),
        ("PCI id", spec.pci_id, found.pci_id),
        ("driver", spec.driver, found.driver),
    )
    return [
        f"{what} of controller {spec.name}: {said!r} in the rig file, {is_!r} on the rig"
        for what, said, is_ in pairs
        if said is not None and said != is_
    ]


def _listing(disks: Sequence[Seen]) -> str:
    return "".join(f"\n    {disk}" for disk in disks) or "\n    none at all"


def _seen(row: dict[str, str | int | None]) -> Seen:
    def text(key: str) -> str:
        return plain(str(row[key] or "")).strip()

    vendor, model = text("vendor"), text("model")
    return Seen(
        name=text("name"),
        serial=text("serial"),
        wwn=_plain_wwn(text("wwn")),
        model=model if vendor in ("", "ATA") else f"{vendor} {model}",
        revision=text("rev"),
        hctl=text("hctl"),
        transport=text("tran"),
        size_bytes=int(row["size"] or 0),
    )


def _without_udev(host: Host, seen: Sequence[Seen]) -> list[Seen]:
    """lsblk has serial and WWN from udev's database; without one, sysfs has them too."""
    unknown = [disk.name for disk in seen if not disk.serial]
    if not unknown:
        return list(seen)
    paths = [f"/sys/block/{name}/device/{file}" for name in unknown for file in _SYSFS_IDS]
    read = host.read_files(paths)
    return [_with_sysfs_ids(disk, read) if disk.name in unknown else disk for disk in seen]


_SYSFS_IDS = ("vpd_pg80", "wwid")


def _with_sysfs_ids(disk: Seen, read: dict[str, bytes | None]) -> Seen:
    page, wwid = (read.get(f"/sys/block/{disk.name}/device/{file}") or b"" for file in _SYSFS_IDS)
    return Seen(
        name=disk.name,
        serial=plain(page[4:].decode("ascii", "replace").replace("\0", " ")).strip(),
        wwn=disk.wwn or _plain_wwn(wwid.decode("ascii", "replace").strip()),
        model=disk.model,
        revision=disk.revision,
        hctl=disk.hctl,
        transport=disk.transport,
        size_bytes=disk.size_bytes,
    )


def _plain_wwn(text: str) -> str:
    """``0x`` and digits, from ``0x5000...`` (udev) or ``naa.5000...`` (sysfs); else empty."""
    found = re.fullmatch(r"(?:0x|naa\.)([0-9a-f]{16}|[0-9a-f]{32})", text.lower())
    return f"0x{found[1]}" if found else ""


def _same_serial(one: str, other: str) -> bool:
    """udev writes spaces as underscores; the drive itself confirms the rest exactly."""
    return re.sub(r"[\s_]+", "_", one.strip()) == re.sub(r"[\s_]+", "_", other.strip())


def _describe(
    host: Host, spec: DriveSpec, found: Seen, identity: Identity, identify: Identify | None
) -> Drive:
    place = place_of(host, found.name, found.hctl)
    return Drive(
        spec=spec,
        node=f"/dev/{found.name}",
        name=found.name,
        hctl=found.hctl,
        sg=_sg(host, found.name),
        controller=place.controller,
        link=place.link,
        queue_depth=place.queue_depth,
        identity=identity,
        identify=identify,
    )


def _sg(host: Host, name: str) -> str | None:
    try:
        names = host.list_dir(f"/sys/block/{name}/device/scsi_generic")
    except FileTrouble:
        return None
    return f"/dev/{names[0]}" if names else None
