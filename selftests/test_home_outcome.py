"""A drive that could not be put back is no test's fault: it is an outcome and an exit code."""

import json
import subprocess
import sys

import pytest

from selftests.hil_world import Vendor, vendor

__all__ = ["vendor"]  # a fixture

WAY_HOME = """
import pytest
from leadline.brought_home import outcome_row
from leadline.errors import RigTrouble
from leadline.results.record import Record

@pytest.fixture(scope="session")
def way_home(leadline_run):
    yield
    record = Record(leadline_run.results, leadline_run.id)
    for slot, error in (("a", RigTrouble("the PDU is silent")), ("b", None)):
        visit = next(each for each in leadline_run.visits if each.cell.slot == slot)
        record.add(outcome_row(leadline_run.home(visit), 1.0, error))
    record.close()

def test_first(visit, way_home):
    pass
def test_second(visit, way_home):
    assert "second" == "fails"
def test_third(visit, way_home):
    pass
"""
SAID = "slot a of rig bench is not back on firmware 1.0: the PDU is silent"


@pytest.mark.parametrize(
    ("words", "code", "tests"),
    [
        (("-k", "first or third"), 3, {"first": "pass", "third": "pass"}),
        (("-k", "first or third", "-n", "1"), 3, {"first": "pass", "third": "pass"}),
        (("-x",), 1, {"first": "pass", "second": "fail"}),
    ],
)
def test_it_is_an_outcome_of_its_own_and_the_exit_code_says_so(
    vendor: Vendor,
    capfd: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    tests: dict[str, str],
) -> None:
    """Stopped by -x, pytest brings drives home when the session ends, and not after a test."""
    (vendor.folder / "test_home.py").write_text(WAY_HOME)
    assert vendor.hil("--json", *words, "test_home.py") == code == vendor.exit_code()
    out, said = capfd.readouterr()
    outcomes = json.loads(out)["outcomes"]
    found = {row["claim"]: row["outcome"] for row in outcomes if row["claim"] != "brought_home"}
    assert found == tests, "no test has it"
    homes = [row for row in outcomes if row["claim"] == "brought_home"]
    assert [(row["cell"], row["outcome"], row["message"]) for row in homes] == [
        ("bench-a-MODEL-1.0", "error", SAID),
        ("bench-b-MODEL-1.0", "pass", ""),
    ]
    table = said[said.index("Leadline, run") :]
    lines = [line.split() for line in table.splitlines() if line.startswith("  brought home")]
    assert [line[2] for line in lines] == ["ERROR", "PASS"]
    assert f"brought home: {SAID}" in table


def test_pytest_by_itself_does_not_end_well_either(vendor: Vendor) -> None:
    (vendor.folder / "test_home.py").write_text(WAY_HOME)
    words = ("--rig=bench.yaml", "--matrix=matrix.yaml", "-k", "first or third", "test_home.py")
    ended = subprocess.run([sys.executable, "-m", "pytest", *words], timeout=120, check=False)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED == vendor.exit_code()
