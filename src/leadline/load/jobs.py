"""The job file of one batch: every slice a thread of one fio process, one after the other."""

import math
import re
from collections.abc import Iterator, Sequence

from leadline.errors import Misuse
from leadline.load.aim import Aim
from leadline.load.slices import SliceSetting
from leadline.load.workload import MIXES, Workload, stream

LOG_ENTRIES_SINCE = (3, 29)
LOG_ENTRIES_A_SECOND = 500_000
"""Room made in the log at once: fio drains the queue whenever it must make more."""
LOG_ENTRIES_LIMITS = (1024, 1 << 20)
SAFE_PATH = re.compile(r"/[A-Za-z0-9_./:,@+=-]+")


def job_name(index: int, job: int) -> str:
    """The name of a slice's job, which fio's files and JSON carry: `s03.0`."""
    return f"s{index:02d}.{job}"


def job_text(
    aim: Aim,
    workload: Workload,
    settings: Sequence[SliceSetting],
    *,
    seeds: Sequence[int],
    fio_version: tuple[int, ...] = (3, 33),
) -> str:
    """fio's job file for `settings`, in their order, on what `aim` opens for each.

    `seeds` has one number a slice.  Raises Misuse on a path that fio or its shell would read as
    something else, and on a count that does not fit.
    """
    if not settings:
        raise Misuse("a batch needs at least one slice")
    if len(seeds) != len(settings):
        raise Misuse(f"{len(seeds)} seeds for {len(settings)} slices: one each")
    for path in aim.depth_paths:
        check_path("queue depth attribute", path)
    if not aim.depth_paths and any(setting.device_depth is not None for setting in settings):
        raise Misuse("a slice asks for a device queue depth, and no depth_path was given")
    lines = ["[global]", *_common(aim.first, workload)]
    for index, (setting, seed) in enumerate(zip(settings, seeds, strict=True)):
        paths = aim.opened(setting)
        for job in range(setting.jobs):
            lines += ["", f"[{job_name(index, job)}]"]
            if paths != (aim.first,):
                lines.append(_filename(paths[job % len(paths)]))
            lines += _slice_options(setting, index, job, seed, fio_version)
            if workload.sequential:
                spread = aim.spread(workload, setting)
                lines += _place(*stream(spread, job, setting.jobs, seed))
            lines += _turns(settings, index, job, aim.depth_paths)
    return "\n".join(lines) + "\n"


def pipe_names(settings: Sequence[SliceSetting]) -> list[str]:
    """The named pipes on which the jobs of a batch wait for one another."""
    names = ["asleep"]
    for index, setting in enumerate(settings):
        if index + 1 < len(settings):
            names += [_done_pipe(index, job) for job in range(setting.jobs)]
        names += [_go_pipe(index, job) for job in range(1, setting.jobs)]
    return names


def hugepages_needed(workload: Workload, settings: Sequence[SliceSetting]) -> int:
    """How many hugepages the batch's jobs need; each has its memory from the start to the end.

    fio rounds up twice: a page more than the data, and one more again (seen: 3.33).
    """
    needed = 0
    for each in settings:
        if each.huge_page_bytes is not None:
            size = each.block_bytes or workload.block_bytes
            data = each.offered_depth // each.jobs * size
            needed += each.jobs * (math.ceil(data / each.huge_page_bytes) + 2)
    return needed


def _done_pipe(index: int, job: int) -> str:
    """Where fio puts the output of exec_postrun."""
    return job_name(index, job) + ".postrun.txt"


def _go_pipe(index: int, job: int) -> str:
    return f"go.{index}.{job}"


def target_options(node: str, workload: Workload) -> Iterator[str]:
    """The options of fio that say what is done to which drive, and keep it to that."""
    yield _filename(node)
    yield f"rw={workload.rw}"
    yield f"bs={workload.block_bytes}"
    if workload.rw in MIXES:
        yield f"rwmixread={workload.read_percent}"
    if workload.span is not None:
        yield from _place(*workload.span)
    if workload.writes:
        yield "refill_buffers=1"
    yield from ("ioengine=libaio", "direct=1", "thread=1")
    yield from ("allow_mounted_write=0", "allow_file_create=0")


def _filename(path: str) -> str:
    check_path("device", path)
    # fio splits filename at colons, which by-path names have.
    return "filename=" + path.replace(":", r"\:")


def _place(offset: int, size: int) -> tuple[str, str]:
    return f"offset={offset}", f"size={size}"


def _common(node: str, workload: Workload) -> Iterator[str]:
    yield from target_options(node, workload)
    yield from ("time_based=1", "norandommap=1", "randrepeat=0")
    # The log has one line a request, its latency from submission to completion alone,
    # stamped with the rig's clock so that slices can be laid side by side.
    yield from ("disable_slat=1", "disable_clat=1", "per_job_logs=1", "log_avg_msec=0")
    yield "log_unix_epoch=1"


def _slice_options(
    setting: SliceSetting, index: int, job: int, seed: int, fio_version: tuple[int, ...]
) -> Iterator[str]:
    if setting.block_bytes is not None:
        yield f"bs={setting.block_bytes}"
    if setting.huge_page_bytes is not None:
        yield from ("iomem=shmhuge", f"hugepage-size={setting.huge_page_bytes}")
    yield f"iodepth={setting.offered_depth // setting.jobs}"
    yield f"runtime={round(setting.seconds * 1000)}ms"
    # fio multiplies it by the thread's number: by 0 all threads would read the same places.
    yield f"randseed={seed + job}"
    yield f"write_lat_log={job_name(index, job)}"
    if fio_version >= LOG_ENTRIES_SINCE:
        least, most = LOG_ENTRIES_LIMITS
        yield f"log_entries={min(max(least, int(setting.seconds * LOG_ENTRIES_A_SECOND)), most)}"


def _turns(
    settings: Sequence[SliceSetting], index: int, job: int, depth_paths: Sequence[str]
) -> Iterator[str]:
    """Who waits for whom, in the words of turn.sh."""
    setting = settings[index]
    if (index, job) == (0, 0):
        words = ["gather", str(sum(each.jobs for each in settings) - 1)]
    else:
        words = ["tell", "asleep"]
    if job > 0:
        words += ["await", _go_pipe(index, job)]
    else:
        if index > 0:
            for before in range(settings[index - 1].jobs):
                words += ["await", _done_pipe(index - 1, before)]
        if setting.device_depth is not None:
            for path in depth_paths:
                words += ["depth", path, str(setting.device_depth)]
        for follower in range(1, setting.jobs):
            words += ["tell", _go_pipe(index, follower)]
    # Read into the shell that fio starts: one process fewer a job than running it.
    yield "exec_prerun=set -- " + " ".join(words) + " && . ./turn.sh"
    if index + 1 < len(settings):
        yield "exec_postrun=echo done"


def check_path(what: str, path: str) -> None:
    """Misuse for a path that fio, or the shell that it hands some to, would read as something
    else."""
    if not SAFE_PATH.fullmatch(path):
        raise Misuse(
            f"{what} {path!r}: expected an absolute path of letters, digits and _./:,@+=- "
            "(fio hands it to a shell)"
        )
