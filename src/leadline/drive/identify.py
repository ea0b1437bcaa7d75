"""IDENTIFY DEVICE data, decoded.

`decode` takes the 512 bytes as they came over the wire: word `n` is the bytes
`2n` (low) and `2n+1` (high).  Each field below names its word and bit as
"word.bit" and a standard whose table of IDENTIFY DEVICE data defines it: ATA8-ACS
(T13/1699-D), or ACS-4 (INCITS 529) for what came later.
"""

import struct
from dataclasses import dataclass, field
from typing import Literal

from leadline.drive.text import plain_ascii
from leadline.errors import Misuse

LENGTH = 512
SIGNATURE = 0xA5

Setting = Literal["not supported", "disabled", "enabled", "unknown"]
Security = Literal["not supported", "disabled", "enabled", "locked", "frozen"]
Checksum = Literal["valid", "invalid", "absent"]
Class = Literal["ssd", "hdd", "unknown"]

_COMPACT_FLASH = 0x848A  # ATA8-ACS word 0: sets bit 15, and is an ATA device none the less
_GBPS = {1: 1.5, 2: 3.0, 3: 6.0}


class UnusableIdentify(Misuse):
    """The 512 bytes are not the IDENTIFY DEVICE data of a drive; the message says what they are."""


@dataclass(frozen=True, slots=True)
class Ncq:
    """What the drive says of its command queue."""

    supported: bool  # 76.8, ATA8-ACS
    queue_depth: int  # commands; 75.4:0 plus one, ATA8-ACS; 1 for a drive without NCQ
    priority: bool  # 76.12, ACS-4
    unload: bool  # 76.11: IDLE IMMEDIATE with UNLOAD while commands are queued, ACS-4
    send_receive: bool  # 77.6: SEND and RECEIVE FPDMA QUEUED, ACS-4
    autoactivate: bool  # 78.2: DMA Setup FIS auto-activate, ATA8-ACS


@dataclass(frozen=True, slots=True)
class Link:
    """Signalling speeds in Gb/s; None where the drive does not report one."""

    supported_gbps: float | None  # the fastest of 76.1 (Gen1), 76.2 (Gen2), 76.3 (Gen3), ACS-4
    current_gbps: float | None  # 77.3:1, ACS-4


@dataclass(frozen=True, slots=True)
class Sector:
    """Sector sizes in bytes."""

    logical: int  # 106.12 and words 117-118, ATA8-ACS
    physical: int  # 106.13 and 106.3:0, ATA8-ACS


@dataclass(frozen=True, slots=True)
class PowerManagement:
    """Link and device power management."""

    hipm: Literal["not supported", "supported"]  # 76.9; the host switches it, ATA8-ACS
    dipm: Setting  # 78.3, 79.3, ATA8-ACS
    devsleep: Setting  # 78.8, 79.8, ACS-4
    apm: Setting  # 83.3, 86.3, ATA8-ACS
    apm_level: int | None  # 91.7:0 while APM is enabled, ATA8-ACS


@dataclass(frozen=True, slots=True)
class Microcode:
    """What the drive says of DOWNLOAD MICROCODE; blocks are of 512 bytes, None where unreported."""

    download: Setting  # 83.0, 86.0, ACS-4
    offsets: Setting  # 119.4, 120.4: in pieces (subcommands 03h and 0Eh), ACS-4
    least_blocks: int | None  # 234, in one command of those, ACS-4
    most_blocks: int | None  # 235, ACS-4


