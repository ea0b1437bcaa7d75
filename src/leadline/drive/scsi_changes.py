"""What a SCSI or SAS drive says of itself with one firmware that it did not say with another.

Bytes and bits are those of SPC-4 (INCITS 513): INQUIRY, VPD pages 80h to 92h, log page 00h; and of
SBC-3 (INCITS 514): VPD pages B0h to B7h, READ CAPACITY (16).
"""

from collections.abc import Iterator, Mapping

from leadline.drive import inquiry
from leadline.drive.identify_changes import Change
from leadline.drive.scsi_pages import CAPACITY, INQUIRY, LOG_LIST, Pages, vpd
from leadline.drive.text import plain_ascii

_IDENTIFICATION = vpd(0x83)
# The list of pages is the answers themselves; by the serial number the drive was bound.
_NOT_COMPARED = frozenset({vpd(0x00), vpd(0x80)})
_HEAD: Mapping[int, int] = dict.fromkeys(range(4), 0xFF)
"""Of a VPD page: device type, code, and the length, which is compared as such."""
_LEFT_OUT: Mapping[str, Mapping[int, int]] = {
    # The length; the revision: it is another, that is what this is about.
    INQUIRY: dict.fromkeys((4, 32, 33, 34, 35), 0xFF),
    # Decoded: the last block, the block length, the exponent of the physical block.
    CAPACITY: {**dict.fromkeys(range(12), 0xFF), 13: 0x0F},
}
"""Bits of an answer, by byte, that are compared otherwise or not at all."""

