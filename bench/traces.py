"""A trace of ten million requests: generated, written, read and checked; seconds and memory."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from leadline.trace.files import load_trace, save_trace
from leadline.trace.header import Header
from leadline.trace.loads import Load, Task, generate
from leadline.trace.patterns import Drive, Files, Place, Random, Sequential
from leadline.trace.trace import Trace

REQUESTS = 10_000_000
CAPACITY_BYTES = 4 * 10**12
COPIED_BYTES = 280 * 10**9
LIMIT_S = 60.0
LIMIT_BYTES = 1 << 30
PARTS = ("generate", "write", "read_and_check")


def measure() -> dict[str, object]:
    """Seconds of each part and in all, and the most memory resident, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="leadline-traces-") as scratch:
        words = [sys.executable, "-m", "bench.traces", scratch, str(REQUESTS)]
        done = subprocess.run(words, check=True, capture_output=True, timeout=1800)
    figures = dict(json.loads(done.stdout))
    within = figures["seconds"] <= LIMIT_S and figures["resident_bytes"] <= LIMIT_BYTES
    return {
        **figures,
        "limit_s": LIMIT_S,
        "limit_bytes": LIMIT_BYTES,
        "within_limits": within and figures["equal"],
    }


def carry_out(directory: Path, requests: int) -> dict[str, object]:
    """The same with so many requests, here and now."""
    path = directory / "bench.iolog.gz"
    moments = [time.perf_counter()]
    trace = generate(_load(requests), Drive(CAPACITY_BYTES), seed=1).take(slice(requests))
    moments.append(time.perf_counter())
    save_trace(path, trace, _header(trace))
    moments.append(time.perf_counter())
    read, _ = load_trace(path)
    moments.append(time.perf_counter())
    spent = [after - before for before, after in pairwise(moments)]
    return {
        "requests": len(trace),
        "seconds": round(sum(spent), 2),
        **{f"{part}_s": round(each, 2) for part, each in zip(PARTS, spent, strict=True)},
        **{
            f"{part}_share": round(each / sum(spent), 3)
            for part, each in zip(PARTS, spent, strict=True)
        },
        "file_bytes": path.stat().st_size,
        "resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "equal": len(trace) == requests and read.equals(trace),
    }


def _load(requests: int) -> Load:
    """Two copies at once, a little more than so many requests long."""
    size = COPIED_BYTES * requests // REQUESTS
    kib = 1024
    copy = Task(
        "a very large file is copied",
        (
            Sequential(Place(0.1, size), "read", 64 * kib, 25e6, burst=2),
            Sequential(Place(0.6, size), "write", 64 * kib, 25e6, burst=8),
            Random(Place(0.02, 10**9), "write", 4 * kib, 10.0),
        ),
    )
    small = Task(
        "small files are read",
        (Files(Place(0.3, size // 2), "read", size // 2, 64_000, files_per_s=12.5e6 / 64_000),),
    )
    return Load("bench", (copy, small))


def _header(trace: Trace) -> Header:
    return Header(
        what="a benchmark",
        where="bench/traces.py",
        when=datetime(2020, 1, 1, tzinfo=UTC),
        made="generated",
        generator="bench",
        capacity_bytes=CAPACITY_BYTES,
        in_flight=11,
        requests=len(trace),
        seconds=trace.seconds,
    )


if __name__ == "__main__":
    print(json.dumps(carry_out(Path(sys.argv[1]), int(sys.argv[2]))))
