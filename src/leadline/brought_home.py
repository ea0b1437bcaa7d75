"""How a session's drives were brought home: an outcome of its own for each, and no test's."""

from leadline.errors import DriveFault, Misuse, RigTrouble, message_of
from leadline.inventory.plan import Visit
from leadline.outcomes import Ended, ended_by
from leadline.results.schema import OutcomeRow

BROUGHT_HOME = "brought_home"
"""In the place of a claim: that the drive was put back on the firmware with which it came."""


def outcome_row(
    home: Visit, seconds: float, error: DriveFault | RigTrouble | Misuse | None
) -> OutcomeRow:
    """The outcome of one drive's way home, which took so long; its cell is the one at home."""
    cell = home.cell
    where = f"slot {cell.slot} of rig {cell.rig} is not back on firmware {cell.firmware}"
    return OutcomeRow(
        cell=cell.id,
        claim=BROUGHT_HOME,
        node=f"{BROUGHT_HOME}[{cell.id}]",
        outcome=(Ended.PASS if error is None else ended_by(error)).value,
        message="" if error is None else f"{where}: {message_of(error)}",
        seconds=seconds,
    )


def is_way_home(row: OutcomeRow) -> bool:
    """Whether it is such an outcome, and no test's."""
    return row.claim == BROUGHT_HOME and row.node == f"{BROUGHT_HOME}[{row.cell}]"
