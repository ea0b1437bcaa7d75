"""Replays by the real fio on a file, and whose fault it is when there are none."""

import errno
import gzip
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
import pytest

from leadline.errors import DriveFault, RigTrouble
from leadline.host.connection import Finished, Host, open_host
from leadline.inventory.rig import HostSpec
from leadline.load.slices import DEVICE_DEPTH
from leadline.trace import replaying
from leadline.trace.files import load_trace
from leadline.trace.fitting import fit
from leadline.trace.loads import LOADS, generate
from leadline.trace.patterns import Drive
from leadline.trace.replay_job import Replay, Timing
from leadline.trace.replaying import replay
from leadline.trace.rounds import Replayed
from leadline.trace.trace import READ, SYNC, WRITE, Trace, trace_of
from leadline.virtual.request_log import read_request_log
from selftests.test_fio_local import drive_model
from selftests.test_trace_replay_job import unpacked
from selftests.traces import few, kept

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
CAPACITY = 64 << 20


def one(
    host: Host,
    node: str,
    trace: Trace,
    in_flight: int,
    timing: Timing,
    *,
    writes: bool,
    queued: bool = True,
) -> Replayed:
    """One replay by itself, at the depth that is set."""
    (done,) = replay(host, node, [Replay(trace, in_flight, queued)], timing, writes=writes)
    return done


@needs_fio
def test_fio_replays_lanes_that_only_sync(host: Host, medium: Path) -> None:
    rows = [(1, READ, 0, 4096), (2, SYNC, 0, 0), (3, WRITE, 4096, 4096), (4, SYNC, 0, 0)]
    trace = trace_of(*zip(*rows, strict=True))
    ways: list[tuple[Timing, int]] = [("fast", 4), ("kept", 4), ("kept", 2)]
    for timing, in_flight in ways:
        found = one(host, str(medium), trace, in_flight, timing, writes=True)
        assert (found.reads.count, found.writes.count) == (1, 1)


@needs_fio
@pytest.mark.parametrize("timing", ["fast", "kept"])
def test_the_last_requests_in_flight_are_in_the_figures(
    host: Host, tmp_path: Path, timing: Timing
) -> None:
    """A read takes 1 ms of this drive, and of the four the last three are in flight at the end."""
    trace = trace_of([1, 2, 3, 4], READ, [8192, 16384, 24576, 32768], 4096)
    with drive_model(tmp_path) as medium:
        found = one(host, str(medium), trace, 4, timing, writes=False)
    assert found.reads.count == 4
    assert found.reads.mean_s >= 0.001


@needs_fio
def test_a_drive_that_is_not_queued_for_has_one_at_a_time_and_the_times_of_all(
    host: Host, tmp_path: Path
) -> None:
    """A read takes 1 ms of this drive: of four at once, the last waits for three."""
    trace = trace_of([1, 2, 3, 4], READ, [8192, 16384, 24576, 32768], 4096)
    with drive_model(tmp_path) as medium:
        off, alone = (
            one(host, str(medium), trace, in_flight, "fast", writes=False, queued=False)
            for in_flight in (4, 1)
        )
    assert off.reads.count == alone.reads.count == 4
    assert alone.reads.mean_s >= 0.001
    assert off.reads.mean_s >= 0.0025  # 1, 2, 3 and 4 ms
    assert off.seconds >= 0.004
    seen = read_request_log(tmp_path / "requests.jsonl")
    assert [one.lba for one in seen if one.lba] == [16, 32, 48, 64] * 2
    assert {one.in_flight for one in seen} == {1}


@needs_fio
def test_replays_of_one_process_come_one_after_the_other_each_at_its_depth(
    host: Host, tmp_path: Path
) -> None:
    """Each at places of its own, and with figures of its own."""
    first = trace_of([1, 2, 3, 4], READ, [8192, 16384, 24576, 32768], 4096)
    second = trace_of([1, 2], READ, [1 << 20, 2 << 20], 4096)
    depth = tmp_path / "depth"
    depth.write_text("7")
    both = [Replay(first, 4, False, depth=1), Replay(second, 2, depth=32)]
    with drive_model(tmp_path) as medium:
        off, on = replay(host, str(medium), both, "fast", writes=False, depth_path=str(depth))
    assert (off.reads.count, on.reads.count) == (4, 2)
    assert off.reads.mean_s >= 0.0025
    assert on.reads.mean_s >= 0.001
    assert off.seconds >= 0.004
    assert (off.voids, on.voids) == ((), ())
    assert depth.read_text() == "32\n"
    lbas = [one.lba for one in read_request_log(tmp_path / "requests.jsonl") if one.lba]
    assert (lbas[:4], sorted(lbas[4:])) == ([16, 32, 48, 64], [2048, 4096])


