"""The plan: which drive is tested with which firmware, in which order.

Made from files alone, once, by the controlling process, and handed to workers
as text.  A *visit* is one drive with one firmware; its *cell* is the place in
the firmware matrix that it fills.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from leadline.errors import Misuse
from leadline.inventory.contradictions import (
    disagreements,
    given_twice,
    image_problems,
    misnamed,
    refuse,
)
from leadline.inventory.document import shown
from leadline.inventory.fields import in_id
from leadline.inventory.matrix import FirmwareSpec, Matrix, ModelSpec
from leadline.inventory.rig import ControllerSpec, DriveSpec, Rig
from leadline.inventory.shared import shared_paths


@dataclass(frozen=True)
class Cell:
    """One drive model x firmware x controller, and the drive that stands for it."""

    rig: str
    slot: str
    model: str
    firmware: str
    """Its name in the matrix, of which there is one for each build; not what the drive says."""
    controller: str
    """The controller's name in the matrix, by PCI id and driver; else its name in the rig file."""

    @cached_property
    def id(self) -> str:
        """A readable name, as in ``bench-a-slot1-INTEL_SSDSC2BX016T4-G2010150``."""
        return "-".join(map(in_id, (self.rig, self.slot, self.model, self.firmware)))


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
    """The revision that a candidate is held against: a released one, before it if there is any."""
    compared: bool = True
    """Whether a drive can be taken from `against` to it, back, and on to whatever comes next; else
    it is held against what is stored alone."""
    after: str | None = None
    """Of a return to a cell that was visited before: the revision that the drive comes from."""

    @property
    def id(self) -> str:
        """The cell's id, and of a return its number: a plan visits each cell once."""
        return self.cell.id if self.after is None else f"{self.cell.id}-visit{self.n}"


Lacks = Literal["model", "image", "flash", "outlet", "status", "downgrade", "drive", "rig"]
"""What is in the way of a cell: an entry of the matrix, a firmware's image or status, a `flash` in
the rig file, an outlet to activate it, a way back from it, a drive of the model, a rig."""


@dataclass(frozen=True)
class Gap:
    """A cell that is not visited, what is lacking for it, and why in words."""

    cell: Cell
    lacks: Lacks
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
    refuse([*given_twice(rigs), *misnamed(rigs, matrix), *disagreements(rigs, matrix)])
    visits: list[Visit] = []
    gaps: list[Gap] = []
    for rig in rigs:
        paths = shared_paths(rig)
        for drive in rig.drives:
            run, left_out = _of_drive(rig, drive, matrix, paths[drive.slot])
            visits += run
            gaps += left_out
    flashed = {(visit.cell.rig, visit.cell.slot) for visit in visits if not visit.installed}
    needed = {
        (matrix.model(visit.cell.model).model, visit.cell.firmware)
        for visit in visits
        if (visit.cell.rig, visit.cell.slot) in flashed
    }
    refuse(image_problems(matrix, needed))
    return tuple(visits), tuple(gaps)


def _of_drive(
    rig: Rig, drive: DriveSpec, matrix: Matrix, shared_path: str
) -> tuple[list[Visit], list[Gap]]:
    """One drive's visits and gaps, the firmware that is on it first."""
    controller = controller_name(rig.controller_of(drive), matrix)

    def cell(revision: str) -> Cell:
        return Cell(rig.name, drive.slot, drive.model, revision, controller)

    entry = matrix.entry(drive.model)
    if entry is None:
        reason = f"{matrix.path} has no model {shown(drive.model)}"
        return [], [Gap(cell(drive.firmware), "model", reason)]
    (installed,) = entry.showing(drive.firmware, drive.firmware_sha256)
    visits: list[Visit] = []
    gaps: list[Gap] = []
    for firmware in _in_order(entry, installed):
        obstacle = next(_obstacles(rig, drive, entry, installed, firmware), None)
        if obstacle:
            gaps.append(Gap(cell(firmware.revision), *obstacle))
            continue
        against = _held_against(firmware, installed, entry)
        visit = Visit(
            cell(firmware.revision),
            len(visits) + 1,
            shared_path,
            firmware is installed,
            firmware.image,
            against=against,
            compared=against is None or _goes_back(firmware, against, installed, entry),
        )
        visits.append(visit)
    return visits, gaps


def _held_against(firmware: FirmwareSpec, installed: FirmwareSpec, entry: ModelSpec) -> str | None:
    """What a candidate is held against: the nearest of its predecessors that is released, else
    the released firmware that the drive has, else the model's last one that is released.

    A candidate, or what was withdrawn, is no measure: a loss that it brought would be passed on.
    """
    if firmware.status != "candidate":
        return None
    older = (entry.by_revision[name] for name in entry.older(firmware))
    others = (installed, *reversed(entry.firmware))
    released = (each.revision for each in chain(older, others) if each.status == "released")
    return next(released, None)


def _goes_back(
    candidate: FirmwareSpec, against: str, installed: FirmwareSpec, entry: ModelSpec
) -> bool:
    """Whether a drive goes from what a candidate is held against to it, back, and on from there."""
    released = entry.by_revision[against]
    goes_on = released is installed or released.downgrade == "allowed"
    return goes_on and entry.takes(released, candidate) and entry.takes(candidate, released)


def _in_order(entry: ModelSpec, installed: FirmwareSpec) -> list[FirmwareSpec]:
    """What is on the drive, then the others as in the matrix, those that refuse a downgrade last.

    Of those the older come first.  What is on the drive comes after each of them, for else they
    are left out, so that they are all in one line of predecessors and each takes the next.
    """

    def place(firmware: FirmwareSpec) -> tuple[bool, int]:
        refuses = firmware is not installed and firmware.downgrade == "refused"
        return firmware is not installed, len(tuple(entry.older(firmware))) + 1 if refuses else 0

    return sorted(entry.firmware, key=place)


def _obstacles(
    rig: Rig, drive: DriveSpec, entry: ModelSpec, installed: FirmwareSpec, firmware: FirmwareSpec
) -> Iterator[tuple[Lacks, str]]:
    """Why a firmware is not tested on a drive; nothing when it is."""
    if firmware is installed:
        return
    home = installed.revision
    if firmware.status == "withdrawn":
        yield "status", "its status is withdrawn"
    if firmware.image is None:
        yield "image", "no image in the matrix"
    if drive.flash is None:
        yield "flash", "not on the drive, and no flash in the rig file"
    if installed.image is None:
        yield "image", f"no image of {home}, so it could not be put back"
    if not entry.takes(installed, firmware):
        yield "downgrade", f"{home}, which is on the drive, refuses older firmware"
    if not entry.takes(firmware, installed):
        yield "downgrade", f"it refuses older firmware, so {home} could not be put back"
    usual = drive.flash.activates if drive.flash is not None else None
    if "power-cycle" in (firmware.activation or usual, installed.activation or usual):
        outlets = rig.outlets_of(drive)
        if not outlets:
            yield "outlet", "it waits for a power cycle, and no outlet feeds the drive"
        elif rig.host.reach == "local" and outlets[0].feeds == "host":
            yield "outlet", "it waits for a power cycle, which would be that of this machine"


def controller_name(spec: ControllerSpec, matrix: Matrix) -> str:
    """What the matrix calls a rig's controller; what the rig file does, where it knows none."""
    found = matrix.controller_with(spec.pci_id, spec.driver) if spec.pci_id else None
    return found.name if found else spec.name
