"""The virtual drive as QEMU meets it: a file that is slow, and forgets what was not flushed."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from leadline.virtual.store import unwritten_pattern
from selftests.medium_process import BLOCK, DEADLINE_S, SECTORS, MakeDrive, make_drive, needs_fuse

__all__ = ["make_drive"]  # fixture

pytestmark = [pytest.mark.measures, needs_fuse]

QUICK = "channels: 8\nread_ms: 0\nwrite_ms: 0\nflush_ms: 0\n"
DISK = "channels: 1\nread_ms: 0.2\nwrite_ms: 0.2\nrotation: {rpm: 7200, mb_per_s: 20}\n"


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


def may_go_before_others() -> bool:
    ask = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    return (
        subprocess.run([sys.executable, "-c", ask], capture_output=True, check=False).returncode
        == 0
    )


@pytest.mark.skipif(not may_go_before_others(), reason="no real-time threads on this machine")
def test_its_threads_go_before_others_so_that_requests_arrive_in_their_order(
    make_drive: MakeDrive,
) -> None:
    drive = make_drive(DISK)
    drive.power_on()
    drive.read(0)
    threads = [int(thread.name) for thread in Path(f"/proc/{drive.pid}/task").iterdir()]
    assert len(threads) > 2
    assert {os.sched_getscheduler(thread) for thread in threads} == {os.SCHED_RR}


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
