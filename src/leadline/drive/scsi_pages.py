"""Everything that a SCSI or SAS drive says of itself: INQUIRY, its Vital Product Data, its logs.

The answers as they came, by what was asked: they are kept with the results, so that what the
drive says with one firmware can be held against what it says with another
(:mod:`leadline.drive.scsi_changes`).
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from leadline.drive import ask
from leadline.drive.ask import Asked

if TYPE_CHECKING:
    from leadline.host.connection import Host

Pages = Mapping[str, bytes]
"""Answers by name: ``INQUIRY``, ``READ CAPACITY (16)``, ``VPD page B0h``, ``log page 00h``."""

INQUIRY = "INQUIRY"
CAPACITY = "READ CAPACITY (16)"
LOG_LIST = "log page 00h"

# SPC-4 6.6: EVPD, the page's code, at most 1024 bytes; what is beyond them is not looked at.
_VPD_BYTES = 1024
# SPC-4, LOG SENSE: cumulative values of page 00h, the log pages that there are.
_LOG_SENSE = bytes.fromhex("4d 00 40 00 00 00 00 01 00 00")
_LOG_BYTES = 256


def vpd(code: int) -> str:
    """The name of a VPD page's answer, as in ``VPD page B0h``."""
    return f"VPD page {code:02X}h"


def read_pages(host: "Host", node: str) -> Pages:
    """What the drive at `node` answers; a VPD or log page that it refuses is left out.

    Raises DriveFault when the drive fails a command, and RigTrouble (see
    :mod:`leadline.host.trouble`) when one cannot be put to it.
    """
    handle = host.hold_device(node, exclusive=False)
    try:
        return dict(_answers(Asked(host, handle, node)))
    finally:
        host.release_device(handle)


def read_page(host: "Host", node: str, code: int) -> bytes | None:
    """One VPD page of the drive at `node`; None where it does not list it, or refuses it.

    A page that is not listed is not asked for.  Raises as `read_pages` does.
    """
    handle = host.hold_device(node, exclusive=False)
    try:
        asked = Asked(host, handle, node)
        listed = asked.optional(vpd(0), _evpd(0), _VPD_BYTES)
        if not listed or code not in _whole(listed)[4:]:
            return None
        page = asked.optional(vpd(code), _evpd(code), _VPD_BYTES)
        return _whole(page) if page else None
    finally:
        host.release_device(handle)


def _answers(asked: Asked) -> Iterator[tuple[str, bytes]]:
    standard = asked.command(INQUIRY, ask.INQUIRY, 96)
    yield INQUIRY, standard[: 5 + sum(standard[4:5])]  # byte 4 counts those behind it
    yield CAPACITY, asked.command(CAPACITY, ask.READ_CAPACITY_16, 32)
    listed = asked.optional(vpd(0), _evpd(0), _VPD_BYTES)
    if listed:
        yield vpd(0), _whole(listed)
        for code in sorted({*_whole(listed)[4:]} - {0}):
            page = asked.optional(vpd(code), _evpd(code), _VPD_BYTES)
            if page:
                yield vpd(code), _whole(page)
    logs = asked.optional(LOG_LIST, _LOG_SENSE, _LOG_BYTES)
    if logs:
        yield LOG_LIST, _whole(logs)


def _evpd(code: int) -> bytes:
    return bytes([0x12, 1, code, *_VPD_BYTES.to_bytes(2, "big"), 0])


def _whole(page: bytes) -> bytes:
    """A page with as many bytes as it says: bytes 2-3 count those behind its head of four."""
    return page[: 4 + int.from_bytes(page[2:4], "big")]
