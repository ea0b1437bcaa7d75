"""What fio leaves behind, in the forms in which it has been seen to leave it."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import RigTrouble
from leadline.load.fio import check_batch, slices_of
from leadline.load.output import Batch, parse_log, read_batch, split_output
from leadline.load.slices import DEVICE_DEPTH, DRIVE_DEPTH, IO_ERRORS, SliceSetting

REAL = Path(__file__).parents[2] / "shared" / "realdata" / "fio_json"
CLOCK_MS = 1_800_000_000_000


def job(name: str, *, total_ios: int = 420, error: int = 0, **more: Any) -> dict[str, Any]:
    read = {"total_ios": total_ios}
    figures = {"usr_cpu": 2.0, "sys_cpu": 3.0, "job_runtime": 520}
    return {"jobname": name, "error": error, "read": read} | figures | more


def output_of(*jobs: dict[str, Any]) -> str:
    return json.dumps({"fio version": "fio-3.33", "jobs": list(jobs)}, indent=2)


def steady_log(start_ms: int, *, every_us: int = 1250, latency_ms: int = 20) -> bytes:
    """800 requests a second for half a second, each 20 ms in flight: 16 in flight."""
    count = 520_000 // every_us
    lines = []
    for n in range(count):
        done_us = 1000 * start_ms + (n + 1) * every_us
        latency_ns = min(latency_ms * 1_000_000, (n + 1) * every_us * 1000)
        lines.append(f"{done_us // 1000}, {latency_ns}, 0, 4096, 0")
    return "\n".join(lines).encode() + b"\n"


def archive(files: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def pair_files() -> dict[str, str | bytes]:
    return {
        "exit-code": "0\n",
        "fio.out": "s00.0 : Saving output of prerun in s00.0.prerun.txt\n",
        "output.json": output_of(job("s00.0", total_ios=416), job("s01.0", total_ios=416)),
        "s00.0_lat.1.log": steady_log(CLOCK_MS),
        "s01.0_lat.2.log": steady_log(CLOCK_MS + 540),
        "s00.0.prerun.txt": "8\n",
        "s01.0.prerun.txt": "8\n",
    }


def batch_of(changes: dict[str, str | bytes] | None = None) -> Batch:
    return read_batch(archive(pair_files() | (changes or {})))


SETTINGS = (SliceSetting(8, 16), SliceSetting(8, 16))


def test_a_healthy_batch() -> None:
    slices = slices_of(batch_of(), SETTINGS, (7, 8))
    assert [each.voids for each in slices] == [(), ()]
    first, second = slices
    assert first.rate == pytest.approx(800, rel=0.01)
    assert first.mean_latency_s == pytest.approx(0.02)
    assert first.little_ratio == pytest.approx(1.0, abs=0.01)
    assert first.began == pytest.approx(CLOCK_MS / 1e3, abs=0.002)
    assert first.gap_s is None
    assert first.started == 0.0
    assert second.started == pytest.approx(0.54)
    assert second.gap_s == pytest.approx(0.02, abs=0.002)
    assert second.drain_s == pytest.approx(0.02, abs=0.002)
    assert (second.seed, second.device_depth, second.fio_version) == (8, 8, "fio-3.33")
    assert second.cpu == pytest.approx(0.05)


def test_the_depth_of_several_drives_is_that_of_one_that_did_not_take_it() -> None:
    for text, depth in (("8\n8\n", 8), ("8\n4\n", 4), ("16\n8\n", 16)):
        (first, _) = slices_of(batch_of({"s00.0.prerun.txt": text}), SETTINGS, (7, 8))
        assert first.device_depth == depth
        assert first.voids == (() if depth == 8 else (DEVICE_DEPTH,))
    with pytest.raises(RigTrouble, match="could not be set"):
        slices_of(batch_of({"s00.0.prerun.txt": "8\nsh: write error\n8\n"}), SETTINGS, (7, 8))


def test_what_the_drive_held_is_counted_inside_the_window_alone() -> None:
    begins = CLOCK_MS / 1e3
    idle = [(begins + 0.01 * n, 0) for n in (0, 5, 9, 51, 53)]  # warm-up, and between slices
    busy = [(begins + 0.1 + 0.05 * n, 7 + n % 2) for n in range(8)]
    first, second = slices_of(batch_of(), SETTINGS, (7, 8), sorted(idle + busy))
    assert first.drive_depth == 7.5
    assert second.drive_depth is None, "nobody counted in it"
    few = slices_of(batch_of(), SETTINGS, (7, 8), busy[:4])
    assert few[0].drive_depth is None
    (late, _) = slices_of(batch_of(), SETTINGS, (7, 8), [(at, 3) for at, _ in busy])
    assert late.voids == (DRIVE_DEPTH,)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("note: both iodepth >= 1 and synchronous I/O engine are selected\n", ""),
        ("\nfio: terminating on signal 2\n", ""),
        ("", "\nfio: pid=12, err=5/file:io_u.c\n"),
        ("{ not JSON\n", "trailing }\n"),
    ],
)
def test_notes_around_the_document_are_kept_apart(before: str, after: str) -> None:
    document, notes = split_output(before + output_of(job("s00.0")) + after)
    assert document is not None
    assert document["jobs"][0]["jobname"] == "s00.0"
    assert (before + after).strip() == notes.strip()


@pytest.mark.parametrize("text", ["", "fio: bad option\n", "{", '{"jobs": 3}', "[]", "{}"])
def test_text_without_a_document_is_said_as_it_is(text: str) -> None:
    assert split_output(text) == (None, text)


def test_fio_without_json_is_the_rigs_trouble_and_says_what_fio_said() -> None:
    with pytest.raises(RigTrouble, match=r"exit code 1 and no JSON.*Bad option <frob>"):
        batch_of({"output.json": "fio: Bad option <frob>\n", "exit-code": "1\n"})


@pytest.mark.parametrize("missing", ["exit-code", "output.json"])
def test_a_missing_file_is_the_rigs_trouble(missing: str) -> None:
    files = pair_files()
    del files[missing]
    with pytest.raises(RigTrouble, match="fio left no result"):
        read_batch(archive(files))


def test_an_archive_cut_short_is_the_rigs_trouble() -> None:
    with pytest.raises(RigTrouble, match="cannot be read"):
        read_batch(archive(pair_files())[:3000])
    with pytest.raises(RigTrouble, match="cannot be read"):
        read_batch(b"mktemp: failed")


def test_logs_of_several_fio_versions() -> None:
    assert parse_log(b"100, 2000000, 0, 4096\n") == [(0.1, 0.002)]
    assert parse_log(b"100, 2000000, 0, 4096, 0, 0x0000\n") == [(0.1, 0.002)]
    assert parse_log(b"") == []


@pytest.mark.parametrize("line", [b"1800000000123", b"x, 1, 0, 4096", b"1, , 0"])
def test_a_log_cut_short_is_not_read_as_if_it_were_whole(line: bytes) -> None:
    with pytest.raises(RigTrouble, match="line 2"):
        parse_log(b"100, 2000000, 0, 4096\n" + line)


@pytest.mark.parametrize("line", [b"200, -5, 0, 4096", b"-200, 5, 0, 4096"])
def test_a_request_that_took_less_than_no_time_is_refused(line: bytes) -> None:
    with pytest.raises(RigTrouble, match=r"line 2: .* is no request: .*negative"):
        parse_log(b"100, 2000000, 0, 4096\n" + line)


def test_a_latency_of_0_is_a_coarse_clocks() -> None:
    assert parse_log(b"100, 0, 0, 4096\n") == [(0.1, 1e-9)]


def test_a_failed_request_voids_its_slice_alone() -> None:
    output = output_of(job("s00.0", total_ios=10, error=5), job("s01.0", total_ios=416))
    batch = batch_of({"output.json": output, "exit-code": "1\n"})
    check_batch(batch, "bench: /dev/sda")
    first, second = slices_of(batch, SETTINGS, (7, 8))
    assert first.voids == (IO_ERRORS,)
    assert first.error == "Input/output error"
    assert second.voids == ()


def test_a_drive_that_fails_every_request_is_no_trouble_of_the_rig() -> None:
    output = output_of(job("s00.0", error=5, total_ios=0), job("s01.0", error=5, total_ios=0))
    logs: dict[str, str | bytes] = {"s00.0_lat.1.log": b"", "s01.0_lat.2.log": b""}
    batch = batch_of({"output.json": output, "exit-code": "1\n", **logs})
    check_batch(batch, "bench: /dev/sda")
    slices = slices_of(batch, SETTINGS, (7, 8))
    assert [each.voids for each in slices] == [(IO_ERRORS,), (IO_ERRORS,)]
    assert [each.rate for each in slices] == [0.0, 0.0]


def test_a_slice_in_which_no_request_was_done_did_not_start_in_1970() -> None:
    output = output_of(job("s00.0", total_ios=416), job("s01.0", error=5, total_ios=0))
    changes: dict[str, str | bytes] = {"output.json": output, "s01.0_lat.2.log": b""}
    first, second = slices_of(batch_of(changes), SETTINGS, (7, 8))
    assert (first.started, second.started) == (0.0, 0.0)
    assert second.voids == (IO_ERRORS,)


def test_a_slice_of_two_threads_counts_from_when_both_are_at_work() -> None:
    output = output_of(job("s00.0", total_ios=416), job("s00.1", total_ios=416))
    late = steady_log(CLOCK_MS + 150)
    batch = batch_of({"output.json": output, "s00.1_lat.2.log": late})
    (both,) = slices_of(batch, [SliceSetting(8, 32, jobs=2)], (7,))
    assert both.requests == 832
    assert both.rate == pytest.approx(1600, rel=0.02)
    assert both.little_ratio == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("error", [0, 16])
def test_a_batch_in_which_nothing_ran_is_the_rigs_trouble(error: int) -> None:
    """`"error": 0` has been seen with exit code 1: a device that fio may not open."""
    output = "fio: file creation disallowed\n" + output_of(job("s00.0", total_ios=0, error=error))
    logs: dict[str, str | bytes] = {"s00.0_lat.1.log": b"", "s01.0_lat.2.log": b""}
    batch = batch_of({"output.json": output, "exit-code": "1\n", **logs})
    with pytest.raises(RigTrouble, match=r"bench: /dev/sda: .*\n.*creation disallowed"):
        check_batch(batch, "bench: /dev/sda")


def test_a_refused_depth_is_the_rigs_trouble_and_a_clamped_one_voids() -> None:
    clamped = slices_of(batch_of({"s01.0.prerun.txt": "31\n"}), SETTINGS, (7, 8))
    assert [each.voids for each in clamped] == [(), (DEVICE_DEPTH,)]
    refused = batch_of({"s01.0.prerun.txt": "turn.sh: 14: echo: echo: I/O error\n31\n"})
    with pytest.raises(RigTrouble, match=r"depth 8 could not be set.*I/O error"):
        slices_of(refused, SETTINGS, (7, 8))


def test_a_slice_of_two_jobs_is_one_slice() -> None:
    files = pair_files()
    files["s00.1_lat.2.log"] = files.pop("s01.0_lat.2.log")
    files["s00.1_lat.2.log"] = steady_log(CLOCK_MS)
    files["output.json"] = output_of(job("s00.0", total_ios=416), job("s00.1", total_ios=416))
    slices = slices_of(read_batch(archive(files)), [SliceSetting(8, 32, jobs=2)], [7])
    assert slices[0].voids == ()
    assert slices[0].rate == pytest.approx(1600, rel=0.01)


@pytest.mark.skipif(not REAL.is_dir(), reason="no recorded fio output here")
@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("local_fio3.33_pitfalls/o1.json", True),
        ("local_fio3.33_pitfalls/o6.json", True),
        ("local_fio3.33_pitfalls/o7.json", True),
        ("local_fio3.33_pitfalls/ss.json", True),
        ("local_fio3.33_pitfalls/c.json", False),
        ("invalid_json/party_fio_1m_write-64-8.json", False),
        ("invalid_json/benchmark_script_test_zda_randread-1-1.json", False),
    ],
)
def test_recorded_output_is_read_or_refused(name: str, readable: bool) -> None:
    document, _ = split_output((REAL / name).read_text("utf-8", "replace"))
    assert (document is not None) == readable
