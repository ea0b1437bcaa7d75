"""A vendor's own repository, with tests of drives; a stand-in takes the place of the rig.

The stand-in overrides the fixture `visit`, so that everything is real but for the drive.
"""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import leadline
from leadline.results.record import FILE_NAME

PACKAGE = Path(leadline.__file__).parent
RIG = PACKAGE / "rigs" / "virtual.yaml"
MATRIX = PACKAGE / "firmware_matrix.yaml"

STAND_IN = """
from contextlib import contextmanager
import pytest
from leadline.errors import DriveFault, RigTrouble

class Station:
    @contextmanager
    def latching(self):
        yield

class Visit:
    station = Station()
    def __init__(self, visit):
        self.visit = visit
    @contextmanager
    def test(self, item):
        yield
        if "with_an_event" in item.name:
            raise DriveFault("the kernel logged an event")

@pytest.fixture(scope="session")
def visit(request):
    return Visit(request.param)

@pytest.fixture
def broken_by_the_drive(visit):
    raise DriveFault("came back as another drive")

@pytest.fixture
def rig_that_breaks_afterwards(visit):
    yield
    raise RigTrouble("the PDU fell silent at the end")
"""

OUTCOMES = """
import pytest
from leadline.errors import DriveFault, Inconclusive, Misuse, RigTrouble

def test_holds(visit):
    pass
def test_drive(visit):
    raise DriveFault("the drive did it")
def test_drive_in_setup(visit, broken_by_the_drive):
    pass
def test_rig(visit):
    raise RigTrouble("the PDU fell silent")
def test_evidence(visit):
    raise Inconclusive("too little")
def test_usage(visit):
    raise Misuse("no such depth")
def test_plain(visit):
    assert 1 == 2
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """pytest on the virtual rig's file, in the vendor's repository of this test."""
    files = (f"--rig={RIG}", f"--matrix={MATRIX}")
    return pytester.runpytest_subprocess(*files, "-p", "no:cacheprovider", *arguments)


@pytest.fixture
def vendor(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(STAND_IN)
    return pytester


def kept(vendor: pytest.Pytester, table: str) -> list[dict[str, Any]]:
    """Every row of a table of the results, as columns by name."""
    with sqlite3.connect(vendor.path / "leadline-results" / FILE_NAME) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"select * from {table}")]
