"""Batches by the real fio on this machine: on a file, and on a drive model that fails reads."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.host.connection import Host, open_host
from leadline.host.trouble import DeadlinePassed
from leadline.inventory.rig import HostSpec
from leadline.load.fio import run_slices
from leadline.load.slices import FIO_CPU, IO_ERRORS, LITTLES_LAW, Slice, SliceSetting
from leadline.load.workload import Workload, random_read, sequential_read
from leadline.virtual.request_log import read_request_log

pytestmark = [
    pytest.mark.measures,
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
]

SHORT_S = 0.2
FILE_BYTES = 8 << 20
PROFILE = """
model: LEADLINE VSSD
serial: VSSD0009
firmware: "1.0"
capacity_bytes: 8388608
channels: 8
read_ms: 1
write_ms: 1
faults:
  bad_lbas: [0]
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with open_host(HostSpec(reach="local")) as local:
        yield local


@pytest.fixture
def medium(tmp_path: Path) -> Path:
    """Some megabytes that are really there, for reads of holes touch no disk."""
    path = tmp_path / "medium"
    path.write_bytes(os.urandom(FILE_BYTES))
    return path


@pytest.fixture
def depth_path(tmp_path: Path) -> Path:
    """What stands for the kernel's attribute."""
    path = tmp_path / "queue_depth"
    path.write_text("32\n")
    return path


def left_behind() -> set[str]:
    return {path.name for path in Path("/dev/shm").glob("leadline-slices.*")}


def spoilt(measured: Slice) -> set[str]:
    """What voids a slice, the load on the machine that runs this test left aside."""
    return set(measured.voids) - {FIO_CPU}


def test_slices_run_one_after_the_other_each_at_its_own_depth(
    host: Host, medium: Path, depth_path: Path
) -> None:
    depths = (1, 8, 8, 1)
    settings = [SliceSetting(depth, 2 * depth, SHORT_S) for depth in depths]
    seen: list[Slice] = []
    before = left_behind()
    slices = run_slices(
        host,
        str(medium),
        random_read(),
        settings,
        depth_path=str(depth_path),
        seeds=(11, 12, 13, 14),
        on_slice=seen.append,
    )
    assert seen == slices
    assert [each.device_depth for each in slices] == list(depths)
    assert [each.seed for each in slices] == [11, 12, 13, 14]
    assert all(not spoilt(each) for each in slices)
    assert all(each.rate > 100 for each in slices)
    assert slices[0].gap_s is None
    assert all(each.gap_s is not None and each.gap_s >= 0 for each in slices[1:])
    assert depth_path.read_text() == "1\n"
    assert left_behind() == before


def test_several_jobs_share_a_slice(host: Host, medium: Path, depth_path: Path) -> None:
    settings = [
        SliceSetting(8, 8, SHORT_S, jobs=2),
        SliceSetting(None, 4, SHORT_S),
        SliceSetting(4, 6, SHORT_S, jobs=3),
    ]
    slices = run_slices(
        host,
        str(medium),
        random_read(),
        settings,
        depth_path=str(depth_path),
        seeds=(1, 2, 3),
    )
    assert [spoilt(each) for each in slices] == [set()] * 3
    assert [each.device_depth for each in slices] == [8, None, 4]
    assert depth_path.read_text() == "4\n"


@pytest.mark.parametrize("attribute", ["/dev/null", "/missing/queue_depth"])
def test_a_depth_that_cannot_be_set_is_the_rigs_trouble(
    host: Host, medium: Path, attribute: str
) -> None:
    """One attribute gives nothing back, the other is not there; neither stops the turns."""
    with pytest.raises(RigTrouble, match="depth 8 could not be set"):
        run_slices(
            host,
            str(medium),
            random_read(),
            [SliceSetting(8, 16, SHORT_S)] * 2,
            depth_path=attribute,
            seeds=(1, 2),
        )


def test_a_device_that_is_not_there_is_the_rigs_trouble_and_is_not_made(
    host: Host, tmp_path: Path
) -> None:
    """Given a size, fio would make a file of that name: in /dev, instead of a lost drive."""
    node = tmp_path / "sdz"
    with pytest.raises(RigTrouble, match="fio ran no slice"):
        run_slices(
            host,
            str(node),
            Workload("w", rw="randwrite", span=(0, FILE_BYTES)),
            [SliceSetting(None, 4, SHORT_S)] * 2,
            depth_path=None,
            seeds=(1, 2),
        )
    assert not node.exists()


