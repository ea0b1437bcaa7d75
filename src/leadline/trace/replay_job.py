"""fio's side of replays: the jobs, the iologs that they read, and the times that it reports.

Several replays are one process, one after the other: the next one's jobs wait for those before
(`stonewall`), and a shell sets the device queue depth that it is at.

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

from leadline.load.jobs import check_path
from leadline.trace.iolog import write_iolog
from leadline.trace.rounds import Replayed, Times
from leadline.trace.trace import SYNC, Trace

Timing = Literal["fast", "kept"]
"""As fast as the drive answers, with a fixed number of requests in flight; or when they came."""

FIO_MINIMUM = "3.31"
"""The first that reads iologs of version 3."""
JOB_FILE = "job.fio"
_OPENED_US = 1  # fio ignores the delay after a time of 0


@dataclass(frozen=True, eq=False)
class Replay:
    """A trace, and how it is to be replayed: with `in_flight` of its requests submitted at a time.

    A drive that is not `queued` for is given one request at a time when it replays as fast as it
    answers: the kernel would pass them on in another order than the trace's.  `depth` is the device
    queue depth that is set before the first of them, None where it is left as it is.
    """

    trace: Trace
    in_flight: int
    queued: bool = True
    depth: int | None = None

    def is_alone(self, timing: Timing) -> bool:
        """Whether the drive is given one request at a time, and how long each takes is logged."""
        return timing == "fast" and not self.queued

    def lanes(self, timing: Timing) -> list[Trace]:
        """Its iologs: one, or where timing is kept one for each request in flight.

        fio refuses an iolog that only syncs, so that such a lane is left out.
        """
        count = self.in_flight if timing == "kept" else 1
        dealt = [self.trace.take(slice(lane, None, count)) for lane in range(count)]
        return [lane for lane in dealt if np.any(lane.kind != SYNC)]


def job_name(number: int, lane: int = 0) -> str:
    """The name of a job, which fio's files and JSON carry: `replay0.0`."""
    return f"replay{number}.{lane}"


def log_name(number: int) -> str:
    """The file with how long each request of a replay took, in the order in which they ended."""
    return job_name(number) + "_lat.log"


def depth_name(number: int) -> str:
    """The file with the device queue depth that was read back before a replay."""
    return job_name(number) + ".prerun.txt"


def job_text(
    node: str, replays: Sequence[Replay], timing: Timing, *, writes: bool, depth_path: str = ""
) -> str:
    """The job file that does `replays` on `node`, one after the other, and on nothing else.

    `depth_path` is where the device queue depth is written.  Raises Misuse on a path that fio or
    its shell would read as something else, ValueError for several replays, or a depth, where timing
    is kept: all lanes are to begin at once.

    Told the number of reads and writes in an iolog (`number_ios`), fio stops issuing after the last
    one and waits for all.  At the end of an iolog it does not (`td->done` in `td_io_getevents`):
    those still in flight are in no figure, and of their failure it says nothing (3.33, tried: 7 of
    40 with a queue of 8).
    """
    if timing == "kept" and (len(replays) > 1 or any(each.depth for each in replays)):
        raise ValueError("with the timing kept there is one replay, at the depth that is set")
    check_path("device", node)
    lines = ["[global]", "replay_redirect=" + node.replace(":", r"\:")]
    lines += ["direct=1", "thread=1", "allow_mounted_write=0", "allow_file_create=0"]
    lines += ["disable_slat=1", "disable_clat=1", "per_job_logs=0"]
    if writes:
        lines.append("refill_buffers=1")
    if timing == "fast":
        lines += ["ioengine=libaio", "replay_no_stall=1"]
    else:
        lines += ["ioengine=psync", "iodepth=1", "replay_no_stall=0"]
    for number, each in enumerate(replays):
        for lane, trace in enumerate(each.lanes(timing)):
            lines += ["", f"[{job_name(number, lane)}]", f"read_iolog={_iolog_name(number, lane)}"]
            lines.append(f"number_ios={sum(counts_of(trace))}")
            if timing == "fast":
                lines += [*_of_fast(number, each), *_turn(number, each.depth, depth_path)]
    return "\n".join(lines) + "\n"


def _of_fast(number: int, replay: Replay) -> Iterator[str]:
    if replay.is_alone("fast"):
        yield from ("iodepth=1", f"write_lat_log={job_name(number)}")
    else:
        yield f"iodepth={replay.in_flight}"


def _turn(number: int, depth: int | None, path: str) -> Iterator[str]:
    """What comes before a replay: those before it, and its depth."""
    if number > 0:
        yield "stonewall"
    if depth is not None:
        check_path("queue depth attribute", path)
        # One that is refused leaves the other to be read.  To fio a semicolon begins a comment.
        yield f"exec_prerun=echo {depth} > {path} || true && cat {path}"


def archive(
    node: str, replays: Sequence[Replay], timing: Timing, *, writes: bool, depth_path: str = ""
) -> bytes:
    """A tar archive, compressed, of the job file and its iologs: what the rig is sent."""
    job = job_text(node, replays, timing, writes=writes, depth_path=depth_path)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        for name, content in [(JOB_FILE, job.encode("ascii")), *_iologs(replays, timing)]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _iologs(replays: Sequence[Replay], timing: Timing) -> Iterator[tuple[str, bytes]]:
    for number, each in enumerate(replays):
        for lane, trace in enumerate(each.lanes(timing)):
            text = io.BytesIO()
            later = Trace(trace.time_us + _OPENED_US, trace.kind, trace.offset, trace.length)
            write_iolog(text, later, opened_us=_OPENED_US, closed=False)
            yield _iolog_name(number, lane), text.getvalue()


def _iolog_name(number: int, lane: int) -> str:
    return f"{job_name(number, lane)}.iolog"


def times_of(jobs: Sequence[Mapping[str, Any]]) -> Replayed:
    """What fio's JSON says of a replay, over all its jobs."""
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
