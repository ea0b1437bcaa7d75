"""Claims on simulated drives: the product's own loop, fed with rates of a known truth.

Nothing of how a verdict is reached is repeated here: `leadline.judge.SliceJudge` orders
the slices, looks, goes on and stops; only the drive is not real.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.noise import DISK, NOISY, QUIET, NoiseModel, rates
from leadline.judge import LONGEST_BATCH_S, SliceJudge
from leadline.load.slices import WARM_UP_S, Slice, SliceSetting, void_names
from leadline.load.workload import Workload, random_read
from leadline.plans import Noise
from leadline.quantities import Load
from leadline.selection import CURVE_BUDGETS
from leadline.verdict.contrast import BUDGET_S
from leadline.verdict.verdict import Verdict
from leadline.visiting import SLICE_S

DEEP, SHALLOW = 8, 1
TWO_RUNS_S = 130.0
"""The practice in the field: one run of 65 s at each depth, compared as two numbers."""


@dataclass(frozen=True)
class Rig:
    """A simulated rig with one drive, and what is claimed of it.

    `slice_s` is the length of a slice, `rate` the drive's true rate at depth 1 (requests a
    second), `threshold` what depth 8 over depth 1 is claimed to reach.
    """

    name: str
    noise: NoiseModel
    slice_s: float
    rate: float
    threshold: float

    def truth(self, off: float) -> float:
        """The true ratio that lies a share of `off` above (below 0: under) the threshold."""
        return self.threshold * (1.0 + off)


RIGS = (
    Rig("quiet", QUIET, SLICE_S["ssd"], rate=8000.0, threshold=3.0),
    Rig("noisy", NOISY, SLICE_S["ssd"], rate=8000.0, threshold=3.0),
    Rig("disk", DISK, SLICE_S["hdd"], rate=120.0, threshold=1.5),
)


def settle(
    rng: np.random.Generator, rig: Rig, off: float, *, sigma_d: float, budget_s: float = BUDGET_S
) -> Verdict:
    """The verdict on "depth 8 is at least `rig.threshold` times depth 1".

    The true ratio is `rig.truth(off)`; `sigma_d` is what the judge is told of the rig's
    drift.
    """
    judge = SliceJudge(
        cell=rig.name,
        measure=_Drive(rng, rig, rig.truth(off), budget_s).measure,
        keep_slice=lambda side, measured: None,
        keep_verdict=lambda claim, verdict, explanation: None,
        slice_s=rig.slice_s,
        budget_s=budget_s,
        curve_budget_s=CURVE_BUDGETS * budget_s,
        repeat="./run bench ratios",
        noise=Noise(sigma_d=sigma_d, note=""),
    )
    reads = Load(random_read(), judge, full_depth=32)
    claim = reads.at(depth=DEEP) >= rig.threshold * reads.at(depth=SHALLOW)
    return judge.settle(claim).verdict


def two_runs_hold(rng: np.random.Generator, rig: Rig, off: float) -> bool:
    """What two long runs, compared as two numbers, say of the same claim."""
    truth = rig.rate * np.array([rig.truth(off), 1.0])
    deep, shallow = rates(rng, truth, np.full(2, TWO_RUNS_S / 2), rig.noise)
    return bool(deep >= rig.threshold * shallow)


class _Drive:
    """Hands out slices of one run.

    The noise of all that a budget can pay for is drawn at the first call, for it runs on
    from one batch to the next.  Batches differ in length alone: the order within them goes
    on as it began, which is checked.
    """

    def __init__(self, rng: np.random.Generator, rig: Rig, ratio: float, budget_s: float) -> None:
        self._rng, self._rig, self._ratio, self._budget_s = rng, rig, ratio, budget_s
        self._settings: list[SliceSetting] = []
        self._rates: list[float] = []
        self._done = 0

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        """The next slices; they are void where the product would call them so."""
        if not self._settings:
            self._draw(settings)
        until = self._done + len(settings)
        if list(settings) != self._settings[self._done : until]:
            raise ValueError(
                f"the judge changed its slices from {self._settings[0]} to {settings[0]} on the "
                "way; a simulated rig needs slices that are long enough from the start"
            )
        rates_now, self._done = self._rates[self._done : until], until
        return [_slice(setting, rate) for setting, rate in zip(settings, rates_now, strict=True)]

    def _draw(self, first: Sequence[SliceSetting]) -> None:
        """As many as the budget pays for, and the batch that may run over it."""
        seconds = sum(setting.seconds for setting in first)
        batches = math.ceil((self._budget_s + LONGEST_BATCH_S) / seconds)
        self._settings = list(first) * batches
        ratios = {DEEP: self._ratio, SHALLOW: 1.0}
        truth = [self._rig.rate * ratios[each.device_depth or 0] for each in self._settings]
        lengths = np.array([each.seconds for each in self._settings])
        self._rates = rates(self._rng, np.array(truth), lengths, self._rig.noise).tolist()


def _slice(setting: SliceSetting, rate: float) -> Slice:
    """A slice in which everything but its rate is as it should be."""
    window_s = setting.seconds - WARM_UP_S
    completions = round(rate * window_s)
    measured = Slice(
        setting=setting,
        job="simulated",
        seed=0,
        rate=rate,
        completions=completions,
        window_s=window_s,
        mean_latency_s=setting.offered_depth / rate if rate else math.inf,
        p99_latency_s=math.nan,
        little_ratio=1.0,
        in_flight_by_law=float(setting.offered_depth),
        started=0.0,
        began=0.0,
        drain_s=0.0,
        gap_s=None,
        device_depth=setting.device_depth,
        cpu=0.0,
        fio_version="none",
    )
    voids = void_names(measured, logged=completions, counted=completions)
    return replace(measured, voids=voids) if voids else measured
