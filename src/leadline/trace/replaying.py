"""Replay traces on a drive of a rig, by fio."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.errors import DriveFault, RigTrouble
from leadline.host.programs import require
from leadline.host.trouble import DeadlinePassed, last_lines
from leadline.load.fio import DRIVE_ERRORS
from leadline.load.output import parse_log, split_output, unpack
from leadline.load.overdue import MOST_OF_IT, every_s, inflight_of, overdue, sampling
from leadline.load.slices import DEVICE_DEPTH
from leadline.trace.replay_job import (
    FIO_MINIMUM,
    Replay,
    Timing,
    archive,
    counts_of,
    depth_name,
    failures,
    job_name,
    log_name,
    times_of,
)
from leadline.trace.rounds import Replayed
from leadline.trace.waiting import waited

if TYPE_CHECKING:
    from leadline.host.connection import Finished, Host
    from leadline.trace.waiting import Seconds

STARTUP_S = 60.0
STRETCH = 4.0
"""How many times as long as recorded a trace may take, besides SLOWEST_S a request."""
SLOWEST_S = 0.1


def replay(
    host: "Host",
    node: str,
    replays: Sequence[Replay],
    timing: Timing,
    *,
    writes: bool,
    depth_path: str = "",
) -> list[Replayed]:
    """Replay traces on `node`, one after the other, in one process of fio; what each showed.

    Whoever calls holds the write guard's leave where one `writes`, and has journaled the device
    queue depth, at `depth_path`, where a replay sets it: a replay at another one is void.  The
    times of a drive that is not queued for are those of `in_flight` requests all the same, by
    `waited`.

    Raises DriveFault when requests failed or the drive kept fio past its deadline, RigTrouble when
    fio is missing, older than FIO_MINIMUM, did not run, or did not replay every request; ValueError
    for a trace that writes without leave, and as `job_text` does.
    """
    if not writes and any(counts_of(each.trace)[1] for each in replays):
        raise ValueError("a trace that writes needs leave to write: fit it to reads alone")
    require(host, "fio", FIO_MINIMUM)
    where = f"{host.name}: {node}"
    sent = archive(node, replays, timing, writes=writes, depth_path=depth_path)
    left = _left_of(_run(host, node, sent, replays, writes=writes), where)
    return [_replayed(left, number, each, timing) for number, each in enumerate(replays)]


def _run(
    host: "Host", node: str, sent: bytes, replays: Sequence[Replay], *, writes: bool
) -> "Finished":
    script = files("leadline.trace").joinpath("replay.sh").read_text("ascii")
    argv = ["sh", "-c", script, "leadline-replay"]
    if not writes:
        argv.append("--readonly")
    requests = sum(len(each.trace) for each in replays)
    traced_s = sum(each.trace.seconds for each in replays)
    deadline = STARTUP_S + STRETCH * traced_s + SLOWEST_S * requests
    every = every_s(deadline)
    sample = sampling(host, inflight_of(node), every)
    try:
        return host.run(argv, input=sent, deadline=deadline, check=False, sample=sample)
    except DeadlinePassed as late:
        what = (
            f"{host.name}: {node}: fio did not end its replay of {requests} requests within "
            f"{deadline:.0f} s"
        )
        raise overdue(late, what, every=every, enough_s=MOST_OF_IT * deadline) from None


@dataclass(frozen=True)
class _Left:
    """What fio left of its replays: the jobs in its JSON, its files, and what else it said."""

    where: str
    jobs: Sequence[Mapping[str, Any]]
    files: Mapping[str, bytes]
    said: str


def _left_of(done: "Finished", where: str) -> _Left:
    """The same, or whose fault it is that there is nothing."""
    left = unpack(done.stdout) if done.stdout else {}
    document, notes = split_output(left.get("output.json", b"").decode("utf-8", "replace"))
    said = last_lines(notes + done.stderr.decode("utf-8", "replace")) or " nothing"
    jobs = document["jobs"] if document else []
    errors = {int(job.get("error", 0)) for job in jobs} - {0}
    failed = sum(map(failures, jobs))
    if errors & DRIVE_ERRORS or failed:
        count = f"{failed} " if failed else ""
        raise DriveFault(f"{where}: {count}requests of the replay failed. fio said:{said}")
    if document is None or errors or done.exit_code != 0:
        raise RigTrouble(
            f"{where}: fio replayed nothing (exit code {done.exit_code}); is the device there, "
            f"not mounted, and room in /dev/shm or /tmp? It said:{said}"
        )
    return _Left(where, jobs, left, said)


def _replayed(left: _Left, number: int, asked: Replay, timing: Timing) -> Replayed:
    """What one of the replays showed.  RigTrouble where it is not of all its requests."""
    names = {job_name(number, lane) for lane in range(len(asked.lanes(timing)))}
    replayed = times_of([job for job in left.jobs if job["jobname"] in names])
    found, wanted = (replayed.reads.count, replayed.writes.count), counts_of(asked.trace)
    if found != wanted:
        raise RigTrouble(
            f"{left.where}: fio replayed {found[0]} reads and {found[1]} writes of {wanted[0]} and "
            f"{wanted[1]}; the figures would be of another load. It said:{left.said}"
        )
    if asked.depth is not None:
        read = left.files.get(depth_name(number), b"").decode("ascii", "replace").strip()
        voids = () if read == str(asked.depth) else (DEVICE_DEPTH,)
        replayed = changed(replayed, voids=voids)
    if not asked.is_alone(timing):
        return replayed
    took_s = _log_of(left, log_name(number), sum(wanted))
    reads, writes = waited(asked.trace, took_s, asked.in_flight)
    return changed(replayed, reads=reads, writes=writes)


def _log_of(left: _Left, name: str, requests: int) -> "Seconds":
    """How long each request took, in seconds.  RigTrouble where the log is not of them all."""
    took = np.array([took_s for _, took_s in parse_log(left.files.get(name, b""))])
    if len(took) != requests:
        raise RigTrouble(
            f"{left.where}: fio's log has {len(took)} of the {requests} requests that it "
            "replayed; is there room in /dev/shm or /tmp?"
        )
    return took
