"""What each sector may hold, as writes are issued, acknowledged and flushed; pure.

The promise of a drive is this.  A write takes effect, sector by sector, somewhere between its
issue and its acknowledgement.  A flush makes durable what had been acknowledged when it was
issued; a write with FUA is durable when it is acknowledged.  After a power cut a sector holds
a durable write, or one that may have come after it: nothing that was acknowledged before the
durable one was issued, and never anything else.  T13 ACS-3, FLUSH CACHE EXT, and the FUA bit of
WRITE FPDMA QUEUED; T10 SBC-3, SYNCHRONIZE CACHE, and the FUA bit of WRITE.

Times are places in the order of events.  Of each sector those writes alone are kept that it may
still hold after a power cut: one, mostly.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

BEFORE = 0
"""The generation of what a sector held before the first write to it."""


@dataclass(slots=True, eq=False)
class Write:
    """A write: when it was issued and acknowledged; never, as long as `acked` is None."""

    number: int
    issued: int
    acked: int | None = None

    def is_before(self, other: "Write") -> bool:
        """Whether this one had been acknowledged when the other was issued."""
        return self.acked is not None and self.acked < other.issued


_FIRST = Write(BEFORE, -2, -1)


@dataclass(slots=True)
class _Open:
    """A read under way, and what each of its sectors may return."""

    lbas: range
    allowed: list[set[int]]


@dataclass
class History:
    """The writes to a drive so far.  Events are to be told in the order in which they happened."""

    covered: int = 0  # sectors with a durable write
    durable: int = 0  # writes that are durable, by the drive's word
    _now: int = 0
    _kept: dict[int, list[Write]] = field(default_factory=dict, repr=False)
    _flying: dict[int, tuple[Write, range]] = field(default_factory=dict, repr=False)
    _unflushed: list[tuple[Write, range]] = field(default_factory=list, repr=False)
    _flushes: dict[int, int] = field(default_factory=dict, repr=False)
    _reads: dict[int, _Open] = field(default_factory=dict, repr=False)

    def issue_write(self, number: int, lbas: range) -> None:
        """It may take effect from now on."""
        write = Write(number, self._tick())
        self._flying[number] = (write, lbas)
        for lba in lbas:
            self._kept.setdefault(lba, [_FIRST]).append(write)
        for read in self._reads.values():
            for lba in range(max(lbas.start, read.lbas.start), min(lbas.stop, read.lbas.stop)):
                read.allowed[lba - read.lbas.start].add(number)

    def ack_write(self, number: int, *, fua: bool) -> None:
        """It has taken effect; with `fua` it is durable."""
        write, lbas = self._flying.pop(number)
        write.acked = self._tick()
        if fua:
            self._settle(write, lbas)
        else:
            self._unflushed.append((write, lbas))

    def issue_flush(self, number: int) -> None:
        """What is acknowledged by now will be durable when it is answered."""
        self._flushes[number] = self._tick()

    def ack_flush(self, number: int) -> None:
        """What had been acknowledged when it was issued is durable."""
        self._tick()
        begun, waiting = self._flushes.pop(number), self._unflushed
        self._unflushed = []
        for write, lbas in waiting:
            assert write.acked is not None
            if write.acked < begun:
                self._settle(write, lbas)
            else:
                self._unflushed.append((write, lbas))

    def issue_read(self, number: int, lbas: range) -> None:
        """From now on it may return what is there."""
        self._tick()
        self._reads[number] = _Open(lbas, [self.current(lba) for lba in lbas])

    def ack_read(self, number: int) -> list[set[int]]:
        """The generations that each sector of the read may have returned."""
        self._tick()
        return self._reads.pop(number).allowed

    def current(self, lba: int) -> set[int]:
        """The generations that the sector may hold now, with power."""
        kept = self._kept.get(lba, [_FIRST])
        latest = max((each for each in kept if each.acked is not None), key=_issued, default=None)
        return {each.number for each in kept if latest is None or not each.is_before(latest)}

    def lasting(self, lba: int) -> set[int]:
        """The generations that the sector may hold after a power cut at this moment."""
        return {each.number for each in self._kept.get(lba, [_FIRST])}

    def under_way(self) -> int:
        """How many requests were issued and not answered."""
        return len(self._flying) + len(self._flushes) + len(self._reads)

    def observed(self, lba: int, number: int) -> None:
        """A read found that write, and no other to the sector was under way.

        Of those that were acknowledged side by side, this one has won.
        """
        kept = self._kept.get(lba, [])
        if len(kept) == 1:
            return
        for place, write in enumerate(kept):
            if write.number == number:
                kept[place] = Write(number, self._tick(), self._tick())

    def _settle(self, durable: Write, lbas: Iterable[int]) -> None:
        self.durable += 1
        for lba in lbas:
            kept = self._kept[lba]
            if kept[0] is _FIRST:
                self.covered += 1
            self._kept[lba] = [write for write in kept if not write.is_before(durable)]

    def _tick(self) -> int:
        self._now += 1
        return self._now


def _issued(write: Write) -> int:
    return write.issued
