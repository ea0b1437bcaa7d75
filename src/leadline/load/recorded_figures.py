"""The figures of a recorded run: rate, latencies, and how much the rate varied within it.

fio 2 gives latencies in microseconds ("lat"), fio 3 in nanoseconds ("lat_ns"); run times
are in milliseconds in both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from leadline.drive.text import plain
from leadline.load.recorded_document import Unusable

_DIRECTIONS = ("read", "write", "trim", "mixed")
_SAMPLE_MS = 500.0
"""How often fio samples its rates when nobody says (bwavgtime, iopsavgtime)."""
_LARGEST = 1e18
_LEAST = 1e-6


@dataclass(frozen=True)
class Latency:
    """Submission to completion, in seconds: mean, longest, and the clock's resolution.

    `median` is of completion alone, None where fio kept no percentiles.
    """

    mean: float
    median: float | None
    longest: float
    resolution: float


@dataclass(frozen=True)
class Samples:
    """The rates that fio sampled within the run: how many, their standard deviation over
    their mean, and their mean over the run's own rate.

    fio takes no sample of a time in which nothing completed, so that `moving` is above 1
    in a run that stood still for a while.
    """

    count: int
    spread: float
    moving: float


@dataclass(frozen=True)
class Figures:
    """What came of a run: requests in all, requests a second, seconds; `latency` and
    `samples` are None where fio kept none.  `cpu` is the share of a CPU that a thread
    of fio used."""

    requests: int
    rate: float
    seconds: float
    latency: Latency | None
    samples: Samples | None
    cpu: float


def read_figures(
    entries: Sequence[Mapping[str, Any]], *, jobs: int, sample_ms: float | None = None
) -> Figures:
    """The figures of a file's `entries`, which ran together and stand for `jobs` jobs.

    `sample_ms` is what the options say of how often rates are sampled.  Raises Unusable
    when there were no requests, or a figure is none.
    """
    sections = [section for entry in entries for section in _busy_sections(entry)]
    if not sections:
        raise Unusable("it has zero requests, and fio reports no error")
    counts = [int(number(section, "total_ios")) for section in sections]
    seconds = [number(section, "runtime") / 1e3 for section in sections]
    # fio mixes the samples of several jobs in ways that differ from version to version.
    alone = jobs == 1 and len(sections) == 1
    return Figures(
        requests=sum(counts),
        rate=fsum(count / ran for count, ran in zip(counts, seconds, strict=True)),
        seconds=max(seconds),
        latency=_latency(sections, counts),
        samples=_samples(sections[0], sample_ms or _SAMPLE_MS) if alone else None,
        cpu=max(number(entry, "usr_cpu") + number(entry, "sys_cpu") for entry in entries) / 100.0,
    )


def longest_run_ms(entries: Sequence[Mapping[str, Any]]) -> float:
    """How long the longest of the jobs has run, in milliseconds; 0 when none has."""
    sections = [table(entry, name) for entry in entries for name in _DIRECTIONS]
    return max((number(section, "runtime") for section in sections), default=0.0)


def table(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object at `name`; empty when there is none."""
    value = parent.get(name)
    return value if isinstance(value, dict) else {}


def number(parent: Mapping[str, Any], name: str, *, least: float = 0.0) -> float:
    """The number at `name`, at least `least`; 0 when there is none.

    Raises Unusable when it is no such number.
    """
    value = parent.get(name, 0)
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or not least <= value < _LARGEST:
        raise Unusable(
            f"its {name} is {plain(str(value))[:40]!r}, expected a number from {least:g}"
        )
    return float(value)


def _busy_sections(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The directions in which a job had requests."""
    busy = []
    for name in _DIRECTIONS:
        section = table(entry, name)
        if number(section, "total_ios") > 0:
            if number(section, "runtime") < 1:
                raise Unusable(f"its {name} section has requests and no runtime")
            busy.append(section)
    return busy


def _latency(sections: Sequence[Mapping[str, Any]], counts: Sequence[int]) -> Latency | None:
    """Latencies over all directions, weighted by requests."""
    known = [one for one in map(_section_latency, sections) if one is not None]
    if len(known) < len(sections):
        return None
    return Latency(
        mean=fsum(n * one.mean for n, one in zip(counts, known, strict=True)) / sum(counts),
        median=known[0].median if len(known) == 1 else None,
        longest=max(one.longest for one in known),
        resolution=max(one.resolution for one in known),
    )


def _section_latency(section: Mapping[str, Any]) -> Latency | None:
    for suffix, unit in (("_ns", 1e-9), ("", 1e-6)):
        whole, done, sent = (table(section, name + suffix) for name in ("lat", "clat", "slat"))
        mean = number(whole, "mean") or number(done, "mean") + number(sent, "mean")
        if mean > 0:
            longest = max(number(whole, "max"), number(done, "max"))
            median = number(table(done, "percentile"), "50.000000")
            return Latency(mean * unit, median * unit or None, longest * unit, unit)
    return None


def _samples(section: Mapping[str, Any], sample_ms: float) -> Samples | None:
    for mean_name, spread_name, count_name, rate_name in (
        ("iops_mean", "iops_stddev", "iops_samples", "iops"),
        ("bw_mean", "bw_dev", "bw_samples", "bw"),
    ):
        mean, rate = number(section, mean_name), number(section, rate_name)
        if mean > _LEAST and rate > _LEAST:
            count = number(section, count_name)
            if count_name not in section:  # fio 2 does not say how many
                count = number(section, "runtime") / max(sample_ms, _SAMPLE_MS)
            return Samples(int(count), number(section, spread_name) / mean, mean / rate)
    return None
