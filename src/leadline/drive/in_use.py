"""What uses a disk: file systems, swap, md, LVM, dm, bcache, multipath, zfs, old signatures.

Read from the kernel and from the disk itself (``wipefs --no-act``), not from udev's
memory, which may be stale.  Nothing here opens a disk exclusively or writes to it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.drive.text import plain
from leadline.errors import RigTrouble
from leadline.host.connection import Host
from leadline.host.trouble import ProgramFailed

DEADLINE_S = 30.0
_MOUNTS, _SWAPS = "/proc/self/mountinfo", "/proc/swaps"
# Where the running system itself is mounted; live systems keep their medium below /run, and
# desktops mount there, below /run/media, what somebody plugged in.
_SYSTEM = re.compile(r"/|/(?:boot|efi|usr|var|cdrom)(?:/.*)?|/run/(?!media(?:/|$)).+")
_VOLATILE = re.compile(r"(?:loop|ram|zram|nbd|sr|fd)\d+")


@dataclass(frozen=True, slots=True)
class Node:
    """A disk, or something that is made of it: a partition, a logical volume, an array."""

    name: str  # as people know it: "vg-root"
    kname: str  # as the kernel does: "dm-0"
    kind: str  # lsblk's TYPE: disk, part, lvm, crypt, mpath, dm, raid1, ...
    number: str  # "252:0"
    children: tuple["Node", ...]

    def all(self) -> Iterator["Node"]:
        """This and everything made of it."""
        yield self
        for child in self.children:
            yield from child.all()

    @property
    def is_member(self) -> bool:
        """Whether a volume manager made it of what is below it; a partition is no such thing."""
        return self.kind not in ("disk", "part") or self.kname.startswith(("bcache", "md", "dm-"))


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted file system."""

    number: str  # of its device; "0:29" for one without (tmpfs, btrfs, nfs)
    point: str
    kind: str  # "ext4"
    source: str
    read_only: bool

    @property
    def is_system(self) -> bool:
        """Whether the running system lives there."""
        return _SYSTEM.fullmatch(self.point) is not None


@dataclass(frozen=True, slots=True)
class Signature:
    """A mark that some format left on a disk or partition, named as wipefs names it."""

    device: str
    kind: str

    @property
    def is_member(self) -> bool:
        """Whether it says that the disk is a part of something larger."""
        return self.kind.endswith("_member") or self.kind in ("bcache", "drbd")


@dataclass(frozen=True, slots=True)
class Uses:
    """Everything that speaks against touching one disk."""

    mounts: tuple[tuple[Node, Mount], ...]
    swaps: tuple[Node, ...]
    members: tuple[Node, ...]
    signatures: tuple[Signature, ...] = ()

    @property
    def is_system(self) -> bool:
        """Whether the running system lives on it."""
        return any(mount.is_system for _, mount in self.mounts)

    def __bool__(self) -> bool:
        return bool(self.mounts or self.swaps or self.members)

    def __str__(self) -> str:
        said = [f"{node.name} is mounted at {mount.point}" for node, mount in self.mounts]
        said += [f"{node.name} is swap" for node in self.swaps]
        said += [f"it is a member of {node.name} ({node.kind})" for node in self.members]
        return "; ".join(said)


def uses_of(host: Host, name: str) -> Uses:
    """What uses the disk ``name`` ("sda"), with the signatures on it and on its partitions."""
    disk = next((node for node in _tree(host, [f"/dev/{name}"]) if node.kname == name), None)
    if disk is None:
        raise RigTrouble(f"{host.name}: /dev/{name} is gone; bind the drive again")
    mounts, swaps = _claims(host)
    found = uses_among(disk, mounts, swaps)
    plain_nodes = [disk, *(child for child in disk.children if child.kind == "part")]
    return Uses(found.mounts, found.swaps, found.members, _signatures(host, plain_nodes))


def uses_of_all(host: Host) -> dict[str, Uses]:
    """What uses each disk of the host, by name; without signatures, and without RAM disks."""
    mounts, swaps = _claims(host)
    disks = [n for n in _tree(host, []) if n.kind == "disk" and not _VOLATILE.fullmatch(n.kname)]
    return {disk.kname: uses_among(disk, mounts, swaps) for disk in disks}


