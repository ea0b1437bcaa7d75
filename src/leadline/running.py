"""One run of the suite, as every process of it knows it: its rigs, its plan, its options."""

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from leadline.run_id import new_run_id, run_day

if TYPE_CHECKING:
    from leadline.inventory.issues import KnownIssue
    from leadline.inventory.matrix import LimitSpec, Matrix
    from leadline.inventory.must import Must
    from leadline.inventory.plan import Visit
    from leadline.inventory.rig import DriveSpec, Rig


@dataclass(frozen=True)
class Run:
    """What was asked for and what is planned; the same in every process of one run."""

    id: str
    command: str
    version: str
    rigs: "Mapping[str, Rig]"
    matrix: "Matrix"
    visits: "tuple[Visit, ...]"
    results: Path
    allow_writes: bool
    no_excuses: bool
    drive_time_s: float | None
    today: date = field(default_factory=run_day)
    """On which it began: known issues that have expired by then excuse nothing in it."""

    def drive_spec(self, visit: "Visit") -> "DriveSpec":
        """The rig file's entry of the drive that is visited."""
        return self.rigs[visit.cell.rig].drive(visit.cell.slot)

    def limits(self, visit: "Visit", kernel: str = "") -> "Mapping[str, LimitSpec]":
        """What the visited drive must reach, by claim; as on a kernel, where that is known."""
        cell = visit.cell
        return self.matrix.limits_for(cell.model, cell.firmware, cell.controller, kernel)

    def must(self, visit: "Visit") -> "Must":
        """What the visited drive must do on its controller."""
        from leadline.inventory.must import must_of

        return must_of(self.matrix, visit.cell)

    def known_issues(self, visit: "Visit") -> "tuple[KnownIssue, ...]":
        """What the matrix knows to be broken in the visited cell, expired or not."""
        cell = visit.cell
        return self.matrix.issues_of(cell.model, cell.firmware, cell.controller)


RUN = pytest.StashKey[Run]()
GATE_OPTION, GATE_OPEN = "--gate", b"open"
"""How `leadline hil` tells pytest that its rigs are up: by a word through this descriptor."""
REPLAY_OPTION = "--trace-replay"
"""How `leadline trace replay` tells pytest what to replay: the name of a file."""
VERDICTS = pytest.StashKey[list[dict[str, Any]]]()


def make_run(config: pytest.Config) -> Run:
    """Read the files and plan, once, in the controlling process.  Raises Misuse."""
    from leadline.inventory.matrix import load_matrix
    from leadline.inventory.plan import plan
    from leadline.inventory.rig import load_rig

    rigs = [load_rig(path) for path in config.option.rig]
    matrix = load_matrix(config.option.matrix)
    run_id = config.option.run_id or new_run_id()
    return _run(config, run_id, rigs, matrix, plan(rigs, matrix), today=run_day())


def run_from_worker(config: pytest.Config, handed: str) -> Run:
    """The same run in an xdist worker: the plan as it was handed over, never planned again."""
    from leadline.inventory.matrix import load_matrix
    from leadline.inventory.plan import visits_from_json
    from leadline.inventory.rig import load_rig

    given = json.loads(handed)
    rigs = [load_rig(Path(path)) for path in given["rigs"]]
    matrix = load_matrix(Path(given["matrix"]))
    today, visits = date.fromisoformat(given["today"]), visits_from_json(given["visits"])
    return _run(config, given["id"], rigs, matrix, visits, today=today)


def worker_plan(run: Run) -> str:
    """What a worker needs to know of a run, as text."""
    from leadline.inventory.plan import visits_to_json

    return json.dumps(
        {
            "id": run.id,
            "today": run.today.isoformat(),
            "rigs": [str(rig.path) for rig in run.rigs.values()],
            "matrix": str(run.matrix.path),
            "visits": visits_to_json(run.visits),
        }
    )


def _run(
    config: pytest.Config,
    run_id: str,
    rigs: "list[Rig]",
    matrix: "Matrix",
    visits: "tuple[Visit, ...]",
    *,
    today: date,
) -> Run:
    return Run(
        id=run_id,
        command=shlex.join(sys.argv),
        version=version("leadline"),
        rigs={rig.name: rig for rig in rigs},
        matrix=matrix,
        visits=visits,
        results=config.option.results.absolute(),
        allow_writes=config.option.allow_writes,
        no_excuses=config.option.no_excuses,
        drive_time_s=config.option.drive_time,
        today=today,
    )


def repeating(run: Run, rig: "Rig", node_id: str) -> str:
    """The command that runs one test again, on the same rig, by the same matrix and options."""
    from leadline.inventory.matrix import usual_matrix

    words = ["leadline", "hil", "--rig", str(rig.path)]
    if run.matrix.path != usual_matrix():
        words += ["--matrix", str(run.matrix.path)]
    if run.allow_writes:
        words.append("--allow-writes")
    if run.drive_time_s is not None:
        words += ["--drive-time", f"{run.drive_time_s:g}"]
    return shlex.join([*words, node_id])


def visit_of(item: pytest.Item) -> "Visit | None":
    """The visit that a test belongs to, or None for a test that asks for no drive."""
    callspec = getattr(item, "callspec", None)
    return cast("Visit | None", callspec.params.get("visit")) if callspec is not None else None


def claim_of(item: pytest.Item) -> str:
    """The name of the claim that a test settles: its mark's, or its own without ``test_``."""
    mark = item.get_closest_marker("claim")
    return (
        str(mark.args[0])
        if mark
        else str(getattr(item, "originalname", item.name)).removeprefix("test_")
    )
