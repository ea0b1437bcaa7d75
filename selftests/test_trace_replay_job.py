"""Replays: the job file and the iologs that fio is given."""

import io
import re
import tarfile

import pytest

from leadline.errors import Misuse
from leadline.trace.iolog import read_iolog
from leadline.trace.replay_job import Replay, Timing, archive, job_text
from leadline.trace.trace import joined
from selftests.traces import few


def unpacked(packed: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def options(packed: bytes) -> set[str]:
    return set(unpacked(packed)["job.fio"].decode().split())


@pytest.mark.parametrize("timing", ["fast", "kept"])
def test_every_replay_goes_to_the_drive_and_to_nothing_else(timing: Timing) -> None:
    said = options(archive("/dev/sdb", [Replay(few(), 4)], timing, writes=True))
    assert "replay_redirect=/dev/sdb" in said
    assert {"direct=1", "allow_mounted_write=0", "allow_file_create=0"} <= said


def test_as_fast_as_possible_is_one_job_with_a_deep_queue() -> None:
    packed = archive("/dev/sdb", [Replay(few(), 4)], "fast", writes=True)
    assert {"ioengine=libaio", "iodepth=4", "replay_no_stall=1"} <= options(packed)
    assert set(unpacked(packed)) == {"job.fio", "replay0.0.iolog"}


def test_the_times_of_requests_are_logged_where_the_drive_is_not_queued_for() -> None:
    for queued in (True, False):
        said = options(archive("/dev/sdb", [Replay(few(), 4, queued)], "fast", writes=True))
        assert ("write_lat_log=replay0.0" in said) is not queued
        assert ("iodepth=1" in said) is not queued


def test_the_next_replay_waits_for_the_one_before_and_has_a_depth_and_a_log_of_its_own() -> None:
    both = [Replay(few(), 4, False, depth=1), Replay(few(), 4, depth=32)]
    path = "/sys/block/sdb/device/queue_depth"
    text = job_text("/dev/sdb", both, "fast", writes=True, depth_path=path)
    common, first, second = re.split(r"\n\[replay[01]\.0\]\n", text)
    assert ("stonewall" in first, "stonewall" in second) == (False, True)
    assert f"exec_prerun=echo 1 > {path} || true && cat {path}" in first
    assert f"exec_prerun=echo 32 > {path} || true && cat {path}" in second
    assert "write_lat_log" not in common + second
    assert "write_lat_log=replay0.0" in first


def test_a_depth_path_that_the_shell_would_read_as_something_else_is_refused() -> None:
    with pytest.raises(
        Misuse, match="queue depth attribute '/sys/a; b': expected an absolute path"
    ):
        job_text(
            "/dev/sdb", [Replay(few(), 1, depth=1)], "fast", writes=False, depth_path="/sys/a; b"
        )


@pytest.mark.parametrize("replays", [[Replay(few(), 2)] * 2, [Replay(few(), 2, depth=32)]])
def test_with_timing_kept_nothing_comes_before_a_replay(replays: list[Replay]) -> None:
    with pytest.raises(ValueError, match="one replay, at the depth that is set"):
        job_text("/dev/sdb", replays, "kept", writes=True, depth_path="/sys/depth")


def test_with_timing_kept_each_request_in_flight_has_a_thread_and_an_iolog() -> None:
    packed = archive("/dev/sdb", [Replay(few(), 2)], "kept", writes=True)
    assert {"ioengine=psync", "replay_no_stall=0", "[replay0.1]"} <= options(packed)
    logs = {name: text for name, text in unpacked(packed).items() if name != "job.fio"}
    assert sorted(logs) == ["replay0.0.iolog", "replay0.1.iolog"]
    requests = [
        joined([piece.trace for piece in read_iolog(io.BytesIO(text), name)])
        for name, text in sorted(logs.items())
    ]
    # fio ignores the delay that follows a time of 0, so that all are a microsecond later.
    assert joined(requests).by_time().time_us.tolist() == (few().time_us + 1).tolist()
    assert requests[0].time_us.tolist() == [4, 501, 1001]
    assert all(b"\n1 /proc/redirect-me open\n" in text for text in logs.values())


def test_no_lane_is_empty_or_only_syncs() -> None:
    assert [len(lane) for lane in Replay(few(), 32).lanes("kept")] == [1] * 5


@pytest.mark.parametrize("node", ["sdb", "/dev/sd b", "/dev/sdb\nrw=write", ""])
def test_a_node_that_fio_would_read_as_something_else_is_refused(node: str) -> None:
    with pytest.raises(Misuse, match="expected an absolute path"):
        job_text(node, [Replay(few(), 1)], "fast", writes=False)


def test_colons_of_a_node_are_escaped() -> None:
    assert "replay_redirect=/dev/disk/by-path/pci-0000\\:00" in job_text(
        "/dev/disk/by-path/pci-0000:00", [Replay(few(), 1)], "fast", writes=False
    )
