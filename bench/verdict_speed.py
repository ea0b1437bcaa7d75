"""How long a verdict takes by itself: a ratio claim over 10,000 slices, statistics alone."""

import random
import time
from statistics import median

from leadline.verdict.ratio import judge_ratio
from leadline.verdict.verdict import Outcome

SLICES = 10_000
NOISE = 0.02
ROUNDS = 21
LIMIT_S = 0.050


def measure() -> dict[str, object]:
    """Median and worst time of one verdict, seconds; the median is held against the limit.

    So is the verdict: one that settles nothing is soon reached.
    """
    chance = random.Random(1)
    tops, bottoms = (
        [rate * chance.lognormvariate(0.0, NOISE) for _ in range(SLICES // 2)]
        for rate in (700.0, 100.0)
    )
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        # On the failing side, where the p-value is computed, too.
        verdict = judge_ratio(tops, bottoms, 8.0, ">=", pair_seconds=1.0, spent_s=1.0)
        times.append(time.perf_counter() - begun)
    return {
        "slices": SLICES,
        "outcome": str(verdict.outcome) if verdict else "none",
        "median_s": round(median(times), 4),
        "worst_s": round(max(times), 4),
        "limit_s": LIMIT_S,
        "within_limits": median(times) <= LIMIT_S
        and verdict is not None
        and verdict.outcome is Outcome.FAIL,
    }
