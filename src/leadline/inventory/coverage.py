"""What of the whole matrix the rigs can serve, and what is lacking for the rest.

A cell that is *wanted* is a model with a firmware on a controller: every firmware of every
model that is not withdrawn, on each controller that the model is to be tested on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline.inventory.matrix import Matrix, ModelSpec
from leadline.inventory.plan import Gap, Lacks, Visit, controller_name
from leadline.inventory.rig import Protocol, Rig

ANY_CONTROLLER = "any"
"""What a model is wanted on where the matrix names no controller for it."""


@dataclass(frozen=True)
class Unserved:
    """Wanted cells of one model on one controller that lack the same."""

    model: str
    """As in the matrix: a glob stands for whichever model of its kind."""
    controller: str
    firmware: tuple[str, ...]
    lacks: Lacks
    reason: str


@dataclass(frozen=True)
class Coverage:
    """How many cells are wanted, how many of them are visited, and the others."""

    wanted: int
    served: int
    unserved: tuple[Unserved, ...]
    absent: tuple[str, ...]
    """Controllers of the matrix that no rig has."""


@dataclass(frozen=True)
class _Attached:
    """What hangs where, by the rig files: their controllers, and which have drives of a model."""

    controllers: frozenset[str]
    of_model: Mapping[str, frozenset[str]]


def coverage(
    rigs: Sequence[Rig], matrix: Matrix, visits: Sequence[Visit], gaps: Sequence[Gap]
) -> Coverage:
    """What the plan of ``visits``, with its ``gaps``, leaves of the matrix."""
    attached = _attached(rigs, matrix)
    visited = {_key(matrix, visit) for visit in visits}
    visited |= {(model, firmware, ANY_CONTROLLER) for model, firmware, _ in visited}
    lacking = {_key(matrix, gap): gap for gap in gaps if gap.lacks != "model"}
    lacking |= {(m, f, ANY_CONTROLLER): gap for (m, f, _), gap in lacking.items()}
    wanted = served = 0
    unserved: list[Unserved] = []
    for entry in matrix.models:
        names = [each.revision for each in entry.firmware if each.status != "withdrawn"]
        for controller in wanted_on(entry, matrix):
            here = [name for name in names if (entry.model, name, controller) in visited]
            wanted += len(names)
            served += len(here)
            lacks: dict[tuple[Lacks, str], list[str]] = {}
            if len(here) < len(names):
                elsewhere = _elsewhere(entry, controller, attached)
                for name in names:
                    gap = lacking.get((entry.model, name, controller))
                    why = (gap.lacks, gap.reason) if gap else elsewhere
                    if name not in here:
                        lacks.setdefault(why, []).append(name)
            unserved += [
                Unserved(entry.model, controller, tuple(firmware), what, reason)
                for (what, reason), firmware in lacks.items()
            ]
    every = (each.name for each in matrix.controllers)
    absent = tuple(name for name in every if name not in attached.controllers)
    return Coverage(wanted, served, tuple(unserved), absent)


def _key(matrix: Matrix, at: Visit | Gap) -> tuple[str, str, str]:
    cell = at.cell
    return matrix.model(cell.model).model, cell.firmware, cell.controller


def _attached(rigs: Sequence[Rig], matrix: Matrix) -> _Attached:
    of_model: dict[str, frozenset[str]] = {}
    for rig in rigs:
        for drive in rig.drives:
            entry = matrix.entry(drive.model)
            name = controller_name(rig.controller_of(drive), matrix)
            if entry is not None:
                of_model[entry.model] = of_model.get(entry.model, frozenset()) | {name}
    specs = (spec for rig in rigs for spec in rig.controllers)
    return _Attached(frozenset(controller_name(spec, matrix) for spec in specs), of_model)


def _elsewhere(entry: ModelSpec, controller: str, attached: _Attached) -> tuple[Lacks, str]:
    """Why a model is not tested on a controller that has no drive of it."""
    if controller not in attached.controllers and controller != ANY_CONTROLLER:
        return "rig", f"no rig has the controller {controller}"
    others = ", ".join(sorted(attached.of_model.get(entry.model, ())))
    if others:
        return "drive", f"no drive of this model hangs on it; there are some on {others}"
    return "drive", "no rig has a drive of this model"


def wanted_on(entry: ModelSpec, matrix: Matrix) -> Iterator[str]:
    """The controllers that a model is to be tested on: those that it names, else all that fit."""
    names = entry.controllers
    if names is None:
        every = matrix.controllers
        names = tuple(each.name for each in every if carries(each.driver, entry.protocol))
    yield from names or (ANY_CONTROLLER,)


_LIBATA = ("ahci", "acard-ahci", "ata_", "sata_", "pata_")


def carries(driver: str, protocol: Protocol) -> bool:
    """Whether a controller can have such drives at all, by its kernel driver's name.

    What libata drives has ATA drives only (Linux, drivers/ata); what is virtual, SCSI only.
    """
    if driver.startswith(_LIBATA):
        return protocol == "sata"
    return protocol == "scsi" or not driver.startswith("virtio")
