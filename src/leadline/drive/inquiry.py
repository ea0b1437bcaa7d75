"""Who a SCSI or SAS drive says it is: INQUIRY, its Vital Product Data, and READ CAPACITY.

The decoders take bytes as they came from the drive (SPC-4 and SBC-3 name the offsets); `read`
fetches those bytes with sg3_utils' programs, raw, so that no program's wording matters.  For a
SATA drive INQUIRY is made up by the translation layer, and its revision is not the firmware
(SAT-4 shows four of its eight characters): ask that with IDENTIFY DEVICE instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from leadline.drive.identify import Class
from leadline.drive.text import plain_ascii
from leadline.errors import DriveFault

if TYPE_CHECKING:
    from leadline.host.connection import Host

DEADLINE_S = 20.0

_DISK_TYPES = (0x00, 0x14)  # direct access, host managed zoned block device: SPC-5 6.7.2
_UNIT_SERIAL, _IDENTIFICATION, _CHARACTERISTICS = 0x80, 0x83, 0xB1
# sg3_utils' exit codes for what the drive lacks: ILLEGAL REQUEST, the same for an operation code,
# and (sg_vpd, 50 + EDOM) a page that is not in the drive's list of pages.
_LACKING = (5, 9, 83)


class Standard(NamedTuple):
    """Standard INQUIRY data, SPC-4 6.6.2."""

    device_type: int  # byte 0, bits 4:0
    vendor: str  # bytes 8-15
    product: str  # bytes 16-31
    revision: str  # bytes 32-35


class Capacity(NamedTuple):
    """READ CAPACITY (16) data, SBC-3 5.16.2."""

    bytes: int  # (bytes 0-7, the last block, plus 1) times bytes 8-11, the block length
    logical: int  # bytes a sector
    physical: int  # logical times 2 to the power of byte 13, bits 3:0


class Designator(NamedTuple):
    """One name in the Device Identification page, SPC-4 7.8.6."""

    code_set: int  # 1 binary, 2 ASCII, 3 UTF-8
    kind: int  # the designator type: 2 EUI-64, 3 NAA
    association: int  # whose name: 0 the logical unit's, 1 the target port's, 2 the device's
    value: bytes


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What a SCSI or SAS drive says of itself; None where it does not say."""

    vendor: str
    product: str
    revision: str
    serial: str | None
    wwn: str | None
    class_: Class
    rotation_rpm: int | None
    capacity: Capacity | None

    @property
    def model(self) -> str:
        """Vendor and product, as Leadline names a SCSI drive's model."""
        return f"{self.vendor} {self.product}".strip()


def standard(data: bytes) -> Standard:
    """Standard INQUIRY data; DriveFault when it is short or not a disk's."""
    if len(data) < 36:
        raise _short("INQUIRY", len(data), 36)
    device_type = data[0] & 0x1F
    if device_type not in _DISK_TYPES:
        raise DriveFault(
            f"INQUIRY says that this is a device of type {device_type:02X}h, and a drive is of "
            "type 00h or 14h; name the drive's own device node"
        )
    return Standard(
        device_type, plain_ascii(data[8:16]), plain_ascii(data[16:32]), plain_ascii(data[32:36])
    )


def serial(data: bytes) -> str:
    """The Unit Serial Number page (80h), SPC-4 7.8.15."""
    return plain_ascii(_page(data, _UNIT_SERIAL))


def wwn(data: bytes) -> str | None:
    """The logical unit's name from the Device Identification page (83h), SPC-4 7.8.6, as 0x and
    16 or 32 hex digits: its NAA designator, else its EUI-64; None where there is neither."""
    names: dict[int, str] = {}
    for each in designators(data):
        of_unit = each.code_set == _BINARY and each.association == 0
        if of_unit and len(each.value) in _NAMES.get(each.kind, ()):
            names.setdefault(each.kind, "0x" + each.value.hex())
    return names.get(_NAA) or names.get(_EUI_64)