def uses_among(disk: Node, mounts: Sequence[Mount], swaps: Sequence[str]) -> Uses:
    """What of the host's mounts and swaps (kernel names) is on ``disk``, and what it is part of."""
    nodes = list(disk.all())
    return Uses(
        tuple((node, mount) for node in nodes for mount in mounts if _is_on(mount, node)),
        tuple(node for node in nodes if node.kname in swaps or node.name in swaps),
        tuple(node for node in nodes if node.is_member),
    )


def _is_on(mount: Mount, node: Node) -> bool:
    """By device number; by the source's name for btrfs, whose mounts have a number of their own."""
    names = (f"/dev/{node.kname}", f"/dev/{node.name}", f"/dev/mapper/{node.name}")
    return mount.number == node.number or mount.source in names


def _tree(host: Host, devices: Sequence[str]) -> list[Node]:
    argv = ["lsblk", "--json", "--all", "--output", "NAME,KNAME,TYPE,MAJ:MIN", *devices]
    finished = host.run(argv, deadline=DEADLINE_S, check=False)
    if finished.exit_code != 0:
        if devices:
            return []  # the device is gone
        raise ProgramFailed(host.name, argv, finished.exit_code, finished.stdout, finished.stderr)
    return parse_tree(host.name, finished.stdout)


def parse_tree(host_name: str, output: bytes) -> list[Node]:
    """The disks in lsblk's JSON; RigTrouble when it is none."""
    try:
        return [_node(row) for row in json.loads(output)["blockdevices"]]
    except (ValueError, KeyError, TypeError) as error:
        raise RigTrouble(
            f"{host_name}: lsblk printed something other than its JSON ({error!r}); "
            "install util-linux 2.33 or newer there"
        ) from error


def _node(row: dict[str, Any]) -> Node:
    children = tuple(_node(child) for child in row.get("children", ()))
    name, kname, kind, number = (
        plain(str(row[key])).strip() for key in ("name", "kname", "type", "maj:min")
    )
    return Node(name, kname, kind, number, children)


def _claims(host: Host) -> tuple[list[Mount], list[str]]:
    read = host.read_files([_MOUNTS, _SWAPS])
    mounts, swaps = read.get(_MOUNTS), read.get(_SWAPS)
    if mounts is None:
        raise RigTrouble(f"{host.name}: {_MOUNTS} cannot be read, so nobody knows what is mounted")
    return parse_mounts(mounts.decode("utf-8", "replace")), parse_swaps((swaps or b"").decode())


def parse_mounts(text: str) -> list[Mount]:
    """The mounts in ``/proc/self/mountinfo`` (proc(5)): fields, " - ", type, source, options."""
    mounts = []
    for line in text.splitlines():
        head, _, tail = line.partition(" - ")
        fields, ends = head.split(" "), tail.split(" ")
        if len(fields) < 6 or len(ends) < 2:
            continue
        point, source = _unescaped(fields[4]), _unescaped(ends[1])
        mounts.append(Mount(fields[2], point, ends[0], source, "ro" in fields[5].split(",")))
    return mounts


def parse_swaps(text: str) -> list[str]:
    """The kernel's names of the devices in ``/proc/swaps``."""
    lines = text.splitlines()[1:]
    return [line.split()[0].removeprefix("/dev/") for line in lines if line.startswith("/dev/")]


def _unescaped(text: str) -> str:
    """mountinfo writes space, tab, newline and backslash as octal."""
    return plain(re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), text))


def _signatures(host: Host, nodes: Sequence[Node]) -> tuple[Signature, ...]:
    argv = ["wipefs", "--no-act", "--json", *(f"/dev/{node.kname}" for node in nodes)]
    return parse_signatures(host.name, host.run(argv, deadline=DEADLINE_S).stdout)


def parse_signatures(host_name: str, output: bytes) -> tuple[Signature, ...]:
    """The signatures in wipefs' JSON; it prints nothing at all for a disk that was never used."""
    if not output.strip():
        return ()
    try:
        rows = json.loads(output)["signatures"]
        return tuple(Signature(plain(row["device"]), plain(row["type"])) for row in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise RigTrouble(
            f"{host_name}: wipefs printed something other than its JSON ({error!r}); "
            "install util-linux 2.33 or newer there"
        ) from error
