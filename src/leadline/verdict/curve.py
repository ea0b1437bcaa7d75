"""Depth curves: screening a sweep of depths for dips and for a collapse.

A drive that works off its queue with more and more of its channels has a concave curve of
rate over depth, and a concave curve lies on or above each of its chords.  So the contrast

    c(q) = log y(q) - log chord(q),

the chord being that of the neighbouring depths, needs no model of the drive: below 0 is a
dip.  Where a curve is concave only from some depth on, as that of a disk is (see `Sweep`), a
depth whose neighbour below lies before that is held against this neighbour alone.  The first
and the last depth have no contrast (for the last see `collapse_depths`);
depths side by side that dip together hide part of one another; and a rate that falls and
then stays low is below its chord at the foot of the fall.

Screening looks at all depths and only picks; `leadline.verdict.dip` decides on slices
measured afresh, so that looking at 30 depths costs no false alarms.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter

from leadline.verdict.contrast import usable
from leadline.verdict.interval import SPREAD_FLOOR

DIP_TOLERANCE = 0.04
"""A dip is a rate below its chord by more than this share.

Half of the 8 % that must be found, so that such a dip and a flat curve are equally far
away.  Simulated on a quiet rig (`bench.curves`): at 0.03 a healthy curve takes 140 s of
drive time instead of 85 s; at 0.05 it takes 61 s, but a dip 99 s instead of 79 s, and 1.6 %
of them are missed instead of 0.6 %.
"""
FEWEST_DEGREES = 15
"""Degrees of freedom from which the spread of slices is believed: it is within 20 % then."""
CONCAVE_FROM = {"ssd": 1, "hdd": 2}
"""The depth from which on the curve of a class of drives is concave: see `Sweep`.

A WD740GD has it so, recorded at depths 1, 2 and 4 as 65.6, 75.2 and 122.9 random reads a second:
at 2 it is 11 % below the chord, and nothing is wrong with it.
"""
MOST_PASSES = 48
"""More would cost most of what the practice does, 65 s a depth, in slices of 0.5 to 1 s."""
SURE = 2.0
"""Standard errors from the tolerance to a dip that is nearly always suspected: 98 %.

