"""`leadline trace` on a virtual rig: replayed with NCQ off and on, and recorded from use."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leadline.drive.bind import bind
from leadline.host.connection import open_host
from leadline.inventory.rig import Rig
from leadline.trace.blkparse import Recorded
from leadline.trace.files import load_trace
from leadline.trace.recording import record
from leadline.trace.trace import READ

pytestmark = pytest.mark.measures

DEADLINE_S = 300.0
CAPACITY = 8_589_934_592
REPLAYED = 120


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of a drive twice as large as the rig's."""
    folder = tmp_path_factory.mktemp("traces")
    words = ("copy-mail-import", "--out", folder, "--capacity", 2 * CAPACITY)
    assert leadline("trace", "generate", *words).returncode == 0
    return folder / "copy-mail-import.iolog.gz"


def leadline(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "leadline.cli", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=DEADLINE_S, env=os.environ
    )


def settings(rig: Rig) -> dict[str, bytes | None]:
    with open_host(rig.host, deadline=60) as host:
        name = bind(host, rig.drive("ssd1")).name
        files = ("device/queue_depth", "queue/scheduler", "queue/nomerges", "queue/nr_requests")
        return host.read_files([f"/sys/block/{name}/{file}" for file in files])


def replayed(rig: Rig, trace: Path, results: Path, *words: str) -> dict[str, Any]:
    before = settings(rig)
    asked = ("--rig", rig.path, "--drive", "ssd1", "--results", results, "--requests", REPLAYED)
    done = leadline("trace", "replay", trace, *asked, "--rounds", "2", "--json", *words)
    assert done.returncode == 0, done.stderr
    assert settings(rig) == before
    return dict(json.loads(done.stdout))


@pytest.mark.long
def test_queueing_gains_on_a_drive_with_channels_and_writes_need_leave(
    shared_rig: Rig, trace: Path, tmp_path: Path
) -> None:
    """Eight channels and nineteen requests in flight: queued, a request waits far less."""
    found = replayed(shared_rig, trace, tmp_path)
    assert (found["ncq_depth"], found["wrote"]) == (32, False)
    (one,) = found["traces"]
    assert one["gain"]["mean"] > 0.4
    assert one["writes"] is None
    assert any(note.startswith("SCALED") for note in one["notes"])
    assert any(note.startswith("reads alone") for note in one["notes"])
    for round_ in one["rounds"]:
        assert round_["off"]["reads"]["count"] == round_["on"]["reads"]["count"] > 0
        # One at a time, a read of 10 ms waits for the eighteen before it.
        assert round_["off"]["reads"]["mean_s"] > 0.06


@pytest.mark.long
def test_with_both_keys_and_its_timing_kept_a_trace_takes_its_time(
    shared_rig: Rig, trace: Path, tmp_path: Path
) -> None:
    found = replayed(shared_rig, trace, tmp_path, "--allow-writes", "--timing", "kept")
    (one,) = found["traces"]
    assert found["wrote"]
    assert one["rounds"][0]["on"]["writes"]["count"] > 0
    assert all(round_["on"]["seconds"] >= 0.95 * one["seconds"] for round_ in one["rounds"])


def test_what_a_drive_is_sent_is_recorded(shared_rig: Rig) -> None:
    with open_host(shared_rig.host, deadline=60) as host:
        node = bind(host, shared_rig.drive("ssd1")).node
        # Reads of 16 KiB, two at a time, for longer than the recording lasts.
        words = ["fio", "--name=work", f"--filename={node}", "--rw=randread", "--bs=16k"]
        words += ["--iodepth=2", "--ioengine=libaio", "--direct=1", "--readonly"]
        words += ["--time_based", "--runtime=60", "--output=/dev/null"]
        with host.start(words):
            found: Recorded = record(host, node, 8)
        left = host.list_dir("/dev/shm")
    sent = found.trace.take(found.trace.length == 16384)
    assert len(sent) > 50
    assert len(sent) / len(found.trace) > 0.9
    assert set(sent.kind.tolist()) == {READ}
    assert found.in_flight >= 2  # more where udev, say, looked at the drive meanwhile
    assert not [name for name in left if name.startswith("leadline-record.")]


def test_the_command_that_records_writes_a_trace_that_is_sound(
    shared_rig: Rig, tmp_path: Path
) -> None:
    path = tmp_path / "idle.iolog.gz"
    with open_host(shared_rig.host, deadline=60) as host:
        node = bind(host, shared_rig.drive("ssd1")).node
        words = ["fio", "--name=work", f"--filename={node}", "--rw=read", "--bs=4k", "--readonly"]
        words += ["--direct=1", "--time_based", "--runtime=60", "--output=/dev/null"]
        with host.start(words):
            asked = ("--rig", shared_rig.path, "--drive", "ssd1", "--seconds", "8")
            done = leadline("trace", "record", path, "--what", "reads of 4 KiB", *asked, "--json")
    assert done.returncode == 0, done.stderr
    trace, header = load_trace(path)
    assert (header.made, header.capacity_bytes) == ("recorded", CAPACITY)
    assert "VSSD0001" in header.where
    assert "blktrace" in header.generator
    assert len(trace) == json.loads(done.stdout)["requests"] > 20
