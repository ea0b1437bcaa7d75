"""Which request comes when: computed from a seed, so that an intent needs no message.

Used at both ends, on the rig by its own ``python3`` (3.8 or newer): the standard library alone.
Request number n is the same wherever and whenever it is asked for.  So the plan, put on record
before the first request, is the intent of every write that can ever be sent.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

FILL_BLOCKS = 64
"""What one request writes while the span is filled for the first time."""
TURN = 32
"""So many requests in one manner, the last of them a flush; then comes the next manner."""
MANNERS = ("random", "sequential", "overlapping")
MOST_BLOCKS = 16
SEQUENTIAL_BLOCKS = 8
SPOT_BLOCKS = 64
"""The overlapping writes of a turn fall on so few blocks."""
READ, FUA, WRITE, FLUSH = "read", "fua", "write", "flush"
_KINDS = (READ,) * 4 + (FUA,) * 2 + (WRITE,) * 10


class Request(NamedTuple):
    """One request; `lba` and `sectors` are in units of 512 bytes, nothing for a flush."""

    kind: str
    lba: int
    sectors: int

    @property
    def lbas(self) -> range:
        """The sectors that it is about."""
        return range(self.lba, self.lba + self.sectors)


class Plan(NamedTuple):
    """The requests of one load, on stretches that are spread evenly over the drive.

    `block` is the drive's logical block, `first` the LBA of the first stretch, `stride` what
    lies between the beginnings of two: in sectors of 512 bytes.  `stretches` is how many there
    are, each of `blocks` logical blocks.  No request reaches over the end of a stretch.
    """

    seed: int
    first: int
    stride: int
    stretches: int
    blocks: int
    block: int = 1

    @property
    def fills(self) -> int:
        """So many requests, from number 1, fill the span; what follows is mixed."""
        return self.stretches * self.blocks // FILL_BLOCKS

    @property
    def sectors(self) -> int:
        """The size of the span, in sectors of 512 bytes."""
        return self.stretches * self.blocks * self.block

    @property
    def last(self) -> int:
        """The last LBA of the last stretch."""
        return self._lba(self.stretches - 1, self.blocks) - 1

    def chunks(self) -> list[range]:
        """The whole span in pieces of FILL_BLOCKS, as it is read back."""
        return [self.request(number).lbas for number in range(1, self.fills + 1)]

    def request(self, number: int) -> Request:
        """Request number 1, 2, 3, ..."""
        if number <= self.fills:
            stretch, block = divmod((number - 1) * FILL_BLOCKS, self.blocks)
            return self._at(WRITE, stretch, block, FILL_BLOCKS)
        turn, place = divmod(number - self.fills - 1, TURN)
        if place == TURN - 1:
            return Request(FLUSH, 0, 0)
        chance = self._chance(number)
        chance, kind = divmod(chance, len(_KINDS))
        chance, size = divmod(chance, MOST_BLOCKS)
        manner = MANNERS[turn % len(MANNERS)]
        if manner == "random":
            return self._somewhere(_KINDS[kind], chance, size + 1)
        spot = self._chance(-turn)
        spot, stretch = divmod(spot, self.stretches)
        if manner == "sequential":
            begin = spot % (self.blocks - TURN * SEQUENTIAL_BLOCKS + 1)
            back = 1 if _KINDS[kind] == READ and place else 0  # what was written just before
            begin += (place - back) * SEQUENTIAL_BLOCKS
            return self._at(_KINDS[kind], stretch, begin, SEQUENTIAL_BLOCKS)
        begin = spot % (self.blocks - SPOT_BLOCKS + 1)
        begin += chance % (SPOT_BLOCKS - size)
        return self._at(_KINDS[kind], stretch, begin, size + 1)

    def wrote(self, number: int, lba: int) -> bool:
        """Whether request `number` is a write that covers the sector."""
        if number < 1:
            return False
        request = self.request(number)
        return request.kind in (WRITE, FUA) and lba in request.lbas

    def _somewhere(self, kind: str, chance: int, blocks: int) -> Request:
        chance, stretch = divmod(chance, self.stretches)
        return self._at(kind, stretch, chance % (self.blocks - blocks + 1), blocks)

    def _at(self, kind: str, stretch: int, block: int, blocks: int) -> Request:
        return Request(kind, self._lba(stretch, block), blocks * self.block)

    def _lba(self, stretch: int, block: int) -> int:
        return self.first + stretch * self.stride + block * self.block

    def _chance(self, number: int) -> int:
        """A large number at random, the same each time it is asked for."""
        digest = blake2b(b"%d:%d" % (self.seed, number), digest_size=16).digest()
        return int.from_bytes(digest, "little")
