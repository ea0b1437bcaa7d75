"""Known issues excuse a claim where they are of its cell, on their kernel, and until they expire.

The drive is a stand-in; everything else is real, in this process.
"""

import re
from datetime import date
from pathlib import Path

import pytest

from leadline.inventory.issues import KnownIssue
from selftests.vendor import MATRIX as PACKAGED
from selftests.vendor import STAND_IN, kept, run

RIG = """\
rig: bench
host: {reach: local}
controllers: [{name: chipset, pci_id: "8086:0001", driver: ahci}]
drives:
  - {slot: a, model: MAKER SSD, serial: S1, firmware: "1.1", controller: chipset, protocol: sata}
"""
MATRIX = """\
classes:
  ssd:
    ratio: {at_least: 3, source: x}
    ready_s:
      at_most: 10
      source: x
      kernels: [{kernel: 6.1.*, at_most: 20, source: y}]
models:
  - model: MAKER SSD
    class: ssd
    protocol: sata
    queue_depth: 32
    firmware:
      - revision: "1.1"
        status: candidate
        known_issues:
          - {claim: ratio, summary: It serialises., link: LINK, ISSUE}
      - {revision: "1.0", status: withdrawn}
  - model: MAKER DISK
    class: hdd
    protocol: sata
    queue_depth: 32
    firmware:
      - {revision: "1.0", status: released}
"""
LINE = "matrix.yaml:17"
OF_6_1 = "class Station:\n    kernel = '6.1.0-18-amd64'\n"
TESTS = """
import pytest
from leadline.claims import ClaimFailed

@pytest.mark.claim('ratio')
def test_fails(visit):
    raise ClaimFailed("it is slow", None)
@pytest.mark.claim('ratio')
def test_holds(visit):
    pass
@pytest.mark.no_limit
def test_limit(expected):
    assert expected.ready_s == 20
"""


class Vendor:
    """A vendor's repository whose only drive hangs on a kernel 6.1."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        pytester.makeconftest(STAND_IN.replace("class Station:\n", OF_6_1))
        pytester.makepyfile(TESTS)

    def run(self, issue: str, *arguments: str, top: str = "") -> pytest.RunResult:
        (self.pytester.path / "rig.yaml").write_text(RIG)
        text = MATRIX.replace(", ISSUE", f", {issue}" if issue else "")
        (self.pytester.path / "matrix.yaml").write_text(text + top)
        files = ("--rig", "rig.yaml", "--matrix", "matrix.yaml")
        return self.pytester.runpytest_inprocess(*files, "-p", "no:cacheprovider", *arguments)

    def said(self, claim: str = "ratio") -> str:
        (row,) = (row for row in kept(self.pytester, "outcomes") if row["claim"] == claim)
        return str(row["message"])


@pytest.fixture
def vendor(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Vendor:
    monkeypatch.chdir(pytester.path)
    return Vendor(pytester)


def test_it_excuses_on_its_last_day_and_not_after_it() -> None:
    issue = KnownIssue(claim="ratio", link="x", summary="x", expires=date(2027, 1, 31))
    assert not issue.expired(date(2027, 1, 31))
    assert issue.expired(date(2027, 2, 1))
    assert not KnownIssue(claim="ratio", link="x", summary="x").expired(date.max)


def test_one_that_lasts_excuses(vendor: Vendor) -> None:
    vendor.run("expires: 2999-12-31", "-k", "fails").assert_outcomes(xfailed=1, deselected=2)


def test_one_that_expired_excuses_nothing_and_says_when_and_where(vendor: Vendor) -> None:
    result = vendor.run("expires: 2001-02-03", "-k", "fails")
    result.assert_outcomes(failed=1, deselected=2)
    note = (
        f"the known issue that excused this expired on 2001-02-03 ({LINE}): It serialises. (LINK); "
        "mend it, or give it a later day and say why"
    )
    assert vendor.said() == f"it is slow\n  {note}"
    assert note in result.stdout.str()
    assert result.stdout.str().count("so that it excuses nothing any more; expected no entry") == 1


def test_what_expired_is_not_told_where_nothing_is_excused(vendor: Vendor) -> None:
    vendor.run("expires: 2001-02-03", "-k", "fails", "--no-excuses").assert_outcomes(
        failed=1, deselected=2
    )
    assert vendor.said() == "it is slow"


PLAIN = """
import pytest
from leadline.errors import DriveFault, NeverAsserted

pytestmark = pytest.mark.claim('ratio')

def test_fails(visit):
    assert visit is None
def test_wrong_byte(visit):
    raise DriveFault("LBA 7 holds what was never written there")
def test_forgets(visit):
    raise NeverAsserted("stated and never asserted")
def test_defect(visit):
    from leadline.station import opened_visit
    opened_visit(None)
"""


def test_a_plain_assertion_of_the_test_is_excused_as_a_claim_is(vendor: Vendor) -> None:
    vendor.pytester.makepyfile(PLAIN)
    vendor.run("kernel: 6.1.*", "-k", "fails").assert_outcomes(xfailed=1, deselected=3)
    vendor.run("", "-k", "fails", "--no-excuses").assert_outcomes(failed=1, deselected=3)
    expired = vendor.run("expires: 2001-02-03", "-k", "fails")
    expired.assert_outcomes(failed=1, deselected=3)
    assert "the known issue that excused this expired on 2001-02-03" in expired.stdout.str()


@pytest.mark.parametrize("test", ["wrong_byte", "forgets", "defect"])
def test_no_issue_excuses_what_the_test_has_not_asserted(vendor: Vendor, test: str) -> None:
    """The last is an assertion of Leadline's own code, and not one of the test."""
    vendor.pytester.makepyfile(PLAIN)
    vendor.run("", "-k", test).assert_outcomes(failed=1, deselected=3)


