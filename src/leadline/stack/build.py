"""Build a stack of layers above drives, each with our mark in its superblock.

    mdadm(8), pvcreate(8), vgcreate(8), lvcreate(8), mkfs.ext4(8), mount(8)

Whoever calls has the write guard's leave for every drive, has put the mark on record, and has
let the drives go, for the layers themselves claim them.  No layer discards what is below it, or
an SSD would answer reads of that from its tables.
"""

import re
from collections.abc import Callable, Sequence
from typing import Literal

from leadline.errors import Misuse
from leadline.host.connection import Host
from leadline.host.programs import require
from leadline.stack.mark import Mark

Layer = Literal["ext4", "lvm", "raid0", "raid10"]

DEADLINE_S = 120.0
MIB = 1 << 20
_FIRST_MD = 100
"""Arrays of the rig's own have low numbers, or those from 127 down that mdadm takes by itself."""

PROGRAMS: dict[Layer, tuple[str, ...]] = {
    "ext4": ("mkfs.ext4", "mount", "umount", "fallocate"),
    "lvm": ("pvcreate", "vgcreate", "lvcreate", "dmsetup"),
    "raid0": ("mdadm",),
    "raid10": ("mdadm",),
}
_ARRAYS = ("raid0", "raid10")


def check(layers: Sequence[str]) -> None:
    """Misuse unless these layers, the lowest first, can stand above one another."""
    unknown = [layer for layer in layers if layer not in PROGRAMS]
    said = " below ".join(layers) or "no layer"
    if unknown or not layers:
        raise Misuse(f"{said}: expected some of {', '.join(PROGRAMS)}, the lowest first")
    if "ext4" in layers[:-1] or set(_ARRAYS) & set(layers[1:]) or len(set(layers)) < len(layers):
        raise Misuse(f"{said}: expected an array at the bottom, ext4 at the top, each layer once")


def drives_of(layers: Sequence[str]) -> int | None:
    """How many drives the lowest layer is built of; None: as many as there are."""
    return {"raid10": 2, "raid0": None}.get(layers[0], 1)


def build(
    host: Host, layers: Sequence[Layer], mark: Mark, nodes: Sequence[str], size: int | None
) -> str:
    """Build `layers`, the lowest first, on the drives at `nodes`; what is then to be opened.

    It has `size` bytes, or, where that is None, what there is room for (of an array alone).
    Raises RigTrouble where a program is missing or fails; what is there by then has our mark.
    """
    check(layers)
    for program in [each for layer in layers for each in PROGRAMS[layer]]:
        require(host, program)
    sizes = sizes_of(layers, size)
    for node in nodes:
        # Opened exclusively, so that what has claimed the drive since makes it fail.
        _run(host, "wipefs", "--all", "--quiet", node)
    below = list(nodes)
    for layer, room in zip(layers, sizes, strict=True):
        below = [_BUILDERS[layer](host, mark, below, room)]
    return below[0]


def sizes_of(layers: Sequence[Layer], size: int | None) -> list[int | None]:
    """How many bytes each layer gives to the one above, the lowest first, for `size` at the top.

    ext4 needs room for its tables and its journal, LVM for its label and a part of an extent.
    """
    if size is None:
        if len(layers) > 1:
            raise Misuse("several layers: expected the size of the uppermost, in bytes")
        return [None]
    sizes = [size]
    for layer in reversed(layers[1:]):
        sizes.append(_with_overhead(layer, sizes[-1]))
    return list(reversed(sizes))


