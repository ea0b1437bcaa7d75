"""The processes that a virtual rig is made of: none outlives the server that started it."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from leadline.errors import RigTrouble
from leadline.host.trouble import last_lines

_READY_SECONDS = 60.0
_KILL_SECONDS = 10.0
READY = b"ready"


class Part:
    """One running process.  Start it from the server's main thread.

    The kernel kills it when the *thread* that started it ends (PR_SET_PDEATHSIG, prctl(2)).
    """

    def __init__(self, words: Sequence[str], log: Path, folder: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *words],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )

    @property
    def ended(self) -> int | None:
        """The exit code, or None while it runs."""
        return self.process.poll()

    def kill(self) -> None:
        """SIGKILL: the power is cut.  Returns when the process has gone."""
        self.process.kill()
        self.reap()

    def reap(self) -> None:
        """Wait for a killed process; RigTrouble when the kernel does not let go of it."""
        if self.process.stdout is not None:
            self.process.stdout.close()
        try:
            self.process.wait(_KILL_SECONDS)
        except subprocess.TimeoutExpired as late:
            raise RigTrouble(
                f"process {self.process.pid} was killed and is still there after "
                f"{_KILL_SECONDS:.0f} s: something on this machine is stuck (see dmesg)"
            ) from late

    def said(self) -> str:
        """The last lines that it wrote to its log, to stand below a message."""
        with contextlib.suppress(OSError):
            return last_lines(self.log.read_bytes()[-4096:])
        return ""


def start_medium(profile: Path, state: Path, cycle: int, log: Path) -> Part:
    """Start a drive's model; `wait_ready` says when its medium is there."""
    words = [sys.executable, "-m", "leadline.virtual.medium", "--profile", str(profile)]
    words += ["--state", str(state), "--mount", str(state / "mnt"), "--cycle", str(cycle)]
    return Part(words, log, state)


def wait_ready(parts: Mapping[str, Part]) -> None:
    """Wait until each has said `ready`.  RigTrouble, with its words, when one does not."""
    deadline = time.monotonic() + _READY_SECONDS
    with selectors.DefaultSelector() as selector:
        for name, part in parts.items():
            assert part.process.stdout is not None
            selector.register(part.process.stdout, selectors.EVENT_READ, name)
        while selector.get_map():
            left = deadline - time.monotonic()
            events = selector.select(max(left, 0))
            if not events:
                waiting = ", ".join(str(key.data) for key in selector.get_map().values())
                raise RigTrouble(f"the model of {waiting} is not ready in {_READY_SECONDS:.0f} s")
            for key, _ in events:
                if READY not in os.read(key.fd, 4096):
                    part = parts[key.data]
                    raise RigTrouble(
                        f"the model of the drive in {key.data} does not start{part.said()}"
                    )
                selector.unregister(key.fileobj)
