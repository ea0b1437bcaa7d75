"""Healthy virtual drives through the whole of `-m acceptance`, again and again: any false alarm?

`./run bench acceptance [ssd|disk|sas ...] [--runs N]`.  Each drive is the one of its shipped
profile, on a rig of its own that stays up; the runs share their results, so that from the second
on a drive is held against its own record.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.fault_case import CUT, READ_BACK
from bench.fault_rig import PACKAGE, Ran, Seeded, hil, running
from leadline.inventory.document import read

RUNS = 10
RUN_LIMIT_S = 1200.0
SLOT = "healthy"
CYCLE = "acknowledged_writes_outlast_a_graceful_power_cycle"
WORDS = ("-m", "acceptance", "--allow-writes")
FALSE = frozenset({"fail", "error", "usage", "defect", "inconclusive"})
_IDENTITY = frozenset({"model", "vendor", "product", "serial", "wwn", "firmware", "capacity_bytes"})
_SHOWN = 160


def healthy(kind: str) -> Seeded:
    """The drive of one of the kinds, as its shipped profile has it."""
    if kind == "sas":
        profile = _profile("vscsi-1.0")
        return Seeded(SLOT, profile, "virtio-scsi", kind="SCSI SSD", queue_depth=128)
    limits = _limits("LEADLINE VSSD")
    if kind == "ssd":
        return Seeded(SLOT, _profile("vssd-1.0"), limits=limits)
    # Its outlet feeds the host, too.
    limits = {"ready_s": limits["ready_s"]}
    return Seeded(SLOT, _profile("vdisk-1.0"), class_="hdd", kind="DISK", limits=limits)


KINDS = ("ssd", "disk", "sas")
_EACH = {
    "no_dip",
    "no_collapse",
    "depth_8_over_depth_1",
    "streams_ncq_on_over_off",
    "multitasking_loss",
    "request_size",
    "ready_s",
    READ_BACK,
    CYCLE,
    CUT,
}
_OF_FLASH = {"ncq_off_over_on", "threads_ncq_on_over_off", "random_mix_depth_8_over_depth_1"}
NEEDED: Mapping[str, frozenset[str]] = {
    "ssd": frozenset(_EACH | _OF_FLASH | {"ncq_ladder_holds", "refill_16_gb_s"}),
    "disk": frozenset(_EACH | {"ncq_ladder_holds", "multitasking_gain"}),
    "sas": frozenset(_EACH | _OF_FLASH),
}
"""Claims that each run must come to: a run that leaves them out finds no false alarm either."""


def _profile(name: str) -> Mapping[str, object]:
    data = read(PACKAGE / "rigs" / "profiles" / f"{name}.yaml").data
    return {key: value for key, value in data.items() if key not in _IDENTITY}


def _limits(model: str) -> Mapping[str, object]:
    """Those that the shipped matrix has for that model alone."""
    models: Any = read(PACKAGE / "firmware_matrix.yaml").data["models"]
    (limits,) = [each["limits"] for each in models if each["model"] == model]
    return dict(limits)


@dataclass(frozen=True)
class Once:
    """One run: seconds, how many tests ended how, and every alarm in words."""

    seconds: float
    code: int
    counted: Mapping[str, int]
    alarms: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether nothing but passes came of it, in time."""
        return self.code == 0 and not self.alarms and self.seconds <= RUN_LIMIT_S


def once(ran: Ran, needed: Collection[str] = ()) -> Once:
    """What one run came to; claims that are `needed` must have passed, and not been left out."""
    rows = ran.summary["outcomes"]  # not by claim: several tests make one, size by size
    passed = {row["claim"] for row in rows if row["outcome"] == "pass"}
    alarms = [f"{claim}: did not pass" for claim in sorted(set(needed) - passed)]
    alarms += [
        f"{row['claim']}: {row['outcome']}: {row['message'].partition(chr(10))[0][:_SHOWN]}"
        for row in rows
        if row["outcome"] in FALSE
    ]
    counted = Counter(row["outcome"] for row in rows)
    return Once(ran.summary["seconds"], ran.code, dict(counted), tuple(alarms))


def measure(words: Sequence[str] = ()) -> dict[str, object]:
    """Each kind of drive so many times; every alarm is a false one."""
    asked = _arguments(words)
    done = {kind: _row_of_runs(kind, asked.runs) for kind in asked.kind or KINDS}
    return {
        "runs": asked.runs,
        "run_limit_s": RUN_LIMIT_S,
        "drives": {kind: _figures(runs) for kind, runs in done.items()},
        "within_limits": all(each.is_right for runs in done.values() for each in runs),
    }


def _row_of_runs(kind: str, runs: int) -> list[Once]:
    done = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(folder, [healthy(kind)]) as (rig, matrix):
            for number in range(1, runs + 1):
                done.append(once(hil(rig, matrix, folder / "results", WORDS), NEEDED[kind]))
                print(_said(kind, number, done[-1]), file=sys.stderr, flush=True)
    return done


def _said(kind: str, number: int, run: Once) -> str:
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(run.counted.items()))
    alarms = "".join(f"\n  {alarm}" for alarm in run.alarms)
    return f"{kind} {number}: exit {run.code}, {counted} in {run.seconds:.0f} s{alarms}"


def _figures(runs: Sequence[Once]) -> dict[str, object]:
    return {
        "longest_s": max(run.seconds for run in runs),
        "right": sum(run.is_right for run in runs),
        "outcomes": [dict(run.counted) for run in runs],
        "alarms": [alarm for run in runs for alarm in run.alarms],
    }


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run bench acceptance",
        description="Run `leadline hil -m acceptance` on healthy virtual drives, again and again.",
    )
    parser.add_argument("kind", nargs="*", choices=[*KINDS, []], help="default: each")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each drive ({RUNS})")
    asked = parser.parse_args(words)
    if asked.runs < 1:
        parser.error(f"--runs {asked.runs}: at least 1")
    return asked
