"""`leadline calibrate`: measure a rig's own noise, and keep it for the verdicts of later runs.

It is a run of pytest as `leadline hil` makes one, of a single packaged test a drive: the same
leases, write guard, pinned settings, kernel log, and the same putting back whatever happens.
"""

import argparse
import json
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.commands.options import add_results
from leadline.errors import Misuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.calibration.store import Calibration
    from leadline.inventory.matrix import Matrix
    from leadline.inventory.plan import Visit
    from leadline.inventory.rig import Rig
    from leadline.results.record import Record

LEAST_S, MOST_S = 10.0, 3600.0
_MODULE, _TEST = "noise_run", "test_noise"
_EXAMPLES = """\
examples:
  leadline calibrate                                the virtual rig
  leadline calibrate rigs/my-bench.yaml             every drive of a rig, 60 s each
  leadline calibrate rigs/my-bench.yaml --slot one --seconds 120
  leadline calibrate rigs/my-bench.yaml --json      one object on stdout

It reads, and writes nothing to the drive.  Two slices of 4 KiB random reads at depth 8 and
two at depth 1 are run side by side, over and over: how far the same differs from the same is
the rig's noise.  It is kept by rig and serial number under $XDG_STATE_HOME/leadline/calibrations
(~/.local/state); verdicts of later runs say that they use it, and warn when it is older than
30 days or the kernel, the drive's firmware or fio have changed.

Exit codes: 0 measured and kept, 1 the drive failed meanwhile, 2 wrong usage, 3 rig trouble,
4 too few slices that count.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `calibrate` to the command line."""
    parser = subparsers.add_parser(
        "calibrate",
        help="measure a rig's own noise, which verdicts then use",
        description="Measure a rig's own noise, which verdicts then use.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "rig", nargs="?", type=Path, metavar="RIG", help="a rig file (default: the virtual rig)"
    )
    parser.add_argument(
        "--slot",
        action="append",
        default=[],
        metavar="SLOT",
        help="this drive only; may be given several times (default: every drive of the rig)",
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="seconds of drive time for each drive (60)"
    )
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="the firmware matrix")
    add_results(parser, "every slice")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Calibrate and say what was found; the exit code of the contract."""
    from leadline.commands import hil
    from leadline.inventory.matrix import load_matrix
    from leadline.inventory.rig import load_rig

    if not LEAST_S <= arguments.seconds <= MOST_S:
        raise Misuse(
            f"--seconds: found {arguments.seconds:g}, expected {LEAST_S:g} to {MOST_S:g}; drift "
            "forgets over 10 s, so that less shows little of it"
        )
    started = time.monotonic()
    path = arguments.rig or hil.VIRTUAL_RIG
    rig, matrix = load_rig(path), load_matrix(arguments.matrix)
    visits = visits_as_installed(rig, matrix, arguments.slot)
    final, record = hil.conduct(
        argparse.Namespace(
            rig=[path],
            matrix=arguments.matrix,
            results=arguments.results,
            json=True,  # the table below is the output, what pytest says goes to stderr
            rest=pytest_words(visits, arguments.seconds),
        ),
        _command(arguments),
    )
    found = _kept([visit.cell.slot for visit in visits], rig, record.run_id)
    seconds = time.monotonic() - started
    print(json.dumps(_summary(record, final, seconds, found)) if arguments.json else _table(found))
    record.close()
    return final


def _command(arguments: argparse.Namespace) -> str:
    """What the record has for it: it can be run again so."""
    words = ["leadline", "calibrate", *([] if arguments.rig is None else [str(arguments.rig)])]
    for slot in arguments.slot:
        words += ["--slot", slot]
    words += ["--seconds", f"{arguments.seconds:g}"]
    if arguments.matrix is not None:
        words += ["--matrix", str(arguments.matrix)]
    return shlex.join(words)


def visits_as_installed(rig: "Rig", matrix: "Matrix", slots: "Sequence[str]") -> "list[Visit]":
    """One visit a drive, with the firmware that the rig file says is on it.

    A drive that the matrix has no visit for is left out, and that is said.  Raises Misuse on a
    slot that the rig has not, and where a drive asked for, or every one, would be left out.
    """
    from leadline.inventory.plan import survey

    visits, gaps = survey([rig], matrix)
    installed = {visit.cell.slot: visit for visit in visits if visit.installed}
    wanted = [rig.drive(slot).slot for slot in slots] or [drive.slot for drive in rig.drives]
    missing = {slot for slot in wanted if slot not in installed}
    firmware = {drive.slot: drive.firmware for drive in rig.drives}
    reasons = [
        f"{gap.cell.slot}: {gap.reason}"
        for gap in gaps
        if gap.cell.slot in missing and gap.cell.firmware == firmware[gap.cell.slot]
    ]
    if missing and (slots or len(missing) == len(set(wanted))):
        raise Misuse(f"{rig.path}: cannot be calibrated with {'; '.join(reasons)}")
    for reason in reasons:
        print(f"leadline: {rig.name}: not calibrated with {reason}", file=sys.stderr)
    return [installed[slot] for slot in dict.fromkeys(wanted) if slot in installed]


def pytest_words(visits: "Sequence[Visit]", seconds: float) -> list[str]:
    """What pytest is told: the packaged test, once for each visit."""
    import leadline.calibration

    module = (Path(leadline.calibration.__file__).parent / f"{_MODULE}.py").resolve()
    words = ["-q", "--no-header", f"--drive-time={seconds:g}"]
    return words + [f"{module}::{_TEST}[{visit.id}]" for visit in visits]


def _kept(slots: "Sequence[str]", rig: "Rig", run_id: str) -> "list[Calibration]":
    """What this run has kept."""
    from leadline.calibration import store

    found = []
    for slot in slots:
        spec = rig.drive(slot)
        try:
            calibration = store.load(rig.name, spec.serial)
        except store.BrokenCalibration as broken:  # the run has failed, and has said why
            print(f"leadline: {broken}", file=sys.stderr)
            continue
        if calibration is not None and calibration.newest.run == run_id:
            found.append(calibration)
    return found


def _summary(
    record: "Record",
    code: int,
    seconds: float,
    found: "Sequence[Calibration]",
) -> dict[str, object]:
    return {
        "run": record.run_id,
        "exit_code": code,
        "seconds": round(seconds, 2),
        "calibrations": [_facts(calibration) for calibration in found],
        "outcomes": [
            {"cell": row.cell, "outcome": row.outcome, "message": row.message}
            for row in record.outcomes()
        ],
    }


def _facts(calibration: "Calibration") -> dict[str, object]:
    from dataclasses import asdict

    from leadline.calibration.store import path_of

    return {
        "rig": calibration.rig,
        "slot": calibration.slot,
        "model": calibration.model,
        "serial": calibration.serial,
        **asdict(calibration.newest.conditions),
        "date": calibration.date.isoformat(timespec="seconds"),
        "sessions": len(calibration.sessions),
        **asdict(calibration.noise),
        "file": str(path_of(calibration.rig, calibration.serial)),
    }


def _table(found: "Sequence[Calibration]") -> str:
    import io

    from rich.console import Console
    from rich.table import Table

    from leadline.calibration.store import path_of

    if not found:
        return "no calibration was kept"
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("drive", "pair sd", "lag-1", "sigma_d", "between sessions", "pairs", "drive s"):
        table.add_column(name, justify="left" if name == "drive" else "right")
    for each in found:
        noise = each.noise
        count = len(each.sessions)
        session = (
            "1 session: unknown"
            if noise.sigma_session is None
            else (f"{noise.sigma_session:.2%} ({count} sessions)")
        )
        table.add_row(
            f"{each.slot}: {each.model} {each.serial}",
            f"{noise.pair_sd:.2%}",
            f"{noise.correlation:.2f}",
            f"{noise.sigma_d:.2%}",
            session,
            str(noise.pairs),
            f"{noise.seconds:.0f}",
        )
    text = io.StringIO()
    console = Console(file=text, width=120, highlight=False, markup=False, emoji=False)
    console.print(table)
    for each in found:
        console.print(f"kept in {path_of(each.rig, each.serial)}", soft_wrap=True)
    return text.getvalue().rstrip()
