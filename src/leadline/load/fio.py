"""Run slices of load on a drive: one fio process a batch."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from errno import EILSEQ, EIO, ENODATA, EREMOTEIO, ETIMEDOUT
from importlib.resources import files
from os import strerror
from statistics import fmean
from typing import TYPE_CHECKING

from leadline.errors import RigTrouble
from leadline.host.programs import require
from leadline.host.trouble import DeadlinePassed, ProgramFailed, last_lines, printable
from leadline.load.aim import Aim, drive_alone
from leadline.load.jobs import job_name, job_text, pipe_names
from leadline.load.measure import Measured, measure
from leadline.load.output import Batch, JobResult, Requests, read_batch
from leadline.load.overdue import HELD_SHARE, SAMPLE_S, counts, overdue, sampling
from leadline.load.slices import Slice, SliceSetting, void_names
from leadline.load.workload import Workload

if TYPE_CHECKING:
    from leadline.host.connection import Finished, Host

FIO_MINIMUM = "3.16"
"""Its JSON has `job_runtime`, which dates the end of a slice; tried: 3.33."""
DRIVE_ERRORS = {EIO, ENODATA, EILSEQ, ETIMEDOUT, EREMOTEIO}
"""How Linux reports a request that the drive or its path failed; others are the rig's."""
STARTUP_S = 30.0
"""Time for fio to start and end beside its slices, on the slowest rig."""
OWN_IPC = "unshare --ipc"
"""fio's hugepages are shared memory, which outlives a fio that is killed, and would hold them
for ever; in a name space of its own it goes with it (tried)."""
FEWEST_SAMPLES = 5
STRETCH = 4.0
"""How many times as long as asked slices may take, with their drains."""


def run_slices(
    host: "Host",
    node: str,
    workload: Workload,
    settings: Sequence[SliceSetting],
    *,
    depth_path: str | None,
    seeds: Sequence[int],
    on_slice: Callable[[Slice], None] | None = None,
    deadline: float | None = None,
) -> list[Slice]:
    """Run one batch of slices on one drive, `node`: see `run_aimed`.

    `depth_path` is where its device queue depth is written; None where no slice asks for one.
    """
    aim = drive_alone(node, depth_path)
    return run_aimed(
        host, aim, workload, settings, seeds=seeds, on_slice=on_slice, deadline=deadline
    )


def run_aimed(
    host: "Host",
    aim: Aim,
    workload: Workload,
    settings: Sequence[SliceSetting],
    *,
    seeds: Sequence[int],
    on_slice: Callable[[Slice], None] | None = None,
    deadline: float | None = None,
) -> list[Slice]:
    """Run one batch of slices on `aim`, in order, each after the one before has drained.

    Each slice's device queue depth is written to every drive's attribute just before it, and
    read back; whoever calls has journaled the old values and gives them back.  `seeds` has one
    number a slice.  `on_slice` is called for each when the batch has ended: a run that is
    killed loses the batch under way, so keep it to a few seconds.  `deadline` is in
    seconds for the whole, by default several times what it should take.

    A slice that counts for nothing comes back with its `voids`.  Raises RigTrouble when
    there is no result (fio missing or older than FIO_MINIMUM, the device gone, the
    deadline passed, the depth refused), DriveFault when it was the drive that kept fio past
    the deadline, Misuse on settings that cannot be.
    """
    version = require(host, "fio", FIO_MINIMUM)
    job_file = job_text(
        aim,
        workload,
        settings,
        seeds=seeds,
        fio_version=tuple(int(part) for part in version.split(".")),
    )
    if deadline is None:
        deadline = STARTUP_S + STRETCH * sum(setting.seconds for setting in settings)
    argv = ["sh", "-c", _script("batch.sh"), "leadline-slices", _script("turn.sh")]
    huge = any(setting.huge_page_bytes for setting in settings)
    argv += [" ".join(pipe_names(settings)), OWN_IPC if huge else ""]
    argv.append("--eta=never")
    if not workload.writes:
        argv.append("--readonly")
    where = f"{host.name}: {aim.first}"
    try:
        done = _run(host, argv, job_file, deadline=deadline, where=where, inflight=aim.inflight)
    except DeadlinePassed as late:
        asked_s = sum(each.seconds for each in settings)
        what = f"{where}: fio did not end its slices of {asked_s:g} s in all within {deadline:g} s"
        raise overdue(late, what, every=SAMPLE_S, enough_s=HELD_SHARE * asked_s) from None
    batch = read_batch(done.stdout)
    check_batch(batch, where)
    slices = slices_of(batch, settings, seeds, counts(done.samples))
    for each in slices:
        if on_slice is not None:
            on_slice(each)
    return slices


