"""Mounting a FUSE file system: what the machine needs for it, and what an earlier one left."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

from leadline.errors import RigTrouble

_TYPE = "leadline"
_DEVICE = Path("/dev/fuse")
_MOUNTS = Path("/proc/self/mountinfo")
_UNMOUNT_SECONDS = 20.0
# libfuse's fuse_main (fuse_lib.c, helper.c): 1 to 6 are failures before the loop runs, higher
# ones say that the loop was ended, by a signal for one.
_LAST_START_FAILURE = 6


def load_fuse(device: Path = _DEVICE) -> ModuleType:
    """The FUSE binding, or RigTrouble naming the package that is missing."""
    if not device.exists():
        raise RigTrouble(
            f"{device} is not there, and the virtual drives need it: run `modprobe fuse` as root "
            "(in a container: start it with `--device /dev/fuse --cap-add SYS_ADMIN`)"
        )
    if not os.access(device, os.R_OK | os.W_OK):
        raise RigTrouble(
            f"{device} may not be opened by this user, and the virtual drives need it: "
            f"allow it (`chmod 666 {device}` as root is the distributions' default)"
        )
    if os.geteuid() != 0 and shutil.which("fusermount3") is None:
        raise RigTrouble("fusermount3 is missing: install the package fuse3 (Debian, Fedora)")
    os.environ.setdefault("FUSE_LIBRARY_NAME", "fuse3")  # mfusepy would take libfuse 2 if there
    try:
        return importlib.import_module("mfusepy")
    except (OSError, AttributeError) as trouble:
        raise RigTrouble(
            f"libfuse 3 cannot be loaded ({trouble}): install the package fuse3 (Debian) "
            "or fuse3-libs (Fedora)"
        ) from trouble


def prepare(mount_point: Path) -> None:
    """Make the directory, and unmount what a killed drive left on it.

    Raises RigTrouble when something else is mounted there or it cannot be unmounted.
    """
    kind = _mounted_type(mount_point)
    if kind == f"fuse.{_TYPE}":
        _unmount(mount_point)
    elif kind is not None:
        raise RigTrouble(f"{mount_point}: a {kind} file system is mounted there; choose another")
    try:
        mount_point.mkdir(parents=True, exist_ok=True)
    except OSError as trouble:
        raise RigTrouble(f"{mount_point}: cannot be a mount point: {trouble.strerror}") from trouble


def run(fuse: ModuleType, operations: object, mount_point: Path, *, threads: int) -> None:
    """Mount, serve until a signal or an unmount ends it, unmount.  Call from the main thread.

    Raises RigTrouble when it cannot be mounted.
    """
    try:
        fuse.FUSE(
            operations,
            str(mount_point),
            raw_fi=True,
            foreground=True,
            fsname=_TYPE,
            subtype=_TYPE,
            max_threads=threads,
            max_idle_threads=threads,
            clone_fd=True,
        )
    except RuntimeError as ended:
        if ended.args and ended.args[0] in range(1, _LAST_START_FAILURE + 1):
            raise RigTrouble(
                f"{mount_point}: the FUSE file system could not be mounted (libfuse's words are "
                "above); mounting needs root, or fusermount3 from the package fuse3"
            ) from ended


def _unmount(mount_point: Path) -> None:
    """Lazily: whoever still has the file open gets errors, and does not hold up the mount."""
    if os.geteuid() == 0:
        command = ["umount", "--lazy", str(mount_point)]
    else:
        command = ["fusermount3", "-u", "-z", str(mount_point)]
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=_UNMOUNT_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as trouble:
        said = getattr(trouble, "stderr", None) or trouble
        raise RigTrouble(
            f"{mount_point}: a dead virtual drive is still mounted there and cannot be unmounted "
            f"({str(said).strip()}); try `{' '.join(command)}`"
        ) from trouble


def _mounted_type(mount_point: Path) -> str | None:
    """The type of the file system mounted exactly there (the last one, if several)."""
    wanted = mount_point.absolute().parent.resolve() / mount_point.name
    return next((kind for path, kind in reversed(_mounts()) if path == wanted), None)


def below(folder: Path) -> list[Path]:
    """Where something is mounted in a folder whose path has no links."""
    return [path for path, _ in _mounts() if path.is_relative_to(folder)]


def _mounts() -> list[tuple[Path, str]]:
    """Each mount's place and type, the last one last.

    From mountinfo (proc_pid_mountinfo(5)), for a dead FUSE mount cannot even be looked at.  It
    has names as they are, in whatever encoding; a space, tab, newline or backslash as octal.
    """
    found = []
    for line in os.fsdecode(_MOUNTS.read_bytes()).split("\n"):
        if line:
            fields = line.split(" ")
            name = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
            found.append((Path(name), fields[fields.index("-") + 1]))
    return found
