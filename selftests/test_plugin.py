"""pytest's side, in a vendor's own repository: selection, order, outcomes, excuses, sharing.

The rig itself is stood in for by a fixture that overrides `visit`; real rigs are in
`selftests/virtual`.
"""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import leadline

PACKAGE = Path(leadline.__file__).parent
RIG = PACKAGE / "rigs" / "virtual.yaml"
MATRIX = PACKAGE / "firmware_matrix.yaml"

STAND_IN = """
from contextlib import contextmanager
import pytest

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

@pytest.fixture(scope="session")
def visit(request):
    return Visit(request.param)

@pytest.fixture
def broken_by_the_drive(visit):
    from leadline.errors import DriveFault
    raise DriveFault("came back as another drive")
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
    return pytester.runpytest_subprocess(
        "--rig", str(RIG), "--matrix", str(MATRIX), "-p", "no:cacheprovider", *arguments
    )


@pytest.fixture
def vendor(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(STAND_IN)
    return pytester


def test_inert_unless_a_rig_is_named(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_plain(): pass")
    result = vendor.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    assert "eadline, run" not in result.stdout.str()
    assert not (vendor.path / "leadline-results").exists()


def test_loading_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, json, leadline.plugin; print(json.dumps([m for m in"
        " ('sqlalchemy', 'pydantic', 'scipy', 'numpy', 'rich', 'serial') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert json.loads(done.stdout) == []


def test_options_stand_under_one_heading(vendor: pytest.Pytester) -> None:
    text = vendor.runpytest_subprocess("--help").stdout.str()
    heading = text.index("Leadline: tests of physical drives on rigs")
    for option in ("--rig", "--matrix", "--allow-writes", "--drive-time", "--no-excuses"):
        assert text.index(option, heading) < heading + 2000


def test_a_wrong_rig_file_is_a_usage_error(vendor: pytest.Pytester) -> None:
    vendor.makefile(".yaml", bad="rig: bad\nhost: {reach: radio}\n")
    result = vendor.runpytest_subprocess("--rig", "bad.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(['*bad.yaml:2: host.reach: found "radio", expected *'])


def test_items_are_sorted_by_visit_and_by_the_files_order_within(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_b(visit): pass\ndef test_a(visit): pass")
    lines = run(vendor, "--collect-only", "-q").outlines[:6]
    cells = [line.partition("[")[2].rstrip("]") for line in lines]
    names = [line.partition("::")[2].partition("[")[0] for line in lines]
    assert cells[0] == cells[1] != cells[2] == cells[3] != cells[4] == cells[5]
    assert names == ["test_b", "test_a"] * 3


def test_a_claim_without_a_limit_for_the_class_is_not_collected(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(
        "import pytest\n"
        "@pytest.mark.claim('depth_8_over_depth_1')\ndef test_has(visit): pass\n"
        "@pytest.mark.claim('no_such_limit')\ndef test_has_not(visit): pass\n"
        "@pytest.mark.protocol('sas')\ndef test_sas(visit): pass\n"
    )
    text = run(vendor, "--collect-only", "-q").stdout.str()
    assert "test_has[virtual-ssd1" in text
    assert "test_has_not" not in text
    assert "test_sas" not in text


def test_the_exception_decides_whatever_the_phase(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(OUTCOMES)
    result = run(vendor, "-k", "scsi1", "--junitxml", "out.xml", "-v")
    result.assert_outcomes(passed=1, failed=3, errors=2, deselected=14)
    result.stdout.fnmatch_lines(["*test_evidence*INCONCLUSIVE*", "*test_usage*USAGE*"])
    cases = {
        case.get("name", "").partition("[")[0]: [child.tag for child in case]
        for case in ElementTree.parse(vendor.path / "out.xml").iter("testcase")
    }
    assert "failure" in cases["test_drive"]
    assert "failure" in cases["test_drive_in_setup"]
    assert "failure" in cases["test_evidence"]
    assert "error" in cases["test_rig"]
    assert cases["test_holds"] == ["properties"]


def test_junit_has_the_outcome_as_a_property(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(OUTCOMES)
    run(vendor, "-k", "scsi1 and evidence", "--junitxml", "out.xml")
    properties = {
        (node.get("name"), node.get("value"))
        for node in ElementTree.parse(vendor.path / "out.xml").iter("property")
    }
    assert ("leadline.outcome", "inconclusive") in properties
    assert ("leadline.cell", "virtual-scsi1-LEADLINE_VSCSI-1.0") in properties


FAILS = """
import pytest
from leadline.claims import ClaimFailed

@pytest.mark.claim('depth_8_over_depth_1')
def test_known(visit):
    raise ClaimFailed("slow", None)
@pytest.mark.claim('depth_8_over_depth_1')
def test_not_excused(visit):
    raise ValueError("not a claim")
"""


def test_a_known_issue_excuses_its_claim_on_its_firmware_only(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(FAILS)
    text = run(vendor, "-k", "ssd1").stdout.str()
    assert "FAIL, known issue" in text
    outcomes = run(vendor, "-k", "ssd1").parseoutcomes()
    assert outcomes["xfailed"] == 1
    assert outcomes["failed"] == 1
    assert outcomes["errors"] == 2


def test_no_excuses(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(FAILS)
    outcomes = run(vendor, "-k", "ssd1", "--no-excuses").parseoutcomes()
    assert outcomes["failed"] == 2
    assert "xfailed" not in outcomes


def test_two_workers_never_share_a_path(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(8))\n"
        "def test_one(visit, n, worker_id): print(f'ran on {worker_id}')"
    )
    text = run(vendor, "-n", "2", "-rP").stdout.str()
    workers = {line for line in text.splitlines() if line.startswith("ran on ")}
    assert text.count("ran on") == 24
    assert len(workers) == 1


def test_the_same_trouble_is_told_once(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(OUTCOMES)
    text = run(vendor, "-k", "test_rig", "-rN").stdout.str()
    assert text.count("the PDU fell silent") == 1
    assert text.count("the same as for test_rig") == 2
