"""The virtual drive against its own profile, at the FUSE file that QEMU would open.

The transport is what a request takes beside its service, waking up at its end included; measured
where the service is short, it tells what the rate should be where it is long.  Both are medians,
for another program that has the processor for a while delays a request and says nothing about
the model.  So is the service time at depth 1 of a drive whose times are exponential, which tells a
wrong distribution of the right mean.  Data is verified against what this machine remembers of its
writes, and once more after a power cut.
"""

import itertools
import math
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import median

import leadline
from leadline.virtual import mount
from leadline.virtual.profile import SECTOR_BYTES
from leadline.virtual.request_log import read_request_log
from leadline.virtual.store import unwritten_pattern

OPERATIONS = 1_000_000
THREADS = 32
SECONDS = 8.0
TOLERANCE = 0.03
READ_MS = 10.0
SHORT_MS = 1.0
CHANNELS = 8
CAPACITY = 64 << 20
UNIT = 8  # sectors; neighbouring units are other threads'
READY_S = 30.0
PROCESSOR_US = 0.5 * READ_MS * 1e3 / CHANNELS
"""Of a request: at the rate of the SSD's full queue, half a processor for its model."""

NO_SERVICE = "channels: 64\nread_ms: 0\nwrite_ms: 0\nflush_ms: 0\n"
SHORT = f"channels: 1\nread_ms: {SHORT_MS}\nwrite_ms: {SHORT_MS}\n"
SKEWED = f"{SHORT.replace(str(SHORT_MS), str(READ_MS))}distribution: exponential\n"
SKEWED_TOLERANCE = 0.2
"""Of the median of some 800 times of an exponential distribution: four standard errors."""
SSD = f"channels: {CHANNELS}\nread_ms: {READ_MS}\nwrite_ms: {READ_MS}\n"
DISK = """\
channels: 1
read_ms: 0.2
write_ms: 0.2
rotation: {rpm: 7200, mb_per_s: 150, write_behind: 32}
"""


@dataclass
class Drive:
    """A drive's model in a process of its own, with its file open."""

    process: "subprocess.Popen[bytes]"
    state: Path
    file: int

    @property
    def processor_s(self) -> float:
        """Processor time that the model has taken, by proc_pid_stat(5)."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def powered(folder: Path, profile: str, *, cut: bool = False) -> Iterator[Drive]:
    """A drive of such a profile until it is switched off, or its power is cut."""
    path, state = folder / "profile.yaml", folder / "state"
    path.write_text(
        f"model: D\nserial: S\nfirmware: '1'\ncapacity_bytes: {CAPACITY}\n{profile}", "utf-8"
    )
    words = [sys.executable, "-m", "leadline.virtual.medium", "--profile", str(path)]
    words += ["--state", str(state), "--mount", str(state / "mnt")]
    source = str(Path(leadline.__file__).parents[1])
    process = subprocess.Popen(
        words, env=os.environ | {"PYTHONPATH": source}, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("the drive's model does not start")
        file = os.open(state / "mnt" / "medium", os.O_RDWR)
        try:
            yield Drive(process, state, file)
        finally:
            os.close(file)
    finally:
        process.send_signal(signal.SIGKILL if cut else signal.SIGTERM)
        process.communicate(timeout=READY_S)
        mount.prepare(state / "mnt")


def random_reads(drive: Drive, depth: int, seconds: float) -> tuple[int, float]:
    """How many were answered, and in how many seconds, by so many threads at once."""
    blocks = CAPACITY // 4096
    begun = time.monotonic()

    def reader(seed: int) -> int:
        choose = random.Random(seed)
        count = 0
        while time.monotonic() < begun + seconds:
            os.pread(drive.file, 4096, choose.randrange(blocks) * 4096)
            count += 1
        return count

    with ThreadPoolExecutor(depth) as pool:
        count = sum(pool.map(reader, range(depth)))
    return count, time.monotonic() - begun


def rate(folder: Path, profile: str, depth: int, seconds: float) -> float:
    """Random reads a second."""
    with powered(folder, profile) as drive:
        count, took_s = random_reads(drive, depth, seconds)
    return count / took_s


def lone_ms(folder: Path, profile: str, seconds: float) -> float:
    """What a random read at depth 1 takes, as a median."""
    choose = random.Random(1)
    took_s = []
    with powered(folder, profile) as drive:
        begun = now = time.monotonic()
        while now < begun + seconds:
            os.pread(drive.file, 4096, choose.randrange(CAPACITY // 4096) * 4096)
            before, now = now, time.monotonic()
            took_s.append(now - before)
    return median(took_s) * 1e3


@dataclass
class Verifier:
    """One thread's share of the drive: every THREADS-th unit, and what it wrote there."""

    drive: Drive
    mine: int
    wrong: int = 0

    def __post_init__(self) -> None:
        self._choose = random.Random(self.mine)
        self._versions: dict[int, int] = {}  # by sector

    def run(self, operations: int) -> None:
        """Reads and writes of 1 to 8 sectors, and now and then a flush."""
        units = CAPACITY // SECTOR_BYTES // UNIT // THREADS
        for version in range(1, operations + 1):
            first = self._choose.randrange(UNIT)
            sectors = self._choose.randint(1, UNIT - first)
            lba = (self._choose.randrange(units) * THREADS + self.mine) * UNIT + first
            kind = self._choose.random()
            if kind < 0.5:
                os.pwrite(self.drive.file, _contents(lba, [version] * sectors), lba * SECTOR_BYTES)
                self._versions |= dict.fromkeys(range(lba, lba + sectors), version)
            elif kind < 0.999:
                self.check(lba, sectors)
            else:
                os.fsync(self.drive.file)

    def check(self, lba: int, sectors: int) -> None:
        """Read, and count it when a byte is wrong."""
        versions = [self._versions.get(each, 0) for each in range(lba, lba + sectors)]
        found = os.pread(self.drive.file, sectors * SECTOR_BYTES, lba * SECTOR_BYTES)
        self.wrong += found != _contents(lba, versions)

    def check_all(self) -> None:
        """Every sector that it ever wrote."""
        for lba in self._versions:
            self.check(lba, 1)


