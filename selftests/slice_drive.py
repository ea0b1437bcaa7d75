"""A drive of known rates for tests of claims: it gives slices, and no load is made."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from leadline.drive.arrivals import Arrived
from leadline.load.slices import ROUNDS, TOO_SHORT, Slice, SliceSetting
from leadline.load.workload import Workload

HALVES = Arrived("tracepoint", ((2048, 190), (1024, 10)), ((2048, 100),))
"""What a drive is sent that takes 2 KiB at once, and is asked for 4."""


@dataclass
class SliceDrive:
    """Gives each slice the rate of its depth, with noise; `spoil` names what voids a slice.

    `spoilt_depth` is the only depth that it voids, when given; `stalled` are the places of
    slices in which hardly anything completes; after `slows_after` slices all rates are a
    hundredth.  `counted`: the kernel counts what it holds.  `arrived` is what it was sent
    in a slice that is watched.
    """

    rates: dict[int, float]
    noise: float = 0.01
    spoil: str = ""
    spoilt_share: float = 1.0
    spoilt_depth: int | None = None
    stalled: frozenset[int] = frozenset()
    slows_after: int | None = None
    drain_s: float = 0.0
    error: str = ""
    counted: bool = False
    arrived: Arrived = HALVES
    settings: list[SliceSetting] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        assert workload.name in ("random_read", "random_write", "sequential_read")
        slices = [self._slice(len(self.settings) + n, each) for n, each in enumerate(settings)]
        self.settings += settings
        self.batches.append(len(settings))
        return slices

    def _slice(self, place: int, setting: SliceSetting) -> Slice:
        depth = setting.device_depth or max(self.rates)
        rate = self.rates[depth] * self.chance.lognormvariate(0, self.noise)
        rate *= 0.01 if self.slows_after is not None and place >= self.slows_after else 1.0
        rate *= 0.01 if place in self.stalled else 1.0
        spoilt = self.spoil and self.chance.random() < self.spoilt_share
        spoilt = spoilt and self.spoilt_depth in (None, depth)
        short = rate * setting.seconds < ROUNDS * setting.offered_depth
        voids = ((self.spoil,) if spoilt else ()) + ((TOO_SHORT,) if short else ())
        return Slice(
            setting=setting,
            job="s",
            seed=1,
            rate=rate,
            completions=int(rate),
            window_s=setting.seconds - 0.1,
            mean_latency_s=setting.offered_depth / rate,
            p99_latency_s=0.01,
            little_ratio=1.0,
            in_flight_by_law=setting.offered_depth,
            started=0.0,
            began=0.0,
            drain_s=self.drain_s,
            gap_s=None,
            device_depth=setting.device_depth,
            cpu=0.1,
            fio_version="fio-3.33",
            error=self.error,
            voids=voids,
            drive_depth=float(min(depth, setting.offered_depth)) if self.counted else None,
            arrived=self.arrived if setting.watched else None,
        )
