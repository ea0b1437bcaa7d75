"""What a drive says of itself with one firmware that it did not say with another.

Words and bits are those of IDENTIFY DEVICE data in ACS-4 (INCITS 529), the addresses of logs
those of its general purpose log directory (log 00h).
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline.drive.identify import Identify, decode


@dataclass(frozen=True)
class Change:
    """One difference: of what, where it stands, before and after, and what follows from it.

    `is_loss` where no firmware may make it, whatever else it brings: commands are queued no
    longer, or fewer of them; another capacity.
    """

    what: str
    where: str
    before: str
    after: str
    means: str = ""
    is_loss: bool = False

    def __str__(self) -> str:
        means = f": {self.means}" if self.means else ""
        return f"{self.what} was {self.before} and is {self.after} ({self.where}){means}"


@dataclass(frozen=True)
class Log:
    """One log by its address, and how many sectors it has; 0 where it cannot be read that way."""

    address: int
    general_sectors: int
    smart_sectors: int


_NOT_COMPARED = frozenset(
    {
        *range(10, 20),  # serial number
        *range(23, 27),  # firmware revision: it is another, that is what this is about
        255,  # checksum
    }
)
# Their decoded fields are compared instead.
_DECODED = frozenset({60, 61, 75, *range(100, 104)})

_BITS: Mapping[int, Mapping[int, str]] = {
    59: {12: "SANITIZE", 13: "CRYPTO SCRAMBLE EXT", 14: "OVERWRITE EXT", 15: "BLOCK ERASE EXT"},
    69: {
        2: "all write cache is non-volatile",
        4: "encrypts all user data",
        5: "trimmed sectors read as zeros",
        8: "DOWNLOAD MICROCODE DMA",
        14: "trimmed sectors read the same every time",
    },
    76: {
        1: "1.5 Gb/s",
        2: "3 Gb/s",
        3: "6 Gb/s",
        8: "NCQ",
        9: "host-initiated power management",
        10: "phy event counters",
        11: "IDLE IMMEDIATE with UNLOAD while commands are queued",
        12: "NCQ priority",
        13: "host automatic partial to slumber",
        14: "device automatic partial to slumber",
        15: "READ LOG DMA EXT as READ LOG EXT",
    },
    77: {4: "NCQ streaming", 5: "NCQ NON-DATA", 6: "SEND and RECEIVE FPDMA QUEUED"},
    78: {
        1: "nonzero buffer offsets",
        2: "DMA Setup auto-activate",
        3: "DIPM",
        4: "in-order data delivery",
        5: "hardware feature control",
        6: "software settings preservation",
        7: "NCQ autosense",
        8: "DevSleep",
    },
    79: {
        2: "DMA Setup auto-activate enabled",
        3: "DIPM enabled",
        6: "software settings preservation enabled",
        7: "automatic partial to slumber enabled",
        8: "DevSleep enabled",
    },
    82: {
        0: "SMART",
        1: "Security",
        3: "power management",
        5: "volatile write cache",
        6: "read look-ahead",
        12: "WRITE BUFFER",
        13: "READ BUFFER",
        14: "NOP",
    },
    83: {
        0: "DOWNLOAD MICROCODE",
        3: "APM",
        5: "power-up in standby",
        10: "48-bit addresses",
        12: "FLUSH CACHE",
        13: "FLUSH CACHE EXT",
    },
    84: {
        0: "SMART error logging",
        1: "SMART self-test",
        5: "general purpose logging",
        6: "WRITE DMA FUA EXT",
        8: "world wide name",
    },
    85: {0: "SMART enabled", 5: "write cache enabled", 6: "read look-ahead enabled"},
    86: {3: "APM enabled"},
    106: {12: "logical sectors above 512 bytes", 13: "several logical sectors in a physical one"},
    119: {
        1: "Write-Read-Verify",
        2: "WRITE UNCORRECTABLE EXT",
        3: "READ and WRITE LOG DMA EXT",
        4: "DOWNLOAD MICROCODE with offsets",
        6: "sense data reporting",
        7: "extended power conditions",
        8: "accessible max address",
    },
    169: {0: "TRIM"},
    206: {
        0: "SCT",
        2: "SCT WRITE SAME",
        3: "SCT error recovery control",
        4: "SCT feature control",
        5: "SCT data tables",
    },
}
"""What a set bit says, where a firmware may change it."""
_WORDS: Mapping[int, str] = {
    80: "major version of the standard",
    81: "minor version of the standard",
    91: "APM level",
    105: "512-byte blocks of one TRIM command",
    117: "words of a logical sector",
    118: "words of a logical sector",
    209: "alignment of logical sectors",
    217: "rotation rate",
    222: "major version of the transport",
    234: "least of one DOWNLOAD MICROCODE",
    235: "most of one DOWNLOAD MICROCODE",
}
_LOGS: Mapping[int, str] = {
    0x04: "device statistics",
    0x08: "power conditions",
    0x0C: "pending defects",
    0x0F: "sense data of successful NCQ commands",
    0x10: "NCQ command error",
    0x11: "phy event counters",
    0x12: "NCQ NON-DATA",
    0x13: "NCQ SEND and RECEIVE",
    0x24: "current internal status",
    0x25: "saved internal status",
    0x30: "IDENTIFY DEVICE data",
    0xE0: "SCT command and status",
    0xE1: "SCT data",
}
_MEANS: Mapping[str, str] = {
    "SEND and RECEIVE FPDMA QUEUED": "TRIM is queued only with it",
    "WRITE DMA FUA EXT": "Linux flushes the cache in its place",
    "volatile write cache": "what was acknowledged may now be lost with the power, or no longer",
    "DOWNLOAD MICROCODE": "the way back to another firmware",
    "TRIM": "file systems discard with it",
    "trimmed sectors read as zeros": "md relies on it to discard in RAID-5",
}
_SPEED = 0b1110
_SPEEDS: Mapping[int, str] = {0: "not reported", 1: "1.5 Gb/s", 2: "3 Gb/s", 3: "6 Gb/s"}
_ERROR_LOG = "after a failed queued command Linux reads here which one it was"


def identify_changes(before: bytes, after: bytes) -> tuple[Change, ...]:
    """What the second 512 bytes of IDENTIFY DEVICE say otherwise than the first; losses first.

    Serial number, firmware revision and checksum are not compared.  Raises UnusableIdentify
    as `identify.decode` does.
    """
    found = [*_decoded(decode(before), decode(after))]
    pairs = zip(_words(before), _words(after), strict=True)
    for place, (old, new) in enumerate(pairs):
        if old != new and place not in _NOT_COMPARED | _DECODED:
            found += _of_word(place, old, new)
    return tuple(sorted(found, key=lambda change: not change.is_loss))


def log_changes(before: Sequence[Log], after: Sequence[Log]) -> tuple[Change, ...]:
    """Which logs have come, gone, or changed their size, by two log directories.

    Nothing where one of the directories could not be read.
    """
    if not (before and after):
        return ()
    old, new = ({log.address: log for log in logs} for logs in (before, after))
    return tuple(
        Change(
            f"log {address:02X}h ({log_name(address)})",
            "log 00h",
            _size(old.get(address)),
            _size(new.get(address)),
            _ERROR_LOG if address == 0x10 else "",
        )
        for address in sorted(old | new)
        if old.get(address) != new.get(address)
    )


def log_name(address: int) -> str:
    """What stands in the log at an address."""
    if 0x80 <= address <= 0x9F:
        return "of the host"
    if 0xA0 <= address <= 0xDF:
        return "of the vendor"
    return _LOGS.get(address, "reserved, or not of Leadline's concern")


def _words(data: bytes) -> tuple[int, ...]:
    return struct.unpack("<256H", data)


def _decoded(before: Identify, after: Identify) -> Iterator[Change]:
    """What decides whether and how deep it queues, and how much it holds."""
    if before.ncq.supported and not after.ncq.supported:
        means = "commands are not queued any more"
        yield Change("NCQ", "word 76.8", "supported", "not supported", means, is_loss=True)
    elif before.ncq.queue_depth != after.ncq.queue_depth:
        old, new = before.ncq.queue_depth, after.ncq.queue_depth
        fewer = new < old
        means = "fewer commands are queued at once" if fewer else ""
        yield Change("queue depth", "word 75.4:0", str(old), str(new), means, is_loss=fewer)
    if before.capacity_bytes != after.capacity_bytes:
        yield Change(
            "capacity in bytes",
            "words 60-61 and 100-103",
            str(before.capacity_bytes),
            str(after.capacity_bytes),
            "what stood at the end is out of reach, and an array may refuse the drive",
            is_loss=True,
        )


def _of_word(place: int, old: int, new: int) -> Iterator[Change]:
    """Each bit that changed and has a name; the whole word for the rest of it."""
    names = _BITS.get(place, {})
    changed = old ^ new
    for bit, name in names.items():
        if changed >> bit & 1 and not (place == 76 and bit == 8 and old >> bit & 1):
            were, are = ("yes" if word >> bit & 1 else "no" for word in (old, new))
            yield Change(name, f"word {place}.{bit}", were, are, _MEANS.get(name, ""))
    if place == 77 and changed & _SPEED:
        were, are = (_SPEEDS.get((word & _SPEED) >> 1, "reserved") for word in (old, new))
        yield Change("link speed", "word 77.3:1", were, are)
        changed &= ~_SPEED
    rest = changed & ~sum(1 << bit for bit in names)
    if rest:
        name = _WORDS.get(place, "not decoded by Leadline")
        yield Change(name, f"word {place}", f"{old:04X}h", f"{new:04X}h")


def _size(log: Log | None) -> str:
    if log is None:
        return "absent"
    ways = [f"{log.general_sectors} sectors"] if log.general_sectors else []
    ways += [f"{log.smart_sectors} by SMART"] if log.smart_sectors else []
    return ", ".join(ways) or "there, without sectors"
