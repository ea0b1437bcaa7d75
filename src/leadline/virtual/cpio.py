"""The archive that Linux unpacks as its first root file system ("newc" cpio).

The format is in the kernel's Documentation/driver-api/early-userspace/buffer-format.rst.
Archives may stand one after the other in one file; a later entry replaces an earlier one.
"""

import stat
from typing import BinaryIO

_ALIGNMENT = 4
_TRAILER = "TRAILER!!!"


class CpioWriter:
    """Writes entries to a file that is open for writing; owners are root."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._inode = 0

    def directory(self, name: str, mode: int = 0o755, mtime: int = 0) -> None:
        """A directory; those above it have to be written before it."""
        self._entry(name, stat.S_IFDIR | mode, b"", mtime)

    def file(self, name: str, data: bytes, mode: int = 0o644, mtime: int = 0) -> None:
        """A regular file.  `mtime` matters to Python, whose compiled files record it."""
        self._entry(name, stat.S_IFREG | mode, data, mtime)

    def link(self, name: str, target: str) -> None:
        """A symbolic link."""
        self._entry(name, stat.S_IFLNK | 0o777, target.encode(), 0)

    def character_device(self, name: str, mode: int, major: int, minor: int) -> None:
        """A device node; the kernel wants /dev/console to be there from the start."""
        self._entry(name, stat.S_IFCHR | mode, b"", 0, (major, minor))

    def close(self) -> None:
        """Write the end of the archive; the file stays open."""
        self._entry(_TRAILER, 0, b"", 0)

    def _entry(
        self, name: str, mode: int, data: bytes, mtime: int, device: tuple[int, int] = (0, 0)
    ) -> None:
        self._inode += 1
        path = name.encode() + b"\0"
        # ino, mode, uid, gid, nlink, mtime, filesize, dev (2), rdev (2), namesize, check
        numbers = (self._inode, mode, 0, 0, 1, mtime, len(data), 0, 0, *device, len(path), 0)
        header = b"070701" + b"".join(b"%08X" % number for number in numbers) + path
        self._out.write(header + _padding(len(header)))
        self._out.write(data)
        self._out.write(_padding(len(data)))


def _padding(length: int) -> bytes:
    return b"\0" * (-length % _ALIGNMENT)
