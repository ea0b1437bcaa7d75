"""By what a stack is known to be ours: one number, in the superblock of each of its layers.

md arrays, ext4 file systems and LVM's physical volumes each have a UUID of 32 digits, and each
can be given one when it is made.  So whoever meets a drive with a mark on it can tell, whichever
layers are left and whoever else uses the same formats.
"""

import re
import secrets
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Self

PREFIX = "1eadc0de"
"""How the number of every stack begins, for a drive whose rig has lost its journal."""
_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Mark:
    """A stack's number: 32 hexadecimal digits, in lower case."""

    digits: str

    @classmethod
    def new(cls) -> Self:
        """One that nobody had before."""
        return cls(PREFIX + secrets.token_hex((_DIGITS - len(PREFIX)) // 2))

    @property
    def name(self) -> str:
        """The name of its array and its volume group; md has room for 32 characters."""
        return f"leadline_{self.digits[len(PREFIX) : len(PREFIX) + 16]}"

    @property
    def volume(self) -> str:
        """What the device mapper calls its logical volume."""
        return f"{self.name}-data"

    @property
    def mount_point(self) -> str:
        """Where its file system is mounted; not below /run or /var, where the system lives."""
        return f"/mnt/{self.name}"

    @property
    def uuid(self) -> str:
        """The number as ext4 has it (RFC 4122)."""
        return self._grouped(8, 4, 4, 4, 12)

    @property
    def md_uuid(self) -> str:
        """The number as mdadm prints it."""
        return self._grouped(8, 8, 8, 8, by=":")

    @property
    def lvm_uuid(self) -> str:
        """The number as LVM has it: letters of either case and digits, 6-4-4-4-4-4-6."""
        return self._grouped(6, 4, 4, 4, 4, 4, 6)

    def _grouped(self, *sizes: int, by: str = "-") -> str:
        ends = accumulate(sizes, initial=0)
        return by.join(self.digits[start:end] for start, end in pairwise(ends))


def mark_in(uuid: str) -> Mark | None:
    """The mark that a UUID, in whichever of the three ways it is written, is; None: not ours."""
    digits = re.sub("[-:]", "", uuid)
    ours = re.fullmatch(rf"{PREFIX}[0-9a-f]{{{_DIGITS - len(PREFIX)}}}", digits)
    return Mark(digits) if ours else None
