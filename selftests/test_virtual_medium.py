"""The virtual drive as QEMU meets it: a file that is slow, and forgets what was not flushed."""

import errno
import itertools
import mmap
import os
import random
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.virtual import mount
from leadline.virtual.request_log import Request, read_request_log, true_rates
from leadline.virtual.store import unwritten_pattern

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


pytestmark = [
    pytest.mark.measures,
    pytest.mark.skipif(bool(_fuse_trouble()), reason=_fuse_trouble() or "FUSE works"),
]


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


QUICK = "channels: 8\nread_ms: 0\nwrite_ms: 0\nflush_ms: 0\n"


def load(drive: Drive, depth: int, seconds: float) -> None:
    """Random reads from `depth` threads."""
    file = os.open(drive.medium, os.O_RDONLY)
    end = time.monotonic() + seconds

    def reader(seed: int) -> None:
        choose = random.Random(seed)
        while time.monotonic() < end:
            os.pread(file, BLOCK, choose.randrange(1 << 14) * BLOCK)

    with ThreadPoolExecutor(depth) as pool:
        list(pool.map(reader, range(depth)))
    os.close(file)


def test_the_rate_rises_to_the_channel_count_and_32_requests_are_in_flight(
    make_drive: MakeDrive,
) -> None:
    drive = make_drive("channels: 8\nread_ms: 20\nwrite_ms: 20\n")
    drive.power_on()
    for depth in (1, 4, 8, 16, 32):
        load(drive, depth, 1.0)
    assert drive.end(signal.SIGTERM) == 0
    rates = {depth: rate.per_second for depth, rate in true_rates(drive.log()).items()}
    assert set(rates) >= {1, 4, 8, 16, 32}
    # Below the knee a busy machine's slow refilling of the queue lowers the rate, and nothing
    # raises it; above it there is always a request waiting.
    assert 30 < rates[1] < 51
    assert 2.5 * rates[1] < rates[4] < 204
    assert 1.5 * rates[4] < rates[8] < 408
    assert rates[16] == pytest.approx(400, rel=0.05)
    assert rates[32] == pytest.approx(400, rel=0.05)


@pytest.mark.parametrize("rw", ["randread", "randwrite"])
def test_asynchronous_requests_are_in_flight_together(make_drive: MakeDrive, rw: str) -> None:
    fio = shutil.which("fio")
    if fio is None:
        pytest.skip("fio is not installed")
    drive = make_drive("channels: 64\nread_ms: 40\nwrite_ms: 40\n")
    drive.power_on()
    job = {"name": "j", "filename": drive.medium, "rw": rw, "bs": "4k", "number_ios": 320}
    job |= {"direct": 1, "ioengine": "libaio", "iodepth": 32, "randseed": 1}
    subprocess.run(
        [fio, *(f"--{option}={value}" for option, value in job.items())],
        check=True,
        capture_output=True,
        timeout=DEADLINE_S,
    )
    assert drive.end(signal.SIGTERM) == 0
    assert max(r.in_flight for r in drive.log()) == 32


