"""Healthy virtual drives through the whole of `-m acceptance`, again and again: any false alarm?

`./run bench acceptance [ssd|disk|sas|pair ...] [--runs N] [--soak] [-k EXPR] [--row FOLDER]`.  Each
drive is the one of its shipped profile (SSDs are smaller, for they are filled twice a run), on a
rig of its own that stays up; `pair` is two SSDs alike on one rig, for the claims that hold drives
against one another or load both at once.  The runs share their results, so that from the second on
a drive is held against its own record.  What a run with an alarm left, its results and the rig's
logs, is copied to where stderr says, for the rig takes its own along when it ends.
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.fault_case import CUT, READ_BACK
from bench.fault_rig import PACKAGE, Ran, Seeded, hil, in_short, running, slot_of
from bench.row import (
    ACCEPTANCE,
    RESULTS,
    RUN_LIMIT_S,
    SOAK,
    Kept,
    Once,
    append,
    load,
    state_of_leadline,
    states,
)
from leadline.inventory.document import read
from leadline.outcomes import INTERRUPTED_CODE
from leadline.virtual.state import State

RUNS = 10
HANGS_S, SOAK_HANGS_S = 7200.0, 36_000.0
SLOT, MATE = "healthy", "mate"
SMALL = {"capacity_bytes": 5 << 28}
"""Twenty times its cache, where 16 times are wanted (`check_span`): so small that to fill it twice
does not take the most of a run."""
CYCLE = "acknowledged_writes_outlast_a_graceful_power_cycle"
WORDS = ("--allow-writes", "-m")
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
    """Each kind of drive so many times; every alarm is a false one.

    Raises Misuse for a row to be gone on with that is none, or of other tests.
    """
    asked = _arguments(words)
    kinds = asked.kind or KINDS
    with tempfile.TemporaryDirectory() as name:
        folder = asked.row or Path(name)
        for kind in kinds:
            load(folder / kind, asked.expression)  # before the first run, and not hours later
        done = {kind: _row_of_runs(kind, folder / kind, asked) for kind in kinds}
    return {
        "runs": asked.runs,
        "run_limit_s": RUN_LIMIT_S,
        "drives": {kind: _figures(row) for kind, row in done.items()},
        "within_limits": all(each.run.is_right for row in done.values() for each in row),
    }


def _row_of_runs(kind: str, folder: Path, asked: argparse.Namespace) -> list[Kept]:
    chosen = ["-k", asked.expression] if asked.expression else []
    row, state = load(folder, asked.expression), state_of_leadline()
    for number, each in enumerate(row, 1):
        print(f"before: {_said(kind, number, each.run)}", file=sys.stderr, flush=True)
    wanted = Counter({ACCEPTANCE: asked.runs, SOAK: int(asked.soak)})
    left = list((wanted - Counter(each.run.purpose for each in row)).elements())
    if not left:
        return row
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / RESULTS
    with tempfile.TemporaryDirectory() as name, running(Path(name), healthy(kind)) as (rig, matrix):
        for number, purpose in enumerate(left, len(row) + 1):
            hangs_s = HANGS_S if purpose == ACCEPTANCE else SOAK_HANGS_S
            ran = hil(rig, matrix, results, [*WORDS, purpose, *chosen], hangs_s)
            run = once(ran, kind, purpose, chosen=bool(chosen))
            print(_said(kind, number, run), file=sys.stderr, flush=True)
            if run.alarms:
                kept = keep(results, State(rig.name), f"{kind}-{number}-")
                print(f"  kept in {kept}", file=sys.stderr, flush=True)
            if run.code == INTERRUPTED_CODE:
                raise KeyboardInterrupt
            row.append(Kept(asked.expression, state, run))
            append(folder, row[-1])
    return row


def keep(results: Path, state: State, name: str) -> Path:
    """Copy what a run left and what its rig has logged so far; the new folder."""
    kept = Path(tempfile.mkdtemp(prefix=f"leadline-acceptance-{name}"))
    for what, to in ((results, "results"), (state.log, "log")):
        if what.exists():  # one that ended at once has left nothing
            shutil.copytree(what, kept / to)
    return kept


def _said(kind: str, number: int, run: Once) -> str:
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(run.counted.items()))
    alarms = "".join(f"\n  {alarm}" for alarm in run.alarms)
    purpose = "" if run.purpose == ACCEPTANCE else f" ({run.purpose})"
    minutes = f"{run.seconds / 60:.1f} min"
    return f"{kind} {number}{purpose}: exit {run.code}, {counted} in {minutes}{alarms}"


def _figures(row: Sequence[Kept]) -> dict[str, object]:
    runs = [each.run for each in row]
    return {
        "longest_s": max(run.seconds for run in runs),
        "right": sum(run.is_right for run in runs),
        "false_alarms": sum(len(run.alarms) for run in runs),
        "leadline": states(row),
        "each": [run.figures() for run in runs],
    }


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run bench acceptance",
        description="Run `leadline hil -m acceptance` on healthy virtual drives, again and again.",
        epilog="example: ./run bench acceptance sas --runs 10 --row rows; after Ctrl-C the same "
        "again makes the runs that are missing",
    )
    parser.add_argument("kind", nargs="*", choices=[*KINDS, []], help="default: each")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each drive ({RUNS})")
    parser.add_argument(
        "--soak", action="store_true", help="and one run of -m soak after them (hours)"
    )
    parser.add_argument(
        "-k", dest="expression", metavar="EXPR", default="", help="only these tests, as of pytest"
    )
    parser.add_argument(
        "--row",
        type=Path,
        metavar="FOLDER",
        help="keep the runs and their results there, and go on with the row that is there (a path "
        "from the root of the repository)",
    )
    asked = parser.parse_args(words)
    if asked.runs < 1:
        parser.error(f"--runs {asked.runs}: at least 1")
    return asked
