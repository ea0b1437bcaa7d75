"""Which limit holds in a cell, and where each that it takes the place of is written.

From the drive's class to its model, its firmware and its controller: the nearer
takes the place of the farther, claim by claim.  A controller's limits stand by
class of drive, for what is slow on it for an SSD is nothing to a disk.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.inventory.matrix import LimitSpec, Matrix


@dataclass(frozen=True)
class Given:
    """One limit as written: what it is of, where it stands, and what it says."""

    of: str
    """As in ``class ssd``, ``model X``, ``firmware 1.1`` or ``controller ich9-ahci``."""
    location: tuple[str | int, ...]
    limit: "LimitSpec"


def chains(
    matrix: "Matrix", model: str, firmware: str = "", controller: str = ""
) -> Mapping[str, tuple[Given, ...]]:
    """By claim, every limit that is given for a cell, from the farthest to the one that holds.

    Without a firmware or a controller, or with one that the matrix does not know, theirs are
    left out.  Misuse when the matrix does not know the model.
    """
    found: dict[str, tuple[Given, ...]] = {}
    for of, place, limits in _levels(matrix, model, firmware, controller):
        for claim, limit in limits.items():
            found[claim] = (*found.get(claim, ()), Given(of, (*place, claim), limit))
    return found


_Level = tuple[str, tuple[str | int, ...], "Mapping[str, LimitSpec]"]


def _levels(matrix: "Matrix", model: str, firmware: str, controller: str) -> Iterator[_Level]:
    entry = matrix.model(model)
    here: tuple[str | int, ...] = ("models", matrix.place[entry.model])
    of_class = entry.class_
    yield f"class {of_class}", ("classes", of_class), matrix.limits_by_class.get(of_class, {})
    yield f"model {entry.model}", (*here, "limits"), entry.limits
    for n, spec in enumerate(entry.firmware):
        if spec.revision == firmware:
            yield f"firmware {firmware}", (*here, "firmware", n, "limits"), spec.limits
    for n, kind in enumerate(matrix.controllers):
        if kind.name == controller:
            place = ("controllers", n, "classes", of_class)
            yield f"controller {controller}", place, kind.limits_by_class.get(of_class, {})
