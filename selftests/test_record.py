"""The results file: written as it happens, and readable whatever became of the run."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.results.record import FILE_NAME, Record
from leadline.results.rows import finite
from leadline.results.schema import OutcomeRow, Phase

CHILD = """
import os, signal, sys
from pathlib import Path
from leadline.results.record import Record
from leadline.results.schema import Phase
record = Record(Path(sys.argv[1]), "run-1")
record.start("command", "0")
for n in range(20):
    record.add(Phase(cell=None, name=f"p{n}", seconds=1.0))
os.kill(os.getpid(), signal.SIGKILL)
"""


def outcome(cell: str) -> OutcomeRow:
    return OutcomeRow(cell=cell, claim="c", node="n", outcome="pass", message="", seconds=0.1)


def test_what_was_added_outlives_the_process_that_was_killed(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", CHILD, tmp_path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(Record(tmp_path, "run-1").phases()) == 20


def test_a_run_sees_its_own_rows_only(tmp_path: Path) -> None:
    for name in ("run-1", "run-2"):
        record = Record(tmp_path, name)
        record.start("command", "0")
        record.add(outcome(f"cell of {name}"))
        record.close()
    assert [row.cell for row in Record(tmp_path, "run-2").outcomes()] == ["cell of run-2"]


def test_two_processes_of_one_run_begin_it_once(tmp_path: Path) -> None:
    first, second = Record(tmp_path, "run-1"), Record(tmp_path, "run-1")
    first.start("command", "0")
    second.start("command", "0")
    first.add(Phase(cell=None, name="boot", seconds=2.0))
    second.add(Phase(cell=None, name="boot", seconds=3.0))
    assert first.phases() == {"boot": 5.0}


def test_a_directory_that_cannot_be_made_is_the_rigs_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RigTrouble, match="--results"):
        Record(tmp_path / "file" / "below", "run-1")


def test_a_file_that_is_no_database_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("not a database at all, " * 100)
    with pytest.raises(RigTrouble, match=FILE_NAME):
        Record(tmp_path, "run-1")


def test_json_has_no_number_for_infinity() -> None:
    inf, nan = float("inf"), float("nan")
    assert finite({"a": [inf, 1.5, (nan,)], "b": "x"}) == {"a": [None, 1.5, [None]], "b": "x"}
