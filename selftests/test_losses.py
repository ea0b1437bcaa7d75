"""What a candidate loses is told first: what held with the released firmware, and comparisons."""

import json
import re
from dataclasses import replace

import pytest

from leadline.inventory.plan import Cell, Visit
from leadline.inventory.stations import Route, route_of
from leadline.report.losses import Loss, losses, told
from leadline.report.summary import SummaryRow, summary_table
from selftests.regression_stays import CANDIDATE, HOME
from selftests.vendor import run, vendor

__all__ = ["vendor"]  # a fixture

ROUTE = route_of([HOME, CANDIDATE])
RELEASED, TESTED = HOME.cell.id, CANDIDATE.cell.id


def row(
    cell: str, outcome: str, test: str = "test_a", claim: str = "a", **facts: object
) -> SummaryRow:
    where = facts.pop("where", cell)
    base = {"cell": cell, "claim": claim, "outcome": outcome, "message": "why"}
    return SummaryRow.from_facts(f"x.py::{test}[{where}]", {**base, **facts})


def lost(*rows: SummaryRow, route: Route = ROUTE) -> list[str]:
    return [f"{loss.row.claim} {loss.row.outcome}" for loss in losses(rows, route)]


@pytest.mark.parametrize(
    ("before", "after", "is_lost"),
    [
        ("pass", "fail", True),
        ("pass", "excused", True),
        ("pass", "inconclusive", True),
        ("pass", "pass", False),
        ("pass", "error", False),
        ("pass", "skipped", False),
        ("fail", "fail", False),
        ("inconclusive", "fail", False),
    ],
)
def test_lost_is_what_held_and_does_not_any_more(before: str, after: str, is_lost: bool) -> None:
    assert lost(row(RELEASED, before), row(TESTED, after)) == ([f"a {after}"] if is_lost else [])


def test_what_is_not_offered_any_more_is_lost_and_what_is_left_out_otherwise_is_not() -> None:
    why = "not offered: the drive tells no error counter"
    gone = row(TESTED, "skipped", message=why)
    assert lost(row(RELEASED, "pass"), gone) == ["a skipped"]
    assert lost(row(RELEASED, "skipped", message=why), gone) == []
    assert list(told(losses([row(RELEASED, "pass"), gone], ROUTE)))[1] == (
        f"  a: {why}: test_a[{TESTED}]"
    )


def test_tests_are_matched_with_their_parameters() -> None:
    rows = [
        row(RELEASED, "pass", where=f"{RELEASED}-4"),
        row(RELEASED, "fail", where=f"{RELEASED}-16"),
        row(TESTED, "fail", where=f"{TESTED}-16"),
        row(TESTED, "fail", where=f"{TESTED}-8"),
    ]
    assert lost(*rows) == []
    assert lost(*rows, row(TESTED, "fail", where=f"{TESTED}-4")) == ["a fail"]


def test_a_comparison_that_fails_is_a_loss_by_itself() -> None:
    judged = f"{HOME.cell.id}-visit3-station4"
    assert lost(row(TESTED, "fail", where=judged)) == ["a fail"]
    assert lost(row(TESTED, "excused", where=judged)) == ["a excused"]
    assert lost(row(TESTED, "inconclusive", where=judged)) == []
    assert lost(row(TESTED, "recorded", where=f"{TESTED}-station2")) == []


def test_of_two_candidates_in_a_row_each_comparison_is_its_own() -> None:
    """By what is stored, they are judged at visits that are alike but for their firmware."""
    cell = replace(CANDIDATE.cell, firmware="1.2")
    next_ = replace(CANDIDATE, cell=cell, n=3, against="1.1")
    rows = [row(each, "fail", where=f"{each}-station3") for each in (TESTED, cell.id)]
    route = route_of([HOME, CANDIDATE, next_], stored_baseline=True)
    assert [loss.row.cell for loss in losses(rows, route)] == [TESTED, cell.id]


def test_what_the_drive_cannot_go_back_to_may_be_lost_all_the_same() -> None:
    route = route_of([HOME, replace(CANDIDATE, compared=False)])
    assert not route.stays
    assert lost(row(RELEASED, "pass"), row(TESTED, "fail"), route=route) == ["a fail"]


