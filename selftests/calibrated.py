"""Calibration for tests: drives whose slices have a time, simulated sessions, a kept file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from bench.noise import NoiseModel, rates
from leadline.calibration.store import Calibration, Conditions, KeptSession
from leadline.load.slices import Slice, SliceSetting
from leadline.load.workload import Workload
from leadline.verdict.calibration import RigNoise, Session
from selftests.slice_drive import SliceDrive

SETTLE_S = 5.0
CONDITIONS = Conditions(firmware="1.0", kernel="6.1.0", fio="3.33")
MEASURED = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def simulated(
    model: NoiseModel, seed: int, *, seconds: float = 60.0, slice_s: float = 0.5
) -> Session:
    """A session of a simulated rig, settled; depth 8 is exactly seven times depth 1."""
    block_s = 4 * slice_s
    first = math.ceil(SETTLE_S / block_s)
    count = first + round(seconds / block_s)
    orders = [(0, 1, 2, 3) if k % 2 == 0 else (3, 2, 1, 0) for k in range(count)]
    truth = np.array([(7000.0, 7000.0, 1000.0, 1000.0)[side] for order in orders for side in order])
    ran = rates(np.random.default_rng(seed), truth, np.full(truth.size, slice_s), model)
    blocks = []
    for order, measured in zip(orders, ran.reshape(-1, 4).tolist(), strict=True):
        deep, deep_again, shallow, shallow_again = (measured[order.index(n)] for n in range(4))
        blocks.append((deep, deep_again, shallow, shallow_again))
    return Session(blocks[first:], [k * block_s for k in range(first, count)], block_s)


@dataclass
class TimedDrive(SliceDrive):
    """A drive whose slices follow each other on the rig's clock."""

    clock: float = 1000.0

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        timed = []
        for each in super().measure(workload, settings):
            timed.append(replace(each, began=self.clock))
            self.clock += each.setting.seconds + 0.01
        return timed


def kept_session(**changes: Any) -> KeptSession:
    """A session as it is kept, of made-up rates."""
    bare = KeptSession(
        run="run-0",
        date=MEASURED,
        conditions=CONDITIONS,
        block_seconds=2.0,
        starts=(0.0, 2.0),
        blocks=((700.0, 701.0, 100.0, 100.5), (699.0, 702.0, 100.1, 99.5)),
    )
    return replace(bare, **changes)


def calibration(**changes: Any) -> Calibration:
    """A calibration of the drive in slot a of `visit_world`'s bench."""
    noise = RigNoise(0.0123, 0.1, 0.0234, None, 60, 60.0)
    bare = Calibration("bench", "a", "MODEL", "SERIAL-a", noise, (kept_session(),))
    return replace(bare, **changes)
