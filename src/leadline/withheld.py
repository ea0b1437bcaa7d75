"""Waiting for processors that a hypervisor keeps from the rig, and measuring again.

Others on the same machine want them for seconds or minutes, and what is measured meanwhile tells
more of them than of the drive.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.drive.finding import STEAL_TIME

if TYPE_CHECKING:
    from leadline.judge import Measure
    from leadline.load.slices import Slice, SliceSetting
    from leadline.load.workload import Workload

PATIENCE_S = 240.0
"""On one visit, pauses and what is given up: enough for some bursts; where processors are taken
throughout, a suite of ten minutes ends within twenty all the same."""
ONE_TEST_S = 120.0
"""Of that, in one test: where processors are taken throughout, those after it have some, too."""
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 30.0


@dataclass
class Patience:
    """How long one visit may yet be longer, in seconds; `say` is told each time that it waits."""

    say: Callable[[str], None]
    left_s: float = PATIENCE_S
    _of_test_s: float = ONE_TEST_S
    _next_s: float = FIRST_PAUSE_S

    def next_test(self) -> None:
        """What the tests before this one have used up of their own share is not held against it."""
        self._of_test_s = ONE_TEST_S

    def again(self, voids: Collection[str], took_s: float) -> bool:
        """Whether what has these voids, and took so many seconds, is to be measured again: then it
        has waited, each time in a row for longer.  What is measured when no patience is left
        counts as it is."""
        if STEAL_TIME not in voids:
            self._next_s = FIRST_PAUSE_S
            return False
        left_s = min(self.left_s, self._of_test_s)
        if left_s <= 0:
            return False
        pause_s = min(self._next_s, left_s)
        self.say(
            f"a hypervisor keeps processors from the rig: measuring again in {pause_s:g} s; there "
            f"are {left_s:.0f} s for that"
        )
        time.sleep(pause_s)
        self.left_s -= pause_s + took_s
        self._of_test_s -= pause_s + took_s
        self._next_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return True


def outlasting(
    measure: "Measure",
    patience: Patience,
    remarks: dict[str, str],
    spent: Callable[[float], None],
) -> "Measure":
    """`measure` until most of its slices come back with the rig's processors left to it.

    `remarks` lose what was said of slices that are given up, and `spent` is told of their drive
    time, in seconds.
    """

    def measured(workload: "Workload", settings: Sequence["SliceSetting"]) -> Sequence["Slice"]:
        said_before = dict(remarks)
        slices = measure(workload, settings)
        # How large requests arrive is seen as well without these processors.
        while not settings[0].watched and patience.again(
            _voids_most(slices), took_s := _drive_s(slices)
        ):
            remarks.clear()
            remarks.update(said_before)
            spent(took_s)
            slices = measure(workload, settings)
        return slices

    return measured


def _voids_most(slices: Sequence["Slice"]) -> set[str]:
    """What voids more than half of them."""
    times = Counter(name for each in slices for name in each.voids)
    return {name for name, count in times.items() if 2 * count > len(slices)}


def _drive_s(slices: Sequence["Slice"]) -> float:
    return sum(each.drive_s for each in slices)
