"""Traces for Leadline's own tests: small ones, by hand."""

from datetime import UTC, datetime
from pathlib import Path

from leadline.trace.files import save_trace
from leadline.trace.header import Header
from leadline.trace.trace import READ, SYNC, TRIM, WRITE, Trace, trace_of

CAPACITY = 64 << 20


def few() -> Trace:
    """Six requests of all kinds."""
    return trace_of(
        [3, 3, 500, 1_000, 1_000, 2_000_000],
        [READ, WRITE, READ, SYNC, TRIM, READ],
        [0, 4096, 8192, 0, 1 << 20, CAPACITY - 512],
        [4096, 8192, 65536, 0, 1 << 20, 512],
    )


def header_for(trace: Trace, **other: object) -> Header:
    """A header that fits a trace, but for what `other` says."""
    facts: dict[str, object] = {
        "what": "a test",
        "where": "selftests",
        "when": datetime(2020, 1, 1, tzinfo=UTC),
        "made": "generated",
        "generator": "by hand",
        "capacity_bytes": CAPACITY,
        "in_flight": 4,
        "requests": max(1, len(trace)),
        "seconds": trace.seconds,
        "seed": 1,
    }
    return Header.model_validate(facts | other)


def kept(directory: Path, trace: Trace, name: str = "few", **other: object) -> Path:
    """A trace file with its header."""
    path = directory / f"{name}.iolog.gz"
    save_trace(path, trace, header_for(trace, **other))
    return path
