"""Bytes on the wire between the agent and us; used at both ends."""

from __future__ import annotations

import binascii
import os
import zlib

CHUNK = 1 << 16
WORTH_SQUEEZING = 1024


def pack(data: bytes) -> dict[str, str]:
    """Bytes as a JSON value: base64, compressed where that is shorter."""
    squeezed = zlib.compress(data, 1) if len(data) >= WORTH_SQUEEZING else data
    key, body = ("z", squeezed) if len(squeezed) < len(data) else ("b", data)
    return {key: binascii.b2a_base64(body, newline=False).decode("ascii")}


def unpack(value: dict[str, str]) -> bytes:
    """The bytes that ``pack`` was given."""
    if "z" in value:
        return zlib.decompress(binascii.a2b_base64(value["z"]))
    return binascii.a2b_base64(value["b"])


def write_all(fd: int, data: bytes) -> None:
    """write(2) until all is written."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
