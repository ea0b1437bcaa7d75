"""Verdicts on virtual drives whose true ratio is known: how many are wrong, and their cost.

The truth is the drive's own: the rates at both depths in its log of requests, over all the
slices of all verdicts.  A profile only aims at it, for the transport between the guest and
the drive takes its time, too.
"""

import tempfile
from collections.abc import Sequence
from math import log, log1p
from pathlib import Path
from statistics import mean
from typing import Any

from scipy.stats import binomtest

from bench.virtual_drive import under_test
from bench.visited_drive import judged
from leadline.claims import Claim
from leadline.load.slices import SliceSetting, offered_for
from leadline.load.workload import random_read
from leadline.quantities import Load
from leadline.verdict.verdict import Outcome

THRESHOLD = 3.0
AIMS = (2.4, 2.85, 3.15, 3.6, 7.0)
RUNS = 20
READ_MS = 4.0
OVERHEAD_LIMIT = 1.15
"""Wall time of whole verdicts over their drive time; without the hunts after those that FAIL."""
FAR = 0.1
"""A truth that is so far from the threshold, as a share of it, is to be told from it."""
INCONCLUSIVE_LIMIT = 0.05
"""Share of the verdicts on such drives: who never decides is never wrong."""
EIGHT_CHANNELS = """\
channels: 8
read_ms: 8
write_ms: 3
overhead_ms: 0.2
"""
ONE_AT_A_TIME = """\
channels: 8
read_ms: {read_ms:.3f}
write_ms: 3
overhead_ms: {overhead_ms:.3f}
faults:
  serialise: true
"""


def measure(runs: int = RUNS, aims: Sequence[float] = AIMS) -> dict[str, object]:
    """Some verdicts on each drive; its truth is known when they are all in."""
    with tempfile.TemporaryDirectory() as folder:
        transport_ms = transport_ms_of(Path(folder))
        drives = [_figures(Path(folder), aim, transport_ms, runs) for aim in aims]
    wrong = sum(each["wrong"] for each in drives)
    interval = binomtest(wrong, runs * len(drives)).proportion_ci(0.95, method="exact")
    overhead = max(each["wall_over_drive"] for each in drives)
    far = [each for each in drives if abs(log(each["truth"] / THRESHOLD)) >= log1p(FAR)]
    undecided = sum(each["inconclusive"] for each in far) / max(1, runs * len(far))
    return {
        "threshold": THRESHOLD,
        "transport_ms": round(transport_ms, 3),
        "drives": drives,
        "wrong": wrong,
        "of": runs * len(drives),
        "wrong_share_interval": [round(interval.low, 4), round(interval.high, 4)],
        "inconclusive_share_far_off": round(undecided, 4),
        "inconclusive_limit": INCONCLUSIVE_LIMIT,
        "wall_over_drive_limit": OVERHEAD_LIMIT,
        "within_limits": wrong == 0
        and undecided <= INCONCLUSIVE_LIMIT
        and overhead <= OVERHEAD_LIMIT,
    }


def profile_for(aim: float, transport_ms: float) -> str:
    """A drive whose ratio of depth 8 to depth 1 is about `aim`.

    Below 7 it reads one request at a time, so that its best rate is one a READ_MS, and what
    surrounds a read (overhead, transport) overlaps other reads.
    """
    if aim >= 7.0:
        return EIGHT_CHANNELS
    overhead_ms = (aim - 1.0) * READ_MS - transport_ms
    return ONE_AT_A_TIME.format(read_ms=READ_MS, overhead_ms=overhead_ms)


def transport_ms_of(folder: Path) -> float:
    """What a request at depth 1 takes beside its time at the drive."""
    with under_test(folder, profile_for(3.0, transport_ms=1.0)) as drive:
        depth_1 = SliceSetting(device_depth=1, offered_depth=offered_for(1), seconds=5.0)
        (measured,) = drive.slices(random_read(), [depth_1])
    return 1e3 / measured.rate - (3.0 * READ_MS - 1.0)


def _claim(reads: Load) -> Claim:
    return reads.at(depth=8) >= THRESHOLD * reads.at(depth=1)


def _figures(folder: Path, aim: float, transport_ms: float, runs: int) -> dict[str, Any]:
    with judged(folder, profile_for(aim, transport_ms)) as drive:
        for _ in range(runs):
            drive.settle(_claim)
        truth = drive.drive.true_ratio(8, 1)
    right = Outcome.PASS if truth >= THRESHOLD else Outcome.FAIL
    settled = [each for each in drive.verdicts if each.outcome is not Outcome.INCONCLUSIVE]
    drive_s = [each.drive_seconds for each in drive.verdicts]
    return {
        "aim": aim,
        "truth": round(truth, 3),
        "wrong": sum(each.outcome is not right for each in settled),
        "inconclusive": runs - len(settled),
        "estimates": [round(each.estimate or 0.0, 3) for each in drive.verdicts],
        "mean_drive_s": round(mean(drive_s), 1),
        **drive.figures(),
    }