@needs_fio
def test_a_replay_at_another_depth_than_its_own_is_void(host: Host, medium: Path) -> None:
    """Here by one that cannot be written, as where NCQ has been switched off meanwhile."""
    trace = trace_of([1, 2], READ, [0, 4096], 4096)
    both = [Replay(trace, 2, depth=1), Replay(trace, 2, depth=32)]
    done = replay(host, str(medium), both, "fast", writes=False, depth_path="/proc/version")
    assert [each.voids for each in done] == [(DEVICE_DEPTH,)] * 2
    assert [each.reads.count for each in done] == [2, 2]


@needs_fio
def test_of_a_drive_that_is_not_queued_for_writes_and_syncs_are_right(
    host: Host, medium: Path
) -> None:
    rows = [(1, READ, 0, 4096), (2, SYNC, 0, 0), (3, WRITE, 4096, 4096), (4, WRITE, 8192, 4096)]
    trace = trace_of(*zip(*rows, strict=True))
    found = one(host, str(medium), trace, 4, "fast", writes=True, queued=False)
    assert (found.reads.count, found.writes.count) == (1, 2)
    assert found.reads.mean_s > 0 < found.writes.mean_s
    kept = one(host, str(medium), trace, 4, "kept", writes=True, queued=False)
    assert (kept.reads.count, kept.writes.count) == (1, 2)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with open_host(HostSpec(reach="local")) as local:
        yield local


@pytest.fixture
def medium(tmp_path: Path) -> Path:
    """A file in the place of a drive."""
    path = tmp_path / "medium"
    path.write_bytes(b"\xa5" * CAPACITY)
    return path


def left_behind() -> set[str]:
    return {path.name for path in Path("/dev/shm").glob("leadline-replay.*")}


