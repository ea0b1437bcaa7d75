"""What is asked of the drive: kind of request, size, place."""

import random
import re
from dataclasses import dataclass

from leadline.errors import Misuse

READS = ("randread", "read")
WRITES = ("randwrite", "write")
MIXES = ("randrw", "rw")
SEQUENTIAL = ("read", "write", "rw")
SECTOR_BYTES = 512


@dataclass(frozen=True)
class Workload:
    """A stream of requests, as fio names its kinds (`rw`).

    `block_bytes` is the size of each request; `read_percent` the share of reads, for mixed
    kinds only; `span` the (offset, size) in bytes of the part of the drive that is used,
    None for all of it.  Raises Misuse on a combination that means nothing.
    """

    name: str
    rw: str = "randread"
    block_bytes: int = 4096
    read_percent: int | None = None
    span: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            self._refuse(f"name {self.name!r}", "lower-case letters, digits and _")
        if self.rw not in READS + WRITES + MIXES:
            self._refuse(f"rw {self.rw!r}", "one of " + ", ".join(READS + WRITES + MIXES))
        if self.block_bytes < SECTOR_BYTES or self.block_bytes % SECTOR_BYTES:
            self._refuse(f"block_bytes {self.block_bytes}", f"a multiple of {SECTOR_BYTES}")
        if self.rw in MIXES:
            if self.read_percent is None or not 0 < self.read_percent < 100:
                self._refuse(f"read_percent {self.read_percent}", "1 to 99 for a mix")
        elif self.read_percent is not None:
            self._refuse(f"read_percent {self.read_percent}", f"none, for {self.rw} is no mix")
        if self.span is not None:
            self._check_span(*self.span)

    @property
    def writes(self) -> bool:
        """Whether any request of this workload changes what is on the drive."""
        return self.rw not in READS

    @property
    def written_share(self) -> float:
        """The share of its requests that write, 0 to 1."""
        return 1.0 - (self.read_percent or 0) / 100 if self.writes else 0.0

    @property
    def sequential(self) -> bool:
        """Whether requests follow one another on the drive."""
        return self.rw in SEQUENTIAL

    def _check_span(self, offset: int, size: int) -> None:
        if offset < 0 or offset % self.block_bytes:
            self._refuse(f"span offset {offset}", "a multiple of block_bytes")
        if size < self.block_bytes or size % self.block_bytes:
            self._refuse(f"span size {size}", "a multiple of block_bytes, at least one")

    def _refuse(self, found: str, expected: str) -> None:
        raise Misuse(f"workload {self.name!r}: {found}; expected {expected}")


def stream(workload: Workload, number: int, of: int, seed: int) -> tuple[int, int]:
    """The (offset, size) in bytes of what one of several streams of a sequential workload uses.

    The span is divided into zones, one a stream.  A stream begins at a place drawn from
    `seed`, in the first half of its zone: slices that all began at the same one would find
    what the slice before had left in the drive's cache.  Raises Misuse where no zone fits.
    """
    span, block = workload.span, workload.block_bytes
    if span is None or span[1] // block < of:
        raise Misuse(
            f"workload {workload.name!r}: span {span}; expected room for {of} stream(s) of "
            f"{block} bytes a request, each in a zone of its own"
        )
    zone = span[1] // block // of
    first = random.Random(f"{seed}.{number}").randrange((zone + 1) // 2)
    return span[0] + (number * zone + first) * block, (zone - first) * block


def random_read(span: tuple[int, int] | None = None) -> Workload:
    """Reads of 4 KiB at uniformly random places: the workload of the queueing claims."""
    return Workload(name="random_read", rw="randread", block_bytes=4096, span=span)


def random_read_8k(span: tuple[int, int] | None = None) -> Workload:
    """Reads of 8 KiB at uniformly random places: pages of a database that fills its cache."""
    return Workload(name="random_read_8k", rw="randread", block_bytes=8192, span=span)


def random_mix(span: tuple[int, int] | None = None) -> Workload:
    """70 % reads and 30 % writes of 4 KiB at uniformly random places, as of a busy server."""
    return Workload(name="random_mix", rw="randrw", block_bytes=4096, read_percent=70, span=span)


def random_write(span: tuple[int, int] | None = None) -> Workload:
    """Writes of 4 KiB at uniformly random places; all that is there is lost."""
    return Workload(name="random_write", rw="randwrite", block_bytes=4096, span=span)


def sequential_read(capacity_bytes: int) -> Workload:
    """Reads of 128 KiB, one after the other, of a drive or of its first `capacity_bytes`.

    It is the most that one command carries on every controller there is.
    """
    block = 128 << 10
    size = capacity_bytes // block * block
    return Workload(name="sequential_read", rw="read", block_bytes=block, span=(0, size))