def test_a_deadline_ends_everything_on_the_rig(host: Host, medium: Path) -> None:
    before = left_behind()
    with pytest.raises(DeadlinePassed, match=r"slices of 90 s in all within 0\.8 s"):
        run_slices(
            host,
            str(medium),
            random_read(),
            [SliceSetting(None, 4, 30.0)] * 3,
            depth_path=None,
            seeds=(1, 2, 3),
            deadline=0.8,
        )
    assert left_behind() == before
    listed = host.run(["ps", "-eo", "args"], deadline=10).stdout.decode()
    assert str(medium) not in listed
    assert "turn.sh" not in listed


def test_what_a_killed_batch_left_goes_with_the_next_and_a_live_ones_stays(
    host: Host, medium: Path
) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = Path(f"/dev/shm/leadline-slices.{dead.pid}")
    live = Path(f"/dev/shm/leadline-slices.{os.getpid()}")
    left.mkdir()
    live.mkdir()
    try:
        run_slices(
            host,
            str(medium),
            random_read(),
            [SliceSetting(None, 1, 0.11)],
            depth_path=None,
            seeds=[1],
        )
        assert not left.exists()
        assert live.exists()
    finally:
        live.rmdir()


@contextmanager
def drive_model(directory: Path) -> Iterator[Path]:
    """A drive model whose first block cannot be read, as a file; its log is there at the end."""
    if not Path("/dev/fuse").exists():
        pytest.skip("no FUSE on this machine")
    profile = directory / "profile.yaml"
    profile.write_text(PROFILE)
    argv = [sys.executable, "-m", "leadline.virtual.medium", "--profile", str(profile)]
    argv += ["--state", str(directory), "--mount", str(directory / "mnt")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().strip() == "ready"
            yield directory / "mnt" / "medium"
        finally:
            process.terminate()


def test_a_read_that_fails_voids_its_slice_and_the_next_takes_its_turn(
    host: Host, tmp_path: Path
) -> None:
    bad = Workload("bad", rw="randread", span=(0, 4096))
    with drive_model(tmp_path) as medium:
        slices = run_slices(
            host,
            str(medium),
            bad,
            [SliceSetting(None, 4, SHORT_S)] * 2,
            depth_path=None,
            seeds=(1, 2),
        )
    assert [each.voids for each in slices] == [(IO_ERRORS,)] * 2
    assert slices[0].error == "Input/output error"


def test_the_same_seed_reads_the_same_places(host: Host, tmp_path: Path) -> None:
    """Each batch has a span of its own, by which the drive's log is told apart."""
    size = 1 << 20
    seeds = (5, 5, 6)
    with drive_model(tmp_path) as medium:
        for number, seed in enumerate(seeds, 1):
            run_slices(
                host,
                str(medium),
                Workload("some", span=(number * size, size)),
                [SliceSetting(None, 1, 0.15)],
                depth_path=None,
                seeds=[seed],
            )
    requests = read_request_log(tmp_path / "requests.jsonl")
    reads = [divmod(each.lba * 512, size) for each in requests if each.op == "read"]
    first, again, other = (
        [at for span, at in reads if span == number][:10] for number in (1, 2, 3)
    )
    assert len(first) == 10
    assert first == again
    assert first != other


def test_each_stream_reads_its_zone_from_front_to_back(host: Host, tmp_path: Path) -> None:
    block, zone = 128 << 10, FILE_BYTES // 4
    streams = replace(sequential_read(FILE_BYTES), span=(zone, FILE_BYTES - zone))
    with drive_model(tmp_path) as medium:
        (measured,) = run_slices(
            host,
            str(medium),
            streams,
            [SliceSetting(None, 3, SHORT_S, jobs=3)],
            depth_path=None,
            seeds=[1],
        )
    assert not spoilt(measured) - {LITTLES_LAW}, "how late this machine is proves nothing here"
    reads = [each.lba * 512 for each in read_request_log(tmp_path / "requests.jsonl")]
    for number in (1, 2, 3):
        read = [at for at in reads if number * zone <= at < (number + 1) * zone]
        begins = read[0]
        assert set(read) == set(range(begins, (number + 1) * zone, block))
        assert all(then - at == block or then == begins for at, then in pairwise(read))
    assert len(reads) == measured.requests


@pytest.mark.parametrize("seed", [0, 1])
def test_threads_of_one_slice_read_different_places(host: Host, tmp_path: Path, seed: int) -> None:
    with drive_model(tmp_path) as medium:
        run_slices(
            host,
            str(medium),
            random_read((1 << 20, 4 << 20)),
            [SliceSetting(None, 2, SHORT_S, jobs=2)],
            depth_path=None,
            seeds=[seed],
        )
    reads = [each.lba for each in read_request_log(tmp_path / "requests.jsonl")][:20]
    assert len(set(reads)) > 17, "of 1024 places"
