"""One run of the suite, as every process of it knows it: its rigs, its plan, its options."""

import json
import math
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from leadline.errors import Misuse
from leadline.run_id import new_run_id, run_day

if TYPE_CHECKING:
    from leadline.inventory.issues import KnownIssue
    from leadline.inventory.matrix import LimitSpec, Matrix
    from leadline.inventory.must import Must
    from leadline.inventory.plan import Visit
    from leadline.inventory.rig import DriveSpec, Rig
    from leadline.inventory.stations import Route, Stay


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
    allow_flash: bool = False
    keep_firmware: bool = False
    stored_baseline: bool = False
    rounds: int = 1
    """How often a drive goes from what a candidate is held against to it and back."""
    by_hand: bool = False
    """Whether it is no session: the user says which firmware a drive is to have."""
    today: date = field(default_factory=run_day)
    """On which it began: known issues that have expired by then excuse nothing in it."""

    def may_flash(self, rig: "Rig") -> bool:
        """Whether the command line is the second key; a drive that is a file needs none."""
        return self.allow_flash or rig.virtual is not None

    def serves(self, visit: "Visit") -> bool:
        """Whether the drive has the visit's firmware, by the rig file, or may be flashed."""
        return visit.installed or self.may_flash(self.rigs[visit.cell.rig])

    def home(self, visit: "Visit") -> "Visit":
        """The visit to the same drive with the firmware that the rig file says is on it."""
        model = self.matrix.model(visit.cell.model)
        drive = self.drive_spec(visit)
        (came_with,) = model.showing(drive.firmware, drive.firmware_sha256)
        cell = replace(visit.cell, firmware=came_with.revision)
        return replace(visit, cell=cell, installed=True, image=came_with.image)

    @cached_property
    def route(self) -> "Route":
        """The plan's visits and the returns of regression claims, in their order.

        Made once: pytest knows a fixture's parameter by its identity.
        """
        from leadline.inventory.stations import route_of

        return route_of(self.visits, stored_baseline=self.stored_baseline, rounds=self.rounds)

    def drive_spec(self, visit: "Visit") -> "DriveSpec":
        """The rig file's entry of the drive that is visited."""
        return self.rigs[visit.cell.rig].drive(visit.cell.slot)

    def limits(self, visit: "Visit", kernel: str = "") -> "Mapping[str, LimitSpec]":
        """What the visited drive must reach, by claim; as on a kernel, where that is known."""
        cell = visit.cell
        return self.matrix.limits_for(cell.model, cell.firmware, cell.controller, kernel)

    def limit_at(self, visit: "Visit", claim: str) -> str:
        """``file:line`` of the limit in a claim that holds for the visited drive."""
        from leadline.inventory.inheritance import chains

        cell = visit.cell
        given = chains(self.matrix, cell.model, cell.firmware, cell.controller)[claim]
        return self.matrix.where(*given[-1].location)

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
MEASURED, STORED = "measured", "stored"
"""What a candidate is held against, as `--baseline` has it."""
RESULTS = Path("leadline-results")
"""Where results are kept unless `--results` says."""
RECORDED = pytest.StashKey[bool]()
"""Set on a test that has recorded at a regression station what is judged at a later one."""
CHANGES = pytest.StashKey[list[str]]()
"""What the drive says of itself with the candidate that it did not say before, in words."""
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
    from leadline.inventory.stations import checked_rounds

    seconds = config.option.drive_time
    if seconds is not None and not 0.0 < seconds < math.inf:
        raise Misuse(f"--drive-time {seconds:g}: seconds, more than 0")
    stored_baseline = config.option.baseline == STORED
    rounds = checked_rounds(config.option.rounds)
    if stored_baseline and rounds > 1:
        raise Misuse(
            f"--rounds {rounds} with --baseline {STORED}: what is stored stands in for one round; "
            "leave one of them out"
        )
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
        drive_time_s=seconds,
        today=today,
        allow_flash=config.option.allow_flash,
        keep_firmware=config.option.keep_firmware,
        stored_baseline=stored_baseline,
        rounds=rounds,
    )


def repeating(run: Run, rig: "Rig", node_id: str) -> str:
    """The command that runs one test again, on the same rig, by the same matrix and options."""
    from leadline.inventory.matrix import usual_matrix

    words = ["leadline", "hil", "--rig", str(rig.path)]
    if run.matrix.path != usual_matrix():
        words += ["--matrix", str(run.matrix.path)]
    if run.allow_writes:
        words.append("--allow-writes")
    if run.allow_flash:
        words.append("--allow-flash")
    if run.drive_time_s is not None:
        words += ["--drive-time", f"{run.drive_time_s:g}"]
    if run.stored_baseline:
        words += ["--baseline", STORED]
    if run.rounds > 1:
        words += ["--rounds", str(run.rounds)]
    if run.no_excuses:
        words.append("--no-excuses")
    if run.results != RESULTS.absolute():  # what is on record there may be held against
        words += ["--results", str(run.results)]
    return shlex.join([*words, node_id])


def visit_of(item: pytest.Item) -> "Visit | None":
    """The visit that a test belongs to, or None for a test that asks for no drive."""
    callspec = getattr(item, "callspec", None)
    return cast("Visit | None", callspec.params.get("visit")) if callspec is not None else None


def stay_of(item: pytest.Item) -> "Stay | None":
    """The regression station that a test is at, or None for one that compares no firmware."""
    callspec = getattr(item, "callspec", None)
    return cast("Stay | None", callspec.params.get("stay")) if callspec is not None else None


def whole_of(item: pytest.Item) -> str:
    """What repeats a test where this run was started: its file as seen from there, and its name.

    pytest's own node id begins at its root directory, which need not be that one.  A test that
    compares firmwares is run at all its stations.
    """
    here, name = item.config.invocation_params.dir, item.nodeid.partition("::")[2]
    file = item.path.relative_to(here) if item.path.is_relative_to(here) else item.path
    return f"{file}::{name if stay_of(item) is None else name.partition('[')[0]}"


def named_in(node_id: str, ids: Iterable[str]) -> str:
    """Which of these ids, of visits or of stays, stands in a node id's brackets; "" for none.

    The longest that does: one id may be the beginning of another.
    """
    brackets = node_id.partition("[")[2]
    return max((each for each in ids if each in brackets), key=len, default="")


def subject_of(item: pytest.Item) -> "Visit | None":
    """The visit whose cell a test is about: at a regression station the one to the candidate,
    whatever the drive has on it now.  None for a test that asks for no drive."""
    stay = stay_of(item)
    return visit_of(item) if stay is None else stay.candidate


def cell_of(item: pytest.Item) -> str:
    """The id of the cell that a test of a drive is about."""
    subject = subject_of(item)
    assert subject is not None, "it is a test of a drive"
    return subject.cell.id


def claim_of(item: pytest.Item) -> str:
    """The name of the claim that a test settles: its mark's, or its own without ``test_``."""
    mark = item.get_closest_marker("claim")
    return (
        str(mark.args[0])
        if mark
        else str(getattr(item, "originalname", item.name)).removeprefix("test_")
    )
