"""What makes a virtual drive take longer for one request than for another.

Each of these looks at a request as it arrives and says how many times as long it takes.  One is
made for each field of the profile that is set, so that a drive pays for no other.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from leadline.virtual.behaviour import GarbageCollection, WarmUp
from leadline.virtual.faults import DepthFault, LongTail, SlowStart
from leadline.virtual.profile import SECTOR_BYTES, Profile
from leadline.virtual.scheduling import Op

_REMEMBERED_STREAMS = 64


class Arrival(NamedTuple):
    """A request as it comes in.  `depth` is the most in flight over the last moments."""

    op: Op
    lba: int
    sectors: int
    now_ns: int
    depth: int
    chance: float
    """0 to 1; the same for a request whatever else is wrong."""

    @property
    def queued(self) -> bool:
        """Whether the host keeps more than one request in flight."""
        return self.depth > 1


Slowing = Callable[[Arrival], float]
Noise = Callable[[float], float]


def slowings(profile: Profile, *, cycle: int, power_on_ns: int) -> tuple[Slowing, ...]:
    """All that this profile asks for."""
    return tuple(_slowings(profile, cycle, power_on_ns))


def _slowings(profile: Profile, cycle: int, power_on_ns: int) -> Iterator[Slowing]:
    faults = profile.faults
    if faults.long_tail is not None:
        yield _long_tail(faults.long_tail)
    for slow_depth in faults.slow_depths:
        yield _slow_depth(slow_depth)
    if faults.slow_after_power_on is not None:
        yield _slow_start(faults.slow_after_power_on, power_on_ns)
    if faults.interfering_streams is not None:
        yield _interfering_streams(faults.interfering_streams.factor)
    if profile.warm_up is not None:
        yield _warm_up(profile.warm_up, power_on_ns)
    if profile.garbage_collection is not None:
        chance = random.Random(f"{profile.seed}:{cycle}:garbage collection")
        yield _garbage_collection(profile.garbage_collection, chance)


def _long_tail(fault: LongTail) -> Slowing:
    return lambda arrival: fault.times if arrival.chance * fault.one_in < 1.0 else 1.0


def _slow_depth(fault: DepthFault) -> Slowing:
    return lambda arrival: fault.factor if fault.covers(arrival.depth) else 1.0


def _slow_start(fault: SlowStart, power_on_ns: int) -> Slowing:
    end_ns = power_on_ns + round(fault.seconds * 1e9)
    return lambda arrival: fault.factor if arrival.now_ns < end_ns else 1.0


def _warm_up(warm_up: WarmUp, power_on_ns: int) -> Slowing:
    def slow(arrival: Arrival) -> float:
        share = (arrival.now_ns - power_on_ns) / (warm_up.seconds * 1e9)
        return 1.0 + (warm_up.factor - 1.0) * min(1.0, max(0.0, share))

    return slow


def _interfering_streams(factor: float) -> Slowing:
    """A read that goes on where one of the last reads ended, while the host queues."""
    ends: dict[int, None] = {}  # the oldest first

    def slow(arrival: Arrival) -> float:
        if arrival.op != "read":
            return 1.0
        goes_on = arrival.lba in ends
        if goes_on:
            del ends[arrival.lba]
        elif len(ends) >= _REMEMBERED_STREAMS:
            del ends[next(iter(ends))]
        ends[arrival.lba + arrival.sectors] = None
        return factor if goes_on and arrival.queued else 1.0

    return slow


def _garbage_collection(collection: GarbageCollection, chance: random.Random) -> Slowing:
    """How much is written from one collection to the next varies by half."""

    def some() -> float:
        return collection.every_mib * 2**20 * chance.uniform(0.5, 1.5)

    left_bytes, until_ns = some(), 0

    def slow(arrival: Arrival) -> float:
        nonlocal left_bytes, until_ns
        if arrival.op == "write":
            left_bytes -= arrival.sectors * SECTOR_BYTES
        if left_bytes <= 0:
            left_bytes, until_ns = some(), arrival.now_ns + round(collection.seconds * 1e9)
        if arrival.now_ns >= until_ns:
            return 1.0
        return collection.write_factor if arrival.op == "write" else collection.read_factor

    return slow


def noise(distribution: str, deviation: float) -> Noise:
    """From a standard normal number to a factor of mean 1 with this distribution.

    `deviation` is a share of the mean; the exponential distribution has its own, which is 1.
    """
    if distribution == "exponential":
        return lambda normal: -math.log(math.erfc(normal / math.sqrt(2)) / 2)
    if distribution == "lognormal":
        sigma = math.sqrt(math.log1p(deviation**2))
        return lambda normal: math.exp(sigma * normal - sigma**2 / 2)
    # Cut on both sides alike, or the mean would rise.
    return lambda normal: min(1.9, max(0.1, 1.0 + deviation * normal))
