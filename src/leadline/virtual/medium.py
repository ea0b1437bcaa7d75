"""A virtual drive's medium: one file, served by a model that is as slow as a drive.

`python -m leadline.virtual.medium --profile FILE --state DIR --mount DIR/mnt` mounts a FUSE file
system that holds the single file `medium`, for QEMU to open as a disk, and prints `ready`.
SIGTERM switches the drive off in order (what is unflushed is written, the mount goes); SIGKILL
is the power cut.  The state directory keeps the drive's data and its request log.

Open it with `cache.direct=on` and `aio=native` or `aio=io_uring`: Linux holds a FUSE file's lock
for as long as a synchronous direct write takes, so that `aio=threads` writes one at a time.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from leadline.errors import Misuse, RigTrouble
from leadline.virtual import mount
from leadline.virtual.profile import SECTOR_BYTES, Profile, load_profile
from leadline.virtual.request_log import Request, RequestLog
from leadline.virtual.scheduling import Op
from leadline.virtual.service import Service
from leadline.virtual.store import Store

FILE_NAME = "medium"
LOG_NAME = "requests.jsonl"

# A SATA drive holds 32 requests and QEMU's thread pool has 64 threads.  libfuse 3.12 and later
# stop at 10 threads, and Linux at 12 asynchronous requests, unless told otherwise.
_THREADS = 96
_BACKGROUND = 128

_ATTRIBUTES = {"st_uid": os.getuid(), "st_gid": os.getgid()}


class _OpenFile(Protocol):
    direct_io: int
    parallel_direct_writes: int


class _Connection(Protocol):
    max_background: int
    congestion_threshold: int


class Medium:
    """The drive as the operations of a FUSE file system; offsets and sizes are in bytes.

    There is no `flush` on purpose: FUSE sends it when a file is closed, and Linux closes QEMU's
    when it is killed.  Only `fsync` is the drive's FLUSH CACHE.
    """

    use_ns = True  # asked for by mfusepy

    def __init__(self, profile: Profile, store: Store, service: Service, log: RequestLog) -> None:
        self._profile = profile
        self._store = store
        self._service = service
        self._log = log
        self._complained = False

    def init_with_config(self, connection: _Connection, _config: object) -> None:
        """Called once the file system is mounted."""
        connection.max_background = _BACKGROUND
        connection.congestion_threshold = _BACKGROUND
        with contextlib.suppress(BrokenPipeError):  # nobody waits any more
            print("ready", flush=True)

    def getattr(self, path: str, _file: _OpenFile | None = None) -> dict[str, int]:
        """The directory's or the file's attributes."""
        if path == "/":
            return _ATTRIBUTES | {"st_mode": stat.S_IFDIR | 0o500, "st_nlink": 2}
        if path == f"/{FILE_NAME}":
            size = self._profile.capacity_bytes
            return _ATTRIBUTES | {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": size}
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))

    def readdir(self, _path: str, _file: object) -> list[str]:
        """The one file."""
        return [".", "..", FILE_NAME]

    def open(self, _path: str, file: _OpenFile) -> int:
        """Keep the page cache out of it: every request is to reach the drive."""
        file.direct_io = 1
        file.parallel_direct_writes = 1  # understood by libfuse 3.15 with Linux 6.2 and later
        return 0

    def read(self, _path: str, size: int, offset: int, _file: object) -> bytes:
        """Read at any offset; the drive reads whole sectors."""
        size = max(0, min(size, self._profile.capacity_bytes - offset))
        if size == 0:
            return b""
        lba, skip = divmod(offset, SECTOR_BYTES)
        sectors = -(-(skip + size) // SECTOR_BYTES)
        data = self._serve("read", lba, sectors, lambda source: self._store.read(source, sectors))
        return data[skip : skip + size]

    def write(self, _path: str, data: bytes, offset: int, _file: object) -> int:
        """Write whole sectors."""
        if offset % SECTOR_BYTES or len(data) % SECTOR_BYTES:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if offset + len(data) > self._profile.capacity_bytes:
            raise OSError(errno.EIO, "beyond the last sector")
        lba, sectors = offset // SECTOR_BYTES, len(data) // SECTOR_BYTES
        self._serve("write", lba, sectors, lambda _: self._store.write(lba, data))
        return len(data)

    def fsync(self, _path: str, _datasync: int, _file: object) -> int:
        """FLUSH CACHE: all that was acknowledged before is safe when this returns."""
        self._serve("flush", 0, 0, lambda _: self._store.flush())
        return 0

    def _serve(self, op: Op, lba: int, sectors: int, act: Callable[[int], bytes | None]) -> bytes:
        """Do the request at once, and answer it when a drive would; `act` is given the sector.

        What it does to the data happens on arrival: until the answer, no order is promised
        against other requests, and so the work costs none of the service time.
        """
        touches_flash = not (op == "read" and self._unmapped(lba, sectors))
        now_ns = time.monotonic_ns()
        admission = self._service.admit(op, lba, sectors, now_ns, touches_flash=touches_flash)
        data, error = b"", admission.error
        if not error:
            try:
                data = act(admission.lba) or b""
            except OSError as trouble:
                error = errno.EIO  # not ENOSPC: QEMU would stop the machine and wait for room
                self._complain(op, trouble)
        admission.wait_begun()
        time.sleep(max(0, admission.due_ns - time.monotonic_ns()) / 1e9)
        self._service.complete()
        end_ns = time.monotonic_ns()
        self._log.add(Request(now_ns, end_ns, op, lba, sectors, admission.in_flight, error))
        if error:
            raise OSError(error, os.strerror(error))
        return data

    def _complain(self, op: Op, trouble: OSError) -> None:
        if not self._complained:
            self._complained = True
            print(
                f"virtual drive: cannot {op}: {trouble.strerror}; the host is given I/O errors; "
                "see to the file system that holds the drive's state",
                file=sys.stderr,
                flush=True,
            )

    def _unmapped(self, lba: int, sectors: int) -> bool:
        """Whether an SSD's tables say that there is nothing to read; a disk has none."""
        ssd = self._profile.rotation is None
        return ssd and not self._profile.preconditioned and self._store.is_blank(lba, sectors)


