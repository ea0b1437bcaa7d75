"""What a healthy SAS SSD answers to INQUIRY and the like, for tests: any byte can be replaced."""

from leadline.drive.scsi_pages import CAPACITY, INQUIRY, LOG_LIST, Pages, vpd

LOGS = bytes.fromhex("00 02 03 05 0d 0e 10 11 15 18 1a 2f 3e")


def page(code: int, content: bytes) -> bytes:
    """A VPD page; or a log page, whose head is alike."""
    return bytes([0, code]) + len(content).to_bytes(2, "big") + content


def log_list(codes: bytes) -> bytes:
    return bytes(2) + len(codes).to_bytes(2, "big") + codes


def designator(kind: int, value: bytes, *, association: int = 0, code_set: int = 1) -> bytes:
    return bytes([code_set, association << 4 | kind, 0, len(value)]) + value


UNIT = designator(3, bytes.fromhex("5000c50000000001"))
PORT = designator(3, bytes.fromhex("5000c50000000002"), association=1)
PLACE = designator(4, bytes.fromhex("00000001"), association=1)
DEVICE = designator(8, b"naa.5000C50000000000", association=2, code_set=3)


def _words(length: int, **numbers: int) -> bytes:
    """A page's content: `b8=8192` stands in the four bytes of the page from byte 8 on."""
    data = bytearray(length)
    for name, number in numbers.items():
        at = int(name[1:]) - 4
        data[at : at + 4] = number.to_bytes(4, "big")
    return bytes(data)


def answers(
    *, firmware: str = "0001", blocks: int = 1_000_000, block: int = 512
) -> dict[str, bytes]:
    """Of a drive of 512-byte blocks on physical ones of 4096, that queues, unmaps, and has a
    volatile cache."""
    who = b"LEADLINE" + b"VSPECIMEN".ljust(16) + firmware.encode().ljust(4)
    size = (blocks - 1).to_bytes(8, "big") + block.to_bytes(4, "big")
    return {
        INQUIRY: bytes.fromhex("00 00 06 12 5b 00 10 02") + who + bytes(60),
        CAPACITY: size + bytes.fromhex("00 03 c0 00") + bytes(16),
        vpd(0x00): page(0x00, bytes.fromhex("00 80 83 86 b0 b1 b2")),
        vpd(0x80): page(0x80, b"SPEC0001"),
        vpd(0x83): page(0x83, UNIT + PORT + PLACE + DEVICE),
        vpd(0x86): page(0x86, bytes.fromhex("00 07 01") + bytes(57)),
        vpd(0xB0): page(0xB0, _words(60, b8=8192, b12=256, b20=65536, b24=16)),
        vpd(0xB1): page(0xB1, bytes.fromhex("00 01 00 03") + bytes(56)),
        vpd(0xB2): page(0xB2, bytes.fromhex("00 84 02 00")),
        LOG_LIST: log_list(LOGS),
    }


def with_byte(pages: Pages, name: str, place: int, value: int) -> dict[str, bytes]:
    """The same answers but for one byte of one of them."""
    data = bytearray(pages[name])
    data[place] = value
    return {**pages, name: bytes(data)}
