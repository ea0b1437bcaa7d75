"""The results file: written as it happens, and readable whatever became of the run."""

import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import Misuse, RigTrouble
from leadline.results.record import FILE_NAME, Record
from leadline.results.rows import finite
from leadline.results.schema import Base, OutcomeRow, Phase

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


def runs(directory: Path) -> dict[str, dict[str, Any]]:
    """The table of runs, by id."""
    with sqlite3.connect(directory / FILE_NAME) as connection:
        connection.row_factory = sqlite3.Row
        return {row["id"]: dict(row) for row in connection.execute("select * from runs")}


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


def test_rows_come_back_in_the_order_in_which_they_were_added(tmp_path: Path) -> None:
    record = Record(tmp_path, "run-1")
    for cell in ("b", "c", "a"):
        record.add(outcome(cell))
    assert [row.cell for row in record.outcomes()] == ["b", "c", "a"]


def test_a_run_goes_on_until_its_own_exit_code_is_written(tmp_path: Path) -> None:
    for name in ("run-1", "run-2"):
        Record(tmp_path, name).start("a command", "1.2")
    Record(tmp_path, "run-2").end(4)
    first, second = runs(tmp_path)["run-1"], runs(tmp_path)["run-2"]
    assert (first["command"], first["version"]) == ("a command", "1.2")
    assert (first["ended"], first["exit_code"]) == (None, None)
    assert second["exit_code"] == 4
    assert second["ended"] >= second["started"] > 1.7e9


def test_another_worker_that_writes_is_waited_for(tmp_path: Path) -> None:
    record = Record(tmp_path, "run-1")
    record.add(outcome("first"))
    other = sqlite3.connect(tmp_path / FILE_NAME, check_same_thread=False)
    other.execute("begin immediate")
    writes = threading.Timer(0.3, other.commit)
    writes.start()
    record.add(outcome("second"))
    writes.join()
    other.close()
    assert len(record.outcomes()) == 2


def test_results_can_be_read_while_a_worker_writes(tmp_path: Path) -> None:
    record = Record(tmp_path, "run-1")
    record.add(outcome("c"))
    other = sqlite3.connect(tmp_path / FILE_NAME)
    other.execute("begin exclusive")
    assert [row.cell for row in record.outcomes()] == ["c"]
    other.rollback()
    other.close()


def test_a_row_that_cannot_be_written_is_the_rigs_trouble(tmp_path: Path) -> None:
    record = Record(tmp_path, "run-1")
    with sqlite3.connect(tmp_path / FILE_NAME) as other:
        other.execute("drop table outcomes")
    with pytest.raises(RigTrouble, match=rf"{FILE_NAME}: the result could not be .*--results"):
        record.add(outcome("c"))


def test_a_file_that_cannot_be_read_is_the_rigs_trouble(tmp_path: Path) -> None:
    record = Record(tmp_path, "run-1")
    with sqlite3.connect(tmp_path / FILE_NAME) as other:
        other.execute("drop table outcomes")
        other.execute("drop table slices")
    said = rf"{FILE_NAME}: the result could not be read .*--results"
    with pytest.raises(RigTrouble, match=said):
        record.outcomes()
    with pytest.raises(RigTrouble, match=said):
        record.slices("settling")


def test_two_processes_of_one_run_begin_it_once(tmp_path: Path) -> None:
    first, second = Record(tmp_path, "run-1"), Record(tmp_path, "run-1")
    first.start("command", "0")
    second.start("command", "0")
    first.add(Phase(cell=None, name="boot", seconds=2.0))
    second.add(Phase(cell=None, name="boot", seconds=3.0))
    assert first.phases() == {"boot": 5.0}


OLDER = """
create table runs (id varchar not null primary key, started float not null);
create table verdicts (id integer not null primary key, run varchar not null);
"""


def test_tables_of_an_older_leadline_are_left_alone_with_a_remedy(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
        other.executescript(OLDER)
    with pytest.raises(
        Misuse, match=r"an older Leadline .*move it away or name another.*--results"
    ):
        Record(tmp_path, "run-1")
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
        tables = other.execute("select name from sqlite_master where type = 'table'").fetchall()
    assert tables == [("runs",), ("verdicts",)]


def test_tables_of_a_newer_leadline_are_left_alone_too(tmp_path: Path) -> None:
    Record(tmp_path, "run-1").close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
        other.execute("pragma user_version = 99")
    with pytest.raises(Misuse, match=r"a newer Leadline \(version 99.*update Leadline"):
        Record(tmp_path, "run-2")


def test_a_table_that_an_extension_adds_needs_no_new_file(tmp_path: Path) -> None:
    Record(tmp_path, "run-1").close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
        other.execute("drop table phases")
    record = Record(tmp_path, "run-1")
    record.add(Phase(cell=None, name="boot", seconds=2.0))
    assert record.phases() == {"boot": 2.0}


def test_a_file_that_is_being_written_can_be_opened(tmp_path: Path) -> None:
    Record(tmp_path, "run-1").add(outcome("c"))
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
        other.execute("begin exclusive")
        assert len(Record(tmp_path, "run-1").outcomes()) == 1


def test_workers_that_open_a_new_file_at_once_all_get_its_tables(tmp_path: Path) -> None:
    barrier, failed = threading.Barrier(8), []

    def work(number: int) -> None:
        barrier.wait()
        try:
            Record(tmp_path, f"run-{number}").add(outcome("c"))
        except (RigTrouble, Misuse) as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []


def test_a_file_that_stays_locked_is_not_said_to_need_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.results.record.WAIT_S", 0.2)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
        other.execute("create table a (b)")
        other.execute("begin exclusive")
        with pytest.raises(RigTrouble, match=r"database is locked.*see what else is at work on it"):
            Record(tmp_path, "run-1")


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


def test_the_reference_has_every_table_and_every_column() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "results.md").read_text()
    for table in Base.metadata.tables.values():
        assert f"| `{table.name}` |" in page
        missing = [column.name for column in table.columns if f"`{column.name}`" not in page]
        assert missing == [], table.name