def serve(profile: Profile, state: Path, mount_point: Path, cycle: int) -> None:
    """Switch the drive on; returns when SIGTERM, SIGINT or an unmount has switched it off.

    Raises RigTrouble when this machine cannot run it.
    """
    profile = profile.at_cycle(cycle)
    _go_before_others()
    fuse = mount.load_fuse()
    # First, for it holds the lock on the state directory.
    store = Store(state, profile, cycle=cycle)
    mount.prepare(mount_point)
    power_on_ns = time.monotonic_ns()
    service = Service(profile, cycle=cycle, power_on_ns=power_on_ns)
    if service.holds:
        threading.Thread(target=service.run_decisions, name="scheduler", daemon=True).start()
    log = RequestLog(state / LOG_NAME, _log_header(profile, cycle, power_on_ns))
    sys.setswitchinterval(0.0005)  # a request that falls due must not wait 5 ms for another thread
    try:
        mount.run(fuse, Medium(profile, store, service, log), mount_point, threads=_THREADS)
    finally:
        log.close()
        _write_back(store, state)


def _go_before_others() -> None:
    """Requests arrive when a thread takes them from FUSE; let each do so at once, where it may.

    A drive has a processor of its own.  As one process among others its threads are woken up to
    some ms late, beside an emulated guest, and of a burst of 22 requests every third or so arrived
    in another order than that of its submission.  For this thread and those that it starts.
    """
    with contextlib.suppress(OSError):
        least = os.sched_get_priority_min(os.SCHED_RR)
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(least))


def _write_back(store: Store, state: Path) -> None:
    try:
        store.flush()
    except OSError as trouble:
        raise RigTrouble(
            f"{state}: unflushed writes of the virtual drive are lost: {trouble.strerror}; "
            "make room on that file system"
        ) from trouble
    finally:
        store.close()


def _log_header(profile: Profile, cycle: int, power_on_ns: int) -> dict[str, object]:
    return {
        "power_on_ns": power_on_ns,
        "unix_ns": time.time_ns(),
        "cycle": cycle,
        "serial": profile.serial,
        "firmware": profile.firmware,
        "channels": 1 if profile.faults.serialise else profile.channels,
        "seed": profile.seed,
    }


def main(argv: list[str] | None = None) -> int:
    """The program; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m leadline.virtual.medium", description="Serve a virtual drive as a file."
    )
    parser.add_argument("--profile", type=Path, required=True, help="what the drive is like (YAML)")
    parser.add_argument("--state", type=Path, required=True, help="directory for data and log")
    parser.add_argument("--mount", type=Path, required=True, help="where the file is to appear")
    parser.add_argument("--cycle", type=int, default=0, help="power cycles the drive has behind it")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        serve(load_profile(arguments.profile), arguments.state, arguments.mount, arguments.cycle)
    except Misuse as wrong:
        print(wrong, file=sys.stderr)
        return 2
    except RigTrouble as trouble:
        print(trouble, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