@dataclass(frozen=True, slots=True)
class Identify:
    """What a drive says of itself."""

    model: str  # words 27-46, ATA8-ACS
    serial: str  # words 10-19, ATA8-ACS
    firmware: str  # words 23-26, ATA8-ACS
    wwn: str | None  # words 108-111 as 0x and 16 digits, where 87.8 says so, ATA8-ACS
    class_: Class  # word 217, ATA8-ACS
    rotation_rpm: int | None  # word 217; None for an SSD and where not reported
    checksum: Checksum  # word 255, ATA8-ACS
    ncq: Ncq
    link: Link
    capacity_bytes: int | None  # words 100-103 or 60-61, in logical sectors; None without LBA
    sector: Sector
    write_cache: Setting  # 82.5, 85.5, ATA8-ACS
    trim: bool  # 169.0: DATA SET MANAGEMENT with TRIM, ACS-4
    security: Security  # word 128, ATA8-ACS
    power_management: PowerManagement
    microcode: Microcode
    data: bytes = field(repr=False)
    """The 512 bytes themselves."""

    def as_json(self) -> dict[str, object]:
        """The fields of `leadline identify --json`."""
        power = self.power_management
        return {
            "model": self.model,
            "serial": self.serial,
            "firmware": self.firmware,
            "wwn": self.wwn,
            "class": self.class_,
            "rotation_rpm": self.rotation_rpm,
            "checksum": self.checksum,
            "ncq": {
                "supported": self.ncq.supported,
                "queue_depth": self.ncq.queue_depth,
                "priority": self.ncq.priority,
                "unload": self.ncq.unload,
                "send_receive": self.ncq.send_receive,
                "autoactivate": self.ncq.autoactivate,
            },
            "link": {
                "supported_gbps": self.link.supported_gbps,
                "current_gbps": self.link.current_gbps,
            },
            "capacity_bytes": self.capacity_bytes,
            "sector": {"logical": self.sector.logical, "physical": self.sector.physical},
            "write_cache": self.write_cache,
            "trim": self.trim,
            "security": self.security,
            "power_management": {
                "HIPM": power.hipm,
                "DIPM": power.dipm,
                "DevSleep": power.devsleep,
                "APM": power.apm,
                "APM_level": power.apm_level,
            },
        }


def decode(data: bytes) -> Identify:
    """The 512 bytes of IDENTIFY DEVICE, decoded.

    Raises UnusableIdentify for a wrong length, for data without content, and for an ATAPI
    device.  A checksum that does not hold is no error here: the field says so.
    """
    words = _words(data)
    rotation = words[217]
    return Identify(
        model=_string(data, 27, 46),
        serial=_string(data, 10, 19),
        firmware=_string(data, 23, 26),
        wwn=_wwn(words),
        class_=_class(rotation),
        rotation_rpm=rotation if _class(rotation) == "hdd" else None,
        checksum=checksum(data),
        ncq=_ncq(words),
        link=_link(words),
        capacity_bytes=_capacity(words),
        sector=_sector(words),
        write_cache=_feature(words, 82, 85, 5),
        trim=_reported(words[169]) and _bit(words[169], 0),
        security=_security(words[128]),
        power_management=_power_management(words),
        microcode=_microcode(words),
        data=data,
    )


def checksum(data: bytes) -> Checksum:
    """Whether the sum of all 512 bytes is 0 modulo 256; only a drive that signs 255.7:0 with A5h
    has a checksum at all (ATA8-ACS)."""
    if data[510] != SIGNATURE:
        return "absent"
    return "valid" if sum(data) % 256 == 0 else "invalid"


def _words(data: bytes) -> tuple[int, ...]:
    if len(data) != LENGTH:
        raise UnusableIdentify(
            f"IDENTIFY data is {LENGTH} bytes, and this is {len(data)}; "
            "read it from the drive again"
        )
    words = struct.unpack("<256H", data)
    if len(set(words)) == 1 and words[0] in (0, 0xFFFF):
        raise UnusableIdentify(
            f"the IDENTIFY data is empty (every byte is {data[0]:02X}h): nothing answered; "
            "see that the drive has power and that its driver has found it, and read it again"
        )
    if _bit(words[0], 15) and words[0] != _COMPACT_FLASH:  # word 0.15, ATA8-ACS
        raise UnusableIdentify(
            f"word 0 is {words[0]:04X}h: an ATAPI device (an optical drive, say), not a drive; "
            "name the drive under test"
        )
    return words


def _bit(word: int, bit: int) -> bool:
    return bool(word >> bit & 1)


def _reported(word: int) -> bool:
    """A word that is 0000h or FFFFh says nothing (ATA8-ACS)."""
    return word not in (0, 0xFFFF)


def _signed(word: int) -> bool:
    """Words 83, 84, 87, 106 and 119 are valid when bit 15 is 0 and bit 14 is 1 (ATA8-ACS)."""
    return word & 0xC000 == 0x4000


def _string(data: bytes, first: int, last: int) -> str:
    """An ATA string: two characters a word, the first in the high byte (ATA8-ACS)."""
    swapped = bytearray(data[2 * first : 2 * last + 2])
    swapped[0::2], swapped[1::2] = swapped[1::2], swapped[0::2]
    return plain_ascii(bytes(swapped))