More costs more passes than it saves, for the lowest contrast is confirmed in any case.
"""


@dataclass(frozen=True)
class Sweep:
    """Rates (requests a second) by depth, one for each pass, in the order of the passes.

    The curve is concave from the depth `concave_from` on: from 1 for channels that work side by
    side, from 2 for a single arm, which has nothing to choose from before two requests wait
    beside the one that it serves.  Raises ValueError on fewer than three depths, on depths
    that are not whole numbers from 1, on rates that are not finite and above 0, and on passes
    that are not complete.
    """

    rates: Mapping[int, tuple[float, ...]]
    concave_from: int = 1

    def __post_init__(self) -> None:
        known = {depth: tuple(self.rates[depth]) for depth in _check_depths(self.rates)}
        _check_rates(known)
        object.__setattr__(self, "rates", known)

    @property
    def depths(self) -> tuple[int, ...]:
        """The depths, lowest first."""
        return tuple(self.rates)

    @property
    def passes(self) -> int:
        """How often each depth was measured."""
        return len(next(iter(self.rates.values())))

    @property
    def curve(self) -> dict[int, float]:
        """The geometric mean of the rates at each depth, lowest depth first."""
        return {depth: math.exp(_mean_log(self.rates[depth])) for depth in self.depths}


@dataclass(frozen=True)
class Suspect:
    """A depth, its neighbours in the sweep, and its contrast: a log, below 0 for a dip.

    `by_below`: it is held against its neighbour below alone, for no chord bounds it.
    """

    depth: int
    below: int
    above: int
    contrast: float
    by_below: bool = False

    def __post_init__(self) -> None:
        _check_depths((self.below, self.depth, self.above))
        if not self.below < self.depth < self.above:
            raise ValueError(
                f"depths {self.below}, {self.depth}, {self.above}: "
                "a depth lies between its neighbours"
            )

    @property
    def share(self) -> float:
        """What the neighbour above has of the chord, by where the depth lies between them: 0.5 in
        the middle, and 0 where the neighbour below is the chord."""
        if self.by_below:
            return 0.0
        return (self.depth - self.below) / (self.above - self.below)


def sweep_of(passes: Sequence[Iterable[tuple[int, float]]], concave_from: int = 1) -> Sweep:
    """The sweep of some passes, each of them (depth, rate) for each depth, in any order.

    Raises ValueError when a pass measures a depth twice, and as `Sweep` does.
    """
    rates: dict[int, list[float]] = {}
    for number, measured in enumerate(passes):
        seen = set()
        for depth, rate in measured:
            if depth in seen:
                raise ValueError(
                    f"pass {number} has depth {depth} twice: a pass measures each depth once"
                )
            seen.add(depth)
            rates.setdefault(depth, []).append(float(rate))
    return Sweep({depth: tuple(values) for depth, values in rates.items()}, concave_from)


def pass_order(depths: Iterable[int], seed: int, number: int) -> tuple[int, ...]:
    """The depths in the random order of pass `number` (from 0), from a recorded seed.

    The order depends on nothing else, and is the same with every Python: of the random
    module only `random()` is promised to be.  Raises ValueError as `Sweep` does.
    """
    known = _check_depths(depths)
    chance = random.Random(f"{seed}/{number}")
    return tuple(sorted(known, key=lambda _: chance.random()))


def fewest_passes(depth_count: int) -> int:
    """The passes from which so many depths have FEWEST_DEGREES of freedom between them."""
    if depth_count < 3:
        raise ValueError(_too_few(depth_count))
    return 1 + math.ceil(FEWEST_DEGREES / (depth_count - 1))


def plan_passes(spread: float, depth_count: int, tolerance: float = DIP_TOLERANCE) -> int:
    """How many passes over so many depths a screen needs, from a pilot.

    `spread` is the standard deviation of the log of one slice's rate (0.02 is 2 %).  With
    so many passes, a dip of twice the tolerance is suspected 98 times in a hundred, and a
    depth of a flat curve twice.  At most MOST_PASSES; `least_dip` says what those can see.
    Raises ValueError on a spread below 0 and on fewer than three depths.
    """
    if not (math.isfinite(spread) and spread >= 0.0):
        raise ValueError(f"spread is {spread}: a standard deviation is finite and at least 0")
    # Between neighbours at equal distance on a flat stretch: 1 + 1/4 + 1/4.
    error = max(spread, SPREAD_FLOOR) * math.sqrt(1.5)
    wanted = math.ceil((SURE * error / _tolerated(tolerance)) ** 2)
    return min(max(wanted, fewest_passes(depth_count)), MOST_PASSES)


def another_pass(sweep: Sweep, tolerance: float = DIP_TOLERANCE) -> bool:
    """Whether the screen should take one more pass: for as long as it may miss a dip.

    That is a dip of twice the tolerance, missed more often than twice in a hundred by the
    noise of this sweep itself.  After MOST_PASSES no more are worth it.
    """
    return sweep.passes < MOST_PASSES and not sees_dips(sweep, tolerance)


def passes_needed(sweep: Sweep, tolerance: float = DIP_TOLERANCE) -> int:
    """How many passes a screen as noisy as this one needs to `sees_dips`; it may be more than
    MOST_PASSES.  Raises ValueError for a single pass."""
    curve = sweep.curve
    weight = max(_error_weight(suspect, curve) for suspect in _interior(sweep))
    spread = max(slice_spread(sweep), SPREAD_FLOOR)
    wanted = math.ceil(weight * (SURE * spread / _tolerated(tolerance)) ** 2)
    return max(wanted, fewest_passes(len(sweep.depths)))


def sees_dips(sweep: Sweep, tolerance: float = DIP_TOLERANCE) -> bool:
    """Whether a dip of twice the tolerance is suspected at least 98 times in a hundred."""
    return least_dip(sweep, tolerance) <= -math.expm1(-2.0 * _tolerated(tolerance))


def least_dip(sweep: Sweep, tolerance: float = DIP_TOLERANCE) -> float:
    """The smallest dip that is suspected 98 times in a hundred, as a share of the chord.

    1.0, which is everything, while there are fewer than `fewest_passes`.
    """
    if sweep.passes < fewest_passes(len(sweep.depths)):
        return 1.0
    curve = sweep.curve
    weight = max(_error_weight(suspect, curve) for suspect in _interior(sweep))
    error = max(slice_spread(sweep), SPREAD_FLOOR) * math.sqrt(weight / sweep.passes)
    return -math.expm1(-_tolerated(tolerance) - SURE * error)


def slice_spread(sweep: Sweep) -> float:
    """Standard deviation of the log of one slice's rate, as seen between the passes.

    What is common to a depth or to a pass is taken out first: a pass that was slow as a
    whole says nothing about a contrast.  Raises ValueError for a single pass.
    """
    if sweep.passes < 2:
        raise ValueError("one pass only: a spread needs at least two")
    logs = [[math.log(rate) for rate in sweep.rates[depth]] for depth in sweep.depths]
    rows = [_mean(row) for row in logs]
    columns = [_mean(column) for column in zip(*logs, strict=True)]
    grand = _mean(rows)
    square = math.fsum(
        (log - row - column + grand) ** 2
        for values, row in zip(logs, rows, strict=True)
        for log, column in zip(values, columns, strict=True)
    )
    return math.sqrt(square / ((len(rows) - 1) * (len(columns) - 1)))


def suspects(sweep: Sweep, tolerance: float = DIP_TOLERANCE) -> tuple[Suspect, ...]:
    """The depths that lie below their chord by more than `tolerance`, deepest dip first."""
    limit = -_tolerated(tolerance)
    found = [suspect for suspect in _interior(sweep) if suspect.contrast < limit]
    return tuple(sorted(found, key=attrgetter("contrast")))


def to_confirm(sweep: Sweep, tolerance: float = DIP_TOLERANCE) -> tuple[Suspect, ...]:
    """What `judge_dip` must settle before the curve has a verdict: its suspects.

    Without any it is the depth of the lowest contrast, so that a pass, too, rests on slices
    measured afresh at the place most likely to contradict it.
    """
    lowest = min(_interior(sweep), key=attrgetter("contrast"))
    return suspects(sweep, tolerance) or (lowest,)


def collapse_depths(sweep: Sweep) -> tuple[int, int]:
    """The highest depth and the best of the others, to be compared as a ratio claim.

    The best of many was lucky, too: its rate in the sweep is too high, and both are to be
    measured afresh, in pairs (`leadline.verdict.ratio`).
    """
    curve = sweep.curve
    *others, highest = sweep.depths
    return highest, max(others, key=lambda depth: curve[depth])


def last_that_keeps(sweep: Sweep) -> int:
    """Above which depth the rate of a curve that collapses is lost.

    That is the deepest whose rate is nearer to the best one than to that of the highest depth,
    by their logs: noise of a few per cent moves it only where the fall itself is gradual.
    """
    curve = sweep.curve
    highest, best = collapse_depths(sweep)
    middle = math.sqrt(curve[best] * curve[highest])
    return max(
        (depth for depth in curve if depth != highest and curve[depth] >= middle), default=best
    )


def contrast_of(below: float, at: float, above: float, share: float = 0.5) -> float:
    """The log of a rate over its chord: that of its neighbours, at `share` between them.

    The chord is the straight line between the neighbours, below which no concave curve
    lies; at share 0.5, between neighbours at equal distance, it is their mean, and at share 0
    it is the rate below.
    """
    return math.log(at) - math.log((1.0 - share) * below + share * above)


def _interior(sweep: Sweep) -> list[Suspect]:
    """Every depth with two neighbours, as a suspect would be described."""
    curve = sweep.curve
    found = []
    for below, depth, above in zip(sweep.depths, sweep.depths[1:], sweep.depths[2:], strict=False):
        by_below = below < sweep.concave_from
        place = Suspect(depth, below, above, 0.0, by_below)
        contrast = contrast_of(curve[below], curve[depth], curve[above], place.share)
        found.append(replace(place, contrast=contrast))
    return found


def _error_weight(suspect: Suspect, curve: Mapping[int, float]) -> float:
    """Variance of a contrast, in variances of a log rate: 1 and the chord's two shares."""
    low = (1.0 - suspect.share) * curve[suspect.below]
    high = suspect.share * curve[suspect.above]
    return 1.0 + (low / (low + high)) ** 2 + (high / (low + high)) ** 2


