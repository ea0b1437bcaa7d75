"""Where a running virtual rig keeps what it is made of, and how a dead one is cleared away."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.errors import RigTrouble
from leadline.inventory.fields import user_cache
from leadline.virtual import mount

_FLOCK = struct.Struct("@hhqqi4x")
"""`struct flock` of fcntl(2) on 64-bit Linux: type, whence, start, length, process."""


@dataclass(frozen=True)
class State:
    """The state directory of the rig called `name`."""

    name: str

    @property
    def root(self) -> Path:
        """`<user cache>/leadline/virtual/<name>`."""
        return user_cache() / "leadline" / "virtual" / self.name

    @property
    def ssh_config(self) -> Path:
        """What `ssh -F` is given; its only Host is the address in the rig file."""
        return self.root / "ssh_config"

    @property
    def log(self) -> Path:
        """A directory: console.log, qemu.log, server.log, and one for each drive."""
        return self.root / "log"

    def medium(self, slot: str) -> Path:
        """A drive's data, its request log, and the mount point of its medium."""
        return self.root / "medium" / slot

    def staged(self, slot: str) -> Path:
        """The profile that a drive takes up at its next power-on, if one is staged."""
        return self.root / "firmware" / f"{slot}.yaml"

    @property
    def _lock(self) -> Path:
        return self.root.with_name(f"{self.name}.lock")

    def take(self) -> bool:
        """Become the rig's server: a kernel lock, held until this process ends.

        False when the rig has one.  Call it once in a process.
        """
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Of the POSIX kind, which can be asked about without being taken; it goes with the
            # process, so the descriptor is left open.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as refused:
            os.close(descriptor)
            if refused.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        return True

    def server(self) -> int | None:
        """The process that runs the rig, as the kernel says; None when none does."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, *_, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        finally:
            os.close(descriptor)
        return None if kind == fcntl.F_UNLCK else process

    def write_status(self, status: dict[str, Any]) -> None:
        """Replace what `read_status` gives, in one step."""
        fresh = self.root / "status.json.new"
        fresh.write_text(json.dumps(status))
        fresh.replace(self.root / "status.json")

    def read_status(self) -> dict[str, Any]:
        """What the server last wrote; {} when it has not yet."""
        try:
            found: dict[str, Any] = json.loads((self.root / "status.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def clear(self) -> None:
        """Remove all that a rig left, its logs too.  Only for the holder of the lock."""
        self.unmount()
        try:
            if self.root.exists():
                shutil.rmtree(self.root)
        except OSError as trouble:
            raise RigTrouble(
                f"{trouble.filename or self.root}: left by an earlier virtual rig, and cannot be "
                f"removed: {trouble.strerror}; remove {self.root} by hand"
            ) from trouble

    def forget(self) -> None:
        """Remove all that a rig left, logs and lock too: for one that is down and was made up."""
        self.clear()
        self._lock.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove all but the logs, once the rig's processes have gone."""
        if not self.root.exists():
            return
        self.unmount()
        shutil.rmtree(self.root / "firmware", ignore_errors=True)
        for path in self.root.glob("medium/*/*"):
            if path.is_dir():
                path.rmdir()
            elif ".jsonl" not in path.suffixes:  # `requests.jsonl.1` is the log's older part
                path.unlink()
        for path in self.root.iterdir():
            if not path.is_dir() or path.is_symlink():
                path.unlink()

    def unmount(self) -> None:
        """Unmount what killed drive models left."""
        for mounted in mount.below(self.root.resolve()):
            mount.prepare(mounted)


def made_up(prefix: str) -> str:
    """A name for a rig of this process alone; what the dead left under such names is removed.

    Of those only whose rig is down, and whose process has gone: it might yet start one.
    """
    for lock in (user_cache() / "leadline" / "virtual").glob(f"{prefix}-*.lock"):
        state, process = State(lock.stem), lock.stem.removeprefix(f"{prefix}-")
        if process.isdigit() and not Path("/proc", process).exists() and state.server() is None:
            with contextlib.suppress(RigTrouble):  # somebody else may be removing it
                state.forget()
    return f"{prefix}-{os.getpid()}"