def _wwn(words: tuple[int, ...]) -> str | None:
    if not (_signed(words[87]) and _bit(words[87], 8)) or not any(words[108:112]):
        return None
    return "0x" + "".join(f"{word:04x}" for word in words[108:112])


def _class(rotation: int) -> Class:
    if rotation == 0x0001:
        return "ssd"
    return "hdd" if 0x0401 <= rotation <= 0xFFFE else "unknown"


def _ncq(words: tuple[int, ...]) -> Ncq:
    sata = _reported(words[76])  # word 76 says whether words 76 to 79 mean anything
    supported = sata and _bit(words[76], 8)
    return Ncq(
        supported=supported,
        # Word 75 served the older TCQ too, so without NCQ it says nothing of an NCQ queue, and
        # such a drive holds one command.
        queue_depth=(words[75] & 0x1F) + 1 if supported else 1,
        priority=sata and _bit(words[76], 12),
        unload=sata and _bit(words[76], 11),
        send_receive=sata and _reported(words[77]) and _bit(words[77], 6),
        autoactivate=sata and _reported(words[78]) and _bit(words[78], 2),
    )


def _link(words: tuple[int, ...]) -> Link:
    if not _reported(words[76]):
        return Link(None, None)
    speeds = [speed for bit, speed in _GBPS.items() if _bit(words[76], bit)]
    current = words[77] >> 1 & 0b111 if _reported(words[77]) else 0
    return Link(max(speeds, default=None), _GBPS.get(current))


def _capacity(words: tuple[int, ...]) -> int | None:
    if not _bit(words[49], 9):  # LBA supported
        return None
    sectors = words[61] << 16 | words[60]
    if _signed(words[83]) and _bit(words[83], 10):  # 48-bit Address feature set
        # Early drives with 4 KiB sectors put nonsense in words 60-61; words 100-103 rule.
        extended = sum(word << 16 * i for i, word in enumerate(words[100:104]))
        sectors = extended or sectors
    return sectors * _sector(words).logical


def _sector(words: tuple[int, ...]) -> Sector:
    logical = 512
    if not _signed(words[106]):
        return Sector(logical, logical)
    if _bit(words[106], 12):
        # The standard allows 256 words at the least; what is below has not been filled in.
        logical = max(2 * (words[118] << 16 | words[117]), logical)
    exponent = words[106] & 0xF if _bit(words[106], 13) else 0
    return Sector(logical, logical << exponent)


def _feature(words: tuple[int, ...], supported: int, enabled: int, bit: int) -> Setting:
    """A feature with a bit in word 82 or 83 (supported) and in word 85 or 86 (enabled)."""
    if not _signed(words[83]) or not _bit(words[supported], bit):
        return "not supported"
    if not _signed(words[87]):
        return "unknown"
    return "enabled" if _bit(words[enabled], bit) else "disabled"


def _sata_feature(words: tuple[int, ...], bit: int) -> Setting:
    """A feature with the same bit in word 78 (supported) and word 79 (enabled)."""
    if not (_reported(words[76]) and _reported(words[78]) and _bit(words[78], bit)):
        return "not supported"
    return "enabled" if _bit(words[79], bit) else "disabled"


def _security(word: int) -> Security:
    """128.0 supported, .1 enabled, .2 locked, .3 frozen.

    One word for it, the one that hinders most: a frozen drive (which cannot be locked) takes
    no security command until its next power cycle, whether a password is set or not.
    """
    if not _bit(word, 0):
        return "not supported"
    if _bit(word, 2):
        return "locked"
    if _bit(word, 3):
        return "frozen"
    return "enabled" if _bit(word, 1) else "disabled"


def _power_management(words: tuple[int, ...]) -> PowerManagement:
    apm = _feature(words, 83, 86, 3)
    hipm = _reported(words[76]) and _bit(words[76], 9)
    return PowerManagement(
        hipm="supported" if hipm else "not supported",
        dipm=_sata_feature(words, 3),
        devsleep=_sata_feature(words, 8),
        apm=apm,
        apm_level=words[91] & 0xFF if apm == "enabled" else None,
    )


def _microcode(words: tuple[int, ...]) -> Microcode:
    offsets: Setting = "not supported"
    if _signed(words[119]) and _bit(words[119], 4):
        enabled = words[120] & 0xC000 == 0x4000 and _bit(words[120], 4)
        offsets = "enabled" if enabled else "disabled"
    least, most = (word if _reported(word) else None for word in words[234:236])
    return Microcode(_feature(words, 83, 86, 0), offsets, least, most)