def test_what_passes_needs_no_excuse_any_more(vendor: Vendor) -> None:
    result = vendor.run("expires: 2999-12-31", "-k", "holds")
    result.assert_outcomes(xpassed=1, deselected=2)
    result.stdout.fnmatch_lines(
        [
            "no longer needed, ratio of bench-a-MAKER_SSD-1.1 passes: known issue: It serialises. "
            f"(LINK) at {LINE}"
        ]
    )
    silent = vendor.run("expires: 2001-02-03", "-k", "holds")
    silent.assert_outcomes(passed=1, deselected=2)
    silent.stdout.no_fnmatch_line("no longer needed*")


@pytest.mark.parametrize(
    ("selector", "excused"),
    [
        ("kernel: 6.1.*", True),
        ("kernel: 5.10.*", False),
        ("controller: chip*", True),
        ("controller: hba", False),
        ("kernel: 6.1.*, expires: 2001-02-03", False),
        ("kernel: 6.1.*, excuses: false", False),
    ],
)
def test_it_is_of_a_controller_and_a_kernel(vendor: Vendor, selector: str, excused: bool) -> None:
    result = vendor.run(selector, "-k", "fails")
    result.assert_outcomes(xfailed=int(excused), failed=int(not excused), deselected=2)
    assert ("expired" in vendor.said()) == ("expires" in selector)


def test_an_issue_of_this_kernel_excuses_nothing_with_no_excuses(vendor: Vendor) -> None:
    vendor.run("kernel: 6.1.*", "-k", "fails", "--no-excuses").assert_outcomes(
        failed=1, deselected=2
    )


@pytest.mark.parametrize(
    ("cell", "excused"),
    [
        ("model: MAKER*", True),
        ("model: MAKER SSD, firmware: 1.?", True),
        ("model: MAKER*, firmware: 1.0", False),
        ("model: '*DISK'", False),
    ],
)
def test_it_is_of_several_models_and_firmware(vendor: Vendor, cell: str, excused: bool) -> None:
    issue = f"known_issues: [{{claim: ratio, summary: x, link: y, {cell}}}]\n"
    result = vendor.run("excuses: false", "-k", "fails", top=issue)
    result.assert_outcomes(xfailed=int(excused), failed=int(not excused), deselected=2)


def test_a_test_is_held_to_the_limit_of_the_rigs_kernel(vendor: Vendor) -> None:
    vendor.run("excuses: false", "-k", "test_limit").assert_outcomes(passed=1, deselected=2)


def test_the_day_of_a_run_is_its_workers_day(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    from copy import copy
    from types import SimpleNamespace
    from typing import cast

    from leadline.running import Run, run_from_worker, worker_plan

    (tmp_path / "rig.yaml").write_text(RIG)
    (tmp_path / "matrix.yaml").write_text(MATRIX.replace(", ISSUE", ""))
    option = copy(pytestconfig.option)
    option.results = tmp_path
    config = cast(pytest.Config, SimpleNamespace(option=option))
    run = cast(
        Run,
        SimpleNamespace(
            id="run-7",
            rigs={"bench": SimpleNamespace(path=tmp_path / "rig.yaml")},
            matrix=SimpleNamespace(path=tmp_path / "matrix.yaml"),
            visits=(),
            today=date(2001, 2, 3),
        ),
    )
    assert run_from_worker(config, worker_plan(run)).today == date(2001, 2, 3)


AT_STATIONS = """
import pytest
from leadline.claims import ClaimFailed

@pytest.mark.claim('regression_depth_8', limit='regression')
def test_compares(visit, stay, expected):
    assert expected.regression == 0.07
    raise ClaimFailed("it is slower", None)
"""
OF_THE_CANDIDATE = """\
      - revision: "1.1"
        limits: {regression: {at_most: 0.07, source: x}}
"""


def test_what_is_compared_is_held_to_the_candidates_limit_and_excused_by_its_issue(
    pytester: pytest.Pytester,
) -> None:
    """At two of its stations the drive has the released firmware, which has neither."""
    text = PACKAGED.read_text().replace("image: rigs/", f"image: {PACKAGED.parent}/rigs/")
    text = re.sub(r"    regression:\n      at_most(?:.*\n){4}", "", text)
    text = text.replace('      - revision: "1.1"\n', OF_THE_CANDIDATE, 1)
    issue = "          - claim: regression_depth_8\n"
    assert issue in text
    (pytester.path / "m.yaml").write_text(
        text.replace(issue, f"{issue}            kernel: 6.1.*\n")
    )
    pytester.makeconftest(STAND_IN.replace("class Station:\n", OF_6_1))
    pytester.makepyfile(AT_STATIONS)
    run(pytester, "--matrix=m.yaml").assert_outcomes(xfailed=4)
    run(pytester, "--matrix=m.yaml", "--no-excuses").assert_outcomes(failed=4)
