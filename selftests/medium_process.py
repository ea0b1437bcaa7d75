"""A drive model in a process of its own, and its file."""

import mmap
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.virtual import mount
from leadline.virtual.request_log import Request, read_request_log

DEADLINE_S = 30
BLOCK = 4096
SECTORS = BLOCK // 512
SOURCE = Path(__file__).parent.parent / "src"


def _fuse_trouble() -> str:
    try:
        mount.load_fuse()
    except RigTrouble as trouble:
        return str(trouble)
    return ""


needs_fuse = pytest.mark.skipif(bool(_fuse_trouble()), reason=_fuse_trouble() or "FUSE works")


class Drive:
    """A drive model in a process of its own, and its file."""

    def __init__(self, directory: Path, fields: str) -> None:
        self.state = directory / "state"
        self.mount_point = self.state / "mnt"
        self.medium = self.mount_point / "medium"
        self._profile = directory / "profile.yaml"
        self._process: subprocess.Popen[str] | None = None
        self.use(fields)

    def use(self, fields: str) -> None:
        """Describe the drive as it is to be from its next power-on."""
        identity = "model: D\nserial: S\nfirmware: '1'\ncapacity_bytes: 67108864\n"
        self._profile.write_text(identity + fields)

    def start(self, *, cycle: int = 0) -> subprocess.Popen[str]:
        """Start the process, without waiting for it to be ready."""
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "leadline.virtual.medium", "--profile", self._profile),
                *("--state", self.state, "--mount", self.mount_point, "--cycle", str(cycle)),
            ],
            env=os.environ | {"PYTHONPATH": str(SOURCE)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def power_on(self, *, cycle: int = 0) -> None:
        """Start it, and wait for `ready`."""
        self._process = self.start(cycle=cycle)
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            assert selector.select(DEADLINE_S), "the drive is not ready"
        assert self._process.stdout.readline() == "ready\n"

    @property
    def pid(self) -> int:
        """Of the process, while the drive has power."""
        assert self._process is not None
        return self._process.pid

    def end(self, how: signal.Signals) -> int:
        """Send it a signal, and wait for the end of it; returns its exit code."""
        process, self._process = self._process, None
        assert process is not None
        process.send_signal(how)
        process.communicate(timeout=DEADLINE_S)
        return process.returncode

    def cut_power(self) -> None:
        """No warning."""
        self.end(signal.SIGKILL)

    def clean_up(self) -> None:
        """Leave neither process nor mount."""
        if self._process is not None:
            self.cut_power()
        mount.prepare(self.mount_point)

    def write(self, lba: int, data: bytes, *, flush: bool) -> None:
        """Write, close, and flush or not."""
        file = os.open(self.medium, os.O_RDWR | os.O_DIRECT)
        try:
            os.pwrite(file, aligned(data), lba * 512)
            if flush:
                os.fdatasync(file)
        finally:
            os.close(file)

    def read(self, lba: int, size: int = BLOCK) -> bytes:
        """Read past any cache."""
        file = os.open(self.medium, os.O_RDONLY)
        try:
            return os.pread(file, size, lba * 512)
        finally:
            os.close(file)

    def log(self) -> tuple[Request, ...]:
        """What it was asked; complete only once it has been switched off in order."""
        return read_request_log(self.state / "requests.jsonl")


def aligned(data: bytes) -> mmap.mmap:
    """A buffer fit for O_DIRECT."""
    buffer = mmap.mmap(-1, len(data))
    buffer.write(data)
    return buffer


MakeDrive = Callable[[str], Drive]


@pytest.fixture
def make_drive(tmp_path: Path) -> Iterator[MakeDrive]:
    drives: list[Drive] = []

    def make(fields: str) -> Drive:
        drives.append(Drive(tmp_path, fields))
        return drives[-1]

    yield make
    for drive in drives:
        drive.clean_up()
