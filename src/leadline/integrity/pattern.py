"""What a sector is written with: it tells who wrote it, and where it belongs.

Used at both ends, on the rig by its own ``python3`` (3.8 or newer): the standard library alone.

A sector of 512 bytes (whatever the drive's logical block is) holds, little-endian:

    ====== ==== ==========================================================
    offset size
    0      8    ``MAGIC``
    8      8    the seed of the load
    16     8    the sector's LBA, in units of 512 bytes
    24     8    its generation: the number of the request that wrote it
    32     468  noise, another for each sector and generation
    500    8    the generation again, by which the end of a torn sector is known
    508    4    CRC-32 of all that precedes
    ====== ==== ==========================================================
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple
from zlib import crc32

SECTOR_BYTES = 512
MAGIC = b"LEADLINE"
NOISE_BYTES = 1 << 16

_HEAD = Struct("<8sQQQ")
_GENERATION = Struct("<Q")
_CHECKSUM = Struct("<I")
_TAIL = SECTOR_BYTES - _GENERATION.size - _CHECKSUM.size
_NOISE_EACH = _TAIL - _HEAD.size


class Stamp(NamedTuple):
    """Where a sector's contents come from."""

    seed: int
    lba: int
    generation: int


class Torn(NamedTuple):
    """A sector that is not whole: what it begins as, and the generation that it ends as."""

    head: Stamp
    tail_generation: int


def stamped(seed: int, lba: int, sectors: int, generation: int, noise: bytes) -> bytes:
    """The contents of so many sectors from `lba` on; `noise` is NOISE_BYTES of it, from anywhere.

    Each sector takes another piece of the noise, so that nothing can be compressed or
    deduplicated, and a sector that mixes two generations has a checksum that does not hold.
    """
    pieces = []
    tail = _GENERATION.pack(generation)
    for each in range(lba, lba + sectors):
        start = (each * 7919 + generation * 104729) % (NOISE_BYTES - _NOISE_EACH)
        head = _HEAD.pack(MAGIC, seed, each, generation)
        body = head + noise[start : start + _NOISE_EACH] + tail
        pieces.append(body + _CHECKSUM.pack(crc32(body)))
    return b"".join(pieces)


def stamp_of(sector: bytes) -> Stamp | Torn | None:
    """Who wrote a sector; None when nobody of ours did."""
    magic, seed, lba, generation = _HEAD.unpack_from(sector)
    if magic != MAGIC:
        return None
    stamp = Stamp(seed, lba, generation)
    if crc32(sector[: -_CHECKSUM.size]) == _CHECKSUM.unpack_from(sector, -_CHECKSUM.size)[0]:
        return stamp
    return Torn(stamp, _GENERATION.unpack_from(sector, _TAIL)[0])
