"""fio's side of a replay: the job, the iologs that it reads, and the times that it reports.

With its timing kept, a trace is dealt to as many jobs as it had requests in flight, each a
thread that does one request at a time.  One job with a deep queue will not do: before 3.34 fio
looks for completed requests only when its queue is full, and reported 350 ms for requests that
took 0.1 ms (3.33, tried; fixed by "iolog.c: fix inaccurate clat when replay trace").
"""

import io
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from leadline.errors import Misuse
from leadline.load.jobs import SAFE_PATH
from leadline.trace.iolog import write_iolog
from leadline.trace.trace import Trace

Timing = Literal["fast", "kept"]
"""As fast as the drive answers, with a fixed number of requests in flight; or when they came."""

FIO_MINIMUM = "3.31"
"""The first that reads iologs of version 3."""
JOB_FILE = "job.fio"
_OPENED_US = 1  # fio ignores the delay after a time of 0


@dataclass(frozen=True)
class Times:
    """Requests of one kind: how many, and their mean time from submission to completion."""

    count: int = 0
    mean_s: float = 0.0

    def __add__(self, other: "Times") -> "Times":
        count = self.count + other.count
        total = self.count * self.mean_s + other.count * other.mean_s
        return Times(count, total / count if count else 0.0)


@dataclass(frozen=True)
class Replayed:
    """What one replay showed; `seconds` is how long it took."""

    reads: Times
    writes: Times
    seconds: float

    @property
    def all(self) -> Times:
        """Reads and writes together."""
        return self.reads + self.writes


def lanes(trace: Trace, in_flight: int, timing: Timing) -> list[Trace]:
    """The iologs of a replay: one, or where timing is kept one for each request in flight."""
    count = in_flight if timing == "kept" else 1
    return [trace.take(slice(lane, None, count)) for lane in range(min(count, len(trace)))]


def job_text(node: str, logs: int, in_flight: int, timing: Timing, *, writes: bool) -> str:
    """The job file that replays so many iologs on `node`, and on nothing else.

    Raises Misuse on a path that fio would read as something else.
    """
    if not SAFE_PATH.fullmatch(node):
        raise Misuse(f"device {node!r}: expected an absolute path of letters, digits and _./:,@+=-")
    lines = ["[global]", "replay_redirect=" + node.replace(":", r"\:")]
    lines += ["direct=1", "thread=1", "allow_mounted_write=0", "allow_file_create=0"]
    lines += ["disable_slat=1", "disable_clat=1"]
    if writes:
        lines.append("refill_buffers=1")
    if timing == "fast":
        lines += ["ioengine=libaio", f"iodepth={in_flight}", "replay_no_stall=1"]
    else:
        lines += ["ioengine=psync", "iodepth=1", "replay_no_stall=0"]
    for place in range(logs):
        lines += ["", f"[lane{place}]", f"read_iolog={_log_name(place)}"]
    return "\n".join(lines) + "\n"


def archive(node: str, trace: Trace, in_flight: int, timing: Timing, *, writes: bool) -> bytes:
    """A tar archive, compressed, of the job file and its iologs: what the rig is sent."""
    logs = lanes(trace, in_flight, timing)
    job = job_text(node, len(logs), in_flight, timing, writes=writes)
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
        write_iolog(text, later, opened_us=_OPENED_US)
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
    return Replayed(reads, writes, seconds)


def _times(direction: Mapping[str, Any]) -> Times:
    count = int(direction["total_ios"])
    return Times(count, float(direction["lat_ns"]["mean"]) / 1e9 if count else 0.0)


def counts_of(trace: Trace) -> tuple[int, int]:
    """How many reads and writes a trace has."""
    counts = np.bincount(trace.kind, minlength=2)
    return int(counts[0]), int(counts[1])