def test_requests_never_exceed_the_channels(make_drive: MakeDrive) -> None:
    drive = make_drive("channels: 3\nread_ms: 20\nwrite_ms: 20\njitter: 0\n")
    drive.power_on()
    load(drive, 16, 1.0)
    assert drive.end(signal.SIGTERM) == 0
    log = drive.log()
    begin_ns = min(r.start_ns for r in log)
    took_ns = [end_ns - begin_ns for end_ns in sorted(r.end_ns for r in log)]
    # Three at a time, 20 ms each: a busy machine makes answers late, and nothing early.
    early = [n for n, took in enumerate(took_ns) if took < (n // 3 + 1) * 20_000_000]
    assert len(log) > 100
    assert early == []


DISK = "channels: 1\nread_ms: 0.2\nwrite_ms: 0.2\nrotation: {rpm: 7200, mb_per_s: 20}\n"


@pytest.mark.parametrize("reorders", ["true", "false"])
def test_a_disk_answers_out_of_order_only_if_it_reorders(
    make_drive: MakeDrive, reorders: str
) -> None:
    drive = make_drive(
        "channels: 1\nread_ms: 0.2\nwrite_ms: 0.2\n"
        f"rotation: {{rpm: 7200, mb_per_s: 20, reorders: {reorders}, read_ahead_kib: 0}}\n"
    )
    drive.power_on()
    load(drive, 8, 2.0)
    assert drive.end(signal.SIGTERM) == 0
    log = sorted(drive.log(), key=lambda r: r.start_ns)
    assert len(log) > 50
    assert all(r.error == 0 for r in log)
    overtaken = sum(
        later.end_ns < earlier.end_ns - 1_000_000  # two answers due together may change places
        for earlier, later in itertools.pairwise(log)
    )
    assert (overtaken > len(log) / 10) if reorders == "true" else overtaken == 0


def test_a_power_cut_loses_exactly_what_was_not_flushed(make_drive: MakeDrive) -> None:
    drive = make_drive(QUICK)
    drive.power_on()
    drive.write(0, b"a" * BLOCK, flush=True)
    drive.write(8, b"b" * BLOCK, flush=False)  # closing the file flushes nothing
    assert drive.read(8) == b"b" * BLOCK
    drive.cut_power()
    drive.power_on()
    assert drive.read(0) == b"a" * BLOCK
    assert drive.read(8) == unwritten_pattern(8, SECTORS)


def test_a_drive_switched_off_in_order_loses_nothing_and_leaves_no_mount(
    make_drive: MakeDrive,
) -> None:
    drive = make_drive(QUICK)
    drive.power_on()
    drive.write(8, b"b" * BLOCK, flush=False)
    assert drive.end(signal.SIGTERM) == 0
    assert not os.path.ismount(drive.mount_point)
    drive.power_on()
    assert drive.read(8) == b"b" * BLOCK


def test_data_is_right_under_32_threads(make_drive: MakeDrive) -> None:
    drive = make_drive("channels: 8\nread_ms: 1\nwrite_ms: 1\ncache_bytes: 262144\n")
    drive.power_on()
    file = os.open(drive.medium, os.O_RDWR)
    stripe = 32  # thread t owns the blocks that leave t: neighbours are others' at all times

    def exercise(mine: int) -> dict[int, bytes]:
        choose = random.Random(mine)
        known: dict[int, bytes] = {}
        for _ in range(60):
            block = choose.randrange(40) * stripe + mine
            if choose.random() < 0.5:
                known[block] = choose.randbytes(BLOCK)
                os.pwrite(file, known[block], block * BLOCK)
            else:
                expected = known.get(block, unwritten_pattern(block * SECTORS, SECTORS))
                assert os.pread(file, BLOCK, block * BLOCK) == expected
            if choose.random() < 0.05:
                os.fsync(file)
        return known

    with ThreadPoolExecutor(stripe) as pool:
        written = {k: v for known in pool.map(exercise, range(stripe)) for k, v in known.items()}
    os.fsync(file)
    os.close(file)
    drive.cut_power()
    drive.power_on()
    wrong = [block for block, data in written.items() if drive.read(block * SECTORS) != data]
    assert len(written) > 300
    assert wrong == []


def test_a_bad_sector_is_an_input_output_error_and_its_neighbour_none(
    make_drive: MakeDrive,
) -> None:
    drive = make_drive(QUICK + "faults: {bad_lbas: [9]}\n")
    drive.power_on()
    with pytest.raises(OSError) as failed:
        drive.read(8)
    assert failed.value.errno == errno.EIO
    assert drive.read(16) == unwritten_pattern(16, SECTORS)
    assert drive.end(signal.SIGTERM) == 0
    assert [(r.lba, r.error) for r in drive.log()] == [(8, errno.EIO), (16, 0)]


def test_wrong_data_is_other_sectors_own_and_only_when_queued(make_drive: MakeDrive) -> None:
    drive = make_drive("channels: 8\nread_ms: 1\nwrite_ms: 1\nfaults: {wrong_data: {one_in: 2}}\n")
    drive.power_on()
    blocks = [SECTORS * n for n in range(64)]
    assert [drive.read(lba) for lba in blocks] == [unwritten_pattern(n, SECTORS) for n in blocks]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(drive.read, blocks))
    held = [int.from_bytes(data[:8], "little") for data in found]
    assert [unwritten_pattern(lba, SECTORS) for lba in held] == found
    assert 10 < sum(lba != asked for lba, asked in zip(held, blocks, strict=True)) < 54


def test_the_end_of_the_drive(make_drive: MakeDrive) -> None:
    drive = make_drive(QUICK)
    drive.power_on()
    last = 67108864 // 512 - SECTORS
    assert drive.medium.stat().st_size == 67108864
    drive.write(last, b"z" * BLOCK, flush=False)
    assert drive.read(last, 2 * BLOCK) == b"z" * BLOCK
    with pytest.raises(OSError):
        drive.write(last + SECTORS, b"z" * BLOCK, flush=False)


def test_the_drive_is_as_its_power_cycles_have_made_it(make_drive: MakeDrive) -> None:
    drive = make_drive(QUICK + "faults: {changes: [{after_cycle: 2, capacity_bytes: 1048576}]}\n")
    sizes = []
    for cycle in (1, 2):
        drive.power_on(cycle=cycle)
        sizes.append(drive.medium.stat().st_size)
        drive.cut_power()
    assert sizes == [67108864, 1048576]


def test_requests_at_odd_offsets_are_read_by_whole_sectors(make_drive: MakeDrive) -> None:
    drive = make_drive(QUICK)
    drive.power_on()
    file = os.open(drive.medium, os.O_RDONLY)
    assert os.pread(file, 700, 300) == unwritten_pattern(0, 2)[300:1000]
    os.close(file)


def test_a_large_request_reaches_the_drive_whole(make_drive: MakeDrive) -> None:
    drive = make_drive(QUICK)
    drive.power_on()
    drive.write(0, b"L" * (1 << 20), flush=False)
    assert drive.end(signal.SIGTERM) == 0
    assert [(r.op, r.sectors) for r in drive.log()] == [("write", 2048)]


def test_sectors_that_hold_nothing_are_read_at_once(make_drive: MakeDrive) -> None:
    drive = make_drive("channels: 1\nread_ms: 5000\nwrite_ms: 0\npreconditioned: false\n")
    drive.power_on()
    assert drive.read(0) == bytes(BLOCK)
    assert drive.end(signal.SIGTERM) == 0
    (request,) = drive.log()
    assert request.end_ns - request.start_ns < 2_000_000_000


def test_a_disk_reads_its_medium_whatever_it_holds(make_drive: MakeDrive) -> None:
    drive = make_drive(DISK.replace("read_ms: 0.2", "read_ms: 500") + "preconditioned: false\n")
    drive.power_on()
    assert drive.read(0) == bytes(BLOCK)
    assert drive.end(signal.SIGTERM) == 0
    (request,) = drive.log()
    assert request.end_ns - request.start_ns > 400_000_000


def test_a_second_drive_on_the_same_state_is_refused(make_drive: MakeDrive) -> None:
    drive = make_drive(QUICK)
    drive.power_on()
    second = drive.start()
    _, said = second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 3
    assert "another virtual drive" in said
    assert drive.read(0) == unwritten_pattern(0, SECTORS)


def test_a_wrong_profile_is_misuse_and_mounts_nothing(make_drive: MakeDrive) -> None:
    drive = make_drive("channels: 0\n")
    process = drive.start()
    _, said = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 2
    assert "profile.yaml:5: channels" in said
    assert not drive.mount_point.exists()


def test_a_log_that_cannot_be_written_does_not_stop_the_drive(make_drive: MakeDrive) -> None:
    drive = make_drive(QUICK)
    drive.state.mkdir()
    (drive.state / "requests.jsonl").symlink_to("/dev/full")
    drive.power_on()
    drive.write(0, b"a" * BLOCK, flush=True)
    assert drive.read(0) == b"a" * BLOCK
    assert drive.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("fields", ["channels: 8\nread_ms: 50\nwrite_ms: 50\n", DISK])
def test_switching_off_under_load_answers_what_is_in_flight(
    make_drive: MakeDrive, fields: str
) -> None:
    drive = make_drive(fields)
    drive.power_on()
    file = os.open(drive.medium, os.O_RDONLY)
    began = threading.Barrier(9)

    def reader(seed: int) -> str:
        began.wait(DEADLINE_S)
        try:
            for n in range(1000):
                os.pread(file, BLOCK, (seed * 1000 + n) * BLOCK)
        except OSError as trouble:
            return errno.errorcode[trouble.errno or 0]
        return "never stopped"

    with ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(reader, seed) for seed in range(8)]
        began.wait(DEADLINE_S)
        while not drive.log():  # the first answers are in
            time.sleep(0.05)
        assert drive.end(signal.SIGTERM) == 0
        outcomes = {each.result(DEADLINE_S) for each in readers}
    with suppress(OSError):
        os.close(file)
    assert outcomes <= {"ENOTCONN", "ECONNABORTED", "EIO"}
    assert all(r.error == 0 for r in drive.log())


def test_the_log_is_written_while_the_drive_runs(make_drive: MakeDrive) -> None:
    drive = make_drive(QUICK)
    drive.power_on()
    drive.read(24)
    drive.read(24)  # and is not answered by a cache
    deadline = time.monotonic() + DEADLINE_S
    while len(drive.log()) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [(r.op, r.lba, r.sectors, r.in_flight) for r in drive.log()] == 2 * [("read", 24, 8, 1)]
