"""Replay a trace on a drive of a rig, by fio."""

from collections.abc import Mapping
from dataclasses import replace as changed
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from leadline.errors import DriveFault, RigTrouble
from leadline.host.programs import require
from leadline.host.trouble import DeadlinePassed, last_lines
from leadline.load.fio import DRIVE_ERRORS
from leadline.load.output import parse_log, split_output, unpack
from leadline.load.overdue import MOST_OF_IT, every_s, inflight_of, overdue, sampling
from leadline.trace.replay_job import (
    FIO_MINIMUM,
    LOG_FILE,
    Timing,
    archive,
    counts_of,
    failures,
    times_of,
)
from leadline.trace.rounds import Replayed
from leadline.trace.trace import Trace
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
    trace: Trace,
    in_flight: int,
    timing: Timing,
    *,
    writes: bool,
    queued: bool = True,
) -> Replayed:
    """Replay `trace` on `node`; whoever calls holds the write guard's leave where it `writes`.

    A drive that is not `queued` for is given one request at a time when it replays as fast as it
    answers: the kernel would pass them on in another order than the trace's.  Its times are those
    of `in_flight` requests all the same, by `waited`.

    Raises DriveFault when requests failed or the drive kept fio past its deadline, RigTrouble when
    fio is missing, older than FIO_MINIMUM, did not run, or did not replay every request; ValueError
    for a trace that writes without leave.
    """
    if counts_of(trace)[1] and not writes:
        raise ValueError("a trace that writes needs leave to write: fit it to reads alone")
    require(host, "fio", FIO_MINIMUM)
    where = f"{host.name}: {node}"
    script = files("leadline.trace").joinpath("replay.sh").read_text("ascii")
    argv = ["sh", "-c", script, "leadline-replay"]
    if not writes:
        argv.append("--readonly")
    deadline = STARTUP_S + STRETCH * trace.seconds + SLOWEST_S * len(trace)
    alone = timing == "fast" and not queued
    sent = archive(node, trace, 1 if alone else in_flight, timing, writes=writes, logged=alone)
    every = every_s(deadline)
    sample = sampling(host, inflight_of(node), every)
    try:
        done = host.run(argv, input=sent, deadline=deadline, check=False, sample=sample)
    except DeadlinePassed as late:
        what = (
            f"{where}: fio did not end its replay of {len(trace)} requests within {deadline:.0f} s"
        )
        raise overdue(late, what, every=every, enough_s=MOST_OF_IT * deadline) from None
    left = unpack(done.stdout) if done.stdout else {}
    replayed = _outcome(done, left, trace, where)
    if not alone:
        return replayed
    reads, writes_ = waited(trace, _log_of(left, trace, where), in_flight)
    return changed(replayed, reads=reads, writes=writes_)


def _log_of(left: Mapping[str, bytes], trace: Trace, where: str) -> "Seconds":
    """How long each request took, in seconds.  RigTrouble where the log is not of them all."""
    took = np.array([took_s for _, took_s in parse_log(left.get(LOG_FILE, b""))])
    if len(took) != sum(counts_of(trace)):
        raise RigTrouble(
            f"{where}: fio's log has {len(took)} of the {sum(counts_of(trace))} requests that it "
            "replayed; is there room in /dev/shm or /tmp?"
        )
    return took


def _outcome(done: "Finished", left: Mapping[str, bytes], trace: Trace, where: str) -> Replayed:
    """What fio's JSON says, or whose fault it is that it does not."""
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
    replayed = times_of(document)
    found, wanted = (replayed.reads.count, replayed.writes.count), counts_of(trace)
    if found != wanted:
        raise RigTrouble(
            f"{where}: fio replayed {found[0]} reads and {found[1]} writes of {wanted[0]} and "
            f"{wanted[1]}; the figures would be of another load. It said:{said}"
        )
    return replayed
