"""Is what is offered held back by a device queue depth that somebody has left lower?

Offered 128 with a device queue depth of 4, 124 wait in the host: the rate is that of the setting,
and the drive was never asked to hold more.
"""

from typing import TYPE_CHECKING

from leadline.claims import NotPromised
from leadline.errors import DriveFault, Inconclusive
from leadline.load.slices import LEAST_HELD

if TYPE_CHECKING:
    from leadline.quantities import Load


def refuse_left_shallow(load: "Load", offered: int, named: str) -> None:
    """Raise Inconclusive where the drive could hold far more of what is offered than it may.

    Not where it does not queue at all: that is the drive's, and its rate shows it.  Nor where
    nobody can tell the two apart.  As of a slice, LEAST_HELD of the depth is enough.
    """
    left, could = load.kernel_depth, min(offered, load.full_depth)
    if load.admit is None or left is None or left >= LEAST_HELD * could:
        return
    try:
        load.admit(load.full_depth)
    except (DriveFault, NotPromised):
        return
    raise Inconclusive(
        f"{load.workload.name}.at({named}): the device queue depth was left at {left}, and the "
        f"drive and its controller hold {load.full_depth}: of {offered} offered it never has over "
        f"{left}, so this would say nothing of its queue. Look for what has set it "
        "(`cat /sys/block/*/device/queue_depth` on the rig; tuned, a udev rule?) and write "
        f"{load.full_depth} back, or give depth="
    )
