"""IDENTIFY data from a file: 512 raw bytes, or hex as the usual programs print it.

Text is 256 words of four digits, as from ``hdparm --Istdout``, ``sg_sat_identify -HHH`` and
``/sys/class/ata_device/*/id`` (a word's value, high byte first), or 512 bytes of two digits, as
from ``sg_sat_identify -HHHH`` (in the order of the wire).
"""

import re
from typing import NamedTuple

from leadline.drive.identify import LENGTH, SIGNATURE
from leadline.drive.text import plain
from leadline.errors import Misuse

_REMEDY = (
    "give 512 raw bytes, or the hex words of `hdparm --Istdout` or `sg_sat_identify -HHH` whole"
)
_HEADER = re.compile(r"/dev/\S+:")  # hdparm names the device first
_TOKEN = re.compile(r"\S+")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}){1,2}")
_TEXT = re.compile(rb"[\t\n\r -~]*")


class _Token(NamedTuple):
    text: str
    line: int
    column: int


def read_source(content: bytes, name: str) -> bytes:
    """The 512 bytes, as they came over the wire, that `content` of the file `name` holds.

    Raises Misuse, as `file:line:column: what was found, remedy`, for what is neither.
    """
    if len(content) == LENGTH and not _is_hex_text(content):
        return _in_wire_order(content)
    if not content.strip():
        raise Misuse(f"{name}: the file is empty; {_REMEDY}")
    if not _TEXT.fullmatch(content):
        raise Misuse(f"{name}: {len(content)} raw bytes where IDENTIFY data is {LENGTH}; {_REMEDY}")
    return _in_wire_order(_from_hex(content.decode("ascii"), name))


def _is_hex_text(content: bytes) -> bool:
    """512 bytes that are hex digits and white space are a text cut short, not a drive's answer."""
    return re.fullmatch(rb"[0-9A-Fa-f\s]*", content) is not None


def _from_hex(text: str, name: str) -> bytes:
    tokens = list(_tokens(text))
    if not tokens:
        raise Misuse(f"{name}: no hex words in it; {_REMEDY}")
    digits = len(tokens[0].text)
    for token in tokens:
        if not _HEX.fullmatch(token.text):
            raise _misplaced(name, token, "is not a hex word")
        if len(token.text) != digits:
            raise _misplaced(name, token, f"stands among numbers of {digits} digits")
    unit, wanted = ("words", LENGTH // 2) if digits == 4 else ("bytes", LENGTH)
    if len(tokens) != wanted:
        last = tokens[-1]
        raise Misuse(
            f"{name}:{last.line}:{last.column}: the text ends after {len(tokens)} hex {unit}, "
            f"and IDENTIFY data is {wanted}; {_REMEDY}"
        )
    data = bytes.fromhex("".join(token.text for token in tokens))
    return _swapped(data) if digits == 4 else data


def _tokens(text: str) -> list[_Token]:
    tokens = []
    for number, line in enumerate(text.splitlines(), 1):
        if _HEADER.fullmatch(line.strip()):
            continue
        tokens += [_Token(m[0], number, m.start() + 1) for m in _TOKEN.finditer(line)]
    return tokens


def _misplaced(name: str, token: _Token, complaint: str) -> Misuse:
    shown = plain(token.text[:20])
    return Misuse(f"{name}:{token.line}:{token.column}: {shown!r} {complaint}; {_REMEDY}")


def _swapped(data: bytes) -> bytes:
    swapped = bytearray(data)
    swapped[0::2], swapped[1::2] = swapped[1::2], swapped[0::2]
    return bytes(swapped)


def _in_wire_order(data: bytes) -> bytes:
    """`data` with the bytes of each word put right, if they are certainly swapped.

    Some tools write words high byte first.  The sum of the bytes cannot tell, but the signature
    can: A5h in the wrong half of word 255 with a sum that holds.  So can the fixed bits 15:14 of
    words 83, 84 and 87 (01b, ATA8-ACS), when they are right only the other way round.  Without
    such proof the data is taken as it is.
    """
    other = _swapped(data)
    if data[510] == SIGNATURE or other[510] != SIGNATURE:
        signed_only_there = False
    else:
        signed_only_there = sum(data) % 256 == 0
    if signed_only_there or (_fixed_bits(other) == 3 and _fixed_bits(data) == 0):
        return other
    return data


def _fixed_bits(data: bytes) -> int:
    return sum(data[2 * word + 1] & 0xC0 == 0x40 for word in (83, 84, 87))
