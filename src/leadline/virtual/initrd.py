"""What one rig adds to the guest image: its init, its keys, and modules for a kernel of its own."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from leadline.virtual import kernel
from leadline.virtual.cpio import CpioWriter
from leadline.virtual.image import Image
from leadline.virtual.packing import MODULES, NEEDED_MODULES

_GUEST = Path(__file__).parent / "guest"
_MODULES_HOME = "usr/lib/modules"


@dataclass(frozen=True)
class Keys:
    """The two key pairs of a rig (ed25519): who the guest is, and who may log in."""

    host_private: bytes
    user_public: bytes


def compose(image: Image, keys: Keys, own_kernel: Path | None, path: Path) -> str:
    """Write the archive for QEMU's `-initrd`; advice about the own kernel's modules, or "".

    Linux unpacks archives that stand one after the other.  Raises Misuse when `own_kernel` is
    no kernel, OSError when the disk is full.
    """
    advice = ""
    with path.open("wb") as out:
        with image.root.open("rb") as root:
            shutil.copyfileobj(root, out, 1 << 22)
        cpio = CpioWriter(out)
        _add_guest(cpio, keys)
        if own_kernel is not None:
            release = kernel.version(own_kernel)
            if release != image.release:
                advice = _add_modules(cpio, own_kernel, release)
        cpio.close()
        _pad(out)
    return advice


def _add_guest(cpio: CpioWriter, keys: Keys) -> None:
    cpio.file("init", (_GUEST / "init").read_bytes(), 0o755)
    cpio.file("usr/sbin/poweroff", (_GUEST / "poweroff").read_bytes(), 0o755)
    cpio.file("etc/hostname", b"leadline\n")
    cpio.file("etc/ssh/sshd_config", (_GUEST / "sshd_config").read_bytes())
    cpio.file("etc/ssh/ssh_host_ed25519_key", keys.host_private, 0o600)
    cpio.file("etc/ssh/authorized_keys", keys.user_public)


def _add_modules(cpio: CpioWriter, own_kernel: Path, release: str) -> str:
    folder = kernel.modules_folder(own_kernel, release)
    if folder is None:
        return kernel.missing_advice(NEEDED_MODULES, release, None)
    wanted, absent = kernel.with_dependencies(MODULES, (folder / "modules.dep").read_text())
    builtin = folder / "modules.builtin"
    there = kernel.built_in(builtin.read_text()) if builtin.is_file() else set()
    indexes = {entry.name for entry in folder.iterdir() if kernel.is_index(entry.name)}
    made: set[str] = set()
    for name in sorted(wanted | indexes):
        parts = [_MODULES_HOME, release, *name.split("/")]
        for depth in range(2, len(parts)):
            parent = "/".join(parts[:depth])
            if parent not in made:
                cpio.directory(parent)
                made.add(parent)
        cpio.file("/".join(parts), (folder / name).read_bytes())
    return kernel.missing_advice((absent - there) & set(NEEDED_MODULES), release, folder)


def _pad(out: BinaryIO) -> None:
    """To a whole number of 512 bytes, as cpio itself does."""
    out.write(b"\0" * (-out.tell() % 512))
