"""Evidence: blocks of slices, those that count and those that do not.

A block is what gives one value: a pair for a ratio, a triple for a point of a curve, a
single slice for a figure.  Whatever the order in which its slices ran, they are kept in
the order in which the claim names them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from leadline.drive.finding import NEIGHBOUR, OTHER_COMMANDS, OTHER_IO, SCATTERS, STEAL_TIME
from leadline.load.slices import (
    DRIVE_DEPTH,
    LATE_START,
    LEAST_OF_WINDOW,
    LITTLES_LAW,
    OVERLAP,
    ROUNDS,
    TOO_SHORT,
    VOID_MEANINGS,
    WARM_UP_S,
    Slice,
    offered_for,
)

FEWEST_BLOCKS = 4
"""Blocks in a batch: the first look needs so many."""
LONGEST_SLICE_S = 10.0
ROUGH = 2.0
"""A slice that was too short to count tells how long it had to be within about this factor."""
UNCLEAN_SHARE = 0.25
"""Unclean blocks are measured again; when more than this share of them is, nothing counts."""
PASSING = frozenset(
    {TOO_SHORT, LATE_START, LITTLES_LAW, DRIVE_DEPTH, OVERLAP}
    | {NEIGHBOUR, OTHER_IO, OTHER_COMMANDS, STEAL_TIME}
)
"""What may be over soon: the machine was busy, or somebody else used the drive or its path."""
FEW_UNCLEAN = 4
"""So many blocks, which is a whole first batch, may have met what is PASSING: more is measured,
until the share tells."""
STALLED = 0.75
"""A slice with less than this of the usual rate is no slower fellow of the others."""
ONLY_LOWERS = "counted, for it can only have lowered the rate that is claimed to be high"
ONLY_SCATTERS = "counted, for it makes all rates scatter, for which the interval is the wider"
WAITED, MOST_DEPTHS_TOLD = "waited in the host:", 3

Block = tuple[Slice, ...]


@dataclass
class Evidence:
    """What was measured for one claim so far.

    `seconds` is how long its slices are to begin with, `longer` how long those of a side are that
    were too short, by its place in a block: what is offered to one side may wait seconds for the
    drive, where the other's queue has turned over long since.  Slices of a side count that have no
    other voids than those `tolerated` of it, by its place, and those that SCATTERS has.
    """

    seconds: float
    tolerated: Mapping[int, frozenset[str]] = field(default_factory=dict)
    longer: dict[int, float] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    unclean: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    spent_s: float = 0.0

    def length(self, side: int) -> float:
        """Seconds of a slice of this side as they are now."""
        return self.longer.get(side, self.seconds)

    @property
    def longest(self) -> float:
        """Seconds of a slice of the side whose slices are longest."""
        return max(self.longer.values(), default=self.seconds)

    def block_s(self, sides: int) -> float:
        """Seconds of a block of so many sides."""
        return sum(map(self.length, range(sides)))

    def take(self, blocks: Sequence[Block]) -> None:
        """Sort new blocks into evidence and waste; lengthen the slices if they were too short."""
        self.spent_s += sum(each.drive_s for block in blocks for each in block)
        # What one block has tried is of the same first batch as those that come after it.
        first = self.blocks if len(self.blocks) < len(blocks) else []
        needed = [_needed_of(side) for side in zip(*first, *blocks, strict=True)]
        wanted = {place: lengthened(self.length(place), each) for place, each in enumerate(needed)}
        longer = {place: each for place, each in wanted.items() if each > self.length(place)}
        # Where no slice would do for one side, none is made longer for the other.
        if longer and within_reach(max(needed)):
            # A longer slice has another noise: what was measured before cannot be mixed in.
            self.longer |= longer
            self.blocks.clear()
            self.unclean.clear()
            self.dropped = 0
            return
        for block in blocks:
            if all(
                (SCATTERS | self.tolerated.get(place, frozenset())).issuperset(measured.voids)
                for place, measured in enumerate(block)
            ):
                self.blocks.append(block)
            else:
                self._drop(block)

    def _drop(self, block: Block) -> None:
        self.dropped += 1
        self.unclean.update(name for measured in block for name in measured.voids)

    def unscattered(self) -> "Evidence":
        """The same without blocks that have a void of SCATTERS.

        They are none that were dropped: however many there are, who was robbed of processors and
        who was not is no matter of the drive, and those that were not are no selection.
        """
        blocks = [block for block in self.blocks if not any(map(_scatters, block))]
        return replace(self, blocks=blocks)

    def counted(self) -> "Evidence":
        """What is looked at: not what scatters, where there is enough beside it."""
        left = self.unscattered()
        return left if len(left.blocks) >= FEWEST_BLOCKS else self

    def strictly(self) -> "Evidence":
        """The same with nothing tolerated."""
        left = self.unscattered().blocks
        strict = replace(self, tolerated={}, blocks=[], unclean=Counter(self.unclean))
        for block in left:
            if all(measured.clean for measured in block):
                strict.blocks.append(block)
            else:
                strict._drop(block)
        return strict

    def rates(self) -> list[tuple[float, ...]]:
        """The rates of each block that counts, in requests a second."""
        return [tuple(measured.rate for measured in block) for block in self.blocks]

    def held(self) -> str:
        """What the drive held at each depth, in words; "" where nobody counted."""
        counts: dict[int, list[float]] = {}
        for measured in (each for block in self.blocks for each in block):
            if measured.drive_depth is not None and measured.setting.device_depth is not None:
                counts.setdefault(measured.setting.device_depth, []).append(measured.drive_depth)
        said = [f"{fmean(seen):.3g} at depth {depth}" for depth, seen in sorted(counts.items())]
        return f"the drive held {', '.join(said)} on average" if said else ""

    def waited(self) -> str:
        """How much of what was offered waited in the host: see `waited_in_host`."""
        return waited_in_host([each for block in self.blocks for each in block])

    def voids(self) -> tuple[str, ...]:
        """Why the evidence does not count, most frequent first; empty when it does."""
        measured = len(self.blocks) + self.dropped
        return () if self.dropped <= UNCLEAN_SHARE * measured else _said(self.unclean)

    def may_yet_count(self) -> bool:
        """Whether what is unclean is so little, and may be over, that more can make it good."""
        return self.dropped <= FEW_UNCLEAN and PASSING.issuperset(self.unclean)

    def limits(self) -> tuple[str, ...]:
        """What was tolerated of the slices that count, and why, in the words of `voids`."""
        names = Counter(name for block in self.blocks for each in block for name in each.voids)
        lowers = Counter({name: times for name, times in names.items() if name not in SCATTERS})
        return (
            *(f"{ONLY_LOWERS}: {limit}" for limit in _said(lowers)),
            *(f"{ONLY_SCATTERS}: {limit}" for limit in _said(names - lowers)),
        )


def _scatters(measured: Slice) -> bool:
    return not SCATTERS.isdisjoint(measured.voids)


def waited_in_host(slices: Sequence[Slice]) -> str:
    """How much of what was offered the drive did not hold, in words; "" where nobody counted, or
    where no more was offered than it takes to keep the drive's queue full.

    Of slices on one drive by itself.  Of more than three depths the lowest and the deepest.
    """
    counts: dict[tuple[int, int], list[float]] = {}
    for each in slices:
        depth, offered = each.setting.device_depth, each.setting.offered_depth
        if depth is None or each.drive_depth is None or offered <= offered_for(depth):
            continue
        counts.setdefault((depth, offered), []).append(offered - each.drive_depth)
    if not counts:
        return ""
    said = [
        f"{fmean(waiting):.3g} of {offered} at depth {depth}"
        for (depth, offered), waiting in sorted(counts.items())
    ]
    if len(said) > MOST_DEPTHS_TOLD:
        return f"{WAITED} {said[0]}, and {said[-1]}, on average"
    return f"{WAITED} {', '.join(said)} on average"


def _said(names: Counter[str]) -> tuple[str, ...]:
    return tuple(
        f"{name}: {VOID_MEANINGS.get(name, name)} ({times} slices)"
        for name, times in names.most_common()
    )


def _needed_of(side: Sequence[Slice]) -> float:
    """How long slices like these must be to count; 0 where all of them were long enough."""
    return max(_needed_to_begin(side), _needed_by_drive(side))


def _needed_to_begin(side: Sequence[Slice]) -> float:
    """How long they must be for as much to be counted as was meant, 0 where few began late."""
    late = [each for each in side if LATE_START in each.voids]
    if len(late) <= UNCLEAN_SHARE * len(side):
        return 0.0
    # The latest: how late threads are scatters by half, and evidence that has to be made longer
    # once more begins anew.
    return max(seconds_begun(each) for each in late)


def _needed_by_drive(side: Sequence[Slice]) -> float:
    """How long they must be for the drive to serve enough, 0 where it did.

    A few that were too short where the usual one is long enough have met a stall: that is no
    reason to begin again.  Where the usual one only just is, those that are nearly as fast are its
    slower fellows, and without them the mean would be too high.
    """
    short = [each.rate for each in side if TOO_SHORT in each.voids and each.rate > 0]
    if not short:
        return 0.0
    few = len(short) <= UNCLEAN_SHARE * len(side)
    usual = median(each.rate for each in side) if few else median(short)
    if few and max(short) < STALLED * usual:
        return 0.0
    return needed_seconds(side[0].setting.offered_depth, usual)


def needed_seconds(offered_depth: int, rate: float) -> float:
    """How long a slice must be for its queue to turn over often enough, with some to spare."""
    return 1.2 * ROUNDS * offered_depth / rate


def seconds_begun(late: Slice) -> float:
    """How long a slice must be that begins as late as this one, with some to spare.

    Where none of its window was left that is a guess, for who knows how late it was: twice as long.
    """
    return WARM_UP_S + 1.2 * late.late_s / (1.0 - LEAST_OF_WINDOW)


def within_reach(needed: float) -> bool:
    """Whether a slice of ours may do where it had to be `needed` seconds long."""
    return needed <= ROUGH * LONGEST_SLICE_S


def lengthened(seconds: float, needed: float) -> float:
    """How long slices of `seconds` are to be from now on, where they had to be `needed`.

    As long as they were, where no slice of ours would do.
    """
    if not within_reach(needed):
        return seconds
    return max(seconds, min(needed, LONGEST_SLICE_S))