def _tolerated(tolerance: float) -> float:
    """The tolerance as a log, above 0."""
    if not 0.0 < tolerance < 1.0:
        raise ValueError(f"tolerance is {tolerance}: it lies between 0 and 1, as 0.04 for 4 %")
    return -math.log1p(-tolerance)


def _check_depths(depths: Iterable[int]) -> list[int]:
    """The depths, lowest first, or ValueError when no curve can be made of them."""
    known = list(depths)
    for depth in known:
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise ValueError(f"depth {depth!r}: a depth is a whole number from 1")
    known.sort()
    for one, other in pairwise(known):
        if one == other:
            raise ValueError(f"depth {one} is there twice: each depth once")
    if len(known) < 3:
        raise ValueError(_too_few(len(known)))
    return known


def _check_rates(rates: Mapping[int, Sequence[float]]) -> None:
    """ValueError unless every depth has one usable rate for each of at least one pass."""
    first, *_ = rates
    passes = len(rates[first])
    if passes < 1:
        raise ValueError("a sweep needs at least one pass, and there is none")
    for depth, measured in rates.items():
        if len(measured) != passes:
            raise ValueError(
                f"depth {first} has {passes} rate(s) and depth {depth} has {len(measured)}: "
                "a pass measures each depth once; measure what is missing"
            )
        for number, rate in enumerate(measured):
            if not usable(rate):
                raise ValueError(
                    f"depth {depth}, pass {number}: the rate is {rate}; "
                    "a rate that can be compared is finite and above 0"
                )


def _too_few(count: int) -> str:
    return f"{count} depth(s): a dip lies between two others, so at least three are needed"


def _mean_log(rates: Sequence[float]) -> float:
    return _mean([math.log(rate) for rate in rates])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
