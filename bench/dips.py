"""Depth curves on virtual drives: a seeded dip is found and named, a healthy curve is clean."""

import secrets
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

from bench.visited_drive import Judged, judged
from leadline.verdict.verdict import Outcome, Verdict

HEALTHY_RUNS = 20
DIPS = 2
DIP = 0.08
COST_LIMIT_S = 32 * 65.0 / 20
HEALTHY = """\
channels: 8
read_ms: 8
write_ms: 3
overhead_ms: 0.2
"""
SLOW_AT = """\
faults:
  slow_depths:
    - {{at: {depth}, factor: {factor:.4f}}}
"""


def measure(healthy_runs: int = HEALTHY_RUNS, dips: int = DIPS) -> dict[str, object]:
    """Curves of a healthy drive, and of drives with one dip at a depth drawn now."""
    with tempfile.TemporaryDirectory() as folder:
        with judged(Path(folder), HEALTHY) as drive:
            clean = [_curve(drive) for _ in range(healthy_runs)]
        found = [_dipped(Path(folder), 2 + secrets.randbelow(30)) for _ in range(dips)]
    passed = sum(each.outcome is Outcome.PASS for each in clean)
    drive_s = round(mean(each.drive_seconds for each in clean), 1) if clean else 0.0
    return {
        "healthy": {
            "runs": healthy_runs,
            "clean": passed,
            "mean_drive_s": drive_s,
            "lowest": [round(each.estimate or 0.0, 3) for each in clean],
        },
        "dips": found,
        "mean_drive_s_limit": COST_LIMIT_S,
        "within_limits": passed == healthy_runs
        and drive_s <= COST_LIMIT_S
        and all(each["named"] for each in found),
    }


def _curve(drive: Judged) -> Verdict:
    return drive.settle(lambda reads: reads.curve().has_no_dip())


def _dipped(folder: Path, depth: int) -> dict[str, Any]:
    profile = HEALTHY + SLOW_AT.format(depth=depth, factor=1.0 / (1.0 - DIP))
    with judged(folder, profile) as drive:
        verdict = _curve(drive)
    where = f"depth {depth} against {depth - 1} and {depth + 1}"
    return {
        "depth": depth,
        "outcome": verdict.outcome.value,
        "named": verdict.outcome is Outcome.FAIL and where in verdict.notes,
        "estimate": round(verdict.estimate or 0.0, 3),
        "drive_s": round(verdict.drive_seconds, 1),
        "notes": list(verdict.notes),
    }
