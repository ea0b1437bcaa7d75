"""One short timed stretch of load: what was set, what came of it, and whether it counts."""

from dataclasses import dataclass

from leadline.drive.arrivals import Arrived
from leadline.drive.finding import MEANINGS
from leadline.errors import Misuse
from leadline.load.workload import SECTOR_BYTES

WARM_UP_S = 0.1
"""Start of a slice that is not counted: the queue fills, the device depth takes effect."""
LITTLE_TOLERANCE = 0.03
ROUNDS = 5
"""A slice is long enough when its whole queue has turned over this many times."""
LEAST_HELD = 0.8
"""Share of its queue depth that a drive must have held on average, where that was counted."""
LEAST_HELD_OF_ALL = 0.7
"""The same of all that is offered, where the queue takes it all and none of it waits."""
SATA_TAGS = 32
"""So many requests a SATA port takes from the kernel (ATA_MAX_QUEUE in include/linux/libata.h)."""
WOKEN_AFTER = 4
"""So many of 32 tags must be free again before the kernel wakes a program that waits for one: an
eighth of them (sbq_calc_wake_batch in lib/sbitmap.c)."""
LEAST_OF_WINDOW = 0.5
"""Share of a slice, but for its warm-up, that must be left once all of the load is there."""
BUSY_THREAD = 0.9
"""Share of a CPU above which fio itself is the limit (each job is one thread)."""

LATE_START = "late-start"
LITTLES_LAW = "littles-law"
DEVICE_DEPTH = "device-depth"
DRIVE_DEPTH = "depth-not-reached"
IO_ERRORS = "io-errors"
TOO_SHORT = "too-short"
OVERLAP = "overlap"
FIO_CPU = "fio-cpu"
LOG_INCOMPLETE = "log-incomplete"
VOID_MEANINGS = {
    LATE_START: "the load was all there only when most of the slice was over: the host was late",
    LITTLES_LAW: "rate x latency is not the offered depth: the queue was not kept full",
    DEVICE_DEPTH: "the kernel did not take the device queue depth asked for",
    DRIVE_DEPTH: "the drive held fewer requests than its queue depth allows: the host was late",
    IO_ERRORS: "requests failed, or fio ended the slice with an error",
    TOO_SHORT: "too few requests completed for a rate: the slice is too short for this drive",
    OVERLAP: "the slice before had not drained when this one started",
    FIO_CPU: "fio used a whole CPU: the load generator was the limit, not the drive",
    LOG_INCOMPLETE: "fio's log does not hold every request that fio counted",
    **MEANINGS,
}
"""Every reason for which a slice counts for nothing, in a reader's words; those that a slice
does not know by itself are the findings of checks around it."""


@dataclass(frozen=True)
class SliceSetting:
    """What one slice holds fixed.

    `device_depth` is what the kernel may let the drive hold (None: left as it is),
    `offered_depth` what fio keeps in flight over all its `jobs`, `seconds` how long
    requests are issued.  `block_bytes` is the size of each request (None: the workload's),
    `huge_page_bytes` that of the hugepages that its data is kept in (None: it is in ordinary
    memory).  `watched`: what reaches the drive is traced, at the cost of some of a fast drive's
    rate.  `drives` is how many it is over, each with the same device depth.  Raises Misuse on
    what cannot be.
    """

    device_depth: int | None
    offered_depth: int
    seconds: float = 0.5
    jobs: int = 1
    block_bytes: int | None = None
    huge_page_bytes: int | None = None
    watched: bool = False
    drives: int = 1

    def __post_init__(self) -> None:
        if self.device_depth is not None and self.device_depth < 1:
            raise Misuse(f"device depth {self.device_depth}: depths start at 1")
        if self.jobs < 1 or self.drives < 1:
            raise Misuse(f"{self.jobs} jobs on {self.drives} drives: at least one of each")
        if self.offered_depth < 1 or self.offered_depth % self.jobs:
            raise Misuse(
                f"offered depth {self.offered_depth} over {self.jobs} job(s): "
                "each job keeps the same number in flight, at least 1"
            )
        if self.block_bytes is not None and (
            self.block_bytes < SECTOR_BYTES or self.block_bytes % SECTOR_BYTES
        ):
            raise Misuse(f"{self.block_bytes} bytes a request: a multiple of {SECTOR_BYTES}")
        if not WARM_UP_S < self.seconds <= 3600:
            raise Misuse(
                f"a slice of {self.seconds} s: its first {WARM_UP_S} s do not count, "
                "so it must be longer, and at most an hour"
            )


LEAST_MORE, MOST_MORE = 4, 32
"""What is offered beyond the device queue depth."""