_BITS: Mapping[str, Mapping[tuple[int, int], str]] = {
    INQUIRY: {
        (3, 5): "normal ACA (NORMACA)",
        (5, 3): "third-party copy (3PC)",
        (5, 0): "protection information (PROTECT)",
        (6, 4): "several ports (MULTIP)",
        (7, 1): "command queueing (CMDQUE)",
    },
    CAPACITY: {
        (12, 0): "formatted with protection information (PROT_EN)",
        (14, 7): "logical block provisioning (LBPME)",
        (14, 6): "unmapped blocks read as zeros (LBPRZ)",
    },
    vpd(0x86): {
        (4, 2): "guard of protection information checked (GRD_CHK)",
        (4, 1): "application tag of protection information checked (APP_CHK)",
        (4, 0): "reference tag of protection information checked (REF_CHK)",
        (5, 5): "sense data of unit attentions (UASK_SUP)",
        (5, 4): "grouping (GROUP_SUP)",
        (5, 3): "priorities of commands (PRIOR_SUP)",
        (5, 2): "HEAD OF QUEUE commands (HEADSUP)",
        (5, 1): "ORDERED commands (ORDSUP)",
        (5, 0): "SIMPLE commands (SIMPSUP)",
        (6, 3): "WRITE LONG that makes a block uncorrectable (WU_SUP)",
        (6, 2): "WRITE LONG without correction (CRD_SUP)",
        (6, 1): "non-volatile cache (NV_SUP)",
        (6, 0): "volatile cache (V_SUP)",
        (7, 4): "protection information by intervals (P_I_I_SUP)",
        (8, 4): "referrals (R_SUP)",
        (8, 0): "capability-based security (CBCS)",
        (12, 7): "power on activation of microcode (POA_SUP)",
        (12, 6): "hard reset activation of microcode (HRA_SUP)",
        (12, 5): "vendor specific activation of microcode (VSA_SUP)",
    },
    vpd(0xB0): {(4, 0): "WRITE SAME of no blocks refused (WSNZ)"},
    vpd(0xB1): {
        (8, 1): "FUA of what the cache holds already (FUAB)",
        (8, 0): "unmapped blocks verified (VBULS)",
    },
    vpd(0xB2): {
        (5, 7): "UNMAP (LBPU)",
        (5, 6): "WRITE SAME (16) that unmaps (LBPWS)",
        (5, 5): "WRITE SAME (10) that unmaps (LBPWS10)",
        (5, 2): "unmapped blocks read as zeros (LBPRZ)",
        (5, 1): "anchored blocks (ANC_SUP)",
    },
}
"""What a set bit says, by byte and bit."""
_NUMBERS: Mapping[str, Mapping[tuple[int, int], str]] = {
    vpd(0x86): {
        (10, 11): "minutes of an extended self-test",
        (13, 13): "most bytes of sense data",
    },
    vpd(0xB0): {
        (5, 5): "most blocks of one COMPARE AND WRITE",
        (6, 7): "granularity of a transfer in blocks",
        (8, 11): "most blocks of one transfer",
        (12, 15): "best blocks of one transfer",
        (16, 19): "most blocks of one prefetch",
        (20, 23): "most blocks of one UNMAP",
        (24, 27): "most descriptors of one UNMAP",
        (28, 31): "granularity of UNMAP in blocks",
        (36, 43): "most blocks of one WRITE SAME",
    },
    vpd(0xB1): {(4, 5): "rotation rate", (6, 6): "product type"},
    vpd(0xB2): {(4, 4): "threshold exponent"},
}
"""What stands in whole bytes, the first and the last of them; 0 where nothing is reported."""
_LOST: Mapping[str, str] = {
    "command queueing (CMDQUE)": "commands are not queued any more",
    "SIMPLE commands (SIMPSUP)": "Linux queues its commands as such",
}
"""Bits that no firmware may take away."""
_MEANS: Mapping[str, str] = {
    "volatile cache (V_SUP)": (
        "what was acknowledged may now be lost with the power, or no longer"
    ),
    "logical block provisioning (LBPME)": "Linux unmaps with it",
    "UNMAP (LBPU)": "file systems discard with it",
    "most blocks of one transfer": "Linux sends no larger requests",
    "most blocks of one UNMAP": "Linux splits a discard by it",
    "best blocks of one transfer": "Linux aligns what stands on the drive by it",
    "rotation rate": "Linux takes a drive whose rate is 1 for an SSD",
}
_TITLES: Mapping[str, str] = {
    vpd(0x00): "supported pages",
    vpd(0x80): "unit serial number",
    _IDENTIFICATION: "device identification",
    vpd(0x84): "software interface identification",
    vpd(0x85): "management network addresses",
    vpd(0x86): "extended INQUIRY data",
    vpd(0x87): "mode page policy",
    vpd(0x88): "SCSI ports",
    vpd(0x89): "ATA information",
    vpd(0x8A): "power condition",
    vpd(0x8D): "power consumption",
    vpd(0x90): "protocol specific, logical unit",
    vpd(0x91): "protocol specific, port",
    vpd(0xB0): "block limits",
    vpd(0xB1): "block device characteristics",
    vpd(0xB2): "logical block provisioning",
    vpd(0xB3): "referrals",
    vpd(0xB5): "block device characteristics extension",
    vpd(0xB6): "zoned block device characteristics",
    vpd(0xB7): "block limits extension",
    LOG_LIST: "supported log pages",
}
_OF_PAGE: Mapping[str, str] = {
    vpd(0xB0): "Linux takes its limits of a request from it",
    vpd(0xB1): "Linux tells SSDs from disks by it",
    vpd(0xB2): "Linux discards as it says",
}
_LOGS: Mapping[int, str] = {
    0x01: "buffer overruns",
    0x02: "write errors",
    0x03: "read errors",
    0x05: "verify errors",
    0x06: "non-medium errors",
    0x08: "format status",
    0x0C: "logical block provisioning",
    0x0D: "temperature",
    0x0E: "start-stop cycles",
    0x0F: "of the host",
    0x10: "self-test results",
    0x11: "solid state media",
    0x15: "background scan",
    0x18: "protocol specific, port",
    0x19: "statistics and performance",
    0x1A: "power conditions",
    0x2F: "informational exceptions",
}
_COUNTED = frozenset({0x02, 0x03, 0x05})
_KINDS: Mapping[int, str] = {
    0: "vendor specific name",
    1: "T10 name",
    2: "EUI-64",
    3: "NAA",
    4: "relative port number",
    5: "port group",
    6: "logical unit group",
    7: "MD5 name",
    8: "SCSI name string",
    9: "protocol specific port name",
}
_WHOSE = ("logical unit", "target port", "target device")
_KNOWN_BY = "multipath, and links below /dev/disk/by-id, know the drive by it"
_SHOWN = 8
"""Bytes of what is not decoded."""


def page_changes(before: Pages, after: Pages) -> tuple[Change, ...]:
    """What the second answers say otherwise than the first; losses first.

    Serial number and revision are not compared.  Raises DriveFault where READ CAPACITY (16) or
    page 83h cannot be such, as `inquiry.capacity` and `inquiry.designators` do.
    """
    found: list[Change] = []
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            found.append(_came_or_went(name, came=old is None))
        elif name == LOG_LIST:
            found += _logs(old, new)
        elif name == _IDENTIFICATION:
            found += _names(old, new)
        elif name not in _NOT_COMPARED:
            if name == CAPACITY:
                found += _capacity(old, new)
            found += _compared(name, old, new)
    return tuple(sorted(found, key=lambda change: not change.is_loss))


def _came_or_went(name: str, *, came: bool) -> Change:
    was, is_ = ("absent", "there") if came else ("there", "absent")
    where = "LOG SENSE" if name == LOG_LIST else vpd(0x00)
    title = _TITLES.get(name, "of the vendor, or reserved")
    return Change(f"{name} ({title})", where, was, is_, _OF_PAGE.get(name, ""))


