"""What can go wrong between us and a rig; each one is the rig's trouble, not the drive's."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from leadline.errors import RigTrouble

TAIL_LINES = 8


def printable(text: str | bytes) -> str:
    """Untrusted text, made fit for a terminal: control characters become ``\\xNN``."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def last_lines(text: str | bytes) -> str:
    """The last lines of what a program printed, indented to stand below a message."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    lines = [printable(line.rstrip()) for line in text.splitlines() if line.strip()]
    return "".join(f"\n    {line}" for line in lines[-TAIL_LINES:])


class HostLost(RigTrouble):
    """The rig cannot be reached, or the connection to it ended.

    ``reason`` is one word for programs: ``refused``, ``host-key-changed``,
    ``host-key-unknown``, ``permission``, ``name``, ``timeout``, ``configuration``,
    ``closed`` (by us) or ``ended``.
    """

    def __init__(self, message: str, reason: str = "ended") -> None:
        super().__init__(message)
        self.reason = reason


class DeadlinePassed(RigTrouble):
    """Something took longer than it was given, and was stopped; what it said until then.

    Of a program: the ids of processes that SIGKILL did not end, and what was sampled meanwhile.
    """

    def __init__(
        self,
        message: str,
        stdout: bytes = b"",
        stderr: bytes = b"",
        left: Sequence[int] = (),
        samples: Sequence[tuple[float, str]] = (),
    ) -> None:
        super().__init__(message)
        self.stdout, self.stderr = stdout, stderr
        self.left, self.samples = tuple(left), tuple(samples)


class ProgramMissing(RigTrouble):
    """A program is not installed on the rig."""


class ProgramTooOld(RigTrouble):
    """A program on the rig is older than what Leadline was tried with."""


class ProgramFailed(RigTrouble):
    """A program ended with an exit code that is not 0; below 0: by that signal."""

    def __init__(
        self, host: str, argv: Sequence[str], exit_code: int, stdout: bytes, stderr: bytes
    ) -> None:
        how = f"exit code {exit_code}" if exit_code >= 0 else f"killed by signal {-exit_code}"
        said = last_lines(stderr) or last_lines(stdout)
        super().__init__(f"{host}: {printable(' '.join(argv))}: {how}{said}")
        self.argv, self.exit_code, self.stdout, self.stderr = tuple(argv), exit_code, stdout, stderr


class FileTrouble(RigTrouble):
    """The rig's kernel refused a file or device operation; ``errno`` says how."""

    def __init__(self, host: str, path: str, number: int, text: str, remedy: str = "") -> None:
        name = errno.errorcode.get(number, str(number))
        tail = f"; {remedy}" if remedy else ""
        super().__init__(f"{host}: {printable(path)}: {printable(text)} ({name}){tail}")
        self.path, self.errno = path, number


class DeviceBusy(FileTrouble):
    """A device cannot be held exclusively: mounted, swap, or claimed by md, LVM or a program."""

    def __init__(self, host: str, path: str) -> None:
        remedy = "it is mounted, swap, part of md, LVM or multipath, or held by another program; "
        remedy += f"`lsblk {printable(path)}` on the rig shows it"
        super().__init__(host, path, errno.EBUSY, os.strerror(errno.EBUSY), remedy)


class CommandRefused(RigTrouble):
    """A device or its transport did not complete an SG_IO command.

    ``status`` is the SCSI status byte, ``sense`` the sense data as it came, ``key``,
    ``asc`` and ``ascq`` what it says (SPC-4 4.5; None without sense data).
    """

    def __init__(self, message: str, status: int, sense: bytes) -> None:
        super().__init__(message)
        self.status, self.sense = status, sense
        self.key, self.asc, self.ascq = decode_sense(sense)


def decode_sense(sense: bytes) -> tuple[int | None, int | None, int | None]:
    """Sense key, ASC, ASCQ of fixed (70h/71h) or descriptor (72h/73h) sense data, SPC-4 4.5."""
    if not sense:
        return None, None, None
    padded = sense.ljust(14, b"\0")
    if padded[0] & 0x7F in (0x72, 0x73):
        return padded[1] & 0x0F, padded[2], padded[3]
    return padded[2] & 0x0F, padded[12], padded[13]


def file_trouble(host: str, path: str, number: int, text: str) -> FileTrouble:
    """The error for an errno that came back from the rig; ``text`` is the agent's or libc's."""
    remedies = {
        errno.ENOSPC: "make room on that file system",
        errno.EACCES: "is the rig reached as root?",
        errno.EPERM: "is the rig reached as root?",
    }
    remedy = remedies.get(number, "") if text in ("", os.strerror(number)) else ""
    return FileTrouble(host, path, number, text or os.strerror(number), remedy)
