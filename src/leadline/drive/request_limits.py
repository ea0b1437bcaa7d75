"""How large can a request be when it reaches the drive?  Predicted from the kernel's limits.

The block layer cuts what a program asks for into requests (`bio_split_rw` in Linux's
block/blk-merge.c): none larger than max_sectors_kb, none of more than max_segments segments,
no segment larger than max_segment_size (Documentation/ABI/stable/sysfs-block).  A segment is
a string of pages that are neighbours in memory.  Where the pages of ordinary memory lie is
chance: a request from there has a guaranteed size, when no two of them are neighbours, and a
possible one, when all are.  A hugepage is a string by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from leadline.errors import Misuse, RigTrouble

KIB, MIB = 1 << 10, 1 << 20
SECTOR_BYTES = 512
BIO_STRINGS = 256
"""So many strings of pages does the kernel take into one bio, for whatever drive it is:
BIO_MAX_VECS in include/linux/bio.h.  What is left of the bio is a request of its own."""


class _Bound(NamedTuple):
    """One limit: the most that it lets through, bytes, and what it is called."""

    most: int
    name: str


@dataclass(frozen=True)
class Promise:
    """What the limits make of a request of `asked` bytes: at least `guaranteed` of it arrive
    as one, and at most `possible`.

    `binding` names what keeps the guaranteed size below what is asked, "" where nothing does;
    `ceiling` the same of the possible size.  `page_bytes` is the size of the pages that the
    data is in, `huge` whether they are hugepages.
    """

    asked: int
    guaranteed: int
    possible: int
    binding: str
    ceiling: str
    page_bytes: int
    huge: bool = False

    def __str__(self) -> str:
        kind = "hugepages" if self.huge else "pages"
        asked = f"{in_binary(self.asked)} from {kind} of {in_binary(self.page_bytes)}"
        if self.guaranteed == self.asked:
            return f"{asked} arrive whole: no limit is in the way"
        least = f"{asked} arrive as {in_binary(self.guaranteed)} at least, for {self.binding}"
        if self.possible == self.guaranteed:
            return least
        if self.possible == self.asked:
            return f"{least}; whole where pages are neighbours in memory"
        most = f"as {in_binary(self.possible)} at most where pages are neighbours in memory"
        return f"{least}; {most}, for {self.ceiling}"


@dataclass(frozen=True)
class RequestLimits:
    """The limits of one drive, as `/sys/block/<disk>/queue/` has them, and its host's pages.

    `max_sectors_kb` and `max_hw_sectors_kb` are in KiB, the rest in bytes; `huge_page_bytes`
    is 0 where the kernel has no hugepages.  Raises ValueError on limits that let nothing
    through.
    """

    max_sectors_kb: int
    max_hw_sectors_kb: int
    max_segments: int
    max_segment_size: int
    page_bytes: int = 4 * KIB
    huge_page_bytes: int = 2 * MIB

    def __post_init__(self) -> None:
        if min(self.max_segments, self.max_segment_size) < 1 or self._sectors.most < 1:
            raise ValueError(f"{self}: nothing can be asked of such a drive")

    def promise(self, asked: int, *, hugepages: bool = False) -> Promise:
        """What becomes of a request of `asked` bytes whose memory is of ordinary pages or huge.

        Raises Misuse on a size that is no multiple of a sector, RigTrouble on hugepages where
        there are none.
        """
        if asked < SECTOR_BYTES or asked % SECTOR_BYTES:
            raise Misuse(f"a request of {asked} bytes: a multiple of {SECTOR_BYTES} is expected")
        string = self.huge_page() if hugepages else self.page_bytes
        guaranteed, binding = _least((self._sectors, self._scattered(string), _bio(string)), asked)
        possible, ceiling = _least((self._sectors, self._neighbours), asked)
        return Promise(asked, guaranteed, possible, binding, ceiling, string, hugepages)

    def huge_page(self) -> int:
        """The size of a hugepage, bytes.  RigTrouble where the rig's kernel has none."""
        if not self.huge_page_bytes:
            raise RigTrouble("the rig's kernel has no hugepages: boot one with CONFIG_HUGETLBFS")
        return self.huge_page_bytes

    @property
    def _sectors(self) -> _Bound:
        # A request that does not end what was asked ends with a physical sector, and thus a page.
        most = self.max_sectors_kb * KIB // self.page_bytes * self.page_bytes
        if self.max_sectors_kb >= self.max_hw_sectors_kb:
            return _Bound(most, f"max_hw_sectors_kb is {self.max_hw_sectors_kb}")
        raised = f"which can be raised to max_hw_sectors_kb, {self.max_hw_sectors_kb}"
        return _Bound(most, f"max_sectors_kb is {self.max_sectors_kb}, {raised}")

    @property
    def _neighbours(self) -> _Bound:
        name = f"max_segments is {self.max_segments}, and max_segment_size {self._segment}"
        return _Bound(self.max_segments * self.max_segment_size, name)

    @property
    def _segment(self) -> str:
        return in_binary(self.max_segment_size)

    def _scattered(self, string: int) -> _Bound:
        """When every string of `string` bytes lies by itself."""
        if string > self.max_segment_size:
            each = -(-string // self.max_segment_size)
            strings, left = divmod(self.max_segments, each)
            return _Bound(strings * string + left * self.max_segment_size, self._neighbours.name)
        name = f"max_segments is {self.max_segments}, one for each page of {in_binary(string)}"
        return _Bound(self.max_segments * string, name)


def _bio(string: int) -> _Bound:
    name = f"the kernel puts no more than {BIO_STRINGS} pages together (BIO_MAX_VECS)"
    return _Bound(BIO_STRINGS * string, name)


def _least(bounds: Sequence[_Bound], asked: int) -> tuple[int, str]:
    """The least of them, and the names of all that are as small: raising one would not do."""
    least = min(bound.most for bound in bounds)
    if least >= asked:
        return asked, ""
    return least, " and ".join(bound.name for bound in bounds if bound.most == least)


def in_binary(size: float) -> str:
    """Bytes as people who set such limits say them: 512 KiB, 1 MiB."""
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and (size % unit == 0 or unit == KIB):
            return f"{size / unit:.6g} {name}"
    return f"{size:g} bytes"
