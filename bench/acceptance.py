"""Healthy virtual drives through the whole of `-m acceptance`, again and again: any false alarm?

`./run bench acceptance [ssd|disk|sas|pair ...] [--runs N] [--soak] [-k EXPR]`.  Each drive is the
one of its shipped profile (SSDs are smaller, for they are filled twice a run), on a rig of its own
that stays up; `pair` is two SSDs alike on one rig, for the claims that hold drives against one
another or load both at once.  The runs share their results, so that from the second on a drive is
held against its own record.  What a run with an alarm left, its results and the rig's logs, is
copied to where stderr says, for the rig takes its own along when it ends.
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.fault_case import CUT, READ_BACK
from bench.fault_rig import PACKAGE, Ran, Seeded, hil, in_short, running, slot_of
from leadline.inventory.document import read
from leadline.virtual.state import State

RUNS = 10
RUN_LIMIT_S = 1200.0
"""Of one run on one drive; a run on two may take twice as long."""
HANGS_S, SOAK_HANGS_S = 7200.0, 36_000.0
SLOT, MATE = "healthy", "mate"
SMALL = {"capacity_bytes": 2 << 30}
"""Thirty-two times its cache: so small that to fill it does not take the most of a run."""
CYCLE = "acknowledged_writes_outlast_a_graceful_power_cycle"
WORDS = ("--allow-writes", "-m")
ACCEPTANCE, SOAK = "acceptance", "soak"
FALSE = frozenset({"fail", "error", "usage", "defect", "inconclusive"})
_IDENTITY = frozenset({"model", "vendor", "product", "serial", "wwn", "firmware", "capacity_bytes"})


def healthy(kind: str) -> tuple[Seeded, ...]:
    """The drive of one of the kinds, as its shipped profile has it; of a pair both."""
    if kind == "sas":
        profile = {**_profile("vscsi-1.0"), **SMALL}
        return (Seeded(SLOT, profile, "virtio-scsi", kind="SCSI SSD", queue_depth=128),)
    limits = limits_of("LEADLINE VSSD")
    if kind == "disk":
        # Its outlet feeds the host, too.
        limits = {"ready_s": limits["ready_s"]}
        return (Seeded(SLOT, _profile("vdisk-1.0"), class_="hdd", kind="DISK", limits=limits),)
    slots = (SLOT, MATE) if kind == "pair" else (SLOT,)
    profile = {**_profile("vssd-1.0"), **SMALL}
    return tuple(Seeded(slot, profile, limits=limits) for slot in slots)


KINDS = ("ssd", "disk", "sas", "pair")
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
_OF_FLASH = {
    "ncq_off_over_on",
    "threads_ncq_on_over_off",
    "few_threads_ncq_on_over_off",
    "random_mix_depth_8_over_depth_1",
    "random_mix_ncq_off_over_on",
}
_OF_SSD = frozenset(_EACH | _OF_FLASH | {"ncq_ladder_holds", "read_mb_per_s", "refill_16_gb_s"})
NEEDED: Mapping[str, frozenset[str]] = {
    "ssd": _OF_SSD,
    "disk": frozenset(_EACH | {"ncq_ladder_holds", "multitasking_gain"}),
    "sas": frozenset(_EACH | _OF_FLASH),
    "pair": _OF_SSD,
}
"""Claims that each run must come to on each drive: one that leaves them out finds no false alarm
either."""
OF_BOTH = frozenset({"as_fast_as_its_twins", "drives_over_linear"})
"""Those that a pair must come to on one of its drives."""


def _profile(name: str) -> Mapping[str, object]:
    data = read(PACKAGE / "rigs" / "profiles" / f"{name}.yaml").data
    return {key: value for key, value in data.items() if key not in _IDENTITY}


def limits_of(model: str) -> Mapping[str, object]:
    """Those that the shipped matrix has for that model alone."""
    models: Any = read(PACKAGE / "firmware_matrix.yaml").data["models"]
    (limits,) = [each["limits"] for each in models if each["model"] == model]
    return dict(limits)


@dataclass(frozen=True)
class Once:
    """One run: seconds, its exit code, how many tests ended how, and every alarm in words.

    `limit_s` is what it may take; None where that is not limited.
    """

    seconds: float
    code: int
    counted: Mapping[str, int]
    alarms: tuple[str, ...]
    purpose: str = ACCEPTANCE
    limit_s: float | None = RUN_LIMIT_S

    @property
    def is_right(self) -> bool:
        """Whether nothing but passes came of it, in time."""
        in_time = self.limit_s is None or self.seconds <= self.limit_s
        return self.code == 0 and not self.alarms and in_time

    def figures(self) -> dict[str, object]:
        """The run in a line of JSON."""
        return {
            "purpose": self.purpose,
            "exit_code": self.code,
            "outcomes": dict(self.counted),
            "minutes": round(self.seconds / 60, 1),
            "limit_minutes": self.limit_s and round(self.limit_s / 60, 1),
            "false_alarms": list(self.alarms),
        }


def once(ran: Ran, kind: str = "", purpose: str = ACCEPTANCE, *, chosen: bool = False) -> Once:
    """What one run came to.

    What is needed of such a `kind` of drive must have passed, and not been left out; where tests
    were `chosen`, anything.
    """
    rows = ran.summary["outcomes"]  # not by claim: several tests make one, size by size
    alarms = [*_left_out(rows, "" if chosen else kind)]
    drives = len(healthy(kind)) if kind else 1
    alarms += [_alarm(row, drives) for row in rows if row["outcome"] in FALSE]
    counted = Counter(row["outcome"] for row in rows)
    limit_s = RUN_LIMIT_S * drives if purpose == ACCEPTANCE else None
    return Once(ran.summary["seconds"], ran.code, dict(counted), tuple(alarms), purpose, limit_s)


def _alarm(row: Mapping[str, str], drives: int) -> str:
    where = f" on {slot_of(row['cell'])}" if drives > 1 and row["cell"] else ""
    return f"{row['claim']}{where}: {row['outcome']}: {in_short(row['message'])}"


def _left_out(rows: Sequence[Mapping[str, str]], kind: str) -> Iterator[str]:
    """What did not pass, by name, of what must; without a kind that is only that something did."""
    passed = {(slot_of(row["cell"]), row["claim"]) for row in rows if row["outcome"] == "pass"}
    if not passed:
        yield "no test passed"
    slots = [drive.slot for drive in healthy(kind)] if kind else []
    for slot in slots:
        for claim in sorted(NEEDED[kind] - {claim for where, claim in passed if where == slot}):
            yield f"{claim}: did not pass" + (f" on {slot}" if len(slots) > 1 else "")
    for claim in sorted(OF_BOTH - {claim for _, claim in passed}) if len(slots) > 1 else ():
        yield f"{claim}: did not pass on either"


def measure(words: Sequence[str] = ()) -> dict[str, object]:
    """Each kind of drive so many times; every alarm is a false one."""
    asked = _arguments(words)
    done = {kind: _row_of_runs(kind, asked) for kind in asked.kind or KINDS}
    return {
        "runs": asked.runs,
        "run_limit_s": RUN_LIMIT_S,
        "drives": {kind: _figures(runs) for kind, runs in done.items()},
        "within_limits": all(each.is_right for runs in done.values() for each in runs),
    }


def _row_of_runs(kind: str, asked: argparse.Namespace) -> list[Once]:
    chosen = ["-k", asked.expression] if asked.expression else []
    purposes = [ACCEPTANCE] * asked.runs + [SOAK] * asked.soak
    done = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(folder, healthy(kind)) as (rig, matrix):
            for number, purpose in enumerate(purposes, 1):
                hangs_s = HANGS_S if purpose == ACCEPTANCE else SOAK_HANGS_S
                ran = hil(rig, matrix, folder / "results", [*WORDS, purpose, *chosen], hangs_s)
                done.append(once(ran, kind, purpose, chosen=bool(chosen)))
                print(_said(kind, number, done[-1]), file=sys.stderr, flush=True)
                if done[-1].alarms:
                    kept = keep(folder / "results", State(rig.name), f"{kind}-{number}-")
                    print(f"  kept in {kept}", file=sys.stderr, flush=True)
    return done


def keep(results: Path, state: State, name: str) -> Path:
    """Copy what a run left and what its rig has logged so far; the new folder."""
    kept = Path(tempfile.mkdtemp(prefix=f"leadline-acceptance-{name}"))
    shutil.copytree(results, kept / "results")
    shutil.copytree(state.log, kept / "log")
    return kept


def _said(kind: str, number: int, run: Once) -> str:
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(run.counted.items()))
    alarms = "".join(f"\n  {alarm}" for alarm in run.alarms)
    purpose = "" if run.purpose == ACCEPTANCE else f" ({run.purpose})"
    minutes = f"{run.seconds / 60:.1f} min"
    return f"{kind} {number}{purpose}: exit {run.code}, {counted} in {minutes}{alarms}"


def _figures(runs: Sequence[Once]) -> dict[str, object]:
    return {
        "longest_s": max(run.seconds for run in runs),
        "right": sum(run.is_right for run in runs),
        "false_alarms": sum(len(run.alarms) for run in runs),
        "each": [run.figures() for run in runs],
    }


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run bench acceptance",
        description="Run `leadline hil -m acceptance` on healthy virtual drives, again and again.",
    )
    parser.add_argument("kind", nargs="*", choices=[*KINDS, []], help="default: each")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each drive ({RUNS})")
    parser.add_argument(
        "--soak", action="store_true", help="and one run of -m soak after them (hours)"
    )
    parser.add_argument(
        "-k", dest="expression", metavar="EXPR", default="", help="only these tests, as of pytest"
    )
    asked = parser.parse_args(words)
    if asked.runs < 1:
        parser.error(f"--runs {asked.runs}: at least 1")
    return asked
