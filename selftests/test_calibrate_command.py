"""`leadline calibrate` before any rig is touched: usage, and which drives it visits."""

import json
import sqlite3
import subprocess
import sys
from argparse import Namespace
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from leadline.calibration import store
from leadline.cli import main
from leadline.commands import hil
from leadline.commands.calibrate import pytest_words, visits_as_installed
from leadline.errors import Misuse
from leadline.inventory.matrix import load_matrix
from leadline.inventory.rig import load_rig
from leadline.results.record import FILE_NAME, Record
from leadline.verdict.calibration import RigNoise
from selftests.calibrated import calibration, kept_session
from selftests.vendor import MATRIX, RIG
from selftests.visit_world import MATRIX as MATRIX_TEXT
from selftests.visit_world import RIG as RIG_TEXT


@pytest.fixture
def bench_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A bench in the current directory, and a state directory of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench.yaml").write_text(RIG_TEXT)
    (tmp_path / "matrix.yaml").write_text(MATRIX_TEXT)
    return tmp_path


def test_each_drive_is_visited_with_the_firmware_that_is_on_it() -> None:
    """A drive is not flashed for it."""
    visits = visits_as_installed(load_rig(RIG), load_matrix(MATRIX), [])
    assert [(visit.cell.slot, visit.cell.firmware) for visit in visits] == [
        ("ssd1", "1.0"),
        ("scsi1", "1.0"),
    ]
    assert all(visit.installed for visit in visits)


def test_slots_are_chosen_by_name_each_once() -> None:
    visits = visits_as_installed(load_rig(RIG), load_matrix(MATRIX), ["scsi1", "scsi1"])
    assert [visit.cell.slot for visit in visits] == ["scsi1"]


def test_a_slot_that_is_not_there_is_misuse() -> None:
    with pytest.raises(Misuse, match="found no slot 'nine', expected one of: ssd1, scsi1"):
        visits_as_installed(load_rig(RIG), load_matrix(MATRIX), ["nine"])


def test_a_drive_that_the_matrix_does_not_know_is_said(
    bench_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = RIG_TEXT.replace("slot: b, model: MODEL", "slot: b, model: OTHER")
    (bench_files / "bench.yaml").write_text(text)
    rig, matrix = load_rig(bench_files / "bench.yaml"), load_matrix(bench_files / "matrix.yaml")
    assert [visit.cell.slot for visit in visits_as_installed(rig, matrix, [])] == ["a"]
    assert "bench: not calibrated with b: " in capsys.readouterr().err
    with pytest.raises(Misuse, match=r'b: .*matrix.yaml has no model "OTHER"'):
        visits_as_installed(rig, matrix, ["b"])


def test_pytest_is_given_the_packaged_test_once_a_drive(tmp_path: Path) -> None:
    """What `leadline hil` would be told; the words name tests that pytest can find."""
    visits = visits_as_installed(load_rig(RIG), load_matrix(MATRIX), [])
    words = pytest_words(visits, 12.5)
    assert "--drive-time=12.5" in words
    assert hil.names_tests(words), "or the whole suite would be run"
    command = [sys.executable, "-m", "pytest", "--collect-only", "--import-mode=importlib"]
    command += ["-p", "leadline.plugin", f"--rig={RIG}", f"--matrix={MATRIX}", *words]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("noise_run.py::test_noise[") == 2
    assert "2 tests collected" in done.stdout


@pytest.mark.parametrize("seconds", ["0", "9.9", "-1", "1e9", "nan"])
def test_seconds_that_show_nothing_are_misuse(
    bench_files: Path, capsys: pytest.CaptureFixture[str], seconds: str
) -> None:
    assert main(["calibrate", "bench.yaml", f"--seconds={seconds}"]) == 2
    assert "expected 10 to 3600" in capsys.readouterr().err


def test_a_wrong_file_is_usage(bench_files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bench_files / "bad.yaml").write_text("rig: bad\nhots: {reach: local}\n")
    assert main(["calibrate", "bad.yaml"]) == 2
    assert "bad.yaml:2: hots: found" in capsys.readouterr().err


def test_help_has_examples_and_says_that_it_only_reads(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["calibrate", "--help"])
    said = capsys.readouterr().out
    for needed in ("examples:", "--slot", "--seconds", "writes nothing", "Exit codes:"):
        assert needed in said


def conducted(monkeypatch: pytest.MonkeyPatch, code: int, **changes: Any) -> list[Namespace]:
    """In the place of a run: it keeps a calibration of slot a, and ends with `code`."""
    asked: list[Namespace] = []

    def conduct(arguments: Namespace, command: str) -> tuple[int, Record]:
        asked.append(arguments)
        record = Record(arguments.results.absolute(), "run-7")
        record.start(command, "0")
        if changes:
            store.save(calibration(sessions=(kept_session(run=changes["run"]),)))
        return code, record

    monkeypatch.setattr(hil, "conduct", conduct)
    return asked


def test_the_table_has_the_figures_and_where_they_are_kept(
    bench_files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = conducted(monkeypatch, 0, run="run-7")
    words = ["calibrate", "bench.yaml", "--matrix", "matrix.yaml", "--slot", "a", "--seconds", "30"]
    assert main(words) == 0
    said = capsys.readouterr().out
    for needed in ("a: MODEL SERIAL-a", "1.23%", "2.34%", "1 session: unknown"):
        assert needed in said
    assert str(store.path_of("bench", "SERIAL-a")) in said
    (arguments,) = asked
    assert arguments.rig == [Path("bench.yaml")]
    assert "--drive-time=30" in arguments.rest
    again = "leadline calibrate bench.yaml --slot a --seconds 30 --matrix matrix.yaml"
    with closing(sqlite3.connect(Path("leadline-results", FILE_NAME))) as kept:
        assert kept.execute("select command from runs").fetchall() == [(again,)]


def test_json_is_one_object(
    bench_files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conducted(monkeypatch, 0, run="run-7")
    assert main(["calibrate", "bench.yaml", "--matrix", "matrix.yaml", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["run"], done["exit_code"]) == ("run-7", 0)
    (found,) = done["calibrations"]
    noise = RigNoise(0.0123, 0.1, 0.0234, None, 60, 60.0)
    assert found["sigma_d"] == noise.sigma_d
    assert found["sigma_session"] is None
    assert (found["rig"], found["slot"], found["serial"]) == ("bench", "a", "SERIAL-a")
    assert (found["kernel"], found["fio"], found["firmware"]) == ("6.1.0", "3.33", "1.0")
    assert found["date"] == "2026-11-20T12:00:00+00:00"
    assert Path(found["file"]).is_file()
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "calibrate-a-rig.md").read_text()
    assert [name for name in (*done, *found) if f"`{name}`" not in page] == []


def test_what_an_earlier_run_kept_is_not_shown_as_this_ones(
    bench_files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conducted(monkeypatch, 4, run="run-6")
    assert main(["calibrate", "bench.yaml", "--matrix", "matrix.yaml"]) == 4
    assert capsys.readouterr().out == "no calibration was kept\n"


def test_a_file_that_was_broken_before_a_failed_run_is_no_defect(
    bench_files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conducted(monkeypatch, 3)
    store.save(calibration()).write_text("{")
    assert main(["calibrate", "bench.yaml", "--matrix", "matrix.yaml"]) == 3
    assert "run leadline calibrate again" in capsys.readouterr().err
