"""What a plan costs: claims, drive time and flashes, as far as files alone can tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from leadline.drive_time import CLAIM_S
from leadline.inventory.matrix import Matrix
from leadline.inventory.plan import Cell, Visit


@dataclass(frozen=True)
class Effort:
    """The cost of a plan."""

    flashes: int
    """With those that put the drives back on the firmware that they came with."""
    drive_time_s: float
    """At most, of all claims that have a limit; a curve takes longer, most claims less."""
    longest_path_s: float
    """Of it, what the busiest shared path takes: others run beside it."""


def drive_time_s(cell: Cell, matrix: Matrix) -> float:
    """At most, in seconds: a claim for each limit of the cell."""
    return CLAIM_S * len(matrix.limits_for(cell.model, cell.firmware, cell.controller))


def effort(visits: Sequence[Visit], matrix: Matrix) -> Effort:
    """What a plan costs."""
    paths: dict[str, float] = {}
    for visit in visits:
        seconds = drive_time_s(visit.cell, matrix)
        paths[visit.shared_path] = paths.get(visit.shared_path, 0.0) + seconds
    return Effort(_flashes(visits), sum(paths.values()), max(paths.values(), default=0.0))


def _flashes(visits: Sequence[Visit]) -> int:
    """Of each drive, from the firmware that it came with through its visits and back."""
    count = 0
    for _, of_drive in groupby(visits, key=lambda visit: (visit.cell.rig, visit.cell.slot)):
        came_with, names = "", []
        for visit in of_drive:
            names.append(visit.cell.firmware)
            came_with = visit.cell.firmware if visit.installed else came_with
        stops = [came_with, *names, came_with]
        count += sum(one != other for one, other in pairwise(stops))
    return count
