"""The suite's own tests of NCQ, of drives that lack it: promised, not promised, not to be told."""

from typing import Any

import pytest

from selftests.vendor import PACKAGE, kept, run

SUITE = PACKAGE / "suite" / "test_ncq_support.py"
DRIVE = """
from contextlib import nullcontext
from types import SimpleNamespace as Made
import pytest
from leadline.drive.ladder import Ladder, Rung

class Visit:
    station = Made(latching=nullcontext)
    model = Made(model="MODEL", queue_depth={promised})
    drive = Made(
        identify=Made(ncq=Made(supported={offers}, queue_depth=32)), link=Made(speed="{speed}")
    )
    kernel_queue_depth = {depth}
    ladder = Ladder("S", "boot", (Rung("controller", {depth} > 1, "ata_piix takes {depth}"),))
    def __init__(self, visit):
        self.visit = visit
    def test(self, item):
        return nullcontext()

@pytest.fixture(scope="session")
def visit(request):
    return Visit(request.param)
"""
ADVERTISED, LADDER, ALLOWED = (
    "drive_advertises_ncq",
    "ncq_ladder_holds",
    "kernel_allows_a_queue",
)


def ended(pytester: pytest.Pytester, **drive: object) -> dict[str, dict[str, Any]]:
    """The outcome of each test, of a drive like that in slot ssd1."""
    given = {"promised": 32, "offers": True, "speed": "6.0 Gbps", "depth": 32}
    pytester.makeconftest(DRIVE.format(**given | drive))
    pytester.makepyfile(test_ncq_support=SUITE.read_text())
    run(pytester, "-k", "VSSD-1.0")
    return {row["claim"]: row for row in kept(pytester, "outcomes")}


def outcomes(rows: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    return tuple(rows[claim]["outcome"] for claim in (ADVERTISED, LADDER, ALLOWED))


def test_a_drive_that_queues(pytester: pytest.Pytester) -> None:
    assert outcomes(ended(pytester)) == ("pass", "pass", "pass")


def test_a_drive_without_a_promised_queue_fails(pytester: pytest.Pytester) -> None:
    rows = ended(pytester, offers=False, depth=1)
    assert outcomes(rows) == ("fail", "fail", "fail")
    said = rows[LADDER]["message"].splitlines()[0]
    assert said == "the controller cannot queue: ata_piix takes 1"


def test_what_a_port_hides_is_not_held_against_the_drive(pytester: pytest.Pytester) -> None:
    rows = ended(pytester, offers=False, depth=1, speed="")
    assert outcomes(rows) == ("skipped", "fail", "fail")
    assert "says nothing; the NCQ ladder names the cause" in rows[ADVERTISED]["message"]


def test_what_the_matrix_does_not_promise_is_skipped_with_the_reason(
    pytester: pytest.Pytester,
) -> None:
    rows = ended(pytester, promised=1, offers=False, depth=1)
    assert outcomes(rows) == ("skipped", "skipped", "skipped")
    reason = "not offered: the firmware matrix promises no queue of MODEL (queue_depth: 1)"
    assert all(reason in row["message"] for row in rows.values())


def test_a_queue_that_nobody_promised_is_told(pytester: pytest.Pytester) -> None:
    rows = ended(pytester, promised=1)
    assert outcomes(rows) == ("fail", "pass", "pass"), "the matrix is wrong about this drive"
