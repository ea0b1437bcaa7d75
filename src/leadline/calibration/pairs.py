"""A/A pairs on a drive: the same settings against the same, block after block."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from leadline.errors import Inconclusive, RigTrouble
from leadline.evidence import Block, Evidence
from leadline.judge import Measure
from leadline.load.slices import Slice, SliceSetting, offered_for
from leadline.load.workload import Workload
from leadline.plans import alternating
from leadline.verdict.calibration import DEEP, FEWEST_BLOCKS, SHALLOW, Session

SETTLE_S = 5.0
"""The start is measured and not counted: a cold drive warms up, which is no drift."""
BATCH_S = 8.0
"""Drive time of one process of the load generator; between two of them nothing is measured."""
PATIENCE = 3.0
"""So many times the seconds asked for may be spent on slices that do not count."""
_SIDES = ("deep", "deep again", "shallow", "shallow again")


def measure_pairs(
    measure: Measure,
    workload: Workload,
    *,
    slice_s: float,
    seconds: float,
    deep: int = DEEP,
    keep_slice: Callable[[str, Slice], None],
) -> Session:
    """A/A pairs at `deep` and at depth 1, interleaved, for about `seconds` of drive time.

    The order of a block's four slices alternates from block to block.  `measure` runs slices
    on the drive, in order; `slice_s` is their length to begin with, which a slow drive makes
    longer; `keep_slice` is told of each with its side.  Fewer blocks than a calibration needs
    are never measured, whatever `seconds` says.  Raises Inconclusive when too many slices do
    not count, RigTrouble when the rig's clock is set back meanwhile.
    """
    evidence = Evidence(slice_s)
    depths = (deep, deep, SHALLOW, SHALLOW)
    settings = [SliceSetting(depth, offered_for(depth)) for depth in depths]
    number, settled = 0, 0.0
    while True:
        block_s = len(settings) * evidence.longest
        wanted = max(FEWEST_BLOCKS, seconds / block_s)
        counted = [block for block in evidence.blocks if _began(block) >= settled]
        if len(counted) >= wanted and not evidence.voids():
            return _session(counted, block_s)
        if evidence.spent_s > PATIENCE * max(seconds, FEWEST_BLOCKS * block_s):
            raise Inconclusive(_too_few(evidence, len(counted)))
        numbers = range(number, number + max(1, round(BATCH_S / block_s)))
        blocks = _batch(measure, workload, settings, evidence.longest, numbers)
        for block in blocks:
            for side, measured in zip(_SIDES, block, strict=True):
                keep_slice(side, measured)
        if number == 0:
            settled = _began(blocks[0]) + SETTLE_S
        number = numbers.stop
        evidence.take(blocks)


def _batch(
    measure: Measure,
    workload: Workload,
    settings: Sequence[SliceSetting],
    seconds: float,
    numbers: Sequence[int],
) -> list[Block]:
    """Blocks with their slices in the order of `settings`, whatever the order they ran in."""
    orders = [alternating(number, len(settings)) for number in numbers]
    wanted = [replace(settings[place], seconds=seconds) for order in orders for place in order]
    slices = iter(measure(workload, wanted))
    ran = [{place: next(slices) for place in order} for order in orders]
    return [tuple(block[place] for place in range(len(settings))) for block in ran]


def _began(block: Block) -> float:
    return min(measured.began for measured in block)


def _session(blocks: Sequence[Block], block_s: float) -> Session:
    rates = [
        (deep.rate, deep_again.rate, shallow.rate, shallow_again.rate)
        for deep, deep_again, shallow, shallow_again in blocks
    ]
    starts = [_began(block) for block in blocks]
    if any(later <= earlier for earlier, later in pairwise(starts)):
        raise RigTrouble("the rig's clock was set back while it was calibrated; calibrate again")
    return Session(rates, starts, block_s)


def _too_few(evidence: Evidence, counted: int) -> str:
    voids = "; ".join(evidence.voids()) or "the drive is too slow for the seconds allowed"
    return (
        f"no calibration: {counted} blocks count after {evidence.spent_s:.0f} s of drive time, "
        f"{FEWEST_BLOCKS} are needed at least: {voids}. Give it more with --seconds, or find "
        "what spoils the slices"
    )