def designators(data: bytes) -> Iterator[Designator]:
    """Everything that the Device Identification page (83h) names, SPC-4 7.8.6."""
    page = _page(data, _IDENTIFICATION)
    at = 0
    while at + 4 <= len(page):
        value = page[at + 4 : at + 4 + page[at + 3]]
        yield Designator(page[at] & 0xF, page[at + 1] & 0xF, page[at + 1] >> 4 & 0b11, value)
        at += 4 + page[at + 3]


def rotation(data: bytes) -> tuple[Class, int | None]:
    """Class and revolutions a minute from the Block Device Characteristics page (B1h), SBC-3:
    bytes 4-5 are 1 for a medium that does not turn, else the rate, or 0."""
    page = _page(data, _CHARACTERISTICS)
    rate = int.from_bytes(page[:2], "big")
    if rate == 1:
        return "ssd", None
    return ("hdd", rate) if 0x0401 <= rate <= 0xFFFE else ("unknown", None)


def capacity(data: bytes) -> Capacity:
    """READ CAPACITY (16) data."""
    if len(data) < 14:
        raise _short("READ CAPACITY (16)", len(data), 32)
    last, block = int.from_bytes(data[:8], "big"), int.from_bytes(data[8:12], "big")
    return Capacity((last + 1) * block, block, block << (data[13] & 0xF))


def read(host: "Host", node: str) -> Inquiry:
    """Ask the drive at `node` on `host`.

    Raises RigTrouble where sg3_utils is missing or the node cannot be asked, DriveFault where
    the drive's answer makes no sense.
    """
    found = standard(_run(host, ["sg_inq", "--raw", "--only", node]) or b"")
    number = _run(host, ["sg_vpd", "--page=0x80", "--raw", node])
    name = _run(host, ["sg_vpd", "--page=0x83", "--raw", node])
    turning = _run(host, ["sg_vpd", "--page=0xb1", "--raw", node])
    size = _run(host, ["sg_readcap", "--16", "--raw", "--readonly", node])
    class_, rpm = rotation(turning) if turning else ("unknown", None)
    return Inquiry(
        vendor=found.vendor,
        product=found.product,
        revision=found.revision,
        serial=serial(number) if number else None,
        wwn=wwn(name) if name else None,
        class_=class_,
        rotation_rpm=rpm,
        capacity=capacity(size) if size else None,
    )


def _run(host: "Host", argv: list[str]) -> bytes | None:
    """What the program prints; None where the drive lacks what was asked for."""
    from leadline.host.trouble import ProgramFailed

    done = host.run(argv, deadline=DEADLINE_S, check=False)
    if done.exit_code in _LACKING:
        return None
    if done.exit_code != 0:
        raise ProgramFailed(host.name, argv, done.exit_code, done.stdout, done.stderr)
    return done.stdout


_BINARY = 1  # code set, SPC-4 7.8.6
_EUI_64, _NAA = 2, 3  # designator types, SPC-4 7.8.6
_NAMES = {_EUI_64: (8, 12, 16), _NAA: (8, 16)}  # and the lengths they may have


def _page(data: bytes, code: int) -> bytes:
    """What stands behind a VPD page's four bytes of head, SPC-4 7.8.1."""
    if len(data) < 4:
        raise _short(f"VPD page {code:02X}h", len(data), 4)
    if data[1] != code:
        raise DriveFault(
            f"the drive was asked for VPD page {code:02X}h and sent page {data[1]:02X}h; "
            "the bridge or HBA between may answer for it: connect the drive directly"
        )
    return data[4 : 4 + int.from_bytes(data[2:4], "big")]


def _short(what: str, length: int, wanted: int) -> DriveFault:
    return DriveFault(
        f"{what} brought {length} bytes, and at least {wanted} are due; "
        "check the cable and the bridge or HBA between, and ask again"
    )