def _capacity(before: bytes, after: bytes) -> Iterator[Change]:
    """What decides how much it holds, and where."""
    old, new = inquiry.capacity(before), inquiry.capacity(after)
    if old.bytes != new.bytes:
        yield Change(
            "capacity in bytes",
            f"{CAPACITY}, bytes 0-11",
            str(old.bytes),
            str(new.bytes),
            "what stood at the end is out of reach, and an array may refuse the drive",
            is_loss=True,
        )
    if old.logical != new.logical:
        where, means = f"{CAPACITY}, bytes 8-11", "every address means another place"
        were, are = str(old.logical), str(new.logical)
        yield Change("bytes of a logical block", where, were, are, means, is_loss=True)
    if old.physical != new.physical:
        where = f"{CAPACITY}, byte 13 bits 3:0"
        yield Change("bytes of a physical block", where, str(old.physical), str(new.physical))


def _compared(name: str, old: bytes, new: bytes) -> Iterator[Change]:
    """Each bit and number that changed and has a name; from the first to the last of the rest."""
    if len(old) != len(new):
        yield Change("length in bytes", name, str(len(old)), str(len(new)))
    left_out = _LEFT_OUT.get(name, _HEAD)
    pairs = enumerate(zip(old, new, strict=False))
    left = bytearray((a ^ b) & ~left_out.get(n, 0) for n, (a, b) in pairs)
    yield from _bits(name, old, new, left)
    yield from _numbers(name, old, new, left)
    if any(left):
        places = [n for n, bits in enumerate(left) if bits]
        first, last = places[0], places[-1]
        were, are = (_hex(data[first : last + 1]) for data in (old, new))
        yield Change("not decoded by Leadline", _place(name, first, last), were, are)


def _bits(name: str, old: bytes, new: bytes, left: bytearray) -> Iterator[Change]:
    """Those that changed and have a name, which are taken out of `left`."""
    for (byte, bit), what in _BITS.get(name, {}).items():
        if byte >= len(left) or not left[byte] >> bit & 1:
            continue
        left[byte] ^= 1 << bit
        went = bool(old[byte] >> bit & 1)
        were, are = ("yes", "no") if went else ("no", "yes")
        lost = _LOST.get(what, "") if went else ""
        where, means = f"{name}, byte {byte} bit {bit}", lost or _MEANS.get(what, "")
        yield Change(what, where, were, are, means, is_loss=bool(lost))


def _numbers(name: str, old: bytes, new: bytes, left: bytearray) -> Iterator[Change]:
    """Those that changed and have a name, whose bytes are taken out of `left`."""
    for (first, last), what in _NUMBERS.get(name, {}).items():
        if last >= len(left) or not any(left[first : last + 1]):
            continue
        left[first : last + 1] = bytes(last + 1 - first)
        were, are = (str(int.from_bytes(data[first : last + 1], "big")) for data in (old, new))
        yield Change(what, _place(name, first, last), were, are, _MEANS.get(what, ""))


def _place(name: str, first: int, last: int) -> str:
    return f"{name}, byte {first}" if first == last else f"{name}, bytes {first}-{last}"


def _hex(data: bytes) -> str:
    return f"{data[:_SHOWN].hex(' ').upper()}h{'...' if len(data) > _SHOWN else ''}"


def _logs(before: bytes, after: bytes) -> Iterator[Change]:
    """Which log pages have come or gone."""
    old, new = ({code & 0x3F for code in data[4:]} for data in (before, after))
    for code in sorted(old ^ new):
        was, is_ = ("there", "absent") if code in old else ("absent", "there")
        title = _LOGS.get(code, "of the vendor, or reserved")
        means = "uncorrected errors are counted there" if code in _COUNTED else ""
        yield Change(f"log page {code:02X}h ({title})", LOG_LIST, was, is_, means)


def _names(before: bytes, after: bytes) -> Iterator[Change]:
    """Which names it goes by otherwise."""
    old, new = _named(before), _named(after)
    for what in sorted({*old, *new}):
        was, is_ = (", ".join(names.get(what, ())) or "absent" for names in (old, new))
        if was != is_:
            means = _KNOWN_BY if what.endswith(_WHOSE[0]) else ""
            yield Change(what, _IDENTIFICATION, was, is_, means)


def _named(page: bytes) -> dict[str, list[str]]:
    """The names in page 83h, by what they are and whose, as in ``NAA of the target port``."""
    found: dict[str, list[str]] = {}
    for each in inquiry.designators(page):
        whose = (*_WHOSE, "reserved")[each.association]
        what = f"{_KINDS.get(each.kind, 'reserved name')} of the {whose}"
        is_text = each.code_set in (2, 3)
        name = plain_ascii(each.value) if is_text else f"0x{each.value.hex()}"
        found.setdefault(what, []).append(name)
    return found
