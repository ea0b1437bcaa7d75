"""fio's side of a replay: the job, the iologs that it reads, and the times that it reports.

With its timing kept, a trace is dealt to as many jobs as it had requests in flight, each a
thread that does one request at a time.  One job with a deep queue will not do: before 3.34 fio
looks for completed requests only when its queue is full, and reported 350 ms for requests that
took 0.1 ms (3.33, tried; fixed by "iolog.c: fix inaccurate clat when replay trace").
"""

import io
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from leadline.errors import Misuse
from leadline.load.jobs import SAFE_PATH
from leadline.trace.iolog import write_iolog
from leadline.trace.rounds import Replayed, Times
from leadline.trace.trace import SYNC, Trace

Timing = Literal["fast", "kept"]
"""As fast as the drive answers, with a fixed number of requests in flight; or when they came."""

FIO_MINIMUM = "3.31"
"""The first that reads iologs of version 3."""
JOB_FILE = "job.fio"
LOG_FILE = "alone_lat.log"
"""How long each request took, in the order in which they were done."""
_OPENED_US = 1  # fio ignores the delay after a time of 0


def lanes(trace: Trace, in_flight: int, timing: Timing) -> list[Trace]:
    """The iologs of a replay: one, or where timing is kept one for each request in flight.

    fio refuses an iolog that only syncs, so that such a lane is left out.
    """
    count = in_flight if timing == "kept" else 1
    dealt = [trace.take(slice(lane, None, count)) for lane in range(min(count, len(trace)))]
    return [lane for lane in dealt if np.any(lane.kind != SYNC)]


def job_text(
    node: str,
    requests: Sequence[int],
    in_flight: int,
    timing: Timing,
    *,
    writes: bool,
    logged: bool = False,
) -> str:
    """The job file that replays iologs on `node`, and on nothing else.

    `requests` is the number of reads and writes in each: told by `number_ios`, fio stops issuing
    after the last one and waits for all.  At the end of an iolog it does not (`td->done` in
    `td_io_getevents`): those still in flight are in no figure, and of their failure it says
    nothing (3.33, tried: 7 of 40 with a queue of 8).  `logged` has it keep LOG_FILE.  Raises
    Misuse on a path that fio would read as something else.
    """
    if not SAFE_PATH.fullmatch(node):
        raise Misuse(f"device {node!r}: expected an absolute path of letters, digits and _./:,@+=-")
    lines = ["[global]", "replay_redirect=" + node.replace(":", r"\:")]
    lines += ["direct=1", "thread=1", "allow_mounted_write=0", "allow_file_create=0"]
    lines += ["disable_slat=1", "disable_clat=1"]
    if writes:
        lines.append("refill_buffers=1")
    if logged:
        lines += ["write_lat_log=" + LOG_FILE.removesuffix("_lat.log"), "per_job_logs=0"]
    if timing == "fast":
        lines += ["ioengine=libaio", f"iodepth={in_flight}", "replay_no_stall=1"]
    else:
        lines += ["ioengine=psync", "iodepth=1", "replay_no_stall=0"]
    for place, count in enumerate(requests):
        lines += ["", f"[lane{place}]", f"read_iolog={_log_name(place)}", f"number_ios={count}"]
    return "\n".join(lines) + "\n"


def archive(
    node: str,
    trace: Trace,
    in_flight: int,
    timing: Timing,
    *,
    writes: bool,
    logged: bool = False,
) -> bytes:
    """A tar archive, compressed, of the job file and its iologs: what the rig is sent."""
    logs = lanes(trace, in_flight, timing)
    requests = [sum(counts_of(log)) for log in logs]
    job = job_text(node, requests, in_flight, timing, writes=writes, logged=logged)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        for name, content in [(JOB_FILE, job.encode("ascii")), *_logs(logs)]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _logs(traces: Sequence[Trace]) -> Iterator[tuple[str, bytes]]:
    for place, trace in enumerate(traces):
        text = io.BytesIO()
        later = Trace(trace.time_us + _OPENED_US, trace.kind, trace.offset, trace.length)
        write_iolog(text, later, opened_us=_OPENED_US, closed=False)
        yield _log_name(place), text.getvalue()


def _log_name(place: int) -> str:
    return f"lane{place}.iolog"


def times_of(document: Mapping[str, Any]) -> Replayed:
    """What fio's JSON says of a replay, over all its jobs."""
    jobs = document["jobs"]
    reads, writes = (
        sum((_times(job[direction]) for job in jobs), Times()) for direction in ("read", "write")
    )
    seconds = max(int(job.get("job_runtime", 0)) for job in jobs) / 1e3
    return Replayed(reads, writes, seconds, max(map(_cpu, jobs), default=0.0))


def _cpu(job: Mapping[str, Any]) -> float:
    """The share of one CPU that a job used; fio gives percent."""
    return (float(job.get("usr_cpu", 0.0)) + float(job.get("sys_cpu", 0.0))) / 100.0


def failures(job: Mapping[str, Any]) -> int:
    """How many requests of a job were issued and did not come back well: have no latency."""
    directions = [job[direction] for direction in ("read", "write")]
    return sum(int(each["total_ios"]) - int(each["lat_ns"]["N"]) for each in directions)


def _times(direction: Mapping[str, Any]) -> Times:
    latency = direction["lat_ns"]
    count = int(latency["N"])
    return Times(count, float(latency["mean"]) / 1e9 if count else 0.0)


def counts_of(trace: Trace) -> tuple[int, int]:
    """How many reads and writes a trace has."""
    counts = np.bincount(trace.kind, minlength=2)
    return int(counts[0]), int(counts[1])