@needs_fio
@pytest.mark.parametrize("timing", ["fast", "kept"])
def test_fio_replays_a_generated_trace_where_it_says(
    host: Host, medium: Path, tmp_path: Path, timing: Timing
) -> None:
    made = generate(LOADS["copy-mail-import"], Drive(CAPACITY), 3)
    trace, _ = load_trace(kept(tmp_path, made, capacity_bytes=CAPACITY))
    before = left_behind()
    found = one(host, str(medium), trace, 8, timing, writes=True)
    assert (found.reads.count, found.writes.count) == (
        int((trace.kind == READ).sum()),
        int((trace.kind == WRITE).sum()),
    )
    assert 0 < found.all.mean_s < 5
    written = np.zeros(CAPACITY // 4096, bool)
    writes = trace.take(trace.kind == WRITE)
    for offset, end in zip(writes.offset, writes.end, strict=True):
        written[offset // 4096 : end // 4096] = True
    pages = np.frombuffer(medium.read_bytes(), np.uint8).reshape(-1, 4096)
    changed = (pages != 0xA5).any(axis=1)
    assert np.array_equal(changed, written)
    assert left_behind() == before


@needs_fio
def test_reads_alone_leave_the_medium_as_it_was(host: Host, medium: Path) -> None:
    made = generate(LOADS["copy-mail-import"], Drive(CAPACITY), 3)
    fitted = fit(
        made, capacity_bytes=CAPACITY, traced_bytes=CAPACITY, block_bytes=512, writes=False
    )
    found = one(host, str(medium), fitted.trace, 8, "fast", writes=False)
    assert found.reads.count == len(fitted.trace) > 0
    assert found.writes.count == 0
    assert medium.read_bytes() == b"\xa5" * CAPACITY


class Rig:
    """A host that keeps what it was to run, and runs nothing; what fio printed is made up."""

    name = "rig"
    versions: ClassVar = {"fio": "3.33"}

    def __init__(self, printed: bytes = b"", exit_code: int = 1) -> None:
        self.printed, self.exit_code = printed, exit_code

    def exists(self, path: str) -> bool:
        return path == "/sys/block/sdb/inflight"

    def run(self, argv: Sequence[str], **_: object) -> Finished:
        self.argv = tuple(argv)
        return Finished(self.argv, self.exit_code, self.printed, b"not run", seconds=0.0)


def test_a_trace_that_writes_is_not_replayed_without_leave() -> None:
    rig = Rig()
    with pytest.raises(ValueError, match="needs leave to write"):
        one(cast(Host, rig), "/dev/sdb", few_that_fit(), 2, "fast", writes=False)
    assert not hasattr(rig, "argv")


def test_reads_alone_are_replayed_by_a_fio_that_may_not_write() -> None:
    rig, reads = Rig(), few_that_fit().take(slice(1))
    for writes in (False, True):
        with pytest.raises(RigTrouble, match=r"(?s)fio replayed nothing .*not run"):
            one(cast(Host, rig), "/dev/sdb", reads, 2, "fast", writes=writes)
        assert ("--readonly" in rig.argv) is not writes


def printed(error: int = 0) -> bytes:
    """fio's JSON of a replay of one read."""
    done = {"total_ios": 1, "lat_ns": {"N": 1, "mean": 1e6}}
    none = {"total_ios": 0, "lat_ns": {"N": 0, "mean": 0.0}}
    job = {"jobname": "replay0.0", "error": error, "read": done, "write": none, "job_runtime": 1}
    return left_by_fio({"output.json": json.dumps({"jobs": [job]}).encode()})


def left_by_fio(files: dict[str, bytes]) -> bytes:
    """A tar archive, compressed, as replay.sh sends it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("error", "whose"), [(errno.EIO, DriveFault), (errno.ETIMEDOUT, DriveFault), (22, RigTrouble)]
)
def test_whose_fault_an_error_of_fio_is(error: int, whose: type[Exception]) -> None:
    rig, reads = Rig(printed(error)), few_that_fit().take(slice(1))
    with pytest.raises(whose):
        one(cast(Host, rig), "/dev/sdb", reads, 2, "fast", writes=False)


def test_a_fio_that_failed_has_no_figure_whatever_it_printed() -> None:
    rig, reads = Rig(printed(), exit_code=1), few_that_fit().take(slice(1))
    with pytest.raises(RigTrouble, match=r"exit code 1"):
        one(cast(Host, rig), "/dev/sdb", reads, 2, "fast", writes=False)


def test_a_replay_of_less_than_the_trace_is_no_figure() -> None:
    rig, reads = Rig(printed(), exit_code=0), trace_of([1, 2], READ, 0, 512)
    with pytest.raises(RigTrouble, match="replayed 1 reads and 0 writes of 2 and 0"):
        one(cast(Host, rig), "/dev/sdb", reads, 2, "fast", writes=False)
    found = one(cast(Host, rig), "/dev/sdb", reads.take(slice(1)), 2, "fast", writes=False)
    assert found.reads.count == 1


@pytest.mark.parametrize("log", [None, b"", b"0, 1000, 0, 512, 0, 0\n" * 2])
def test_a_log_that_is_not_of_all_requests_is_the_rigs_trouble(log: bytes | None) -> None:
    files = unpacked(printed()) | ({} if log is None else {"replay0.0_lat.log": log})
    rig, reads = Rig(left_by_fio(files), exit_code=0), few_that_fit().take(slice(1))
    with pytest.raises(RigTrouble, match=r"fio's log has [02] of the 1 requests"):
        one(cast(Host, rig), "/dev/sdb", reads, 2, "fast", writes=False, queued=False)


def few_that_fit() -> Trace:
    return trace_of([1, 2, 3], [READ, WRITE, READ], [0, 4096, 8192], 4096)


@needs_fio
@pytest.mark.measures
def test_kept_timing_is_kept_and_no_wait_is_taken_for_service(host: Host, medium: Path) -> None:
    """One deep queue would show seven waits of 50 ms a request (fio before 3.34)."""
    times = np.arange(30) * 50_000
    trace = trace_of(times, READ, np.arange(30) * 1_000_000 // 4096 * 4096, 4096)
    found = one(host, str(medium), trace, 8, "kept", writes=False)
    assert found.seconds >= trace.seconds - 0.01
    assert found.reads.count == 30
    assert found.reads.mean_s < 0.05
    fast = one(host, str(medium), trace, 8, "fast", writes=False)
    assert fast.seconds < trace.seconds / 2


@needs_fio
def test_a_drive_that_is_gone_is_the_rigs_trouble_and_no_file_is_made(
    host: Host, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(RigTrouble, match=r"(?s)fio replayed nothing .*err=2/"):
        one(host, str(gone), few_that_fit(), 2, "fast", writes=True)
    assert not gone.exists()


@needs_fio
@pytest.mark.parametrize("offsets", [[4096, 0], [0, 4096, 8192]])
@pytest.mark.parametrize("timing", ["fast", "kept"])
def test_requests_that_fail_are_the_drives_fault(
    host: Host, tmp_path: Path, timing: Timing, offsets: list[int]
) -> None:
    """Also the last one, of which fio itself says nothing."""
    trace = trace_of(range(1, len(offsets) + 1), READ, offsets, 4096)
    with drive_model(tmp_path) as bad, pytest.raises(DriveFault, match="of the replay failed"):
        one(host, str(bad), trace, 2, timing, writes=False)


@needs_fio
def test_a_replay_that_never_ends_is_ended(
    host: Host, medium: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "STARTUP_S", 1.0)
    monkeypatch.setattr(replaying, "STRETCH", 0.0)
    monkeypatch.setattr(replaying, "SLOWEST_S", 0.0)
    before = left_behind()
    trace = trace_of([0, 60_000_000], READ, 0, 4096)
    with pytest.raises(RigTrouble, match="did not end its replay of 2 requests within 1 s"):
        one(host, str(medium), trace, 1, "kept", writes=False)
    assert left_behind() == before


@needs_fio
def test_without_a_redirection_fio_opens_nothing(tmp_path: Path) -> None:
    path = kept(tmp_path, few())
    log = tmp_path / "few.iolog"
    log.write_bytes(gzip.decompress(path.read_bytes()))
    words = ["fio", "--name=t", f"--read_iolog={log}", "--thread"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode != 0
    assert "redirect-me" in done.stdout + done.stderr
    assert not Path("/proc/redirect-me").exists()
