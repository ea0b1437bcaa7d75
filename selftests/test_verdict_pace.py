"""How many blocks are planned for: held against the interval that will judge them."""

import dataclasses
import math

import pytest

from leadline.verdict.interval import Interval, interval_of
from leadline.verdict.pace import MOST, blocks_needed

EDGE = math.log(3.0)
LOGS = [math.log(each) for each in (3.20, 3.35, 3.05, 3.30, 3.15, 3.25)]


def planned(interval: Interval, edge: float = EDGE) -> int:
    return blocks_needed(interval, edge, value_seconds=1.0, sigma_d=0.005)


def seen(logs: list[float]) -> Interval:
    return interval_of(logs, value_seconds=1.0, sigma_d=0.005)


def test_so_many_blocks_settle_it_and_one_fewer_do_not() -> None:
    """With that mean and that error a block, the interval of so many just excludes the edge."""
    few = dataclasses.replace(seen(LOGS), correlation=0.0)
    count = planned(few)
    assert len(LOGS) < count < MOST

    def settled(blocks: int) -> bool:
        # As many values again, of the same mean and the same standard deviation.
        spread = few.spread * math.sqrt((blocks - 1) / blocks)
        logs = [few.mean + (spread if n % 2 else -spread) for n in range(blocks)]
        return abs(few.mean - EDGE) > seen(logs).half_width

    even = count + count % 2
    assert settled(even)
    assert not settled(even - 2)


def test_what_is_settled_already_needs_no_more() -> None:
    far = seen([each + math.log(3.0) for each in LOGS])
    assert planned(far) == len(LOGS)


@pytest.mark.parametrize("distance", [0.0, 1e-6])
def test_what_will_not_settle_is_not_planned_for_ever(distance: float) -> None:
    few = seen(LOGS)
    assert planned(few, few.mean - distance) == MOST


def test_nearer_and_noisier_need_more() -> None:
    few = seen(LOGS)
    assert planned(few, EDGE + 0.02) > planned(few) > planned(few, EDGE - 0.02)
    assert planned(dataclasses.replace(few, spread=2 * few.spread)) > planned(few)
