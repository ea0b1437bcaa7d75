"""A directory of recorded files: what belongs together, and what is said of the rest."""

from pathlib import Path

import pytest

from leadline.errors import Misuse
from leadline.load.recorded import LARGEST_FILE, read_directory
from selftests.recorded_files import fio3, text_of, write_sweep

RATES = {1: 5000.0, 2: 9900.0, 4: 19_000.0, 8: 32_000.0, 16: 34_000.0}


def put(
    directory: Path, name: str, rate: float, depth: int, rw: str = "randread", **asked: str
) -> None:
    (directory / name).write_text(text_of(fio3(rate, depth, rw, asked=asked)))


def refused(directory: Path) -> dict[str, str]:
    return {each.file: each.why for each in read_directory(directory).refused}


def depths(directory: Path, rw: str = "randread") -> list[int]:
    runs = read_directory(directory).runs
    return [run.offered_depth for run in runs if run.asked.rw == rw]


def test_depth_comes_from_the_files_and_never_from_their_names(tmp_path: Path) -> None:
    put(tmp_path, "randread-1-1.json", 32_000, 8)
    put(tmp_path, "randread-8-1.json", 5000, 1)
    runs = read_directory(tmp_path).runs
    assert [(run.offered_depth, run.file) for run in runs] == [
        (1, "randread-8-1.json"),
        (8, "randread-1-1.json"),
    ]


def test_reads_and_writes_are_sweeps_of_their_own(tmp_path: Path) -> None:
    write_sweep(tmp_path, RATES)
    write_sweep(tmp_path, {1: 9000.0, 8: 9100.0}, "randwrite")
    assert depths(tmp_path) == [1, 2, 4, 8, 16]
    assert depths(tmp_path, "randwrite") == [1, 8]
    assert refused(tmp_path) == {}


def test_a_broken_file_among_good_ones_is_refused_by_name_and_the_rest_stands(
    tmp_path: Path,
) -> None:
    write_sweep(tmp_path, RATES)
    (tmp_path / "x.json").write_text("")
    (tmp_path / "y.json").write_text("fio: no\n")
    assert depths(tmp_path) == [1, 2, 4, 8, 16]
    found = refused(tmp_path)
    assert list(found) == ["x.json", "y.json"]
    assert "empty" in found["x.json"]


def test_files_of_another_drive_are_refused(tmp_path: Path) -> None:
    write_sweep(tmp_path, RATES)
    put(tmp_path, "other.json", 50_000, 32, filename="/dev/sdy")
    assert refused(tmp_path) == {
        "other.json": "a mixture of devices: it has /dev/sdy, and 5 of 6 files have /dev/sdx; "
        "keep one drive a directory"
    }
    assert depths(tmp_path) == [1, 2, 4, 8, 16]


def test_when_no_drive_has_most_files_all_are_refused(tmp_path: Path) -> None:
    for number, node in enumerate(["/dev/sda", "/dev/sda", "/dev/sdb", "/dev/sdb"]):
        put(tmp_path, f"{number}.json", 5000, 1 + number, filename=node)
    found = refused(tmp_path)
    assert len(found) == 4
    assert "the files have /dev/sda, /dev/sdb, none of them most" in found["0.json"]


def test_block_sizes_are_compared_within_one_load(tmp_path: Path) -> None:
    write_sweep(tmp_path, RATES)
    put(tmp_path, "big.json", 400, 32, bs="1m")
    put(tmp_path, "sequential.json", 400, 32, "read", bs="1m")
    found = refused(tmp_path)
    assert list(found) == ["big.json"]
    assert "a mixture of block sizes of randread: it has 1048576 bytes" in found["big.json"]
    assert depths(tmp_path, "read") == [32]


def test_a_depth_given_twice_is_refused_in_both_files(tmp_path: Path) -> None:
    write_sweep(tmp_path, RATES)
    put(tmp_path, "again.json", 31_000, 4, numjobs="2")  # 4 x 2 offers 8, too
    found = refused(tmp_path)
    assert sorted(found) == ["again.json", "randread-d.json"]
    assert "offers randread at depth 8 (iodepth 4, 2 job(s), libaio)" in found["again.json"]
    assert "so does again.json" in found["randread-d.json"]
    assert depths(tmp_path) == [1, 2, 4, 16]


def test_a_synchronous_sweep_is_depth_1_many_times(tmp_path: Path) -> None:
    for depth in (1, 8):
        document = fio3(5000, depth, in_flight=1, ioengine="psync")
        (tmp_path / f"{depth}.json").write_text(text_of(document))
    assert "at depth 1 (iodepth 8, 1 job(s), psync)" in refused(tmp_path)["8.json"]


def test_a_file_is_known_by_its_content_and_other_files_are_named(tmp_path: Path) -> None:
    write_sweep(tmp_path, {1: 5000.0})
    put(tmp_path, "deep.out", 32_000, 8)
    (tmp_path / "job_lat.1.log").write_text("1, 2, 3\n")
    (tmp_path / "older").mkdir()
    recording = read_directory(tmp_path)
    assert depths(tmp_path) == [1, 8]
    assert recording.ignored == ("job_lat.1.log", "older/")
    assert recording.refused == ()


def test_a_file_too_large_to_be_one_runs_results_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    assert "larger than 64 MiB" in refused(tmp_path)["huge.json"]


def test_sub_directories_are_named_as_the_remedy(tmp_path: Path) -> None:
    write_sweep(tmp_path / "run1", RATES)
    write_sweep(tmp_path / "run2", RATES)
    with pytest.raises(Misuse) as caught:
        read_directory(tmp_path)
    assert "only directories" in str(caught.value)
    for name in ("run1", "run2"):
        assert f"leadline judge {tmp_path / name}" in str(caught.value)


def test_a_directory_without_anything_to_read_is_a_misuse(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="no file of fio's in it; write its results there"):
        read_directory(tmp_path)
    with pytest.raises(Misuse, match="No such file or directory"):
        read_directory(tmp_path / "none")
    put(tmp_path, "a.json", 5000, 1)
    with pytest.raises(Misuse, match="a file; name the directory"):
        read_directory(tmp_path / "a.json")


def test_names_are_shown_without_their_escape_sequences(tmp_path: Path) -> None:
    (tmp_path / "\x1b[2Ja.json").write_text("")
    assert list(refused(tmp_path)) == ["[2Ja.json"]
