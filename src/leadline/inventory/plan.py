"""The plan: which drive is tested with which firmware, in which order.

Made from files alone, once, by the controlling process, and handed to workers
as text.  A *visit* is one drive with one firmware; its *cell* is the place in
the firmware matrix that it fills.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from leadline.errors import Misuse
from leadline.inventory.contradictions import disagreements, given_twice, image_problems, refuse
from leadline.inventory.document import shown
from leadline.inventory.matrix import FirmwareSpec, Matrix, ModelSpec
from leadline.inventory.rig import DriveSpec, Rig
from leadline.inventory.shared import shared_paths


@dataclass(frozen=True)
class Cell:
    """One drive model x firmware x controller, and the drive that stands for it."""

    rig: str
    slot: str
    model: str
    firmware: str
    controller: str
    """The controller's name in the matrix, by PCI id; else its name in the rig file."""

    @property
    def id(self) -> str:
        """A readable name, as in ``bench-a-slot1-INTEL_SSDSC2BX016T4-G2010150``."""
        words = (self.rig, self.slot, self.model, self.firmware)
        return "-".join(re.sub(r"[^A-Za-z0-9._+-]+", "_", word) for word in words)


@dataclass(frozen=True)
class Visit:
    """One drive with one firmware on it."""

    cell: Cell
    n: int
    """Which visit to this drive it is, from 1."""
    shared_path: str
    """Drives whose tests would disturb each other have the same one."""
    installed: bool
    """Whether, by the rig file, the drive has this firmware already."""
    image: Path | None
    """The firmware's image; its hash was right when the plan was made."""
    against: str | None = None
    """The revision that a candidate is held against: its predecessor, or what was released."""
    after: str | None = None
    """Of a return to a cell that was visited before: the revision that the drive comes from."""

    @property
    def id(self) -> str:
        """The cell's id, and of a return its number: a plan visits each cell once."""
        return self.cell.id if self.after is None else f"{self.cell.id}-visit{self.n}"


@dataclass(frozen=True)
class Gap:
    """A cell that is not visited, and why."""

    cell: Cell
    reason: str


_VISITS = TypeAdapter(tuple[Visit, ...])


def visits_to_json(visits: Sequence[Visit]) -> str:
    """A plan as text, to hand to another process."""
    return _VISITS.dump_json(tuple(visits)).decode()


def visits_from_json(text: str) -> tuple[Visit, ...]:
    """The plan that :func:`visits_to_json` wrote."""
    return _VISITS.validate_json(text)


def plan(rigs: Sequence[Rig], matrix: Matrix) -> tuple[Visit, ...]:
    """What is to be run, in a stable order: rigs, drives and firmware as in the files.

    The firmware that is on a drive comes first.  Raises Misuse when the files
    contradict each other, when an image is not the one that the matrix means,
    and when there is nothing to run.
    """
    visits, gaps = survey(rigs, matrix)
    if not visits:
        reasons = "".join(f"\n  {gap.cell.id}: {gap.reason}" for gap in gaps)
        raise Misuse(f"nothing to run with {matrix.path}:{reasons}")
    return visits


def survey(rigs: Sequence[Rig], matrix: Matrix) -> tuple[tuple[Visit, ...], tuple[Gap, ...]]:
    """What is to be run, and what is missing for more; raises Misuse for what :func:`plan` does.

    Having nothing to run is not an error here.
    """
    refuse([*given_twice(rigs), *disagreements(rigs, matrix)])
    visits: list[Visit] = []
    gaps: list[Gap] = []
    for rig in rigs:
        paths = shared_paths(rig)
        for drive in rig.drives:
            run, left_out = _of_drive(rig, drive, matrix, paths[drive.slot])
            visits += run
            gaps += left_out
    flashed = {(visit.cell.rig, visit.cell.slot) for visit in visits if not visit.installed}
    refuse(
        image_problems(
            matrix,
            {
                (visit.cell.model, visit.cell.firmware)
                for visit in visits
                if (visit.cell.rig, visit.cell.slot) in flashed
            },
        )
    )
    return tuple(visits), tuple(gaps)


def _of_drive(
    rig: Rig, drive: DriveSpec, matrix: Matrix, shared_path: str
) -> tuple[list[Visit], list[Gap]]:
    """One drive's visits and gaps, the firmware that is on it first."""
    controller = _controller(rig, drive, matrix)

    def cell(revision: str) -> Cell:
        return Cell(rig.name, drive.slot, drive.model, revision, controller)

    entry = matrix.entry(drive.model)
    if entry is None:
        return [], [Gap(cell(drive.firmware), f"{matrix.path} has no model {shown(drive.model)}")]
    installed = matrix.firmware(drive.model, drive.firmware)
    visits: list[Visit] = []
    gaps: list[Gap] = []
    for firmware in sorted(entry.firmware, key=lambda each: each is not installed):
        reason = _left_out(firmware, installed, drive)
        if reason:
            gaps.append(Gap(cell(firmware.revision), reason))
        else:
            visit = Visit(
                cell(firmware.revision),
                len(visits) + 1,
                shared_path,
                firmware is installed,
                firmware.image,
                against=_held_against(firmware, installed, entry),
            )
            visits.append(visit)
    return visits, gaps


def _held_against(firmware: FirmwareSpec, installed: FirmwareSpec, entry: ModelSpec) -> str | None:
    """What a candidate is held against: its predecessor, else the released firmware that the
    drive has, else the model's last one that is released."""
    if firmware.status != "candidate":
        return None
    released = [each.revision for each in entry.firmware if each.status == "released"]
    last = released[-1] if released else None
    had = installed.revision if installed.status == "released" else last
    return firmware.predecessor or had


def _left_out(firmware: FirmwareSpec, installed: FirmwareSpec, drive: DriveSpec) -> str:
    """Why a firmware is not tested on a drive; empty when it is."""
    if firmware is installed:
        return "its status is blocked" if firmware.status == "blocked" else ""
    obstacles = {
        f"its status is {firmware.status}": firmware.status in ("blocked", "retired"),
        "no image in the matrix": firmware.image is None,
        "not on the drive, and no flash in the rig file": drive.flash is None,
        f"no image of {installed.revision}, so it could not be put back": installed.image is None,
    }
    return next((reason for reason, holds in obstacles.items() if holds), "")


def _controller(rig: Rig, drive: DriveSpec, matrix: Matrix) -> str:
    spec = rig.controller_of(drive)
    named = (entry.name for entry in matrix.controllers if entry.pci_id == spec.pci_id)
    return next(named, spec.name)