def _with_overhead(layer: Layer, size: int) -> int:
    if layer == "ext4":
        size += size // 8 + 256 * MIB
    elif layer == "lvm":
        size += 16 * MIB
    return -(-size // MIB) * MIB


def _raid10(host: Host, mark: Mark, below: Sequence[str], size: int | None) -> str:
    """Near layout, two copies: as large as one of its two drives."""
    words = ["--level=10", "--layout=n2", "--assume-clean", "--bitmap=none"]
    if size is not None:
        words.append(f"--size={size >> 10}")  # KiB of each drive
    node = _array(host, mark, below, words)
    # Else md writes to both drives that it is clean whenever writes pause for 0.2 s, and that it
    # is not when they go on: between slices, and within them.
    host.write_value(f"/sys/block/{node.removeprefix('/dev/')}/md/safe_mode_delay", "0")
    return node


def _raid0(host: Host, mark: Mark, below: Sequence[str], size: int | None) -> str:
    if size is not None:
        raise Misuse("raid0 has the size of its drives: it is given none")
    return _array(host, mark, below, ["--level=0"])


def _array(host: Host, mark: Mark, below: Sequence[str], words: Sequence[str]) -> str:
    taken = set(host.list_dir("/sys/block"))
    # Each stack begins elsewhere: another worker may be about to take the first that is free.
    first = _FIRST_MD + int(mark.digits[-2:], 16)
    node = next(f"/dev/md{n}" for n in range(first, 1 << 20) if f"md{n}" not in taken)
    named = [f"--uuid={mark.md_uuid}", f"--name={mark.name}"]
    common = ["--metadata=1.2", "--chunk=512", f"--raid-devices={len(below)}"]
    _run(host, "mdadm", "--create", node, "--run", "--quiet", *common, *named, *words, *below)
    settle(host)
    return node


def _lvm(host: Host, mark: Mark, below: Sequence[str], size: int | None) -> str:
    (device,) = below
    # No other physical volume of the rig is looked at, and nothing is kept below /etc/lvm.
    only = f'["a|^{re.escape(device)}$|", "r|.*|"]'
    config = (
        f"devices {{ filter={only} global_filter={only} use_devicesfile=0 }} "
        "backup { backup=0 archive=0 }"
    )
    own = ["--config", config, "--yes"]
    known = ["--uuid", mark.lvm_uuid, "--norestorefile"]
    _run(host, "pvcreate", *own, "-ff", *known, device)
    _run(host, "vgcreate", *own, mark.name, device)
    room = ["--extents", "100%FREE"] if size is None else ["--size", f"{size}b"]
    _run(host, "lvcreate", *own, "-Zn", "-Wn", *room, "--name", "data", mark.name)
    settle(host)
    _run(host, "dmsetup", "mknodes", mark.volume)
    return f"/dev/mapper/{mark.volume}"


def _ext4(host: Host, mark: Mark, below: Sequence[str], size: int | None) -> str:
    (device,) = below
    if size is None:
        raise Misuse("ext4: expected the size of its file, in bytes")
    # Everything is written now: nothing is left for the kernel to initialise under load.
    now = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
    named = ["-U", mark.uuid, "-L", "leadline"]
    room = f"{_with_overhead('ext4', size) >> 10}k"
    _run(host, "mkfs.ext4", "-q", "-F", "-m", "0", "-E", now, *named, device, room)
    settle(host)
    _run(host, "mkdir", "-p", mark.mount_point)
    options = "nodev,nosuid,noexec,noatime"
    _run(host, "mount", "-t", "ext4", "-o", options, device, mark.mount_point)
    path = f"{mark.mount_point}/file"
    _run(host, "fallocate", "--length", str(size), path)
    return path


_BUILDERS: dict[Layer, Callable[[Host, Mark, Sequence[str], int | None], str]] = {
    "raid10": _raid10,
    "raid0": _raid0,
    "lvm": _lvm,
    "ext4": _ext4,
}


def settle(host: Host) -> None:
    """Until udev has looked at what has just come or been written: it holds it open meanwhile."""
    _run(host, "udevadm", "settle", f"--timeout={DEADLINE_S / 2:.0f}")


def _run(host: Host, *argv: str) -> None:
    host.run(argv, deadline=DEADLINE_S)
