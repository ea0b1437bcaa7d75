"""Names and messages that come from a drive, made fit to show.

What a drive, a kernel log or a PDU says is untrusted: a serial number may hold
an escape sequence.  Everything of that kind passes through :func:`plain` before
it reaches a terminal, a report or a database.
"""

import re
import unicodedata

_UNPRINTABLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_PLAIN_ASCII = re.compile(r"[ -~]*")


def plain(text: str) -> str:
    """`text` without control, format, surrogate or unassigned characters; a tab becomes a space."""
    if _PLAIN_ASCII.fullmatch(text):
        return text
    kept = (c for c in text.replace("\t", " ") if unicodedata.category(c) not in _UNPRINTABLE)
    return "".join(kept)


def plain_ascii(data: bytes) -> str:
    """A drive's field as text: padding stripped, and U+FFFD for each byte that is not ASCII."""
    return plain(data.decode("ascii", "replace").replace("\0", " ")).strip()