def offered_for(device_depth: int, nr_requests: int | None = None) -> int:
    """What to offer so that the drive's queue is never short: max(3d, d + 4), d + 32 at most.

    Twice the depth does not keep the queue of a fast drive full on a slow host: answers come in
    bursts (a drive's cache takes writes at once), and what waits for a place must outlast one.
    A slice lasts until all that is offered has turned over ROUNDS times: with 508 offered for the
    254 that a SAS disk may hold, it would be longer than any slice may be.  At most
    `nr_requests`, what the block layer lets be queued for the device: beyond it
    io_submit blocks, and the offered depth is not reached.
    """
    offered = device_depth + max(LEAST_MORE, min(2 * device_depth, MOST_MORE))
    return offered if nr_requests is None else max(1, min(offered, nr_requests))


@dataclass(frozen=True)
class Slice:
    """One measured slice.

    `rate` is in requests a second over the window, which begins WARM_UP_S after the first
    request was issued, or when the whole queue was, and ends when issuing does;
    `completions` is how many ended in it, latencies are theirs: fio's `lat` (submission to
    completion, seconds).  `little_ratio` is the mean number of requests in flight over the
    window against the offered depth;
    `in_flight_by_law` the same number by rate x mean latency.  `started` is in seconds
    since the batch's first slice began, `began` in seconds of the rig's clock (Unix), both 0
    where no request was done;
    `drain_s` is how long the last requests took after the slice's end, `gap_s` the time
    since the slice before had drained (None for the first).  `device_depth` is what the
    kernel said after it was set; `drive_depth` the mean number of requests that the drive
    held, by the kernel's count (`inflight`: handed to the driver and not completed), None
    where that was not counted often enough.  `cpu` is the share of one CPU used by the
    busiest of fio's threads, `requests` how many fio issued in all, in the window and beside
    it; `arrived` what the drive was sent for them, of a slice that was watched.
    """

    setting: SliceSetting
    job: str
    seed: int
    rate: float
    completions: int
    window_s: float
    mean_latency_s: float
    p99_latency_s: float
    little_ratio: float
    in_flight_by_law: float
    started: float
    began: float
    drain_s: float
    gap_s: float | None
    device_depth: int | None
    cpu: float
    fio_version: str
    requests: int = 0
    error: str = ""
    voids: tuple[str, ...] = ()
    drive_depth: float | None = None
    arrived: Arrived | None = None

    @property
    def drive_s(self) -> float:
        """Seconds that the drive was under load: while requests were issued, and to the last."""
        return self.setting.seconds + self.drain_s

    @property
    def late_s(self) -> float:
        """Seconds of the slice, beyond its warm-up, that went by before all of its load was there.

        Threads begin one after another, and on a slow rig 16 of them take most of a second.
        """
        return max(0.0, self.setting.seconds - WARM_UP_S - self.window_s)

    @property
    def clean(self) -> bool:
        """Whether the slice counts as evidence."""
        return not self.voids


def void_names(slice_: Slice, *, logged: int, counted: int) -> tuple[str, ...]:
    """Why this slice counts for nothing; empty when it counts.

    `logged` is how many requests the per-request log holds, `counted` how many fio itself
    counted.  fio ends a slice at the first request that fails, so that everything else
    about it would only follow from that.  Where hardly any window is left (LATE_START), what is
    counted in it tells nothing: not even that the slice is too short for the drive.
    """
    if slice_.error:
        return (IO_ERRORS,)
    setting = slice_.setting
    enough = ROUNDS * setting.offered_depth
    asked = setting.device_depth
    late = slice_.window_s < LEAST_OF_WINDOW * (setting.seconds - WARM_UP_S)
    checks = {
        LATE_START: late,
        LOG_INCOMPLETE: logged != counted,
        DEVICE_DEPTH: asked is not None and slice_.device_depth != asked,
        DRIVE_DEPTH: not late and not _held_enough(slice_),
        TOO_SHORT: not late and slice_.rate * setting.seconds < enough,
        LITTLES_LAW: not late and abs(slice_.little_ratio - 1.0) > LITTLE_TOLERANCE,
        OVERLAP: slice_.gap_s is not None and slice_.gap_s < 0.0,
        FIO_CPU: slice_.cpu > BUSY_THREAD,
    }
    return tuple(name for name, failed in checks.items() if failed)


def _held_enough(slice_: Slice) -> bool:
    """Whether the drive's queue was as full as the two depths, and the kernel, let it be.

    What a shallower queue lacks is taken from requests that wait in the kernel.  Where the queue
    takes all that is offered, or (nearly) all tags, none wait there: for each answer fio is woken,
    and the drive lacks a request until it has sent the next.
    """
    setting, held = slice_.setting, slice_.drive_depth
    if setting.device_depth is None or held is None:
        return True
    offered = max(1, setting.offered_depth // setting.drives)  # it is counted on one of them
    if offered <= setting.device_depth:
        return held >= LEAST_HELD_OF_ALL * offered
    could = setting.device_depth
    if could <= SATA_TAGS:
        could = min(could, SATA_TAGS - WOKEN_AFTER)
    return held >= LEAST_HELD * could
