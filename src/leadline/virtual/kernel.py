"""Kernel images and their modules, as files: nothing here runs them."""

import bz2
import lzma
import re
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from leadline.errors import Misuse

# A kernel that can be entered directly says so in an ELF note: name "Xen", type 18
# (XEN_ELFNOTE_PHYS32_ENTRY, xen/include/public/elfnote.h).
_PVH_NOTE = re.compile(rb"\x04\0\0\0[\x04\x08]\0\0\0\x12\0\0\0Xen\0")
_SUFFIX = re.compile(r"\.ko(\.\w+)?$")


def uncompressed(image: bytes) -> bytes | None:
    """The ELF kernel within a bzImage, when QEMU could start it as it is; else None.

    An emulated processor takes 2.7 s to decompress what this machine does in 0.3 s.
    Field offsets: the kernel's Documentation/arch/x86/boot.rst.
    """
    if image[0x202:0x206] != b"HdrS":
        return None
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    kernel = _decompress(image[start : start + length])
    if kernel is None or not kernel.startswith(b"\x7fELF") or not _PVH_NOTE.search(kernel):
        return None
    return kernel


def _decompress(payload: bytes) -> bytes | None:
    """None for a format that the standard library has not got (zstd and lz4 are fast anyway)."""
    decompressor: _Decompressor
    if payload.startswith(b"\xfd7zXZ\0"):
        decompressor = lzma.LZMADecompressor()
    elif payload.startswith(b"\x1f\x8b"):
        decompressor = zlib.decompressobj(wbits=31)
    elif payload.startswith(b"BZh"):
        decompressor = bz2.BZ2Decompressor()
    else:
        return None
    try:
        kernel = decompressor.decompress(payload)  # what stands after its end is left alone
    except (lzma.LZMAError, zlib.error, OSError):
        return None
    return kernel if decompressor.eof else None


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def version(path: Path) -> str:
    """The release of a kernel image (`6.1.0-56-amd64`).  Misuse when it is none."""
    try:
        image = path.read_bytes()
    except OSError as trouble:
        raise Misuse(f"{path}: the kernel cannot be read: {trouble.strerror}") from trouble
    if image[0x202:0x206] == b"HdrS":
        start = struct.unpack_from("<H", image, 0x20E)[0] + 0x200
        text = image[start : start + 256].split(b"\0")[0]
    else:
        found = re.search(rb"Linux version (\S+) ", image) if image[:4] == b"\x7fELF" else None
        text = found[1] if found else b""
    release = text.split(b" ")[0].decode("ascii", "replace")
    if not release:
        raise Misuse(
            f"{path}: found no Linux kernel for x86-64, expected a bzImage or a vmlinux, "
            "as in arch/x86/boot/bzImage of a built source tree"
        )
    return release


def modules_folder(kernel: Path, release: str) -> Path | None:
    """Where the modules of a user's own kernel are: beside it, or installed on this machine."""
    roots = (kernel.parent, kernel.parent.parent, Path("/"))
    for root in roots:
        folder = root / "lib" / "modules" / release
        if (folder / "modules.dep").is_file():
            return folder
    return None


def with_dependencies(wanted: Iterable[str], modules_dep: str) -> tuple[set[str], set[str]]:
    """Files of the wanted modules and of all that they need, and the names that are not there.

    `modules_dep` is the file that depmod writes: `path: path path`, each relative to the
    modules' folder, dependencies complete.
    """
    needs: dict[str, list[str]] = {}
    for line in modules_dep.splitlines():
        path, _, rest = line.partition(":")
        needs[path] = rest.split()
    paths = {module_name(path): path for path in needs}
    files: set[str] = set()
    absent: set[str] = set()
    for name in wanted:
        path = paths.get(module_name(name), "")
        if path:
            files.update([path, *needs[path]])
        else:
            absent.add(name)
    return files, absent


def module_name(path: str) -> str:
    """`virtio_net` for `kernel/drivers/net/virtio-net.ko.xz`: `-` and `_` are the same to Linux."""
    return _SUFFIX.sub("", path.rpartition("/")[2]).replace("-", "_")


def built_in(modules_builtin: str) -> set[str]:
    """The names in a `modules.builtin` file."""
    return {module_name(line) for line in modules_builtin.splitlines()}


def is_index(name: str) -> bool:
    """Whether modprobe reads this file of a modules folder."""
    return name.startswith("modules.") and not name.endswith((".alias", ".symbols", ".symbols.bin"))


def missing_advice(absent: Iterable[str], release: str, folder: Path | None) -> str:
    """What to tell somebody whose kernel may lack what the rig needs; "" when it lacks nothing."""
    names = ", ".join(sorted(absent))
    if folder is None:
        return (
            f"kernel {release}: no modules found (looked for lib/modules/{release} beside it and "
            f"on this machine); it boots if these are built in: {names}. Else run "
            "`make modules_install INSTALL_MOD_PATH=DIR` with DIR the directory of the kernel"
        )
    if names:
        return f"kernel {release}: {folder} has no module {names}; it has to do without"
    return ""
