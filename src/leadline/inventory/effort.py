"""The order of a plan's work and what it costs, as far as files alone can tell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from leadline.drive_time import CLAIM_S
from leadline.inventory.matrix import Matrix
from leadline.inventory.plan import Cell, Visit
from leadline.inventory.stations import Route


@dataclass(frozen=True)
class Step:
    """One thing that is done to a drive: its tests with a firmware, or a flash of another."""

    rig: str
    slot: str
    does: Literal["test", "flash"]
    firmware: str


@dataclass(frozen=True)
class Effort:
    """The cost of a plan."""

    flashes: int
    """With those that put the drives back on the firmware that they came with."""
    flashes_to_compare: int
    """The same where candidates are compared: between two of them the drive comes home."""
    drive_time_s: float
    """About: a claim for each limit.  Some limits are of several tests, and some tests have none
    or may take longer; most take less."""
    longest_path_s: float
    """Of it, what the busiest shared path takes: others run beside it."""


def by_drive(visits: Sequence[Visit]) -> list[list[Visit]]:
    """The visits of each drive in turn: the first is to the firmware that it came with."""
    drives = groupby(visits, key=lambda visit: (visit.cell.rig, visit.cell.slot))
    return [list(of_drive) for _, of_drive in drives]


def order(visits: Sequence[Visit]) -> Iterator[Step]:
    """What is done, drive by drive; those that share no path may be worked on side by side."""
    for of_drive in by_drive(visits):
        first = of_drive[0].cell
        on_it = first.firmware
        for name in (each.cell.firmware for each in of_drive):
            if name != on_it:
                yield Step(first.rig, first.slot, "flash", name)
            yield Step(first.rig, first.slot, "test", name)
            on_it = name
        if on_it != first.firmware:
            yield Step(first.rig, first.slot, "flash", first.firmware)


def drive_time_s(cell: Cell, matrix: Matrix) -> float:
    """About, in seconds: a claim for each limit of the cell."""
    return CLAIM_S * len(matrix.limits_for(cell.model, cell.firmware, cell.controller))


def effort(visits: Sequence[Visit], route: Route, matrix: Matrix) -> Effort:
    """What a plan costs, and what it does by the route on which candidates are compared."""
    paths: dict[str, float] = {}
    for visit in visits:
        seconds = drive_time_s(visit.cell, matrix)
        paths[visit.shared_path] = paths.get(visit.shared_path, 0.0) + seconds
    return Effort(
        _flashes(visits),
        _flashes(route.visits),
        sum(paths.values()),
        max(paths.values(), default=0.0),
    )


def _flashes(visits: Sequence[Visit]) -> int:
    """How often the firmware changes from one visit to the next, and from the last to the first."""
    return sum(
        visit.cell.firmware != of_drive[n - 1].cell.firmware
        for of_drive in by_drive(visits)
        for n, visit in enumerate(of_drive)
    )