def _run(
    host: "Host",
    argv: Sequence[str],
    job_file: str,
    *,
    deadline: float,
    where: str,
    inflight: str,
) -> "Finished":
    """The archive of what fio left, and what was in flight; errors are said without the script."""
    sample = sampling(host, inflight, SAMPLE_S)
    try:
        return host.run(argv, input=job_file.encode("ascii"), deadline=deadline, sample=sample)
    except ProgramFailed as failed:
        said = last_lines(failed.stderr) or " nothing"
        raise RigTrouble(
            f"{where}: fio could not be run (exit code {failed.exit_code}); is there room in "
            f"/dev/shm or /tmp? It said:{said}"
        ) from None


def slices_of(
    batch: Batch,
    settings: Sequence[SliceSetting],
    seeds: Sequence[int],
    in_flight: Sequence[tuple[float, int]] = (),
) -> list[Slice]:
    """The slices of a batch, in order, each with the reasons why it may not count.

    `in_flight` are counts of the requests at the drive, with the rig's time (Unix seconds).
    """
    slices = []
    origin = drained = None
    for index, (setting, seed) in enumerate(zip(settings, seeds, strict=True)):
        names = [job_name(index, job) for job in range(setting.jobs)]
        jobs = [batch.jobs[name] for name in names if name in batch.jobs]
        logs = [log for name in names if (log := batch.requests.get(name))]
        requests = [each for log in logs for each in log]
        ran_s = max((job.ran_s for job in jobs), default=0.0)
        measured = measure(
            requests,
            seconds=setting.seconds,
            ran_s=ran_s,
            offered=setting.offered_depth,
            joined_s=_joined_s(logs),
        )
        depth = _depth_read(batch.depths.get(names[0], ""), setting)
        bare = _slice(setting, measured, jobs, job=names[0], seed=seed, device_depth=depth)
        gap_s = None
        started = 0.0
        if requests:
            origin = measured.first if origin is None else origin
            started = measured.first - origin
            gap_s = None if drained is None else measured.first - drained
            drained = measured.last
        ends = measured.first + setting.seconds
        held = [count for at, count in in_flight if measured.opens <= at < ends]
        counted = sum(job.counted for job in jobs)
        placed = replace(
            bare,
            started=started,
            gap_s=gap_s,
            fio_version=batch.version,
            requests=counted,
            drive_depth=fmean(held) if len(held) >= FEWEST_SAMPLES else None,
        )
        slices.append(
            replace(placed, voids=void_names(placed, logged=len(requests), counted=counted))
        )
    return slices


def _joined_s(logs: Sequence[Requests]) -> float:
    """How long after the first of several threads the last made its first request, seconds."""
    firsts = [min(done - latency for done, latency in log) for log in logs]
    return max(firsts) - min(firsts) if firsts else 0.0


def _slice(
    setting: SliceSetting,
    measured: Measured,
    jobs: Sequence[JobResult],
    *,
    job: str,
    seed: int,
    device_depth: int | None,
) -> Slice:
    """A slice by itself: what it is to its neighbours and what voids it is still to come."""
    return Slice(
        setting=setting,
        job=job,
        seed=seed,
        rate=measured.rate,
        completions=measured.completions,
        window_s=measured.window_s,
        mean_latency_s=measured.mean_latency_s,
        p99_latency_s=measured.p99_latency_s,
        little_ratio=measured.in_flight / setting.offered_depth,
        in_flight_by_law=measured.rate * measured.mean_latency_s,
        started=0.0,
        began=measured.first,
        drain_s=measured.drain_s,
        gap_s=None,
        device_depth=device_depth,
        cpu=max((each.cpu for each in jobs), default=0.0),
        fio_version="",
        error=_error_text(jobs),
    )


def _script(name: str) -> str:
    return files("leadline.load").joinpath(name).read_text("ascii")


def check_batch(batch: Batch, where: str) -> None:
    """RigTrouble when the batch as a whole did not run; a slice's own errors are its own.

    fio's `"error": 0` can come with exit code 1 (a device that it may not open), and a job
    of which requests failed also makes it exit with 1.
    """
    if batch.exit_code == 0:
        return
    errors = {job.error for job in batch.jobs.values() if job.error}
    if errors and (errors & DRIVE_ERRORS or any(batch.requests.values())):
        return
    said = last_lines(batch.said) or " nothing"
    raise RigTrouble(
        f"{where}: fio ran no slice (exit code {batch.exit_code}); is the device there, and not "
        f"mounted? It said:{said}"
    )


def _depth_read(text: str, setting: SliceSetting) -> int | None:
    """The device queue depth in force, as the kernel gave it back after it was written.

    Of several drives it is one that is not as it was asked for, if there is one.
    """
    if setting.device_depth is None:
        return None
    values = text.split()
    if not text.isascii() or not values or not all(each.isdigit() for each in values):
        raise RigTrouble(
            f"device queue depth {setting.device_depth} could not be set; "
            f"writing and reading it said: {printable(text) or 'nothing'}"
        )
    depths = {int(each) for each in values}
    return next(iter(depths - {setting.device_depth}), setting.device_depth)


def _error_text(jobs: Sequence[JobResult]) -> str:
    code = next((job.error for job in jobs if job.error), 0)
    if code == 0:
        return ""
    return "requests failed" if code < 0 else strerror(code)
