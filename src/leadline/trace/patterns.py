"""Access patterns: what one part of a task asks of a drive, described, and made into requests.

A stream is a description and no more: places are shares of the drive's capacity, sizes are
bytes on a drive of REFERENCE_BYTES.  A smaller drive has everything smaller in proportion.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leadline.errors import Misuse
from leadline.trace.trace import READ, WRITE, Trace, trace_of

REFERENCE_BYTES = 40_000_000_000
"""The partition that the story's traces were recorded on."""
LEAST_BYTES = 64 << 20
MOST_FRAGMENTS = 100_000
PAGE = 4096
ISSUE_US = 20
"""Between two requests of one burst: what a program and the kernel take to issue one."""
FRAGMENTS_SPREAD = 4
"""The pieces of a fragmented file lie in a region of so many times its size."""

Kind = Literal["read", "write"]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Drive:
    """What a description is made into requests for: a capacity, and how broken up files are.

    `fragments` is the number of pieces of each large file.  Raises Misuse on what cannot be.
    """

    capacity_bytes: int
    fragments: int = 1

    def __post_init__(self) -> None:
        if self.capacity_bytes < LEAST_BYTES:
            raise Misuse(
                f"a capacity of {self.capacity_bytes} bytes: the loads have nothing to do on so "
                f"little; give at least {LEAST_BYTES}"
            )
        if self.capacity_bytes >= 1 << 63:
            raise Misuse(f"a capacity of {self.capacity_bytes} bytes: no drive is so large")
        if not 1 <= self.fragments <= MOST_FRAGMENTS:
            raise Misuse(f"{self.fragments} fragments: a file lies in 1 to {MOST_FRAGMENTS}")

    @property
    def scale(self) -> float:
        """How large everything is, of what it is in the description."""
        return min(1.0, self.capacity_bytes / REFERENCE_BYTES)

    def bytes_of(self, size: int) -> int:
        """A described size on this drive: whole pages, at least one."""
        return max(PAGE, int(size * self.scale) // PAGE * PAGE)

    def begin_of(self, at: float, size: int) -> int:
        """The byte where something of `size` begins that lies at a share of the capacity."""
        last = (self.capacity_bytes - size) // PAGE * PAGE
        return max(0, min(int(at * self.capacity_bytes) // PAGE * PAGE, last))


@dataclass(frozen=True)
class Place:
    """Where a file or a region lies: it begins `at` a share of the capacity."""

    at: float
    size: int


@dataclass(frozen=True)
class Sequential:
    """A file read or written from its beginning to its end, in bursts.

    `burst` requests of `request_bytes` are issued together, as by read-ahead or by writing back;
    between bursts the program computes, for a random time, at `bytes_per_s` on average.
    """

    file: Place
    kind: Kind
    request_bytes: int
    bytes_per_s: float
    burst: int = 1
    ends = True

    def requests(self, drive: Drive, chance: np.random.Generator, _until_us: int) -> Trace:
        """Its requests until the file ends."""
        size = drive.bytes_of(self.file.size)
        places = np.arange(0, size, self.request_bytes, dtype=np.int64)
        lengths = np.minimum(self.request_bytes, size - places)
        every_us = self.burst * self.request_bytes / self.bytes_per_s * 1e6
        bursts = -(-len(places) // self.burst)
        times = in_bursts(_starts(chance, every_us, bursts, self.burst), self.burst)
        return trace_of(
            times[: len(places)],
            _number(self.kind),
            self._fragmented(places, size, drive, chance),
            lengths,
        )

    def _fragmented(
        self, places: Numbers, size: int, drive: Drive, chance: np.random.Generator
    ) -> Numbers:
        """Where the file's bytes lie: in one piece, or in pieces scattered about."""
        pieces = max(1, min(drive.fragments, size // self.request_bytes))
        if pieces == 1:
            return places + drive.begin_of(self.file.at, size)
        # A piece has whole requests, so that none is split.
        piece = -(-size // pieces // self.request_bytes) * self.request_bytes
        room = min(FRAGMENTS_SPREAD * pieces, drive.capacity_bytes // piece)
        begins = chance.permutation(max(room, pieces))[:pieces] * piece
        first = drive.begin_of(self.file.at, room * piece)
        return begins[places // piece] + first + places % piece


@dataclass(frozen=True)
class Files:
    """Many small files, one after the other, each whole, scattered in a region.

    `total_bytes` in files of `mean_bytes` on average (lognormal, `sigma` of the logarithm); each
    is `request_bytes` at a time, and the next begins after a random while, `files_per_s` on
    average.
    """

    region: Place
    kind: Kind
    total_bytes: int
    mean_bytes: int
    files_per_s: float
    request_bytes: int = 65_536
    sigma: float = 1.0
    burst = 1
    ends = True

    def requests(self, drive: Drive, chance: np.random.Generator, _until_us: int) -> Trace:
        """Its requests until the last file ends."""
        count = max(1, round(self.total_bytes * drive.scale / self.mean_bytes))
        region = drive.bytes_of(self.region.size)
        mu = np.log(self.mean_bytes) - self.sigma**2 / 2  # so that the mean is mean_bytes
        sizes = chance.lognormal(mu, self.sigma, count).astype(np.int64)
        largest = max(PAGE, region // 4 // PAGE * PAGE)
        sizes = np.clip(-(-sizes // PAGE) * PAGE, PAGE, largest)
        pages = (region - sizes) // PAGE
        begins = drive.begin_of(self.region.at, region) + chance.integers(0, pages + 1) * PAGE
        each = -(-sizes // self.request_bytes)  # requests of a file
        nth = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
        within = nth * self.request_bytes
        starts = _starts(chance, 1e6 / self.files_per_s, count, 1)
        return trace_of(
            np.repeat(starts, each) + nth * ISSUE_US,
            _number(self.kind),
            np.repeat(begins, each) + within,
            np.minimum(self.request_bytes, np.repeat(sizes, each) - within),
        ).by_time()


@dataclass(frozen=True)
class Random:
    """Requests at random places of a region, in bursts at random times: an index, a table.

    `per_s` bursts of `burst` requests a second; it goes on until the load ends.
    """

    region: Place
    kind: Kind
    request_bytes: int
    per_s: float
    burst: int = 1
    ends = False

    def requests(self, drive: Drive, chance: np.random.Generator, until_us: int) -> Trace:
        """Its requests until the load ends."""
        starts = _poisson(chance, self.per_s, until_us)
        times = in_bursts(starts, self.burst)
        region = max(self.request_bytes, drive.bytes_of(self.region.size))
        slots = region // self.request_bytes
        places = chance.integers(0, slots, len(times)) * self.request_bytes
        begin = drive.begin_of(self.region.at, region)
        kind = _number(self.kind)
        return trace_of(times, kind, begin + places, self.request_bytes).by_time()


@dataclass(frozen=True)
class Appends:
    """Writes one after the other into a region that is begun again when it is full: a journal.

    `per_s` writes a second at random times; it goes on until the load ends.
    """

    region: Place
    request_bytes: int
    per_s: float
    burst: int = 1
    ends = False
    kind: Kind = "write"

    def requests(self, drive: Drive, chance: np.random.Generator, until_us: int) -> Trace:
        """Its requests until the load ends."""
        times = _poisson(chance, self.per_s, until_us)
        region = max(self.request_bytes, drive.bytes_of(self.region.size))
        slots = region // self.request_bytes
        first = int(chance.integers(0, slots))
        places = (first + np.arange(len(times))) % slots * self.request_bytes
        begin = drive.begin_of(self.region.at, region)
        return trace_of(times, WRITE, begin + places, self.request_bytes)


Stream = Sequential | Files | Random | Appends


def in_bursts(starts: Numbers, burst: int) -> Numbers:
    """The times of `burst` requests at each start, ISSUE_US apart."""
    return (starts[:, None] + np.arange(burst) * ISSUE_US).ravel()


def _number(kind: Kind) -> int:
    return READ if kind == "read" else WRITE


def _starts(chance: np.random.Generator, every_us: float, count: int, burst: int) -> Numbers:
    """When `count` bursts begin: never before the one before has been issued."""
    least = burst * ISSUE_US
    waits = least + chance.exponential(max(0.0, every_us - least), count)
    return np.cumsum(waits).astype(np.int64)


def _poisson(chance: np.random.Generator, per_s: float, until_us: int) -> Numbers:
    """Times that come at random, `per_s` a second on average, up to `until_us`."""
    count = int(chance.poisson(per_s * until_us / 1e6))
    return np.sort(chance.integers(1, max(2, until_us), count))
