"""As what do the requests of a program reach the drive?

Linux's tracepoint `block:block_rq_issue` (include/trace/events/block.h) tells of each request
that is handed to the driver where it begins and how long it is; it is recorded in a tracing
instance of our own.  Without tracing, `/sys/block/<disk>/stat` tells their number and their
sectors, and thus how large they were on average.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeVar

from leadline.drive import tracing
from leadline.drive.bind import Drive
from leadline.drive.conditions import IoCounts, parse_stat
from leadline.drive.request_limits import SECTOR_BYTES, RequestLimits, in_binary
from leadline.errors import RigTrouble
from leadline.host.connection import Host
from leadline.host.hugepages import page_bytes

Sizes = tuple[tuple[int, int], ...]
"""Sizes in bytes, largest first, and how often each was seen."""
T = TypeVar("T")

PAGE_S = 30.0
OTHERS_SHARE = 0.01
"""What others may do on the drive meanwhile, as in `disturbances.OTHER_SHARE`."""
OTHERS_ONE_OF = 16
"""Of so many requests one may be somebody else's, too.  What the kernel cuts it cuts in each round
of the eight that are in flight, for their buffers stay where they are: of sixteen, in two."""
BUFFER_KB = 256
"""Room for some 3,000 requests a processor: of a slice that has more, the last are seen."""
_ISSUED = re.compile(r"(\d+,\d+) \w+ \d+ \(.*?\) (\d+) \+ (\d+) ")


@dataclass(frozen=True)
class Arrived:
    """The requests that the drive was sent while one slice ran.

    `firsts` are those with which a request of the program begins, so that their number is
    that of the program's and each is as large as the limits let it be; `requests` are these and
    what was left of them.  Seen in "stat", `requests` has the mean alone, `firsts` nothing.
    """

    seen_in: Literal["tracepoint", "stat"]
    requests: Sizes
    firsts: Sizes = ()

    @property
    def least(self) -> int | None:
        """What all but OTHERS_SHARE of the first ones reach, and all but one of OTHERS_ONE_OF or
        more; else the mean; None without any."""
        seen = self.firsts or (self.requests if self.seen_in == "stat" else ())
        total = sum(times for _, times in seen)
        left = max(OTHERS_SHARE * total, 1.0 if total >= OTHERS_ONE_OF else 0.0)
        for size, times in reversed(seen):
            left -= times
            if left < 0:
                return size
        return None

    def __str__(self) -> str:
        if self.seen_in == "stat":
            said = [f"{times} of {in_binary(size)} on average" for size, times in self.requests]
            return f"the drive was sent {', '.join(said) or 'nothing'} (the kernel has no tracing)"
        said = [f"{times} of {in_binary(size)}" for size, times in self.requests]
        return f"the drive was sent {', '.join(said) or 'nothing'}"


def read_limits(host: Host, drive: Drive) -> RequestLimits:
    """What the kernel allows a request to this drive to be.  RigTrouble where it does not say."""
    names = ("max_sectors_kb", "max_hw_sectors_kb", "max_segments", "max_segment_size")
    queue = f"/sys/block/{drive.name}/queue"
    page = host.run(["getconf", "PAGESIZE"], deadline=PAGE_S).stdout
    try:
        found = {name: int(host.read_file(f"{queue}/{name}")) for name in names}
        return RequestLimits(**found, page_bytes=int(page), huge_page_bytes=page_bytes(host))
    except ValueError as error:
        raise RigTrouble(f"{host.name}: {queue}: limits that cannot be read: {error}") from error


def watch(host: Host, drive: Drive, asked: int, run: Callable[[], T]) -> tuple[T, Arrived]:
    """What `run` gives, and what reached the drive while it asked for `asked` bytes at a time.

    Its requests begin at multiples of that size.  The drive is leased; nothing is changed.
    """
    with suppress(tracing.TracingMissing), tracing.instance(host, drive) as path:
        _begin(host, drive, path)
        done = run()
        text = host.read_file(f"{path}/trace").decode("ascii", "replace")
        return done, read_trace(text, _device(host, drive), asked)
    before = _counters(host, drive)
    done = run()
    return done, counted(before, _counters(host, drive))


def read_trace(text: str, device: str, asked: int) -> Arrived:
    """The requests in a trace, as the file `trace` prints it.

    `device` is the drive's number, as in "8,0"; other drives' lines are passed over, and so
    are commands without sectors.
    """
    sizes, firsts = Counter[int](), Counter[int]()
    for event in tracing.events(text):
        issued = _ISSUED.match(event.fields) if event.name == "block_rq_issue" else None
        if issued is None or issued[1] != device:
            continue
        sector, sectors = int(issued[2]), int(issued[3])
        if not sectors:
            continue
        sizes[sectors * SECTOR_BYTES] += 1
        if sector * SECTOR_BYTES % asked == 0:
            firsts[sectors * SECTOR_BYTES] += 1
    return Arrived("tracepoint", _sorted(sizes.items()), _sorted(firsts.items()))


def counted(before: IoCounts, after: IoCounts) -> Arrived:
    """The same by a disk's counters: the mean of what was read."""
    done = after.since(before)
    if not done.reads:
        return Arrived("stat", ())
    return Arrived("stat", ((done.sectors_read * SECTOR_BYTES // done.reads, done.reads),))


def _sorted(sizes: Iterable[tuple[int, int]]) -> Sizes:
    return tuple(sorted(sizes, reverse=True))


def _device(host: Host, drive: Drive) -> str:
    """The drive's number as a trace has it, "8,0"; its attribute says "8:0"."""
    return host.read_file(f"/sys/block/{drive.name}/dev").decode().strip().replace(":", ",")


def _begin(host: Host, drive: Drive, path: str) -> None:
    major, minor = map(int, _device(host, drive).split(","))
    host.write_value(f"{path}/buffer_size_kb", str(BUFFER_KB))
    # The kernel's own dev_t, MKDEV in include/linux/kdev_t.h.
    tracing.watch(host, path, "block:block_rq_issue", f"dev == {major << 20 | minor}")


def _counters(host: Host, drive: Drive) -> IoCounts:
    path = f"/sys/block/{drive.name}/stat"
    counts = parse_stat(host.read_file(path).decode("ascii", "replace"))
    if counts is None:
        raise RigTrouble(
            f"{host.name}: neither the kernel's tracing nor {path} tells what reaches the drive: "
            "mount the one (`mount -t tracefs nodev /sys/kernel/tracing`), as root"
        )
    return counts
