"""What a workload is aimed at: was it ever written, and is it large against the cache?"""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

from leadline.drive.finding import SPAN, UNWRITTEN, Finding, verdict_on
from leadline.host.trouble import CommandRefused
from leadline.load.workload import Workload

if TYPE_CHECKING:
    from leadline.host.connection import Host

SAMPLES = 16
SAMPLE_BYTES = 4096
AT_ONCE = 8
ZERO_SHARE = 0.5
CACHES = 16
"""A span is at least so many caches: at most one request in 16 then finds its data there."""
DEFAULT_CACHE_BYTES = 1 << 30
FILL_BYTES_PER_S = 200e6
"""How fast a drive is taken to be written from end to end, where nobody has measured it."""
FILL_TIMES = 2
READ_DEADLINE_S = 30.0
_READ_16 = 0x88  # SBC-3 5.11


def span_of(workload: Workload, capacity_bytes: int) -> tuple[int, int]:
    """The (offset, size) in bytes of the part of the drive that the workload uses."""
    return workload.span or (0, capacity_bytes)


def fill_seconds(span_bytes: int, bytes_per_s: float = FILL_BYTES_PER_S) -> float:
    """What it takes to write a span from end to end, twice: the price of preconditioning."""
    return FILL_TIMES * span_bytes / bytes_per_s


def sample_places(span: tuple[int, int], seed: int) -> list[int]:
    """Byte offsets in `span`, one at random in each of SAMPLES equal parts.

    Each is a multiple of SAMPLE_BYTES.  A span that has fewer places gives all it has.
    """
    chance = random.Random(seed)
    first, end = -(-span[0] // SAMPLE_BYTES), sum(span) // SAMPLE_BYTES
    count = max(0, min(SAMPLES, end - first))
    edges = [first + part * (end - first) // count for part in range(count + 1)] if count else []
    return [chance.randrange(low, high) * SAMPLE_BYTES for low, high in pairwise(edges)]


def zero_samples(
    host: "Host", node: str, places: Sequence[int], logical_bytes: int
) -> tuple[int, int]:
    """How many of the `places` hold nothing but zeros, and how many could be read.

    They are read past the host's page cache, by SCSI READ (16), a few at a time;
    `logical_bytes` is the size of the drive's logical block.  A place that the drive cannot
    read is not counted: its error is the business of those who watch the kernel's log.
    """
    handle = host.hold_device(node, exclusive=False)

    def sample(place: int) -> bytes | None:
        cdb = bytearray(16)
        cdb[0] = _READ_16
        cdb[2:10] = (place // logical_bytes).to_bytes(8, "big")
        cdb[10:14] = (SAMPLE_BYTES // logical_bytes).to_bytes(4, "big")
        try:
            return host.sg_io(handle, bytes(cdb), SAMPLE_BYTES, READ_DEADLINE_S)
        except CommandRefused:
            return None

    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            read = [data for data in pool.map(sample, places) if data is not None]
    finally:
        host.release_device(handle)
    return sum(not any(data) for data in read), len(read)


def check_written(zeros: int, read: int, *, span_bytes: int, rotates: bool) -> Finding:
    """Whether reads of the span reach the medium: most of what was sampled is not zeros.

    A disk's medium is read whatever it holds.  An SSD answers for what was never written, or
    was trimmed, from its tables (though it need not answer with zeros: ACS-3 7.10.3.2).
    """
    if read == 0:
        return Finding(UNWRITTEN, "unknown", "no sample could be read")
    found = f"{zeros} of {read} samples of {SAMPLE_BYTES} bytes are all zeros"
    if rotates:
        return Finding(UNWRITTEN, "ok", f"{found}; a disk reads its medium whatever it holds")
    if zeros <= ZERO_SHARE * read:
        return Finding(UNWRITTEN, "ok", found)
    remedy = (
        f"write the span of {span_bytes / 1e9:.4g} GB twice (a test that writes does, with "
        f"--allow-writes): {in_words(fill_seconds(span_bytes))} at "
        f"{FILL_BYTES_PER_S / 1e6:.0f} MB/s"
    )
    return Finding(UNWRITTEN, "void", f"{found}; {remedy}")


def check_span(span_bytes: int, cache_bytes: int | None) -> Finding:
    """Whether the span is so large that the drive's cache does not matter.

    `cache_bytes` is the firmware matrix's, None where it does not say.
    """
    cache = DEFAULT_CACHE_BYTES if cache_bytes is None else cache_bytes
    known = "" if cache_bytes is not None else " (assumed: set the model's cache_bytes)"
    found = (
        f"{span_bytes / 1e9:.4g} GB, and a cache of {cache / (1 << 20):.4g} MiB{known}; "
        f"at least {CACHES} times the cache is wanted"
    )
    return verdict_on(SPAN, span_bytes < CACHES * cache, found)


def in_words(seconds: float) -> str:
    """A price in time, as people say it."""
    if seconds < 120:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 7200 else f"about {seconds / 3600:.1f} h"
