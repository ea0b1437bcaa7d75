"""How often a verdict is wrong, and what it costs: ratio claims simulated with a known truth.

Everything is seeded: but for the processor time, the figures are the same in every run.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from unittest import mock

import numpy as np

from bench.simulate import RIGS, TWO_RUNS_S, Rig, settle, two_runs_hold
from leadline.verdict import interval
from leadline.verdict.contrast import SIGMA_D
from leadline.verdict.verdict import Outcome, Verdict

RUNS = 1000
SEED = 20
OFFS = (0.05, -0.05, 0.10, -0.10, 0.20, -0.20)
"""How far the truth lies from the threshold, as a share of it; above 0 the claim holds."""
NEAR_OFFS = (0.01, -0.01)
"""Nearer than the limits reach: here a small error makes a verdict wrong."""
NOISY_RIGS = ("noisy", "disk")
GUARDED_OFFS = (0.05, -0.05, *NEAR_OFFS)
"""Where the guards are taken away, on the noisy rigs."""
WRONG_LIMIT = 0.01
QUIET_COST_LIMITS_S = {0.20: TWO_RUNS_S / 10, 0.10: TWO_RUNS_S / 5}
"""Mean drive time on the quiet rig, by distance from the threshold on either side."""
INCONCLUSIVE_LIMIT = 0.01
"""Share of these claims, whatever the reason: who never decides is never wrong, and is no judge."""


@dataclass(frozen=True)
class Share:
    """`times` out of `of`, with the Clopper-Pearson 95 % interval: 0 of 1,000 is not 0."""

    times: int
    of: int
    low: float
    high: float


@dataclass(frozen=True)
class Cell:
    """Many claims at one distance from the threshold on one rig.

    A wrong verdict is a "false alarm" (FAIL where the claim holds) or a "miss" (PASS where
    it does not): `error` says which it can be here.  `inconclusive` has the share of claims
    by reason; drive times are in seconds.  `two_runs_wrong` is the practice in the field on
    the same noise.
    """

    rig: str
    off: float
    error: str
    wrong: Share
    inconclusive: dict[str, float]
    mean_drive_s: float
    longest_drive_s: float
    two_runs_wrong: Share


@dataclass(frozen=True)
class Guards:
    """Wrong verdicts on the very same noise, with the guards and with less than that.

    `without_guards` has neither the drift term nor the inflation for correlation;
    `drift_not_told` has both, but the judge takes the rig's drift for a quiet one's.
    """

    rig: str
    off: float
    with_guards: Share
    without_guards: Share
    drift_not_told: Share


def measure(runs: int = RUNS) -> dict[str, object]:
    """Simulate `runs` claims a cell: the figures, their limits, and whether they are kept."""
    began = time.process_time()
    cells = [cell_of(rig, off, runs) for rig in RIGS for off in (*OFFS, *NEAR_OFFS)]
    wrong = {(cell.rig, cell.off): cell.wrong for cell in cells}
    guards = [
        guards_of(rig, off, wrong[rig.name, off])
        for rig in RIGS
        if rig.name in NOISY_RIGS
        for off in GUARDED_OFFS
    ]
    kept = limits_kept(cells, guards)
    return {
        "claims_a_cell": runs,
        "cpu_s": round(time.process_time() - began, 1),
        "noise": {rig.name: {"slice_s": rig.slice_s, **asdict(rig.noise)} for rig in RIGS},
        "cells": [asdict(cell) for cell in cells],
        "two_runs_drive_s": TWO_RUNS_S,
        "guards": [asdict(each) for each in guards],
        "wrong_limit": WRONG_LIMIT,
        "quiet_mean_drive_s_limits": QUIET_COST_LIMITS_S,
        "quiet_inconclusive_limit": INCONCLUSIVE_LIMIT,
        "limits_kept": kept,
        "within_limits": all(kept.values()),
    }


def cell_of(rig: Rig, off: float, runs: int) -> Cell:
    """`runs` claims settled as the product does it, told the drift of the rig."""
    verdicts = verdicts_of(rig, off, runs, sigma_d=rig.noise.drift)
    reasons = Counter(v.reason for v in verdicts if v.outcome is Outcome.INCONCLUSIVE)
    costs = [verdict.drive_seconds for verdict in verdicts]
    holds = [two_runs_hold(_rng(rig, off, run), rig, off) for run in range(runs)]
    print(f"{rig.name}, {off:+.0%}: {runs} claims", file=sys.stderr, flush=True)
    return Cell(
        rig=rig.name,
        off=off,
        error="false alarm" if off > 0 else "miss",
        wrong=share(count_wrong(verdicts, off), runs),
        inconclusive={name: reasons[name] / runs for name in ("marginal", "budget", "void")},
        mean_drive_s=round(sum(costs) / runs, 1),
        longest_drive_s=max(costs),
        two_runs_wrong=share(sum(each != (off > 0) for each in holds), runs),
    )


def guards_of(rig: Rig, off: float, with_guards: Share) -> Guards:
    """What becomes of the claims of which `with_guards` were wrong when guards are missing."""
    runs = with_guards.of
    untold = verdicts_of(rig, off, runs, sigma_d=SIGMA_D)
    with without_correlation_guard():
        bare = verdicts_of(rig, off, runs, sigma_d=0.0)
    print(f"{rig.name}, {off:+.0%}: {runs} without guards", file=sys.stderr, flush=True)
    return Guards(
        rig=rig.name,
        off=off,
        with_guards=with_guards,
        without_guards=share(count_wrong(bare, off), runs),
        drift_not_told=share(count_wrong(untold, off), runs),
    )


def verdicts_of(rig: Rig, off: float, runs: int, *, sigma_d: float) -> list[Verdict]:
    """One verdict a run; the noise of a run depends on nothing but rig, `off` and its number."""
    return [settle(_rng(rig, off, run), rig, off, sigma_d=sigma_d) for run in range(runs)]


def count_wrong(verdicts: Sequence[Verdict], off: float) -> int:
    """How many verdicts are settled the wrong way; INCONCLUSIVE is not wrong."""
    wrong = Outcome.FAIL if off > 0 else Outcome.PASS
    return sum(verdict.outcome is wrong for verdict in verdicts)


def share(times: int, of: int) -> Share:
    """`times` out of `of` with its exact (Clopper-Pearson) 95 % interval."""
    from scipy.stats import binomtest

    found = binomtest(times, of).proportion_ci(0.95, method="exact")
    return Share(times, of, round(float(found.low), 5), round(float(found.high), 5))


def limits_kept(cells: Sequence[Cell], guards: Sequence[Guards]) -> dict[str, bool]:
    """Which limits the figures keep, by name.

    A share of wrong verdicts is within its limit when its whole interval is.  The last is a
    limit on the simulation: noise on which a judge without guards does as well proves nothing.
    """
    quiet = [
        (cell, QUIET_COST_LIMITS_S[abs(cell.off)])
        for cell in cells
        if cell.rig == "quiet" and abs(cell.off) in QUIET_COST_LIMITS_S
    ]
    bare, whole = (
        share(sum(each.times for each in found), sum(each.of for each in found))
        for found in (
            [each.without_guards for each in guards],
            [each.with_guards for each in guards],
        )
    )
    return {
        "wrong": all(cell.wrong.high <= WRONG_LIMIT for cell in cells if cell.off in OFFS),
        "quiet_mean_drive_s": all(cell.mean_drive_s <= limit_s for cell, limit_s in quiet),
        "quiet_inconclusive": all(
            sum(cell.inconclusive.values()) <= INCONCLUSIVE_LIMIT for cell, _ in quiet
        ),
        "guards_are_needed": bare.low > whole.high,
    }


@contextmanager
def without_correlation_guard() -> Iterator[None]:
    """The spread of the pairs is taken as if neighbours had nothing in common."""
    with mock.patch.object(interval, "_lag1", return_value=0.0):
        yield


def _rng(rig: Rig, off: float, run: int) -> np.random.Generator:
    return np.random.default_rng([SEED, *rig.name.encode(), round(1000 * (1 + off)), run])
