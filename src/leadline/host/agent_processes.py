"""The agent's programs: started, found again, and ended for certain.  Runs on the rig.

A program is found by its process group and by a mark in its environment, for
children may leave the group (fio's forked jobs call ``setsid``).
"""
# ruff: noqa: PTH123, PTH208

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

TERM_GRACE_S = 2.0
KILL_GRACE_S = 3.0
POLL_S = 0.02
MARK = "LEADLINE_PROGRAM"


def read_small(path: str) -> bytes:
    """A file's contents in one read of the whole."""
    with open(path, "rb") as file:
        return file.read()


def _is_marked(environment: bytes, mark: str) -> bool:
    """An agent that one of our programs started adds its mark to ours: ``a.1/b.4``."""
    for field in environment.split(b"\0"):
        if field.startswith(MARK.encode() + b"="):
            marks = field.split(b"=", 1)[1].decode("ascii", "replace").split("/")
            return any(m == mark or m.startswith(mark + ".") for m in marks)
    return False


def survivors(mark: str, groups: frozenset[int]) -> list[int]:
    """Live processes that carry the mark or belong to one of the process groups."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            # proc(5): state and process group are the 1st and 3rd field after "(comm)".
            after = read_small(f"/proc/{name}/stat").rpartition(b")")[2].split()
            if after[0] in (b"Z", b"X"):
                continue
            in_group = int(after[2]) in groups
            if in_group or _is_marked(read_small(f"/proc/{name}/environ"), mark):
                found.append(int(name))
        except (OSError, IndexError):
            continue  # it ended while we looked, or it is another user's
    return found


def end_processes(mark: str, groups: frozenset[int]) -> list[int]:
    """SIGTERM, a moment, SIGKILL until none is left.

    Returns the process ids that are there even so: asleep in the kernel, as a
    program is whose drive does not answer.
    """
    left: list[int] = []
    for number, patience in ((signal.SIGTERM, TERM_GRACE_S), (signal.SIGKILL, KILL_GRACE_S)):
        limit = time.monotonic() + patience
        told: set[int] = set()
        while time.monotonic() < limit:
            left = survivors(mark, groups)
            if not left:
                return []
            for pid in left:
                if pid not in told:
                    told.add(pid)
                    _signal(pid, number)
            time.sleep(POLL_S)
    return left


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def start_guardian(mark: str) -> None:
    """Fork the process that ends the agent's programs should the agent itself be killed."""
    reading, _writing = os.pipe()  # the writing end is the agent's: its death closes it
    if os.fork() != 0:
        os.close(reading)
        return
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nowhere, fd)
    kept = os.dup2(reading, 3)
    os.closerange(kept + 1, 256)
    os.read(kept, 1)
    end_processes(mark, frozenset())
    os._exit(0)


class Program:
    """A program; made before it is started, so that a stop never comes too early."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.wake = threading.Event()  # it ended, or it is to be stopped
        self.ended = False
        self.stopped = False
        self.process: subprocess.Popen[bytes] | None = None

    def start(
        self, argv: list[str], has_input: bool, fds: tuple[int, ...]
    ) -> subprocess.Popen[bytes]:
        """Start it in a session of its own, its output to pipes; OSError when it cannot be."""
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            pass_fds=fds,
            env=_environment(self.mark),
        )
        threading.Thread(target=self._await_end, args=(self.process.pid,), daemon=True).start()
        return self.process

    def _await_end(self, pid: int) -> None:
        # WNOWAIT: not reaped yet, so its process group's number cannot become another's.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        self.ended = True
        self.wake.set()

    def stop(self) -> None:
        """Have its attending thread end it."""
        self.stopped = True
        self.wake.set()

    def kill(self) -> list[int]:
        """End it and its children; returns the process ids that would not go."""
        return end_processes(self.mark, self.group())

    def group(self) -> frozenset[int]:
        """Its process group, if it was started."""
        return frozenset([self.process.pid] if self.process else [])


def _environment(mark: str) -> dict[str, str]:
    outer = os.environ.get(MARK)
    path = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    changed = {
        "LC_ALL": "C",
        # A login that is not root's has no sbin, where smartctl and hdparm are.
        "PATH": path + ":/usr/local/sbin:/usr/sbin:/sbin",
        MARK: f"{outer}/{mark}" if outer else mark,
    }
    return dict(os.environ, **changed)
