"""May slices be run at these device queue depths?  Asked before the first of them is written."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leadline.claims import NotPromised
from leadline.drive import queue_depth
from leadline.errors import DriveFault
from leadline.load.slices import SliceSetting

if TYPE_CHECKING:
    from leadline.visiting import OpenVisit

ANY_QUEUE = 2
"""The least device queue depth with which commands are queued."""


def admit_depths(visit: "OpenVisit", wanted: Sequence[SliceSetting]) -> None:
    """Raise what forbids them, as `admit_depth` does of the deepest."""
    admit_depth(visit, max((setting.device_depth or 1 for setting in wanted), default=1))


def admit_depth(visit: "OpenVisit", deepest: int) -> None:
    """Raise what forbids this depth: DriveFault where the drive does not queue, and why.

    That is by its ladder, or because error handling has switched queueing off since that was
    climbed.  NotPromised where there is no queue, and the firmware matrix promises none.
    """
    host, drive = visit.station.host.name, visit.drive
    queue_depth.refuse_switched_off(host, drive, visit.station.watch.history())
    try:
        queue_depth.refuse_unqueued(host, drive, deepest, visit.ladder)
    except DriveFault as fault:
        if visit.model.queue_depth > 1:
            raise
        raise NotPromised(
            f"the firmware matrix promises no queue of {visit.model.model} (queue_depth: 1), and "
            f"there is none: {fault}"
        ) from fault
