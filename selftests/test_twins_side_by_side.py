"""Two drives of a kind on two workers: one of them is held against the other.

The drives are stand-ins whose first slices come when both are under test; judges and results are
the real ones.
"""

import os
import sqlite3
from pathlib import Path

import pytest

import selftests
from leadline.results.record import FILE_NAME

RIG = """\
rig: bench
host: {reach: local}
controllers:
  - {name: one, pci_id: "8086:0001", driver: ahci}
  - {name: two, pci_id: "8086:0001", driver: ahci}
drives:
  - {slot: a, model: M, serial: S1, firmware: "1.0", controller: one, protocol: sata}
  - {slot: b, model: M, serial: S2, firmware: "1.0", controller: two, protocol: sata}
"""
MATRIX = """\
classes:
  ssd: {}
models:
  - {model: M, class: ssd, protocol: sata, queue_depth: 32,
     firmware: [{revision: "1.0", status: released}]}
"""
STAND_IN = """
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
import pytest
from leadline.claims import NothingOnRecord
from leadline.judge import SliceJudge
from leadline.keeping import Keeping
from leadline.load.workload import random_read as workload
from leadline.quantities import Load
from leadline.results.record import Record
from leadline.results.schema import CellRow
from leadline.running import RUN
from selftests.slice_drive import SliceDrive

class Visit:
    def __init__(self, visit, run):
        self.visit, self.record = visit, Record(run.results, run.id)
        self.station = SimpleNamespace(record=self.record, latching=self.latching)
        serial, cell = run.drive_spec(visit).serial, visit.cell
        self.drive = SimpleNamespace(identity=SimpleNamespace(serial=serial))
        row = {"rig": cell.rig, "slot": cell.slot, "model": cell.model, "firmware": cell.firmware}
        details = {"controller": {"pci_id": "8086:0001"}, "image_sha256": None}
        row.update(cell=cell.id, serial=serial, controller=cell.controller, details=details)
        self.record.add(CellRow(**row))
    @contextmanager
    def latching(self):
        yield
    @contextmanager
    def test(self, item):
        try:
            yield
        except NothingOnRecord as nothing:
            pytest.skip(str(nothing))

@pytest.fixture(scope="session")
def visit(request, pytestconfig):
    return Visit(request.param, pytestconfig.stash[RUN])

@pytest.fixture
def random_read(visit):
    keeping = Keeping(visit.record, visit.visit.cell.id, "c")
    drive = SliceDrive({32: 7000, 1: 1000})
    def measure(workload, settings):
        Path(f"measures-{visit.visit.cell.slot}").touch()
        while time.monotonic() < until and len(list(Path().glob("measures-*"))) < 2:
            time.sleep(0.02)
        return drive.measure(workload, settings)
    until = time.monotonic() + 60
    judge = SliceJudge(
        cell=visit.visit.cell.id, measure=measure, keep_slice=lambda *a: keeping.slice(judge, *a),
        keep_verdict=lambda *a: keeping.verdict(judge, *a), slice_s=0.5, budget_s=60.0,
        curve_budget_s=60.0, repeat="again")
    return Load(workload(), judge, full_depth=32, kernel_depth=32)
"""
TESTS = """
import pytest

@pytest.mark.no_limit
def test_twins(random_read, twins):
    assert random_read.at(offered=32).agrees_with(twins, within=0.25)

def test_own(visit):
    pass
"""


def test_of_two_drives_on_two_workers_one_is_held_against_the_other(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither has anything on record when both begin; and each drive's own tests are done."""
    root = str(Path(selftests.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    pytester.makeconftest(STAND_IN)
    pytester.makepyfile(TESTS)
    (pytester.path / "rig.yaml").write_text(RIG)
    (pytester.path / "matrix.yaml").write_text(MATRIX)
    files = ("--rig=rig.yaml", "--matrix=matrix.yaml", "-p", "no:cacheprovider")
    collected = pytester.runpytest_subprocess(*files, "--collect-only", "-q").outlines
    names = [line.partition("::")[2].partition("[")[0] for line in collected if "::" in line]
    assert names == ["test_own", "test_twins"] * 2
    result = pytester.runpytest_subprocess(*files, "-n", "2", "-rs")
    counted = result.parseoutcomes()
    assert counted["passed"] + counted.get("skipped", 0) == 4, counted
    with sqlite3.connect(pytester.path / "leadline-results" / FILE_NAME) as connection:
        verdicts = connection.execute("select outcome, statement from verdicts").fetchall()
    assert len(verdicts) == counted["passed"] - 2 >= 1
    assert all(outcome == "PASS" for outcome, _ in verdicts)
