"""``leadline plan``: every cell, what will run, what is missing."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.inventory.matrix import LimitSpec, Matrix
    from leadline.inventory.plan import Gap, Visit

_EXAMPLES = """\
examples:
  leadline plan                                  the virtual rig
  leadline plan --rig rigs/example-bench.yaml    another rig
  leadline plan --rig a.yaml --rig b.yaml --matrix firmware_matrix.yaml --json

Only files are read; no rig is reached.  Exit status: 0 when there is something to
run, 2 when there is nothing to run or a file is wrong.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "plan",
        help="the matrix: every cell, what will run, what is missing",
        description="Show what would run on which drive with which firmware, and what is missing.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--rig",
        action="append",
        type=Path,
        metavar="FILE",
        help="a rig file; may be given several times (default: the virtual rig)",
    )
    parser.add_argument(
        "--matrix",
        type=Path,
        metavar="FILE",
        help="the firmware matrix (default: ./firmware_matrix.yaml, else Leadline's own)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=show)


def show(arguments: argparse.Namespace) -> int:
    """Print the plan; 0, or 2 when there is nothing to run.  Raises Misuse for wrong files."""
    from leadline.inventory.fields import packaged
    from leadline.inventory.matrix import load_matrix
    from leadline.inventory.plan import survey
    from leadline.inventory.rig import load_rig

    rigs = [load_rig(path) for path in arguments.rig or [packaged("rigs/virtual.yaml")]]
    matrix = load_matrix(arguments.matrix)
    visits, gaps = survey(rigs, matrix)
    if arguments.json:
        report = {
            "matrix": str(matrix.path),
            "rigs": [str(rig.path) for rig in rigs],
            "visits": [_visit_json(visit, matrix) for visit in visits],
            "missing": [_gap_json(gap) for gap in gaps],
        }
        print(json.dumps(report, indent=2))
    else:
        print("\n".join(_lines(visits, gaps, matrix)))
    if not visits:
        print(f"leadline plan: nothing to run with {matrix.path}", file=sys.stderr)
    return 0 if visits else 2


def _visit_json(visit: "Visit", matrix: "Matrix") -> dict[str, Any]:
    cell = visit.cell
    firmware = matrix.firmware(cell.model, cell.firmware)
    limits = matrix.limits_for(cell.model)
    return {
        "id": visit.id,
        "rig": cell.rig,
        "slot": cell.slot,
        "model": cell.model,
        "firmware": cell.firmware,
        "controller": cell.controller,
        "n": visit.n,
        "shared_path": visit.shared_path,
        "installed": visit.installed,
        "image": str(visit.image) if visit.image else None,
        "status": firmware.status,
        "against": visit.against,
        "limits": {claim: limit.model_dump() for claim, limit in limits.items()},
        "known_issues": [issue.model_dump() for issue in firmware.known_issues],
    }


def _gap_json(gap: "Gap") -> dict[str, str]:
    cell = gap.cell
    return {
        "id": cell.id,
        "rig": cell.rig,
        "slot": cell.slot,
        "model": cell.model,
        "firmware": cell.firmware,
        "controller": cell.controller,
        "reason": gap.reason,
    }


def _lines(visits: "tuple[Visit, ...]", gaps: "tuple[Gap, ...]", matrix: "Matrix") -> list[str]:
    lines: list[str] = []
    for visit in visits:
        cell = visit.cell
        firmware = matrix.firmware(cell.model, cell.firmware)
        how = "on the drive" if visit.installed else "to be flashed"
        lines.append(f"{visit.id}: {firmware.status}, {how}, controller {cell.controller}")
        lines += [f"    held against {visit.against}"] if visit.against else []
        limits = matrix.limits_for(cell.model).items()
        lines += [f"    {claim} {_limit(limit)}" for claim, limit in limits]
        for issue in firmware.known_issues:
            kind = "known issue" if issue.excuses else "noted, not excused"
            lines.append(f"    {kind}: {issue.claim}: {issue.summary} ({issue.link})")
    if gaps:
        lines += ["", "missing:", *(f"    {gap.cell.id}: {gap.reason}" for gap in gaps)]
    drives = {(visit.cell.rig, visit.cell.slot) for visit in visits}
    count = f"{len(drives)} drive" + ("" if len(drives) == 1 else "s")
    lines += ["", f"{len(visits)} to run on {count}, {len(gaps)} missing"]
    return lines


def _limit(limit: "LimitSpec") -> str:
    low = f"at least {limit.at_least:g}" if limit.at_least is not None else ""
    high = f"at most {limit.at_most:g}" if limit.at_most is not None else ""
    return " and ".join(filter(None, (low, high)))
