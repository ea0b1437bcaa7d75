"""Files as fio leaves them, of version 2 and of version 3, for drives of our own making."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadline.load.recorded_document import read_output
from leadline.load.recorded_job import RecordedRun, recorded_run

SECONDS = 60.0


def _options(rw: str, depth: int, more: Mapping[str, str]) -> dict[str, str]:
    usual = {"rw": rw, "bs": "4k", "ioengine": "libaio", "iodepth": str(depth), "direct": "1"}
    named = {"filename": "/dev/sdx", "runtime": f"{SECONDS:.0f}", "numjobs": "1"}
    merged = usual | named | {"group_reporting": "1"} | dict(more)
    return {name: value for name, value in merged.items() if value != ""}


def _job(rw: str, options: dict[str, str], section: dict[str, Any]) -> dict[str, Any]:
    idle = {"total_ios": 0, "runtime": 0, "iops": 0.0}
    direction = "write" if "write" in rw else "read"
    directions = {name: section if name == direction else idle for name in ("read", "write")}
    return {"jobname": "job", "error": 0, "job options": options} | directions


def fio3(
    rate: float,
    depth: int = 1,
    rw: str = "randread",
    *,
    in_flight: int | None = None,
    fio_s: float = 2e-6,
    longest_s: float = 0.0,
    still: float = 0.0,
    spread: float = 0.02,
    samples: int = 120,
    cpu: float = 40.0,
    seconds: float = SECONDS,
    asked: Mapping[str, str] | None = None,
    **options: str,
) -> dict[str, Any]:
    """A document of fio 3: `in_flight` requests (default: `depth`), `rate` a second.

    fio itself takes `fio_s` between two requests; `still` is the share of the run in which
    nothing completed.  Options are `asked` or by name; one given as "" is left out.
    """
    latency_ns = 1e9 * ((in_flight or depth) / rate - fio_s)
    section = {
        "io_bytes": int(4096 * rate * seconds),
        "iops": rate,
        "runtime": round(1e3 * seconds),
        "total_ios": round(rate * seconds),
        "slat_ns": {"min": 1, "max": 1, "mean": 1.0, "stddev": 0.0},
        "clat_ns": {
            "max": max(1e9 * longest_s, 2 * latency_ns),
            "mean": latency_ns - 1.0,
            "percentile": {"50.000000": round(0.9 * latency_ns)},
        },
        "lat_ns": {"max": max(1e9 * longest_s, 2 * latency_ns), "mean": latency_ns},
        "iops_mean": rate / (1.0 - still),
        "iops_stddev": spread * rate / (1.0 - still),
        "iops_samples": samples,
    }
    job = _job(rw, _options(rw, depth, options | dict(asked or {})), section)
    job |= {"usr_cpu": 0.25 * cpu, "sys_cpu": 0.75 * cpu}
    level = 1 << (min(depth, 64).bit_length() - 1)
    job["iodepth_level"] = {">=64" if level == 64 else str(level): 99.99}
    return {
        "fio version": "fio-3.33",
        "timestamp": 1_700_000_000,
        "jobs": [job],
        "disk_util": [{"name": "sdx"}],
    }


def fio2(
    rate: float, depth: int = 1, rw: str = "randread", *, spread: float = 0.02, **options: str
) -> dict[str, Any]:
    """A document of fio 2.18: microseconds, KiB, no count of samples, options in two places."""
    latency_us = 1e6 * (depth / rate) - 2.0
    section = {
        "io_bytes": int(4 * rate * SECONDS),
        "bw": int(4 * rate),
        "iops": round(rate, 2),
        "runtime": int(1e3 * SECONDS),
        "total_ios": round(rate * SECONDS),
        "slat": {"min": 1, "max": 90, "mean": 1.5, "stddev": 0.3},
        "clat": {
            "min": 1,
            "max": int(3 * latency_us),
            "mean": round(latency_us - 1.5, 2),
            "percentile": {"50.000000": int(0.9 * latency_us), "0.00": 0},
        },
        "lat": {"min": 1, "max": int(3 * latency_us), "mean": round(latency_us, 2)},
        "bw_mean": 4 * rate,
        "bw_dev": 4 * rate * spread,
    }
    own = _options(rw, depth, options)
    common = {name: own.pop(name) for name in ("ioengine", "direct", "iodepth") if name in own}
    job = _job(rw, own, section) | {"usr_cpu": 10.0, "sys_cpu": 30.0}
    return {"fio version": "fio-2.18", "timestamp": 1, "global options": common, "jobs": [job]}


def text_of(document: Mapping[str, Any]) -> str:
    """A document as fio prints it."""
    return json.dumps(document, indent=2) + "\n"


def write_sweep(directory: Path, rates: Mapping[int, float], rw: str = "randread") -> Path:
    """One file a depth, under names that say nothing of it; the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for place, (depth, rate) in enumerate(rates.items()):
        name = f"{rw}-{chr(ord('a') + place)}.json"
        (directory / name).write_text(text_of(fio3(rate, depth, rw)))
    return directory


def changed(document: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The document, with fields of its one job replaced."""
    document = copy.deepcopy(document)
    document["jobs"][0] |= fields
    return document


def read(text: str) -> RecordedRun:
    """The run in a file of this text."""
    return recorded_run("a.json", read_output(text))


def run_of(document: dict[str, Any]) -> RecordedRun:
    """The run in a file of this document."""
    return read(text_of(document))