def test_another_drive_is_no_baseline() -> None:
    other = row("bench-b-MODEL-1.0", "pass")
    assert lost(other, row(TESTED, "fail")) == []
    alone = Visit(Cell("bench", "a", "MODEL", "1.1", "c"), 1, "bench/a", True, None)
    assert lost(row(RELEASED, "pass"), row(TESTED, "fail"), route=route_of([alone])) == []


def test_losses_are_told_by_candidate_with_both_estimates() -> None:
    rows = [
        row(RELEASED, "pass", estimate="7.2 [7, 7.4]"),
        row(TESTED, "excused", estimate="1.4 [1.3, 1.5]"),
        row(RELEASED, "pass", test="test_b", claim="b"),
        row(TESTED, "fail", test="test_b", claim="b"),
    ]
    assert list(told(losses(rows, ROUTE))) == [
        "bench-a-MODEL-1.1 loses what 1.0 has:",
        "  a: FAIL, known issue 1.4 [1.3, 1.5] (with 1.0: 7.2 [7, 7.4]): test_a[bench-a-MODEL-1.1]",
        "  b: FAIL: test_b[bench-a-MODEL-1.1]",
    ]
    assert list(told([])) == []


def test_a_loss_is_plain_values() -> None:
    loss = Loss(row(TESTED, "fail"), "1.0", None)
    assert json.loads(json.dumps(loss.as_json())) == {
        "cell": TESTED,
        "against": "1.0",
        "claim": "a",
        "test": f"x.py::test_a[{TESTED}]",
        "outcome": "fail",
        "message": "why",
    }


def test_what_was_recorded_has_no_row_and_is_counted() -> None:
    text = summary_table([row(TESTED, "recorded"), row(TESTED, "pass")], seconds=1, width=100)
    assert "1 PASS, 1 recorded" in text
    assert text.count("  a ") == 1


def test_what_the_drive_says_otherwise_stands_below_the_table() -> None:
    judged = replace(row(TESTED, "pass"), changes=("queue depth was 16 and is 32 (word 75.4:0)",))
    text = summary_table([judged], seconds=1, width=100)
    assert f"{TESTED}: queue depth was 16 and is 32 (word 75.4:0)" in text


RUN = """
import pytest
from leadline.claims import NotJudgedHere
from leadline.running import CHANGES, RECORDED

def test_holds(visit):
    assert visit.visit.cell.firmware == "1.0"

@pytest.mark.claim("regression_streams", limit="regression")
def test_compares(visit, stay, request):
    if not stay.judges:
        request.node.stash[RECORDED] = True
        pytest.skip("20 slices recorded")
    request.node.stash[CHANGES] = ["TRIM was yes and is no (word 169.0)"]
    assert False, "slower"
"""


def test_a_run_tells_its_losses_before_the_table(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(RUN)
    result = run(vendor, "-k", "ssd1", "--no-excuses", "-rN")
    text = result.stdout.str()
    assert "3 recorded" in text
    assert re.search(r"2 failed, 1 passed, .*3 recorded", text)
    ends = text[text.index("Leadline, run") :]
    first, second = "  holds: FAIL: test_holds[", "  regression_streams: FAIL: test_compares["
    cell = "virtual-ssd1-LEADLINE_VSSD-1.1"
    assert ends.index(f"{cell} loses what 1.0 has:") < ends.index(first) < ends.index("cell, claim")
    assert ends.index(second) < ends.index("cell, claim")
    assert f"{cell}: TRIM was yes and is no (word 169.0)" in ends
    assert "station1" not in ends


def test_a_known_issue_of_the_candidate_excuses_the_comparison(vendor: pytest.Pytester) -> None:
    fails = RUN.replace('assert False, "slower"', 'raise ClaimFailed("slower", None)')
    vendor.makepyfile(f"from leadline.claims import ClaimFailed\n{fails}")
    ends = run(vendor, "-k", "ssd1 and compares", "-rN").stdout.str()
    assert "  regression_streams: FAIL, known issue: test_compares[" in ends
