"""What was found in sectors, as one line of text between the rig and us.

Used at both ends, on the rig by its own ``python3`` (3.8 or newer): the standard library alone.

A word a sector, ``WORD*N`` for N that are alike: a generation in decimal digits for a sector
that is its own; ``xHEX`` for another, with all its bytes; ``-`` for further ones in the same
line, of which the bytes are not sent; ``eN`` for one that cannot be read, by its errno.
"""

from __future__ import annotations

from itertools import groupby

from leadline.integrity.pattern import SECTOR_BYTES, Stamp, stamp_of

UNTOLD = "-"

TYPE_CHECKING = False
if TYPE_CHECKING:
    Found = int | bytes | str
    """A generation; the bytes of a sector that is not its own; `-`; or `eN`."""


def told(data: bytes, seed: int, lba: int) -> list[str]:
    """A word for each sector of `data`, which was read from `lba` on."""
    words = []
    is_told = False
    for place in range(len(data) // SECTOR_BYTES):
        sector = data[place * SECTOR_BYTES : (place + 1) * SECTOR_BYTES]
        stamp = stamp_of(sector)
        if isinstance(stamp, Stamp) and stamp[:2] == (seed, lba + place):
            words.append(str(stamp.generation))
        else:
            words.append(UNTOLD if is_told else "x" + sector.hex())
            is_told = True
    return words


def unreadable(errno: int) -> str:
    """The word for a sector that cannot be read."""
    return f"e{errno}"


def line_of(words: list[str]) -> str:
    """The words as text."""
    return " ".join(f"{word}*{len(list(same))}" for word, same in groupby(words))


def found_in(text: str) -> list[Found]:
    """What a line says, a sector each; ValueError for what is no such line."""
    found: list[Found] = []
    for word, _, times in (each.partition("*") for each in text.split()):
        one: Found
        if word.startswith("x"):
            one = bytes.fromhex(word[1:])
            if len(one) != SECTOR_BYTES:
                raise ValueError(f"a sector of {len(one)} bytes")
        elif word.startswith("e"):
            one = unreadable(int(word[1:]))
        else:
            one = word if word == UNTOLD else int(word)
        found += [one] * int(times)
    return found
