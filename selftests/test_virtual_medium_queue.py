"""Requests side by side on the virtual drive's file: how many, how fast, in order, and right."""

import itertools
import os
import random
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from leadline.virtual.request_log import true_rates
from leadline.virtual.store import unwritten_pattern
from selftests.medium_process import (
    BLOCK,
    DEADLINE_S,
    SECTORS,
    Drive,
    MakeDrive,
    make_drive,
    needs_fuse,
)

__all__ = ["make_drive"]  # fixture

pytestmark = [pytest.mark.measures, needs_fuse]


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
