"""One recorded run: its settings, depth and figures, from the JSON of any fio since 2.10."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.drive.text import plain
from leadline.load.recorded_document import FioOutput, Unusable
from leadline.load.recorded_figures import Figures, longest_run_ms, number, read_figures, table
from leadline.load.recorded_options import JobOptions, job_options
from leadline.load.slices import (
    LITTLE_TOLERANCE,
    LITTLES_LAW,
    ROUNDS,
    TOO_SHORT,
    VOID_MEANINGS,
)

PAGE_CACHE = "page-cache"
THROTTLED = "throttled"
RECORDED_VOIDS = {
    LITTLES_LAW: VOID_MEANINGS[LITTLES_LAW],
    TOO_SHORT: "too few requests completed for a rate: the run is too short for this drive",
    PAGE_CACHE: "direct=1 is not set: pages may have come from the host's memory",
    THROTTLED: "an option held the load back, so the rate is not the drive's",
}
"""Every reason for which a recorded run counts for nothing, in a reader's words."""
TURNAROUND_S = 15e-6
"""Longest time that fio's own work between two requests of one slot is taken to last; 2 to
11 us were recorded."""
FULL_SHARE = 90.0
"""Percent of requests that fio counted at the depth asked for, where it kept no latencies."""
_SIGNAL = re.compile(r"terminating on signal (\d+)")
_AGREED = (
    ("target", "devices"),
    ("rw", "kinds of load (rw)"),
    ("block_bytes", "block sizes (bs)"),
    ("read_percent", "shares of reads (rwmixread)"),
    ("engine", "engines"),
    ("depth", "depths (iodepth)"),
)


@dataclass(frozen=True)
class RecordedRun:
    """What one file says of one depth.

    `offered_depth` is what fio kept in flight over all its `jobs`; `little_ratio` rate x
    mean latency over it, None without latencies.  `voids` name why the run counts for
    nothing (RECORDED_VOIDS), `notes` say what a reader should know.
    """

    file: str
    asked: JobOptions
    jobs: int
    offered_depth: int
    figures: Figures
    little_ratio: float | None
    fio_version: str
    voids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def recorded_run(file: str, output: FioOutput) -> RecordedRun:
    """The run that a file's documents describe.  Raises Unusable when they describe none."""
    document = _final(output.documents)
    entries = _entries(document)
    if not entries:
        raise Unusable("it has no jobs: fio ran nothing")
    asked, jobs = _agreed([job_options(document, entry) for entry in entries])
    _check_errors(entries)
    try:
        figures = read_figures(entries, jobs=jobs, sample_ms=asked.sample_ms)
    except Unusable as error:
        raise Unusable(f"{error}{_saying(output.said)}") from None
    offered = jobs * (1 if asked.synchronous else asked.depth)
    latency = figures.latency
    checks = {
        LITTLES_LAW: not _queue_was_full(figures, offered, asked, entries),
        TOO_SHORT: figures.requests < ROUNDS * offered,
        PAGE_CACHE: asked.cached,
        THROTTLED: bool(asked.throttle),
    }
    return RecordedRun(
        file=file,
        asked=asked,
        jobs=jobs,
        offered_depth=offered,
        figures=figures,
        little_ratio=figures.rate * latency.mean / offered if latency else None,
        fio_version=plain(str(document.get("fio version", "")))[:40],
        voids=tuple(name for name, failed in checks.items() if failed),
        notes=_notes(asked, output, latency is None),
    )


def _entries(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in document["jobs"] if isinstance(entry, dict)]


def _final(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The last document, of which the others are earlier states (`--status-interval`)."""
    first, last = documents[0], documents[-1]
    if any(_options(each) != _options(last) for each in documents):
        raise Unusable(
            f"it holds {len(documents)} runs of different settings; one file is to hold one depth"
        )
    clock_s = number(last, "timestamp") - number(first, "timestamp")
    ran_s = (longest_run_ms(_entries(last)) - longest_run_ms(_entries(first))) / 1e3
    # Both grow together within one run; the clock's stamps are whole seconds.
    if not clock_s / 2 - 2 <= ran_s <= 2 * clock_s + 2:
        raise Unusable(
            f"it holds {len(documents)} runs, one after the other, and not the progress of one; "
            "keep one run a file"
        )
    return last


def _options(document: Mapping[str, Any]) -> list[Any]:
    own = [entry.get("job options") for entry in _entries(document)]
    return [document.get("global options"), *own]


def _agreed(each: Sequence[JobOptions]) -> tuple[JobOptions, int]:
    """The one setting of a file's jobs, and how many jobs ran together."""
    if any(options.in_turn for options in each[1:]):
        raise Unusable(
            f"its {len(each)} jobs ran one after the other; one file is to hold one depth"
        )
    for name, words in _AGREED:
        values = {getattr(options, name) for options in each}
        if len(values) > 1:
            shown = ", ".join(sorted(str(value) for value in values))[:120]
            raise Unusable(f"its jobs mix {words}: {shown}; record one setting a file")
    return each[0], sum(options.jobs for options in each)


def _check_errors(entries: Sequence[Mapping[str, Any]]) -> None:
    """Raise Unusable when fio reports an error, in whichever of its places."""
    for entry in entries:
        code = abs(int(number(entry, "error", least=-4095)) or int(number(entry, "first_error")))
        failed = int(number(entry, "total_err"))
        if code or failed:
            word = f" with error {code} ({os.strerror(min(code, 4095))})" if code else ""
            many = f", {failed} requests failed" if failed else ""
            raise Unusable(f"fio ended{word}{many}; look at the kernel log of that time")


def _queue_was_full(
    figures: Figures, offered: int, asked: JobOptions, entries: Sequence[Mapping[str, Any]]
) -> bool:
    """Whether the offered depth was kept: by Little's law, without latencies by fio's count.

    A slot's next request starts offered depth / rate after the one before.  What of that
    time is in no latency is fio's own work between the two.
    """
    latency = figures.latency
    if latency is None:
        level = 1 if asked.synchronous else 1 << (asked.depth.bit_length() - 1)
        name = str(level) if level < 64 else ">=64"
        return all(number(table(each, "iodepth_level"), name) >= FULL_SHARE for each in entries)
    cycle_s = offered / figures.rate
    tolerance = LITTLE_TOLERANCE + latency.resolution / latency.mean
    if abs(latency.mean / cycle_s - 1.0) <= tolerance:
        return True
    return 0.0 < cycle_s - latency.mean <= TURNAROUND_S


def _saying(said: str) -> str:
    first = next((line.strip() for line in said.splitlines() if line.strip()), "")
    return f"; fio said: {plain(first)[:100]}" if first else ""


def _notes(asked: JobOptions, output: FioOutput, without_latencies: bool) -> tuple[str, ...]:
    notes = []
    if asked.synchronous and asked.depth > 1:
        notes.append(
            f"{asked.engine} is synchronous: it ran at depth 1, whatever iodepth {asked.depth} says"
        )
    if signal := _SIGNAL.search(output.said):
        notes.append(f"the run was ended by signal {signal[1]}")
    if asked.throttle:
        notes.append(f"the load was held back by {asked.throttle}")
    if without_latencies:
        notes.append("fio kept no latencies: its own count alone says that the queue was full")
    return tuple(notes)
