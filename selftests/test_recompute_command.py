"""`leadline recompute` as a user meets it: output, messages and exit codes."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from leadline.claims import NothingOnRecord
from leadline.cli import main
from leadline.on_record import History
from leadline.results.record import FILE_NAME, Record
from selftests.kept_claims import CELL, Kept, change, details
from selftests.slice_drive import SliceDrive


def keep_run(folder: Path, name: str, *limits: float) -> None:
    """A run with a verdict for each limit on the ratio of depth 8 to 1, which is 7."""
    run = Kept(folder, SliceDrive({8: 7000, 1: 1000}), run=name)
    run.settle(*(run.reads.at(depth=8) >= limit * run.reads.at(depth=1) for limit in limits))
    run.record.end(0)
    run.close()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    keep_run(tmp_path, "run-1", 3)
    keep_run(tmp_path, "run-2", 2, 9)
    return tmp_path


def tamper(folder: Path, slice_number: int) -> None:
    changed = details(folder, "slices", slice_number)
    changed["rate"] += 1.0
    update = "update slices set details = ?, rate = rate + 1 where id = ?"
    change(folder, update, json.dumps(changed), slice_number)


def recompute(folder: Path, *words: str) -> int:
    return main(["recompute", "--results", str(folder), *words])


def document(
    capsys: pytest.CaptureFixture[str], folder: Path, *words: str
) -> tuple[int, dict[str, Any]]:
    code = recompute(folder, "--json", *words)
    return code, json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_the_last_run_is_compared_unless_another_is_named(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, last = document(capsys, results)
    assert (code, last["run"], last["same"]) == (0, "run-2", True)
    assert [each["outcome"] for each in last["verdicts"]] == ["PASS", "FAIL"]
    assert last["verdicts"][0] == {
        "cell": CELL,
        "claim": "a_claim",
        "statement": "random_read.at(depth=8) >= 2 * random_read.at(depth=1)",
        "outcome": "PASS",
        "reason": "settled",
        "same": True,
        "differences": [],
    }
    code, first = document(capsys, results, "run-1")
    assert (code, first["run"], len(first["verdicts"])) == (0, "run-1", 1)
    assert first["measured_by"] == "0.1.0"
    assert first["unsettled_slices"] == 0


def test_a_table_says_of_each_verdict_whether_it_is_the_same(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recompute(results) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "run run-2, measured by Leadline 0.1.0"
    assert lines[2] == CELL
    words = "  a_claim: random_read.at(depth=8) >= 2 * random_read.at(depth=1)  PASS  same"
    assert lines[3].split() == words.split()
    assert lines[-1] == "2 verdicts: all the same"


def test_slices_that_went_on_record_are_not_said_to_be_of_a_run_that_broke_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Kept(tmp_path, SliceDrive({8: 7000, 1: 1000}))
    run.settle(run.reads.at(depth=8) >= 3 * run.reads.at(depth=1))
    settled = len(run.drive.settings)
    nobody = History("this drive's own record", lambda side: None)
    with pytest.raises(NothingOnRecord):
        run.settle(run.reads.at(depth=8).agrees_with(nobody, within=0.25))
    run.record.end(0)
    run.close()
    assert recompute(tmp_path) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    count = len(run.drive.settings) - settled
    assert said.startswith(f"{count} slices are of no verdict: on record for others to be held ")


def test_one_rate_that_was_changed_is_exit_code_1_with_the_fields(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper(results, 1)
    assert recompute(results) == 0, "it is a slice of the other run"
    capsys.readouterr()
    code, found = document(capsys, results, "run-1")
    assert (code, found["same"], found["verdicts"][0]["same"]) == (1, False, False)
    fields = {each["field"]: each for each in found["verdicts"][0]["differences"]}
    assert fields["estimate"]["stored"] < fields["estimate"]["recomputed"]
    assert recompute(results, "run-1") == 1
    text = capsys.readouterr().out
    estimate = fields["estimate"]
    line = f"estimate: stored {estimate['stored']}, recomputed {estimate['recomputed']}"
    assert line in text
    assert "differs" in text
    assert "1 verdict: 1 differs" in text


def test_a_deleted_slice_is_exit_code_1_and_named(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(results, "delete from slices where run = 'run-1' and place = 2")
    assert recompute(results, "run-1") == 1
    assert "slices: stored slice 2, recomputed absent" in capsys.readouterr().out


def test_all_slices_deleted_is_exit_code_1(results: Path) -> None:
    with closing(sqlite3.connect(results / FILE_NAME)) as connection, connection:
        connection.execute("delete from slices")
    assert recompute(results) == 1


def test_an_unknown_run_is_exit_code_2_with_the_runs_that_there_are(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recompute(results, "run-9") == 2
    message = capsys.readouterr().err
    assert "has no run 'run-9'" in message
    runs = [line.split() for line in message.splitlines()[1:]]
    assert [(words[0], words[-2]) for words in runs] == [("run-2", "2"), ("run-1", "1")]


def test_only_the_last_runs_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = Record(tmp_path, "run-0")
    record.start("command", "0")
    for number in range(1, 13):
        Record(tmp_path, f"run-{number}").start("command", "0")
    assert recompute(tmp_path, "another") == 2
    *shown, rest = capsys.readouterr().err.splitlines()[1:]
    assert [line.split()[0] for line in shown] == [f"run-{n}" for n in range(12, 2, -1)]
    assert rest == "  and 3 older"


def test_a_run_without_verdicts_proves_nothing(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Record(results, "run-3").start("a command", "0.1.0")
    assert recompute(results) == 2
    message = capsys.readouterr().err
    assert "run run-3 has no verdicts" in message
    assert "run-2" in message


def test_no_database_is_exit_code_2_and_none_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recompute(tmp_path / "there") == 2
    assert "--results" in capsys.readouterr().err
    assert not (tmp_path / "there").exists()


def test_a_database_without_runs_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Record(tmp_path, "run-1").close()
    assert recompute(tmp_path) == 2
    assert "there are no runs in it yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "words"), [(0, "an older Leadline"), (99, "a newer Leadline (version 99")]
)
def test_a_database_of_another_version_is_exit_code_2_with_the_remedy(
    results: Path, capsys: pytest.CaptureFixture[str], number: int, words: str
) -> None:
    with closing(sqlite3.connect(results / FILE_NAME)) as connection:
        connection.execute(f"pragma user_version = {number}")
    assert recompute(results) == 2
    message = capsys.readouterr().err
    assert words in message
    assert "--results" in message


def test_a_directory_that_cannot_be_looked_into_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one of another user; a name that is too long shows it to root, too."""
    assert recompute(tmp_path / ("x" * 300)) == 2
    said = capsys.readouterr().err
    assert "File name too long; name the directory of a run's results with --results" in said


def test_what_is_no_results_file_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / FILE_NAME).write_text("not a database at all, " * 100)
    assert recompute(tmp_path) == 2
    assert "not a database" in capsys.readouterr().err
    (tmp_path / FILE_NAME).write_bytes(b"")
    assert recompute(tmp_path) == 2
    assert "no runs" in capsys.readouterr().err


def test_a_row_that_is_no_json_is_exit_code_2(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(results, "update slices set details = '{' where id = 1")
    assert recompute(results, "run-1") == 2
    assert "the file is damaged" in capsys.readouterr().err


def test_reading_changes_nothing(results: Path) -> None:
    before = (results / FILE_NAME).read_bytes()
    recompute(results)
    assert (results / FILE_NAME).read_bytes() == before


def test_a_directory_may_have_any_name(tmp_path: Path) -> None:
    odd = tmp_path / "what? 50 % #1"
    keep_run(odd, "run-1", 3)
    assert recompute(odd) == 0


def test_what_a_terminal_would_obey_is_not_printed(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(results, "update verdicts set cell = ? where run = 'run-1'", "\x1b[2Jcell")
    assert recompute(results, "run-1") == 1, "the verdict's details have another"
    assert "\x1b" not in capsys.readouterr().out
