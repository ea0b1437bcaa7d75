"""The plain practice on the drives of `truth`: one long run a depth, compared as two numbers.

Two runs of 65 s cost 130 s of drive time, so a few pairs of them are recorded, and any run at
depth 8 is then compared with any at depth 1: what the practice might have said as well.
"""

import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from bench.truth import AIMS, THRESHOLD, profile_for, transport_ms_of
from bench.virtual_drive import UnderTest, under_test
from leadline.load.slices import SliceSetting, offered_for
from leadline.load.workload import random_read

RUN_S = 65.0
PAIRS = 5


def measure(
    pairs: int = PAIRS, aims: Sequence[float] = AIMS, run_s: float = RUN_S
) -> dict[str, object]:
    """Of all the comparisons that the recorded runs allow, the share on the wrong side."""
    with tempfile.TemporaryDirectory() as folder:
        transport_ms = transport_ms_of(Path(folder))
        drives = [_figures(Path(folder), aim, transport_ms, pairs, run_s) for aim in aims]
    return {
        "threshold": THRESHOLD,
        "drive_s_a_comparison": 2 * run_s,
        "drives": drives,
        "within_limits": True,  # it is what verdicts are held against, and has no limit itself
    }


def _figures(
    folder: Path, aim: float, transport_ms: float, pairs: int, run_s: float
) -> dict[str, Any]:
    with under_test(folder, profile_for(aim, transport_ms)) as drive:
        recorded = [(_run(drive, 8, run_s), _run(drive, 1, run_s)) for _ in range(pairs)]
        truth = drive.true_ratio(8, 1)
    deep, shallow = zip(*recorded, strict=True)
    ratios = [high / low for high, low in product(deep, shallow)]
    wrong = sum((each >= THRESHOLD) != (truth >= THRESHOLD) for each in ratios)
    return {
        "aim": aim,
        "truth": round(truth, 3),
        "ratios_of_pairs": [round(high / low, 3) for high, low in recorded],
        "wrong_share_resampled": round(wrong / len(ratios), 3),
    }


def _run(drive: UnderTest, depth: int, run_s: float) -> float:
    """Requests a second, over one long run."""
    (measured,) = drive.slices(random_read(), [SliceSetting(depth, offered_for(depth), run_s)])
    said = f"{measured.rate:.1f} requests a second in {run_s:g} s at depth {depth}"
    print(said, file=sys.stderr, flush=True)
    return measured.rate
