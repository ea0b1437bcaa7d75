"""The benchmarks of verdicts, without a rig: what they take for the truth, and their limits."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import curves, dips, practice, truth, verdict_speed
from bench.curves import Figures, share
from bench.virtual_drive import UnderTest
from leadline.verdict.verdict import Outcome, Reason, Verdict

NO_RIG: Any = None
SERVICE_NS = 10_000_000


def logged(depth: int, begin_s: int) -> list[str]:
    """A second of the drive's log, so many requests in flight all the while."""
    begins = range(begin_s * 10**9, (begin_s + 1) * 10**9, SERVICE_NS)
    lines = [json.dumps([at, at + SERVICE_NS, "read", 0, 8, depth, 0]) for at in begins]
    return [line for line in lines for _ in range(depth)]


def test_a_log_from_which_requests_are_missing_tells_no_truth(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    drive = UnderTest(NO_RIG, NO_RIG, NO_RIG, log)
    whole = ['{"serial": "S"}', *logged(8, 0), *logged(1, 2)]
    log.write_text("\n".join(whole) + "\n")
    assert drive.true_ratio(8, 1) == pytest.approx(8.0)
    log.write_text("\n".join([*whole, '{"lost": 3}']) + "\n")
    with pytest.raises(RuntimeError, match="3 requests are missing"):
        drive.true_ratio(8, 1)


# Curves, simulated.

NEVER, ALWAYS = share([False] * 1000), share([True] * 1000)
OFTEN = share([True] * 51 + [False] * 949)
GOOD = Figures(
    healthy_mean_s=85.0,
    dip_mean_s=80.0,
    longest_s=2080.0,
    false_dips=NEVER,
    false_dips_beside_a_dip=NEVER,
    found=ALWAYS,
    found_below_own_rate=ALWAYS,
    missed=NEVER,
    inconclusive=NEVER,
    practice_s=2080.0,
    practice_false_dips=ALWAYS,
)


@pytest.mark.parametrize(
    ("rig", "figures", "kept"),
    [
        ("quiet", GOOD, True),
        ("quiet", replace(GOOD, healthy_mean_s=104.1), False),
        ("quiet", replace(GOOD, dip_mean_s=104.1), False),
        ("disk", replace(GOOD, healthy_mean_s=424.0), True),
        ("disk", replace(GOOD, false_dips=OFTEN), False),
        ("disk", replace(GOOD, found=NEVER), False),
        ("disk", replace(GOOD, inconclusive=OFTEN), False),
        ("disk", replace(GOOD, inconclusive=ALWAYS), False),
    ],
)
def test_each_limit_of_the_curves_is_one(rig: str, figures: Figures, kept: bool) -> None:
    assert curves.within({"quiet": GOOD, "disk": GOOD} | {rig: figures}) is kept


def verdict(outcome: Outcome, drive_s: float) -> Verdict:
    reason: Reason = "budget" if outcome is Outcome.INCONCLUSIVE else "settled"
    return Verdict(outcome, reason, ">=", 3.0, 8, "pair", drive_s, estimate=3.0)


@pytest.mark.parametrize(
    ("came", "kept"),
    [(verdict(Outcome.FAIL, 1.0), True), (verdict(Outcome.PASS, 1.0), False), (None, False)],
)
def test_a_verdict_that_is_none_is_not_a_fast_one(
    monkeypatch: pytest.MonkeyPatch, came: Verdict | None, kept: bool
) -> None:
    monkeypatch.setattr(verdict_speed, "judge_ratio", lambda *_, **__: came)
    assert verdict_speed.measure()["within_limits"] is kept


# On virtual drives.


@pytest.mark.parametrize(
    ("curve", "named", "kept"),
    [
        (verdict(Outcome.PASS, 104.0), True, True),
        (verdict(Outcome.PASS, 104.1), True, False),
        (verdict(Outcome.INCONCLUSIVE, 80.0), True, False),
        (verdict(Outcome.PASS, 80.0), False, False),
    ],
)
def test_each_limit_of_the_dips_is_one(
    monkeypatch: pytest.MonkeyPatch, curve: Verdict, named: bool, kept: bool
) -> None:
    monkeypatch.setattr(dips, "judged", lambda *_: nullcontext(NO_RIG))
    monkeypatch.setattr(dips, "_curve", lambda _: curve)
    monkeypatch.setattr(dips, "_dipped", lambda *_: {"named": named})
    assert dips.measure(2, 1)["within_limits"] is kept


def test_each_run_of_the_practice_is_said_for_it_takes_an_hour(
    capsys: pytest.CaptureFixture[str],
) -> None:
    drive: Any = SimpleNamespace(slices=lambda *_: [SimpleNamespace(rate=700.0)])
    assert practice._run(drive, 8, 65.0) == 700.0
    assert capsys.readouterr().err == "700.0 requests a second in 65 s at depth 8\n"


def drive_of(true_ratio: float, inconclusive: int = 0, wrong: int = 0) -> dict[str, Any]:
    return {
        "truth": true_ratio,
        "inconclusive": inconclusive,
        "wrong": wrong,
        "wall_over_drive": 1.1,
    }


@pytest.mark.parametrize(
    ("drives", "kept"),
    [
        ([drive_of(2.4), drive_of(3.6)], True),
        ([drive_of(2.4), drive_of(3.6, wrong=1)], False),
        ([drive_of(2.4, 1), drive_of(3.6, 1)], True),
        ([drive_of(2.4, 1), drive_of(3.6, 2)], False),
        ([drive_of(2.9, 20), drive_of(3.1, 20)], True),
        ([drive_of(2.4, 20), drive_of(3.6, 20)], False),
        ([drive_of(2.4), drive_of(3.6) | {"wall_over_drive": 1.16}], False),
    ],
)
def test_each_limit_of_the_truth_is_one(
    monkeypatch: pytest.MonkeyPatch, drives: list[dict[str, Any]], kept: bool
) -> None:
    """What is so near the threshold that it cannot be told from it may be INCONCLUSIVE."""
    given = iter(drives)
    monkeypatch.setattr(truth, "transport_ms_of", lambda _: 1.0)
    monkeypatch.setattr(truth, "_figures", lambda *_: next(given))
    assert truth.measure(20, [1.0] * len(drives))["within_limits"] is kept
