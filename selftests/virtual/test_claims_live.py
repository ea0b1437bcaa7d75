"""Claims of every kind on a drive that is real to Linux: eight channels, 10 ms a read."""

import re

import pytest

from leadline.claims import Claim, ClaimFailed
from leadline.judge import SliceJudge
from leadline.load.workload import random_read
from leadline.plans import Noise
from leadline.quantities import Load
from leadline.selection import CURVE_BUDGETS
from leadline.verdict.verdict import Outcome, Verdict
from selftests.virtual.test_load_live import Ssd, bound, ssd

pytestmark = pytest.mark.measures

__all__ = ["bound", "ssd"]  # fixtures


@pytest.fixture
def verdicts() -> list[Verdict]:
    return []


@pytest.fixture
def reads(ssd: Ssd, verdicts: list[Verdict]) -> Load:
    def keep(claim: Claim, verdict: Verdict, explanation: str) -> None:
        verdicts.append(verdict)

    judge = SliceJudge(
        cell="virtual",
        measure=lambda workload, settings: ssd.slices_at(settings),
        keep_slice=lambda side, measured: None,
        keep_verdict=keep,
        slice_s=0.5,
        budget_s=60.0,
        curve_budget_s=CURVE_BUDGETS * 60.0,
        repeat="pytest",
        noise=Noise(note=""),
    )
    return Load(random_read(), judge, full_depth=32)


def test_the_drive_holds_what_its_queue_depth_allows_and_that_is_counted(
    reads: Load, verdicts: list[Verdict]
) -> None:
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (note,) = [each for each in verdicts[0].notes if each.startswith("the drive held ")]
    held, depths = zip(*re.findall(r"([\d.]+) at depth (\d+)", note), strict=True)
    assert depths == ("1", "8")
    shallow, deep = map(float, held)
    assert 0.8 <= shallow <= 1.0
    assert 7.0 <= deep <= 8.0


@pytest.mark.long
def test_a_figure_and_agreement(reads: Load, verdicts: list[Verdict]) -> None:
    assert reads.at(depth=8) >= 100
    assert reads.at(depth=16).agrees_with(reads.at(depth=24), within=0.15)
    with pytest.raises(ClaimFailed):
        assert reads.at(depth=8).mb_per_s >= 400
    assert [each.unit for each in verdicts] == ["slice", "pair", "slice"]


@pytest.mark.long
def test_a_curve_of_a_few_depths(reads: Load, verdicts: list[Verdict]) -> None:
    curve = reads.curve([2, 8, 16])
    assert curve.has_no_dip(tolerance=0.2)
    assert curve.does_not_collapse(within=0.3)
    assert all(each.outcome is Outcome.PASS for each in verdicts)
    assert "best" in verdicts[0].notes[-1]
