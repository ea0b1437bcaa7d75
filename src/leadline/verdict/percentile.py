"""Latency percentiles, from single requests or from fio's histogram; refused from too few.

All loads of Leadline are closed loops: a request is issued when another has completed, so
that a stall keeps away the requests that would have waited in it.  Such a percentile
compares drives at equal offered depth; it is not what an arriving user would see, and says
so.  Percentiles of averages, such as fio's `log_avg_msec` leaves, are not percentiles at all.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

BEYOND = 100
"""How many requests must lie beyond a percentile: their number is then known to 10 %."""
BIN_RESOLUTION = 1.0 / 64.0
"""Width of fio's bins relative to their value: 64 an octave (FIO_IO_U_PLAT_BITS)."""


@dataclass(frozen=True)
class Percentile:
    """The latency that a share of requests (0.999) did not exceed, in seconds.

    None when it is void: fewer than `needed` requests, which `voids` then says.
    `resolution` is the relative width of the bins it was read from, 0 for single requests.
    """

    share: float
    count: int
    needed: int
    latency_s: float | None
    resolution: float
    load: Literal["closed loop"] = "closed loop"
    voids: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = f"p{100.0 * self.share:.10g} ({self.load})"
        if self.latency_s is None:
            return f"{name}: void, {'; '.join(self.voids)}"
        return f"{name}: {1e3 * self.latency_s:.4g} ms of {self.count} requests"


def requests_needed(share: float) -> int:
    """How many requests the percentile at `share` takes: BEYOND/(1 - share).

    100,000 for p99.9.  Raises ValueError unless `share` lies between 0 and 1.
    """
    if not 0.0 < share < 1.0:
        raise ValueError(f"share is {share}: it lies between 0 and 1, as 0.999 for p99.9")
    return math.ceil(round(BEYOND / (1.0 - share), 6))


def percentile_of(latencies_s: Iterable[float], share: float) -> Percentile:
    """The percentile of single latencies (seconds): the least that `share` do not exceed.

    Void from too few requests, and from none.  Raises ValueError on a latency that is
    negative or not finite and on a share that is not one.
    """
    ordered = sorted(latencies_s)
    for latency in ordered:
        if not (math.isfinite(latency) and latency >= 0.0):
            raise ValueError(f"a latency is {latency} s: it is finite and at least 0")
    return _percentile([(latency, 1) for latency in ordered], share, resolution=0.0)


def percentile_of_bins(bins: Mapping[str, int], share: float) -> Percentile:
    """The percentile of a `bins` object as fio's json+ output has it: nanoseconds to counts.

    Bins of several slices may be added up, which percentiles may not.  `lat_ns` is what
    callers of the drive wait for; fio has its bins with `lat_percentiles=1` alone.  The
    middle of a bin stands for it.  Void and ValueError as in `percentile_of`.
    """
    counts = []
    for text, count in bins.items():
        if not (text.isdecimal() and isinstance(count, int) and count >= 0):
            raise ValueError(
                f"bin {text!r} holds {count!r}: fio's bins are whole nanoseconds with counts "
                "(--output-format=json+)"
            )
        counts.append((int(text) / 1e9, count))
    return _percentile(sorted(counts), share, resolution=BIN_RESOLUTION)


def _percentile(counts: list[tuple[float, int]], share: float, *, resolution: float) -> Percentile:
    """By nearest rank; `counts` are (latency, how many), the least first."""
    needed = requests_needed(share)
    total = sum(count for _, count in counts)
    if total < needed:
        void = f"too-few-requests: {total} of the {needed} that it takes"
        return Percentile(share, total, needed, None, resolution, voids=(void,))
    rank = math.ceil(round(share * total, 6))
    reached = accumulate(count for _, count in counts)
    latency = next(each for (each, _), sofar in zip(counts, reached, strict=True) if sofar >= rank)
    return Percentile(share, total, needed, latency, resolution)
