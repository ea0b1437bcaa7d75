"""``leadline plan``: cells wanted, what will run, in which order, and what is missing."""

import argparse
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.inventory.coverage import Coverage
    from leadline.inventory.effort import Effort
    from leadline.inventory.matrix import Matrix
    from leadline.inventory.plan import Cell, Gap, Visit
    from leadline.inventory.rig import Rig
    from leadline.inventory.stations import Route

_EXAMPLES = """\
examples:
  leadline plan                                  the virtual rig
  leadline plan --rig rigs/example-bench.yaml    another rig
  leadline plan --rig a.yaml --rig b.yaml --matrix firmware_matrix.yaml --json
  leadline plan --why virtual-ssd1-LEADLINE_VSSD-1.1
                                                 where each limit of a cell comes from

Only files are read, what runs that ended left on record among them; no rig is reached.
Exit status: 0 when there is something to run, 2 when there is nothing to run or a file is wrong.
"""


@dataclass(frozen=True)
class Planned:
    """A plan with everything that is said of it."""

    rigs: "list[Rig]"
    matrix: "Matrix"
    visits: "tuple[Visit, ...]"
    gaps: "tuple[Gap, ...]"
    coverage: "Coverage"
    route: "Route"
    """The visits where candidates are compared."""
    effort: "Effort"
    expired: tuple[str, ...]
    """A message for each known issue that excuses nothing any more."""
    unbound: tuple[str, ...]
    """And for each name that nothing here goes by."""
    absent: tuple[str, ...]
    """And for each controller that cells wait for and no rig has."""
    today: date
    away: tuple[str, ...] = ()
    """And for each drive that a run which has ended left on other firmware than it came with."""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "plan",
        help="the matrix: every cell, what will run, what is missing",
        description="Show what would run on which drive with which firmware, in which order, "
        "about what it costs, and what is missing for the rest of the matrix.",
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
    parser.add_argument(
        "--why",
        metavar="CELL",
        help="the limits of one cell instead, by its id: every line of the matrix that gives one, "
        "its source, and which holds",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=1,
        metavar="N",
        help="count the flashes of `leadline hil --rounds N`, where candidates are compared (1)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=show)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Everything that is read is kept to the end: the collector would go through thousands of cells
    again and again, a fifth of a large plan's time, for nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@_nothing_collected()
def show(arguments: argparse.Namespace) -> int:
    """Print the plan; 0, or 2 when there is nothing to run.  Raises Misuse for wrong files."""
    from pydantic_core import to_json

    from leadline.commands.plan_said import said
    from leadline.commands.plan_why import why

    planned = _planned(arguments.rig, arguments.matrix, arguments.rounds)
    if arguments.why is not None:
        return why(planned, arguments.why, as_json=arguments.json)
    if arguments.json:
        print(to_json(_report(planned), indent=2).decode())
    else:
        print("\n".join(said(planned)))
    if not planned.visits:
        print(f"leadline plan: nothing to run with {planned.matrix.path}", file=sys.stderr)
    return 0 if planned.visits else 2


def _planned(rig_files: list[Path] | None, matrix_file: Path | None, rounds: int) -> Planned:
    from leadline.inventory.claim_names import unknown_claims
    from leadline.inventory.coverage import coverage
    from leadline.inventory.effort import effort
    from leadline.inventory.fields import packaged
    from leadline.inventory.issues import expired_excuses
    from leadline.inventory.matrix import load_matrix
    from leadline.inventory.plan import survey
    from leadline.inventory.plan_warnings import absent
    from leadline.inventory.rig import load_rig
    from leadline.inventory.stations import checked_rounds, route_of
    from leadline.inventory.unbound import unbound
    from leadline.run_id import run_day

    checked_rounds(rounds)
    rigs = [load_rig(path) for path in rig_files or [packaged("rigs/virtual.yaml")]]
    matrix = load_matrix(matrix_file)
    visits, gaps = survey(rigs, matrix)
    covered = coverage(rigs, matrix, visits, gaps)
    today = run_day()
    route = route_of(visits, rounds=rounds)
    return Planned(
        rigs=rigs,
        matrix=matrix,
        visits=visits,
        gaps=gaps,
        coverage=covered,
        route=route,
        effort=effort(visits, route, matrix),
        expired=tuple(expired_excuses(matrix, today)),
        unbound=(*unknown_claims(matrix), *unbound(matrix, rigs)),
        absent=tuple(absent(matrix, covered)),
        today=today,
        away=tuple(_away(rigs)),
    )


def _away(rigs: "list[Rig]") -> list[str]:
    """By what is on record on this machine; no rig is reached."""
    from leadline.away import by_record
    from leadline.errors import RigTrouble
    from leadline.host.connection import open_host
    from leadline.inventory.rig import HostSpec

    try:
        with open_host(HostSpec(reach="local")) as here:
            return list(by_record(here, rigs))
    except RigTrouble as trouble:
        return [f"whether a run left a drive on other firmware cannot be told: {trouble}"]


def _report(planned: Planned) -> dict[str, Any]:
    from leadline.inventory.effort import order

    covered = planned.coverage
    return {
        "matrix": str(planned.matrix.path),
        "rigs": [str(rig.path) for rig in planned.rigs],
        "cells": {
            "wanted": covered.wanted,
            "served": covered.served,
            "missing": covered.wanted - covered.served,
        },
        **asdict(planned.effort),
        "order": list(order(planned.visits)),
        "order_to_compare": list(order(planned.route.visits)),
        "visits": [_visit(visit, planned) for visit in planned.visits],
        "missing": [_gap(gap) for gap in planned.gaps],
        "unserved": covered.unserved,
        "warnings": [*planned.expired, *planned.unbound, *planned.absent, *planned.away],
    }


def _visit(visit: "Visit", planned: Planned) -> dict[str, Any]:
    from leadline.inventory.effort import drive_time_s

    cell, matrix = visit.cell, planned.matrix
    firmware = matrix.firmware(cell.model, cell.firmware)
    limits = matrix.limits_for(cell.model, cell.firmware, cell.controller)
    return {
        "id": visit.id,
        "rig": cell.rig,
        "slot": cell.slot,
        "model": cell.model,
        "firmware": cell.firmware,
        "shows": firmware.shows,
        "controller": cell.controller,
        "n": visit.n,
        "shared_path": visit.shared_path,
        "installed": visit.installed,
        "image": str(visit.image) if visit.image else None,
        "sha256": firmware.sha256,
        "status": firmware.status,
        "predecessor": firmware.predecessor,
        "drive_time_s": drive_time_s(cell, matrix),
        "against": visit.against,
        "limits": limits,
        "known_issues": issues_of(cell, planned),
    }


def issues_of(cell: "Cell", planned: Planned) -> list[dict[str, Any]]:
    """The known issues of a cell, with where they stand and whether they have expired."""
    return [
        {
            **issue.model_dump(mode="json"),
            "where": issue.where,
            "expired": issue.expired(planned.today),
        }
        for issue in planned.matrix.issues_of(cell.model, cell.firmware, cell.controller)
    ]


def _gap(gap: "Gap") -> dict[str, str]:
    cell = gap.cell
    return {
        "id": cell.id,
        "rig": cell.rig,
        "slot": cell.slot,
        "model": cell.model,
        "firmware": cell.firmware,
        "controller": cell.controller,
        "lacks": gap.lacks,
        "reason": gap.reason,
    }
