"""Curves of a load over its device queue depths: which depths, and what can be said of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.claims import Claim, stated
from leadline.load.slices import SliceSetting
from leadline.load.workload import Workload
from leadline.statements import NoCollapse, NoDip, share
from leadline.unmeasured import refuse

if TYPE_CHECKING:
    from leadline.quantities import Load, Quantity

DIP_TOLERANCE = 0.04
"""Half of the dip that must be found, 8 %: see `verdict.curve.DIP_TOLERANCE`."""

EVERY_DEPTH = 32
"""A curve that nobody gave depths for has each up to here: all that NCQ has.  A SAS drive holds
more, and a curve of each of 128 would cost four times as much."""


def whole_curve(deepest: int) -> tuple[int, ...]:
    """The depths of a curve that nobody gave depths for: from 1 to `deepest`, lowest first.

    Beyond EVERY_DEPTH they are 5/4, 3/2 and 2 times each power of two, and `deepest` itself.
    """
    depths = list(range(1, min(deepest, EVERY_DEPTH) + 1))
    power = EVERY_DEPTH
    while power < deepest:
        depths += [d for d in (5 * power // 4, 3 * power // 2, 2 * power) if d < deepest]
        power *= 2
    return (*depths, deepest) if deepest > EVERY_DEPTH else tuple(depths)


CurveSettings = tuple[Workload, tuple[SliceSetting, ...]]
"""What is measured for a curve; two with the same are one curve."""


@dataclass(frozen=True)
class Curve:
    """The rates of one workload over its device queue depths, lowest first; not yet measured."""

    load: "Load"
    points: "tuple[Quantity, ...]"

    @property
    def settings(self) -> CurveSettings:
        """The workload, and the settings of its points."""
        return self.load.workload, tuple(point.setting for point in self.points)

    __bool__ = refuse("the truth", "ask for something: curve.has_no_dip()")

    def has_no_dip(self, tolerance: float = DIP_TOLERANCE) -> Claim:
        """Claim that no depth lies below its neighbours' chord by more than `tolerance`."""
        limit = share(tolerance, "tolerance")
        return stated(NoDip(self, limit, getattr(tolerance, "source", "")), self.load.judge)

    def does_not_collapse(self, within: float = 0.1) -> Claim:
        """Claim that the last depth keeps all but `within` of the best rate before it."""
        limit = share(within, "within")
        return stated(NoCollapse(self, limit, getattr(within, "source", "")), self.load.judge)

    def __str__(self) -> str:
        offered = {point.offered_depth for point in self.points}
        alike = f", offered={offered.pop()}" if len(offered) == 1 else ""
        return f"{self.load.workload.name}.curve(depth {self._depths}{alike})"

    @property
    def _depths(self) -> str:
        """The depths in words; a statement on record has the same, and is known by them."""
        depths = [point.device_depth for point in self.points]
        dense = sum(depth == depths[0] + place for place, depth in enumerate(depths))
        if dense < min(len(depths), EVERY_DEPTH):
            return ", ".join(map(str, depths))
        return ", ".join([f"{depths[0]} to {depths[dense - 1]}", *map(str, depths[dense:])])

    __repr__ = __str__