def _contents(lba: int, versions: list[int]) -> bytes:
    """Sectors from `lba` on, each of its version; 0 is what was never written."""
    return b"".join(
        struct.pack("<QQ", each, version) * (SECTOR_BYTES // 16)
        if version
        else unwritten_pattern(each, 1)
        for each, version in zip(itertools.count(lba), versions)
    )


def wrong_operations(folder: Path, operations: int, profile: str = NO_SERVICE) -> int:
    """How many of so many verified operations met a wrong byte; power is cut after them."""
    with powered(folder, profile, cut=True) as drive:
        verifiers = [Verifier(drive, mine) for mine in range(THREADS)]
        _on_threads(verifiers, lambda each: each.run(operations // THREADS))
        os.fsync(drive.file)
    with powered(folder, profile) as drive:
        for verifier in verifiers:
            verifier.drive = drive
        _on_threads(verifiers, Verifier.check_all)
    return sum(verifier.wrong for verifier in verifiers)


def _on_threads(verifiers: list[Verifier], act: Callable[[Verifier], None]) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(act, verifiers))


def processor_us_of(folder: Path, profile: str, seconds: float) -> float:
    """Processor time of the model a request, with a full queue."""
    with powered(folder, profile) as drive:
        before_s = drive.processor_s
        count, _ = random_reads(drive, THREADS, seconds)
        return (drive.processor_s - before_s) / count * 1e6


def most_in_flight(folder: Path) -> int:
    """By the drive's own log of its last life."""
    return max(request.in_flight for request in read_request_log(folder / "state/requests.jsonl"))


@dataclass(frozen=True)
class Measured:
    """What was measured: times in milliseconds, rates in requests a second.

    `skewed_ms` is the median of a drive of exponential times, less the transport;
    `processor_us` is the model's processor time of a request, in microseconds, by kind of drive.
    """

    transport_ms: float
    alone: float
    skewed_ms: float
    full: float
    in_flight: int
    processor_us: Mapping[str, float]
    operations: int
    wrong: int
    verified_s: float


def figures_of(measured: Measured, operations: int = OPERATIONS) -> dict[str, object]:
    """Figure by figure, with its limit and whether it is within that; of so many `operations`."""
    figures = {
        "depth_1_rate": _near(measured.alone, 1e3 / (READ_MS + measured.transport_ms)),
        "skewed_median_ms": _near(measured.skewed_ms, READ_MS * log(2), SKEWED_TOLERANCE),
        "saturated_rate": _near(measured.full, CHANNELS * 1e3 / READ_MS),
        "in_flight": _limited(measured.in_flight, at_least=THREADS),
        "verified_operations": _limited(measured.operations, at_least=operations),
        "wrong_operations": _limited(measured.wrong, at_most=0),
    }
    for kind, spent_us in measured.processor_us.items():
        name = f"processor_us_per_request_of_{kind}"
        figures[name] = _limited(round(spent_us), at_most=PROCESSOR_US)
    return {
        "transport_ms": round(measured.transport_ms, 4),
        "verified_s": round(measured.verified_s, 1),
        "figures": figures,
        "within_limits": all(each["within_limits"] for each in figures.values()),
    }


def _near(found: float, expected: float, within: float = TOLERANCE) -> dict[str, object]:
    """A figure against what the profile makes expected; `off` is a share of that."""
    off = found / expected - 1
    return {
        "value": round(found, 2),
        "expected": round(expected, 2),
        "off": round(off, 4),
        "limit": f"within {within:.0%}",
        "within_limits": abs(off) <= within,
    }


def _limited(
    value: float, *, at_least: float = -math.inf, at_most: float = math.inf
) -> dict[str, object]:
    limit = f"at least {at_least}" if at_most == math.inf else f"at most {at_most:g}"
    return {"value": value, "limit": limit, "within_limits": at_least <= value <= at_most}


def measure(operations: int = OPERATIONS, seconds: float = SECONDS) -> dict[str, object]:
    """All figures, of so many verified operations and so many seconds a rate."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        transport_ms = lone_ms(folder, SHORT, seconds) - SHORT_MS
        alone = 1e3 / lone_ms(folder, SSD, seconds)
        skewed_ms = lone_ms(folder, SKEWED, seconds) - transport_ms
        full = rate(folder, SSD, THREADS, seconds)
        in_flight = most_in_flight(folder)
        processor_us = {
            kind: processor_us_of(folder, profile, seconds)
            for kind, profile in (("ssd", SSD), ("disk", DISK))
        }
        begun = time.monotonic()
        wrong = wrong_operations(folder, operations)
        verified_s = time.monotonic() - begun
    done = operations // THREADS * THREADS
    measured = Measured(
        transport_ms, alone, skewed_ms, full, in_flight, processor_us, done, wrong, verified_s
    )
    return figures_of(measured, operations)
