"""`leadline judge` as a user meets it: output, messages and exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.cli import main
from selftests.recorded_files import fio2, fio3, text_of, write_sweep

REAL = Path(__file__).parents[2] / "shared" / "realdata" / "fio_json"
PARALLEL = {1: 7000.0, 2: 13_900.0, 4: 26_000.0, 8: 45_000.0, 16: 52_000.0, 32: 52_100.0}
SERIAL = {1: 4200.0, 2: 4700.0, 4: 4800.0, 8: 4850.0, 16: 4860.0, 32: 4850.0}
DISK = {1: 120.0, 2: 122.0, 4: 128.0, 8: 142.0, 16: 165.0, 32: 190.0}
USUAL = "depth_8_over_depth_1"
MATRIX = """\
classes:
  ssd:
    depth_8_over_depth_1: {at_least: 5, source: the class}
  hdd:
    depth_32_over_depth_1: {at_least: 1.3, source: the class}
models:
  - model: QUICK SSD
    class: ssd
    protocol: sata
    queue_depth: 32
    limits:
      depth_8_over_depth_1: {at_least: 9, source: the model}
    firmware:
      - {revision: "1", status: released}
"""


def judged(
    capsys: pytest.CaptureFixture[str], directory: Path, *options: str
) -> tuple[int, dict[str, Any]]:
    code = main(["judge", "--json", *options, str(directory)])
    return code, json.loads(capsys.readouterr().out)


def outcomes(document: dict[str, Any]) -> dict[str, str]:
    found = {verdict["claim"]: verdict["outcome"] for verdict in document["verdicts"]}
    return found | {each["claim"]: "unsupported" for each in document["unsupported"]}


@pytest.fixture
def matrix(tmp_path: Path) -> str:
    path = tmp_path / "matrix.yaml"
    path.write_text(MATRIX)
    return str(path)


def test_the_command_prints_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = write_sweep(tmp_path / "sweep", PARALLEL)
    (sweep / "broken.json").write_text("")
    (sweep / "notes.txt").write_text("by hand")
    code, document = judged(capsys, sweep)
    assert code == 0
    assert list(document) == [
        "directory",
        "class",
        "class_from",
        "verdicts",
        "unsupported",
        "refused",
        "points",
        "suspects",
        "ignored",
    ]
    assert (document["directory"], document["class"]) == (str(sweep), "ssd")
    verdict = document["verdicts"][-1]
    assert (verdict["claim"], verdict["rw"], verdict["outcome"]) == (USUAL, "randread", "PASS")
    assert (verdict["reason"], verdict["threshold"], verdict["direction"]) == ("settled", 3, ">=")
    assert verdict["estimate"] == pytest.approx(45 / 7)
    assert verdict["low"] < 45 / 7 < verdict["high"]
    assert verdict["files"] == ["randread-d.json", "randread-a.json"]
    assert "recorded sweeps" in verdict["source"]
    assert verdict["explanation"].startswith("PASS: ")
    assert document["refused"] == [
        {"file": "broken.json", "why": "it is empty: fio wrote nothing into it; run it again"}
    ]
    assert document["ignored"] == ["notes.txt"]
    point = document["points"][3]
    assert point["mean_latency_s"] == pytest.approx(8 / 45_000, rel=0.02)
    assert point["little_ratio"] == pytest.approx(1, abs=0.02)
    del point["mean_latency_s"], point["little_ratio"]
    assert point == {
        "file": "randread-d.json",
        "rw": "randread",
        "depth": 8,
        "offered_depth": 8,
        "rate": 45_000,
        "fio_version": "fio-3.33",
        "engine": "libaio",
        "block_bytes": 4096,
        "seconds": 60,
        "voids": [],
        "notes": [],
    }


def test_the_table_says_the_same_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = write_sweep(tmp_path / "sweep", {**SERIAL, 32: 3000.0})
    (sweep / "broken.json").write_text("")
    (sweep / "w.json").write_text(text_of(fio3(5000, 8, "randwrite", direct="0")))
    assert main(["judge", str(sweep)]) == 1
    said = capsys.readouterr().out
    for piece in (
        "class ssd (guessed: a random read at depth 1 takes 0.212 ms (randread-a.json)",
        "  randread       8      4850.0    1.647",
        "queueing: FAIL: not queueing: ",
        f"{USUAL}: FAIL: ",
        "not judged:\n",
        "  ready_s: a recorded depth sweep says nothing of it\n",
        f"  random_write_{USUAL} (randwrite): no limit for this class",
        "collapse: randread-f.json: 38.3% (at least",
        "w.json (void)",
        "w.json: page-cache: direct=1 is not set",
        "refused:\n  broken.json: it is empty",
        "\n2 FAIL\n",
    ):
        assert piece in said


def test_exit_codes_follow_the_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], matrix: str
) -> None:
    passing = write_sweep(tmp_path / "passing", PARALLEL)
    failing = write_sweep(tmp_path / "failing", SERIAL)
    open_ = write_sweep(tmp_path / "open", {**PARALLEL, 8: 3.02 * 7000})
    without_8 = write_sweep(tmp_path / "without", {1: 7000.0, 32: 52_000.0})
    assert judged(capsys, passing)[0] == 0
    assert judged(capsys, failing)[0] == 1
    assert judged(capsys, open_)[0] == 4
    assert judged(capsys, without_8)[0] == 4  # queueing passes, and the limit is not shown to hold
    disk = write_sweep(tmp_path / "disk", DISK)
    without_limit = tmp_path / "without.yaml"
    of_disks = "depth_32_over_depth_1: {at_least"
    without_limit.write_text(MATRIX.replace(of_disks, "ready_s: {at_most"))
    code, document = judged(capsys, disk, "--matrix", str(without_limit))
    assert (code, document["verdicts"]) == (4, [])
    assert judged(capsys, disk, "--matrix", matrix)[0] == 0


def test_nothing_to_judge_among_refused_files_is_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = tmp_path / "sweep"
    sweep.mkdir()
    for name, content in (("a.json", ""), ("b.json", "no\n"), ("c.json", '{"jobs": [{')):
        (sweep / name).write_text(content)
    code, document = judged(capsys, sweep)
    assert code == 2
    assert [each["file"] for each in document["refused"]] == ["a.json", "b.json", "c.json"]
    assert document["class"] == "unknown"
    assert main(["judge", str(sweep)]) == 2
    said = capsys.readouterr().out
    for piece in ("a.json: it is empty", "b.json: it is not fio's", "c.json: it is truncated"):
        assert piece in said


def test_the_class_may_be_given_or_come_from_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], matrix: str
) -> None:
    disk = write_sweep(tmp_path / "disk", DISK)
    code, document = judged(capsys, disk, "--class", "ssd")
    assert (code, document["class"], document["class_from"]) == (1, "ssd", "--class")
    assert outcomes(document)["queueing"] == "FAIL"
    quick = write_sweep(tmp_path / "quick", PARALLEL)
    code, document = judged(capsys, quick, "--model", "QUICK SSD", "--matrix", matrix)
    assert (code, document["class"]) == (1, "ssd")
    assert document["class_from"] == f"--model: {matrix}, model QUICK SSD"
    assert document["verdicts"][-1]["threshold"] == 9
    assert document["verdicts"][-1]["source"] == f"{matrix}, model QUICK SSD: the model"
    code, document = judged(capsys, quick, "--class", "unknown")
    assert (code, document["verdicts"]) == (4, [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "NO SUCH"], "found no 'NO SUCH'"),
        (["--matrix", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_code_2(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = write_sweep(tmp_path / "sweep", PARALLEL)
    assert main(["judge", *options, str(sweep)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def test_a_directory_of_directories_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sweep(tmp_path / "one", PARALLEL)
    assert main(["judge", str(tmp_path)]) == 2
    assert f"  leadline judge {tmp_path / 'one'}" in capsys.readouterr().err


def test_a_sweep_of_fio_2_is_judged_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for depth, rate in PARALLEL.items():
        (tmp_path / f"{depth}.json").write_text(text_of(fio2(rate, depth)))
    code, document = judged(capsys, tmp_path)
    assert (code, outcomes(document)[USUAL]) == (0, "PASS")
    assert {point["fio_version"] for point in document["points"]} == {"fio-2.18"}


def test_an_end_that_nobody_knows_is_null_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for depth, rate in ((1, 7000), (8, 45_000)):
        (tmp_path / f"{depth}.json").write_text(text_of(fio3(rate, depth, cpu=12.0 * depth)))
    code, document = judged(capsys, tmp_path)
    assert code == 0
    assert document["verdicts"][-1]["high"] is None


def test_writes_are_judged_when_their_preconditioning_is_vouched_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = write_sweep(tmp_path / "sweep", {1: 12_000.0, 8: 45_000.0}, "randwrite")
    path = tmp_path / "matrix.yaml"
    limit = f"random_write_{USUAL}: {{at_least: 2"
    path.write_text(MATRIX.replace(f"{USUAL}: {{at_least: 5", limit))
    options = ("--matrix", str(path), "--class", "ssd")
    code, document = judged(capsys, sweep, *options)
    assert (code, document["verdicts"]) == (4, [])
    code, document = judged(capsys, sweep, *options, "--preconditioned")
    assert outcomes(document) == {f"random_write_{USUAL}": "PASS", "queueing": "unsupported"}
    assert code == 4  # the drive's class has to queue, and there are no reads to show it


WRITES = f"random_write_{USUAL}"
OF_A_DISK = {"queueing": "unsupported"}
EXPECTED = {
    "AHCI_HDD_WD740GD_RUN1": (
        "hdd",
        4,
        OF_A_DISK | {USUAL: "INCONCLUSIVE", WRITES: "INCONCLUSIVE"},  # requests timed out
    ),
    "AHCI_HDD_WD740GD_RUN2": ("hdd", 0, OF_A_DISK | {USUAL: "PASS", WRITES: "PASS"}),
    "AHCI_INTEL_D3-S4610": ("ssd", 0, {"queueing": "PASS", USUAL: "PASS"}),
    "AHCI_SAMSUNG_PM833_MZ7LH480": ("ssd", 0, {"queueing": "PASS", USUAL: "PASS"}),
    "SATA300_SAMSUNG_860PRO": ("ssd", 0, {"queueing": "PASS", USUAL: "PASS"}),
    "SATA_CRUCIAL250_RUN1": ("ssd", 0, {"queueing": "PASS", USUAL: "PASS"}),
    "USB_CRUCIAL_240GB": ("ssd", 1, {"queueing": "FAIL", USUAL: "FAIL"}),
}


@pytest.mark.skipif(not REAL.is_dir(), reason="the real sweeps are not here")
@pytest.mark.parametrize("name", EXPECTED)
def test_real_sweeps_are_judged_by_their_class(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class_, expected_code, expected = EXPECTED[name]
    code, document = judged(capsys, REAL / name)
    assert (document["class"], code) == (class_, expected_code)
    assert document["refused"] == document["ignored"] == []
    found = outcomes(document)
    assert found.keys() >= {*expected, WRITES, "ready_s"}
    assert found == dict.fromkeys(found, "unsupported") | expected
    assert {each["kind"] for each in document["suspects"]} <= {"stall"}
    assert len(document["points"]) == len(list((REAL / name).iterdir()))


@pytest.mark.skipif(not REAL.is_dir(), reason="the real files are not here")
@pytest.mark.parametrize("name", ["invalid_json", "local_fio3.33_pitfalls"])
def test_real_broken_files_are_all_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = judged(capsys, REAL / name)
    assert (code, document["verdicts"]) == (2, [])
    named = {each["file"] for each in document["refused"]}
    named |= {point["file"] for point in document["points"] if point["voids"] or point["notes"]}
    assert named == {path.name for path in (REAL / name).iterdir()}
