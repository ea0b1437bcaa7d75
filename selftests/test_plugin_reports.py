"""What becomes of outcomes: in the report, JUnit XML, the record and the table at the end."""

from xml.etree import ElementTree

import pytest

from selftests.vendor import OUTCOMES, kept, run, vendor

__all__ = ["vendor"]  # a fixture


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


def test_the_same_trouble_is_told_once(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(OUTCOMES)
    text = run(vendor, "-k", "test_rig", "-rN").stdout.str()
    assert text.count("the PDU fell silent") == 1
    assert text.count("the same as for test_rig") == 2


def test_what_stands_below_an_error_is_told_and_on_record(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(
        "from leadline.errors import RigTrouble\n"
        "def test_two(visit):\n"
        "    trouble = RigTrouble('outlet 1 is stuck')\n"
        "    trouble.add_note('and outlet 2 stays off')\n"
        "    raise trouble\n"
    )
    text = run(vendor, "-k", "scsi1", "-rN").stdout.str()
    assert "RigTrouble: outlet 1 is stuck\n  and outlet 2 stays off" in text
    (row,) = kept(vendor, "outcomes")
    assert row["message"] == "outlet 1 is stuck\n  and outlet 2 stays off"


def test_a_ctrl_c_ends_the_run_whatever_goes_wrong_in_giving_things_back(
    vendor: pytest.Pytester,
) -> None:
    vendor.makepyfile(
        "from contextlib import suppress\n"
        "import os, pytest, signal\n"
        "from leadline.errors import RigTrouble\n"
        "def interrupted():\n"
        "    try:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    finally:\n"
        "        with suppress(OSError):\n"
        "            raise OSError\n"
        "        try:\n"
        "            raise ValueError\n"
        "        except ValueError as error:\n"
        "            raise RigTrouble('the setting is in use') from error\n"
        "@pytest.fixture\n"
        "def lease(visit): interrupted()\n"
        "def test_setup(lease): pass\n"
        "def test_call(visit): interrupted()\n"
        "def test_later(visit): open('later', 'w')\n"
    )
    for name in ("test_setup", "test_call"):
        result = run(vendor, "-k", f"scsi1 and ({name} or test_later)")
        assert result.ret == pytest.ExitCode.INTERRUPTED
        assert not (vendor.path / "later").exists()
    run(vendor, "-k", "scsi1 and test_later")
    assert (vendor.path / "later").exists()


def test_every_outcome_is_on_record_once(vendor: pytest.Pytester) -> None:
    skips = "\ndef test_not_here(visit):\n    pytest.skip('no')\n"
    vendor.makepyfile(OUTCOMES + skips + "def test_defect(visit):\n    1 / 0\n")
    result = run(vendor, "-k", "scsi1", "--run-id", "run-7")
    rows = kept(vendor, "outcomes")
    assert {row["claim"]: row["outcome"] for row in rows} == {
        "holds": "pass",
        "drive": "fail",
        "drive_in_setup": "fail",
        "rig": "error",
        "evidence": "inconclusive",
        "usage": "usage",
        "plain": "fail",
        "not_here": "skipped",
        "defect": "defect",
    }
    assert len(rows) == 9
    assert {row["cell"] for row in rows} == {"virtual-scsi1-LEADLINE_VSCSI-1.0"}
    assert rows[3]["node"].endswith("::test_rig[virtual-scsi1-LEADLINE_VSCSI-1.0]")
    assert rows[3]["message"] == "the PDU fell silent"
    (begun,) = kept(vendor, "runs")
    assert begun["id"] == "run-7"
    assert "--rig" in begun["command"]
    assert begun["ended"] >= begun["started"], "nobody else will write that it has ended"
    assert begun["exit_code"] == result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*= Leadline, run run-7 =*", f"results: {vendor.path / 'leadline-results'}"]
    )


def test_of_tests_without_a_drive_those_that_fail_are_on_record(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(
        "from leadline.errors import RigTrouble\n"
        "def test_holds(): pass\n"
        "def test_own(): raise ValueError('somebody erred')\n"
        "def test_rig(leadline_run): raise RigTrouble('no answer by ssh')\n"
    )
    result = run(vendor)
    result.assert_outcomes(passed=1, failed=1, errors=1)
    rows = [(row["cell"], row["claim"], row["outcome"]) for row in kept(vendor, "outcomes")]
    assert rows == [(None, "own", "fail"), (None, "rig", "error")]
    result.stdout.fnmatch_lines(["no drive*", "failed: own of no drive: somebody erred"])


def test_workers_report_to_one_record(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_holds(visit): pass")
    result = run(vendor, "-n", "2")
    result.assert_outcomes(passed=3)
    assert [row["outcome"] for row in kept(vendor, "outcomes")] == ["pass"] * 3
    assert "3 PASS" in result.stdout.str()


def test_trouble_afterwards_is_told_too_and_hides_no_failure(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(
        "from leadline.errors import DriveFault\n"
        "def test_holds(visit, rig_that_breaks_afterwards): pass\n"
        "def test_fails(visit, rig_that_breaks_afterwards): raise DriveFault('the drive did it')\n"
    )
    result = run(vendor, "-k", "scsi1")
    outcomes = [(row["claim"], row["outcome"]) for row in kept(vendor, "outcomes")]
    holds, fails = outcomes[:2], outcomes[2:]
    assert holds == [("holds", "pass"), ("holds", "error")]
    assert fails == [("fails", "fail"), ("fails", "error")]
    result.stdout.fnmatch_lines(["  holds *ERROR*", "  fails *FAIL*", "1 FAIL, 1 ERROR; *"])


def test_two_troubles_afterwards_are_the_rigs_as_one_is(vendor: pytest.Pytester) -> None:
    """pytest raises a group of them, which is no defect of Leadline."""
    vendor.makepyfile(
        "import pytest\n"
        "from leadline.errors import RigTrouble\n"
        "@pytest.fixture\n"
        "def another(visit):\n"
        "    yield\n"
        "    raise RigTrouble('and so did ssh')\n"
        "def test_holds(visit, rig_that_breaks_afterwards, another): pass\n"
    )
    run(vendor, "-k", "scsi1")
    holds, after = kept(vendor, "outcomes")
    assert (holds["outcome"], after["outcome"]) == ("pass", "error")
    assert sorted(after["message"].splitlines()) == [
        "and so did ssh",
        "the PDU fell silent at the end",
    ]


def test_an_issue_that_is_gone_passes(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(
        "import pytest\n@pytest.mark.claim('depth_8_over_depth_1')\ndef test_known(visit): pass"
    )
    run(vendor, "-k", "VSSD-1.1").assert_outcomes(xpassed=1, deselected=2)
    (row,) = kept(vendor, "outcomes")
    assert (row["claim"], row["outcome"]) == ("depth_8_over_depth_1", "pass")


def test_a_test_that_was_to_fail_and_passes_is_a_failure_and_so_on_record(
    vendor: pytest.Pytester,
) -> None:
    vendor.makepyfile(
        "import pytest\n"
        "@pytest.mark.xfail(strict=True, reason='until 2.0')\n"
        "def test_known(visit): pass"
    )
    run(vendor, "-k", "scsi1").assert_outcomes(failed=1, deselected=2)
    (row,) = kept(vendor, "outcomes")
    assert (row["outcome"], row["message"]) == ("fail", "[XPASS(strict)] until 2.0")


def test_kernel_events_are_judged_in_the_tests_call(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_with_an_event(visit): pass")
    run(vendor, "-k", "scsi1").assert_outcomes(failed=1, deselected=2)


EXPLAINED = """
import pytest
from leadline.errors import Inconclusive
from leadline.running import VERDICTS

@pytest.fixture
def verdicts(visit, request):
    request.node.stash[VERDICTS] = [
        {"estimate": "7.2 [7.0, 7.4]", "explanation": "the first in full"},
        {"estimate": "1.5 [1.4, 1.6]", "explanation": "the second in full"},
    ]

def test_holds(verdicts):
    pass
def test_evidence(verdicts):
    raise Inconclusive("no more than this")
def test_early(visit):
    raise Inconclusive("before any verdict")
"""


def test_what_is_inconclusive_is_explained_and_what_passes_when_asked(
    vendor: pytest.Pytester,
) -> None:
    vendor.makepyfile(EXPLAINED)
    asked, plain = (run(vendor, "-k", "scsi1", *more).stdout.str() for more in (["--explain"], []))
    assert asked.count("the first in full") == 2
    assert plain.count("the first in full") == 1
    assert "before any verdict" in plain.partition("Leadline, run")[0]
    assert asked.count("the second in full") == 2
    estimates = [plain.count(each) for each in ("7.2 [7.0, 7.4]", "1.5 [1.4, 1.6]")]
    assert estimates == [1, 1], "in the table, of what fails that of the claim that does not hold"


def test_every_verdict_of_a_test_is_in_junit(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(EXPLAINED)
    run(vendor, "-k", "scsi1 and holds", "--junitxml", "out.xml")
    properties = {
        node.get("name"): node.get("value")
        for node in ElementTree.parse(vendor.path / "out.xml").iter("property")
    }
    assert properties["leadline.estimate"] == "7.2 [7.0, 7.4]"
    assert properties["leadline.estimate.2"] == "1.5 [1.4, 1.6]"


def test_the_rigs_trouble_is_a_message_and_a_traceback_when_asked(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(OUTCOMES)
    only = ("-k", "scsi1 and test_rig", "-rN")
    assert 'raise RigTrouble("the PDU' not in run(vendor, *only).stdout.str()
    assert 'raise RigTrouble("the PDU' in run(vendor, *only, "--full-trace").stdout.str()
