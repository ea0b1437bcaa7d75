"""A verdict in words: every figure, what voids or limits it, what to do next."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.claims import Claim
from leadline.expected import Limit
from leadline.explain import estimate_text, explain
from leadline.load.slices import VOID_MEANINGS
from leadline.load.workload import random_read
from leadline.quantities import Load
from leadline.remedies import (
    NO_DIFFERENCE,
    NO_REQUEST_SEEN,
    NO_STATION,
    NOT_SEEN,
    REMEDIES,
    TOO_FEW,
    WHICH_IS_OFF,
)
from leadline.statements import Within
from leadline.verdict.contrast import IDENTICAL
from leadline.verdict.verdict import Outcome, RateEstimate, Reason, Verdict
from selftests.test_claims import Ruling

PASSED = Verdict(
    Outcome.PASS,
    "settled",
    ">=",
    3.0,
    4,
    "pair",
    8.0,
    estimate=7.214,
    low=6.984,
    high=7.447,
    rates=(RateEstimate(7214.4, 7000.0, 7400.0), RateEstimate(1000.0, 990.0, 1010.0)),
    notes=("the signs agree",),
)


READS = Load(random_read(), Ruling(), full_depth=32)
EIGHT, ONE = READS.at(depth=8), READS.at(depth=1)
THREE_TIMES = "random_read.at(depth=8) >= 3 * random_read.at(depth=1)"


def explained(verdict: Verdict, claim: Claim | None = None) -> list[str]:
    said = (claim or EIGHT >= 3 * ONE).statement
    return explain(verdict, said, cell="bench-a", repeat="leadline hil this").splitlines()


def test_the_whole_story_of_a_pass() -> None:
    assert explained(PASSED) == [
        f"PASS: {THREE_TIMES} holds on bench-a",
        "  random_read.at(depth=8): 7214 requests/s [7000, 7400]",
        "  random_read.at(depth=1): 1000 requests/s [990, 1010]",
        "  ratio: 7.21 [6.98, 7.45], over 4 pairs of slices",
        "  threshold: >= 3",
        "  cost: 8.0 drive-seconds",
        "  note: the signs agree",
        "  repeat: leadline hil this",
    ]


def test_a_limit_of_the_matrix_is_cited() -> None:
    claim = Limit(3.0, "a claim", "recorded sweeps") * ONE <= EIGHT
    assert "  threshold: >= 3 (recorded sweeps)" in explained(PASSED, claim)


def test_a_failure_does_not_hold() -> None:
    first = explained(replace(PASSED, outcome=Outcome.FAIL))[0]
    assert first == f"FAIL: {THREE_TIMES} does not hold on bench-a"


def test_a_failure_names_its_cause_where_that_is_known() -> None:
    verdict = replace(PASSED, outcome=Outcome.FAIL, cause="not queueing")
    assert explained(verdict)[0] == f"FAIL: not queueing: {THREE_TIMES} does not hold on bench-a"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("marginal", "more drive time would not tell"),
        ("budget", "raise it with --drive-time"),
        ("void", "the evidence does not count"),
    ],
)
def test_what_is_inconclusive_says_why_and_what_to_do(reason: Reason, words: str) -> None:
    verdict = replace(PASSED, outcome=Outcome.INCONCLUSIVE, reason=reason)
    first = explained(verdict)[0]
    assert first.startswith(f"INCONCLUSIVE ({reason}): {THREE_TIMES} on bench-a: ")
    assert words in first


def test_a_rate_against_a_figure_is_told_in_the_figures_unit() -> None:
    verdict = replace(PASSED, threshold=20.0, unit="slice", count=9, rates=())
    assert explained(verdict, EIGHT.mb_per_s >= Limit(20, "c", "a data sheet"))[:3] == [
        "PASS: random_read.at(depth=8).mb_per_s >= 20 MB/s holds on bench-a",
        "  rate: 7.21 [6.98, 7.45] MB/s, over 9 slices",
        "  threshold: >= 20 MB/s (a data sheet)",
    ]


def test_a_time_is_told_in_seconds_and_as_the_bandwidth_that_it_is() -> None:
    verdict = replace(PASSED, direction="<=", threshold=60.0, unit="slice", count=9, rates=())
    claim = EIGHT.time_for(16 * 10**9) <= Limit(60, "c", "a data sheet")
    assert explained(verdict, claim)[:4] == [
        "PASS: random_read.at(depth=8).time_for(16 GB) <= 60 s holds on bench-a",
        "  time: 7.21 [6.98, 7.45] s, over 9 slices",
        "  bandwidth: 2218 [2149, 2291] MB/s in requests of 4 KiB",
        "  threshold: <= 60 s (a data sheet)",
    ]
    little = explained(replace(verdict, low=0.0, high=math.inf), claim)
    assert "  bandwidth: 2218 [0, inf] MB/s in requests of 4 KiB" in little


def test_what_is_above_a_thousand_has_all_its_digits() -> None:
    verdict = replace(PASSED, estimate=2478.4, low=2231.0, high=27714.2)
    assert estimate_text(verdict) == "2478 [2231, 27714]"
    verdict = replace(PASSED, estimate=999.7, low=999.4, high=1000.4)
    assert estimate_text(verdict) == "1000 [999, 1000]"


def test_rates_of_a_fast_drive_have_all_their_digits() -> None:
    rates = (RateEstimate(91234.4, 90017.2, 92480.0), RateEstimate(9999.7, 9990.2, 10012.3))
    verdict = replace(PASSED, rates=rates)
    assert explained(verdict)[1:3] == [
        "  random_read.at(depth=8): 91234 requests/s [90017, 92480]",
        "  random_read.at(depth=1): 10000 requests/s [9990, 10012]",
    ]
    verdict = replace(PASSED, threshold=90000.0, unit="slice", rates=())
    assert "  threshold: >= 90000 requests/s" in explained(verdict, EIGHT >= 90000)


def test_agreement_says_how_close() -> None:
    verdict = replace(PASSED, direction="within", threshold=0.05, estimate=1.01, low=1, high=1.02)
    lines = explained(verdict, EIGHT.agrees_with(ONE, within=0.05))
    assert "  ratio: 1.01 [1, 1.02], over 4 pairs of slices" in lines
    assert "  threshold: within 5 % of each other" in lines


def test_a_dip_names_its_depth_and_its_neighbours() -> None:
    low = RateEstimate(900.0, 880.0, 920.0)
    high = RateEstimate(1000.0, 980.0, 1020.0)
    verdict = replace(
        PASSED,
        outcome=Outcome.FAIL,
        threshold=0.96,
        unit="triple",
        estimate=0.9,
        low=0.88,
        high=0.92,
        rates=(low, high, high),
        notes=("depth 19 against 18 and 20",),
    )
    lines = explained(verdict, READS.curve().has_no_dip())
    assert lines[0].startswith("FAIL: random_read.curve(depth 1 to 32) has no dip of more than ")
    assert "  at the depth: 900 requests/s [880, 920]" in lines
    assert "  rate over its neighbours' chord: 0.9 [0.88, 0.92], over 4 triples of slices" in lines
    assert "  note: depth 19 against 18 and 20" in lines


def test_a_time_is_told_by_the_slowest_event_of_so_many() -> None:
    verdict = replace(
        PASSED, direction="<=", threshold=10.0, unit="event", count=3, rates=(), estimate=9.306
    )
    verdict = replace(verdict, low=None, high=None, drive_seconds=0.0, notes=())
    within = Within("ready", 10.0, (9.306, 4.0, 3.0), source="a data sheet")
    told = explain(verdict, within, cell="bench-a", repeat="leadline hil this").splitlines()
    assert told == [
        "PASS: power_cycle.ready_within(10) holds on bench-a",
        "  slowest: 9.31 s, over 3 power cycles",
        "  threshold: <= 10 s (a data sheet)",
        "  cost: 0.0 drive-seconds",
        "  repeat: leadline hil this",
    ]
    assert estimate_text(verdict) == "9.31 s"


def test_a_verdict_without_any_pair_has_its_voids_and_no_figures() -> None:
    verdict = Verdict(
        Outcome.INCONCLUSIVE, "void", ">=", 3.0, 0, "pair", 4.0, voids=("span: small", "cpu")
    )
    assert explained(verdict)[1:] == [
        "  threshold: >= 3",
        "  cost: 4.0 drive-seconds",
        "  void: span: small",
        f"  remedy: {REMEDIES['span']}",
        "  void: cpu",
        "  repeat: leadline hil this",
    ]
    assert estimate_text(verdict) == ""


def test_whatever_voids_a_slice_has_a_remedy() -> None:
    others = {
        TOO_FEW,
        IDENTICAL,
        NO_DIFFERENCE,
        NO_STATION,
        NO_REQUEST_SEEN,
        NOT_SEEN,
        WHICH_IS_OFF,
    }
    assert REMEDIES.keys() == VOID_MEANINGS.keys() | others
    page = (Path(__file__).parent.parent / "docs/how-to/mend-a-void.md").read_text()
    assert [name for name in REMEDIES if f"`{name}`" not in page] == []
