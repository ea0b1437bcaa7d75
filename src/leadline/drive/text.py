"""Names and messages that come from a drive, made fit to show.

What a drive, a kernel log or a PDU says is untrusted: a serial number may hold
an escape sequence.  Everything of that kind passes through :func:`plain` before
it reaches a terminal, a report or a database.
"""

import re
import unicodedata

_PLAIN_ASCII = re.compile(r"[ -~]*")


def plain(text: str) -> str:
    """`text` in one line of printable characters: others are left out, and a tab or another kind
    of blank becomes a space."""
    if _PLAIN_ASCII.fullmatch(text):
        return text
    return "".join(" " if _is_blank(c) else c for c in text if c.isprintable() or _is_blank(c))


def plain_ascii(data: bytes) -> str:
    """A drive's field as text: padding stripped, and U+FFFD for each byte that is not ASCII."""
    return plain(data.decode("ascii", "replace").replace("\0", " ")).strip()


def _is_blank(character: str) -> bool:
    return character == "\t" or unicodedata.category(character) == "Zs"
