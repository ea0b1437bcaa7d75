"""The steady state of a visited drive: the workload that it was brought to it for, and until when.

It is a state for one workload, and passes: whatever else writes leaves other blocks behind, and a
drive whose power was cut comes back with an empty cache, and may have tidied up.  What is on the
drive stays, so that it is not filled again for a workload that it was filled for: the rounds are
run anew, until their window says that it is steady.
"""

from typing import TYPE_CHECKING

from leadline.load.precondition import Preconditioned, precondition, price
from leadline.load.target import span_of
from leadline.load.workload import Workload
from leadline.results.schema import Phase

if TYPE_CHECKING:
    from leadline.visiting import OpenVisit


class Steadying:
    """What was done to the drive of a visit, so that writes to it may be judged."""

    def __init__(self, visit: "OpenVisit") -> None:
        self._visit = visit
        self._filled_for: set[Workload] = set()
        self._last: Preconditioned | None = None

    def done_for(self, workload: Workload) -> Preconditioned | None:
        """What was done last, if it was for this workload and nothing has come between."""
        last = self._last
        return last if last is not None and last.workload == workload else None

    def disturbed(self) -> None:
        """Something else writes to the drive, or it has lost power."""
        self._last = None

    def bring(self, workload: Workload, capacity_bytes: int) -> None:
        """Fill the span, unless that was done in this visit, and write until it is steady."""
        visit, span = self._visit, span_of(workload, capacity_bytes)
        station, cell, fill = visit.station, visit.visit.cell.id, workload not in self._filled_for
        again = "" if fill else " again, for something else wrote to it or it lost power"
        cost = price(span[1], fill=fill)
        station.live.say(f"{cell}: preconditioning for {workload.name}{again}: {cost}")
        self._last = None
        depth = visit.kernel_queue_depth
        done = precondition(station.host, visit.drive.node, workload, span, depth=depth, fill=fill)
        self._filled_for.add(workload)
        self._last = done
        station.record.add(Phase(cell=cell, name="drive", seconds=done.drive_s))
        visit.note(f"preconditioning of {{}} for {workload.name}", done.finding)
