"""A vendor's repository in which tests run `leadline hil`, and what became of it."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from leadline.cli import main
from leadline.commands import hil
from leadline.inventory.rig import Rig
from leadline.power.byte_log import ByteLogs
from leadline.results.record import FILE_NAME
from selftests.vendor import OUTCOMES, STAND_IN
from selftests.visit_world import MATRIX as MATRIX_TEXT
from selftests.visit_world import RIG as RIG_TEXT

MORE = """
def test_defect(visit):
    1 / 0
def test_crash(visit):
    import os
    os._exit(9)
def test_without_a_drive():
    assert 1 == 2
"""


@dataclass
class Vendor:
    """A vendor's repository, its rig, and what `leadline hil` did there."""

    folder: Path
    rig: Path
    mended: list[tuple[list[str], str]] = field(default_factory=list)
    did: list[str] = field(default_factory=list)

    def hil(self, *words: str | Path, rig: Path | None = None, matrix: Path | None = None) -> int:
        files = ("--rig", rig or self.rig, "--matrix", matrix or self.folder / "matrix.yaml")
        return main(["hil", *map(str, (*files, *words))])

    def kept(self, table: str) -> list[dict[str, Any]]:
        with sqlite3.connect(self.folder / "leadline-results" / FILE_NAME) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(f"select * from {table}")]

    def exit_code(self) -> int | None:
        (run,) = self.kept("runs")
        assert run["ended"] is not None
        code: int | None = run["exit_code"]
        return code

    def mend(self, rigs: Sequence[Rig], run_id: str, logs: ByteLogs) -> list[str]:
        self.mended.append(([rig.name for rig in rigs], run_id))
        return ["a setting was given back", "and another"]


@pytest.fixture
def vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vendor:
    """In the current directory.  The rig is this machine, and is taken as it is."""
    (tmp_path / "conftest.py").write_text(STAND_IN)
    (tmp_path / "test_all.py").write_text(OUTCOMES + MORE)
    (tmp_path / "bench.yaml").write_text(RIG_TEXT)
    (tmp_path / "matrix.yaml").write_text(MATRIX_TEXT)
    monkeypatch.chdir(tmp_path)
    made = Vendor(tmp_path, tmp_path / "bench.yaml")
    monkeypatch.setattr(hil, "refuse_absent", lambda *_: None)
    monkeypatch.setattr(hil, "mend", made.mend)
    return made
