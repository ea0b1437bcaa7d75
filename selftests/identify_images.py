"""IDENTIFY DEVICE data for tests: a healthy SATA SSD's, with any word replaced."""

from collections.abc import Mapping

_SSD = {
    0: 0x0040,
    2: 0xC837,
    49: 0x2F00,  # LBA, DMA
    53: 0x0006,
    75: 0x001F,  # 32 commands
    76: 0x010E,  # NCQ, 1.5, 3 and 6 Gb/s
    77: 0x0006,  # runs at 6 Gb/s
    78: 0x0008,  # DIPM
    79: 0x0008,
    80: 0x01F0,
    82: 0x0020,  # write cache
    83: 0x4400,  # 48-bit addresses
    84: 0x4100,  # a world wide name
    85: 0x0020,
    86: 0x0400,
    87: 0x4100,
    106: 0x4000,
    169: 0x0001,  # TRIM
    217: 0x0001,  # does not turn
}


def image(
    *,
    model: str = "LEADLINE SPECIMEN",
    serial: str = "SPEC0001",
    firmware: str = "1.0",
    wwn: int = 0x5000C50000000001,
    sectors: int = 1_000_215_216,
    words: Mapping[int, int] | None = None,
    signed: bool = True,
) -> bytes:
    """512 bytes; `words` replace whatever the other arguments made, and the checksum holds."""
    content = dict.fromkeys(range(256), 0) | _SSD
    for first, text, length in ((10, serial, 20), (23, firmware, 8), (27, model, 40)):
        content |= ata_string(first, text, length)
    content |= {108 + i: wwn >> 16 * (3 - i) & 0xFFFF for i in range(4)}
    content |= {100 + i: sectors >> 16 * i & 0xFFFF for i in range(4)}
    small = min(sectors, 0x0FFF_FFFF)
    content |= {60: small & 0xFFFF, 61: small >> 16}
    content |= words or {}
    data = b"".join(content[word].to_bytes(2, "little") for word in range(256))
    return sign(data) if signed else data


def ata_string(first: int, text: str, length: int) -> dict[int, int]:
    """The words of an ATA string of `length` characters, the first character in the high byte."""
    padded = text.ljust(length).encode("ascii")
    return {first + i: padded[2 * i] << 8 | padded[2 * i + 1] for i in range(length // 2)}


def sign(data: bytes) -> bytes:
    """`data` with the signature A5h and a checksum that holds in word 255."""
    body = data[:510] + b"\xa5"
    return body + bytes([-sum(body) % 256])


def swapped(data: bytes) -> bytes:
    """`data` with the two bytes of each word exchanged."""
    return bytes(data[i ^ 1] for i in range(len(data)))


def hex_words(data: bytes) -> str:
    """`data` as `hdparm --Istdout` prints it: a word's value, eight a line."""
    values = [f"{data[i + 1]:02x}{data[i]:02x}" for i in range(0, len(data), 2)]
    return "".join(" ".join(values[i : i + 8]) + "\n" for i in range(0, len(values), 8))


def hex_bytes(data: bytes) -> str:
    """`data` as `sg_sat_identify -HHHH` prints it: bytes in the order of the wire."""
    return "".join(data[i : i + 16].hex(" ") + "\n" for i in range(0, len(data), 16))
