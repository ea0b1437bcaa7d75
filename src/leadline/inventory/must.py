"""What a drive must do on its controller, by the firmware matrix.

Made from files alone, so that tests are chosen by it before any rig is reached; what was
found there is `leadline.drive.pair.Pair`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from leadline.inventory.matrix import ControllerModel, Matrix, UnqueuedPair
    from leadline.inventory.plan import Cell

UNQUEUED = "noncq"
"""The kernel's name for what it does to a drive that it does not queue to."""


@dataclass(frozen=True, slots=True)
class Must:
    """The requirements of one cell; None is what the matrix does not say.

    A drive must queue unless this pair is not to, or it is to be tested on a controller that
    cannot: `source` is then who says so, with file and line.
    """

    ncq: Literal["required", "none"]
    max_queue_depth: int | None = None
    link_gbps: float | None = None
    quirks: tuple[str, ...] | None = None
    source: str = ""


def must_of(matrix: "Matrix", cell: "Cell") -> Must:
    """What the matrix has of a cell.  Misuse when it knows no such model or firmware."""
    model = matrix.model(cell.model)
    controller = matrix.controller(cell.controller)
    if controller is None:
        return Must("required", quirks=model.quirks)
    unqueued = controller.unqueued(cell.model, matrix.firmware(cell.model, cell.firmware).shows)
    wanted = model.controllers is None or controller.name in model.controllers
    cannot = controller.ncq == "none" and wanted
    known = [each.quirks for each in (model, controller) if each.quirks is not None]
    if known and unqueued:
        known.append((UNQUEUED,))
    return Must(
        ncq="none" if unqueued or cannot else "required",
        max_queue_depth=controller.max_queue_depth,
        link_gbps=controller.link_gbps,
        quirks=tuple(name for names in known for name in names) if known else None,
        source=_source(matrix, controller, unqueued) if unqueued or cannot else "",
    )


def _source(
    matrix: "Matrix", controller: "ControllerModel", unqueued: "UnqueuedPair | None"
) -> str:
    here = ("controllers", matrix.controllers.index(controller))
    if unqueued is None:
        return f"controller {controller.name} has `ncq: none` ({matrix.where(*here, 'ncq')})"
    place = (*here, "must_not_queue", controller.must_not_queue.index(unqueued))
    return f"{unqueued.source} ({matrix.where(*place)})"


def overlooked(matrix: "Matrix", cell: "Cell", pci_id: str, driver: str) -> str:
    """That the matrix has the controller that was found, by another name than the rig file.

    A rig file without a PCI id leaves that to chance; empty where the two agree.
    """
    found = matrix.controller_with(pci_id, driver)
    if found is None or found.name == cell.controller:
        return ""
    return (
        f"slot {cell.slot} hangs on {found.name} of {matrix.path}, whose limits and known issues "
        f'are not looked up: write `pci_id: "{pci_id}"` for controller {cell.controller} of rig '
        f"{cell.rig}"
    )
