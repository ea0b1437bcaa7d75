"""Ask a drive who it is: the commands, sent through a handle that is already open.

Every command here only reads, so that the same questions can be put before anything
may be changed (:mod:`leadline.drive.bind`) and again through the handle that is held
exclusively (:mod:`leadline.drive.guard`).
"""

from dataclasses import dataclass
from typing import Literal

from leadline.drive import inquiry
from leadline.drive.identify import Identify, UnusableIdentify, decode
from leadline.errors import DriveFault, RigTrouble
from leadline.host.connection import Host
from leadline.host.trouble import CommandRefused

DEADLINE_S = 20.0  # a disk may be spinning up; libata itself gives IDENTIFY 5, then 10 s

# SAT-4 12.2.2.3, ATA PASS-THROUGH (16): protocol PIO data-in, T_DIR from the device,
# BYT_BLOK and T_LENGTH = the sector count field (1); ATA8-ACS 7.16, IDENTIFY DEVICE (ECh).
IDENTIFY_DEVICE = bytes.fromhex("85 08 0e 00 00 00 01 00 00 00 00 00 00 00 ec 00")
IDENTIFY_BYTES = 512
INQUIRY = bytes.fromhex("12 00 00 00 60 00")  # SPC-4 6.6, 96 bytes
SERIAL_PAGE = bytes.fromhex("12 01 80 00 fc 00")  # SPC-4 7.8.15, Unit Serial Number
IDENTIFICATION_PAGE = bytes.fromhex("12 01 83 04 00 00")  # SPC-4 7.8.6, Device Identification
READ_CAPACITY_16 = bytes.fromhex("9e 10" + "00" * 8 + "00 00 00 20 00 00")  # SBC-3 5.16

_DRIVE_FAILED = (0x3, 0x4, 0xB)  # MEDIUM ERROR, HARDWARE ERROR, ABORTED COMMAND: SPC-4 4.5.6
_ILLEGAL_REQUEST = 0x5
_UNIT_ATTENTION = 0x6
_MOST_NEWS = 5


@dataclass(frozen=True, slots=True)
class Identity:
    """What a drive says it is; ``capacity_bytes`` in bytes, ``wwn`` as ``0x`` and hex digits."""

    model: str
    serial: str
    wwn: str | None
    firmware: str
    capacity_bytes: int | None


def read_identify(host: Host, node: str) -> bytes:
    """The 512 bytes of IDENTIFY DEVICE, from the drive at ``node`` and not from the kernel.

    Raises DriveFault when the drive fails the command, and RigTrouble (see
    :mod:`leadline.host.trouble`) when it cannot be put to it.
    """
    handle = host.hold_device(node, exclusive=False)
    try:
        return identify_device(host, handle, node)
    finally:
        host.release_device(handle)


def identify_device(host: Host, handle: int, node: str) -> bytes:
    """As :func:`read_identify`, through a handle."""
    asked = Asked(host, handle, node)
    data = asked.optional("IDENTIFY DEVICE", IDENTIFY_DEVICE, IDENTIFY_BYTES)
    if data is None:
        raise RigTrouble(
            f"{host.name}: {node}: no ATA command reaches this drive: if it is not a SATA drive, "
            "its `protocol` in the rig file is wrong; if it is, the bridge or HBA between "
            "swallows them, and it cannot be tested there"
        )
    if len(data) != IDENTIFY_BYTES:
        raise DriveFault(
            f"{host.name}: {node}: IDENTIFY DEVICE brought {len(data)} bytes of {IDENTIFY_BYTES}; "
            "check the cable and the bridge or HBA between"
        )
    return data


def who_is(
    host: Host, handle: int, node: str, protocol: Literal["sata", "sas", "scsi"]
) -> tuple[Identity, Identify | None]:
    """The identity of the drive behind ``handle``; with the whole IDENTIFY where it is ATA.

    Raises DriveFault when the drive's answer cannot be one (a checksum that does not
    hold, nothing but zeros), RigTrouble when it cannot be asked.
    """
    if protocol != "sata":
        return _scsi_identity(Asked(host, handle, node)), None
    identify = trusted(identify_device(host, handle, node), f"{host.name}: {node}")
    return ata_identity(identify), identify


def trusted(data: bytes, whose: str) -> Identify:
    """IDENTIFY data as a drive just sent it, decoded; DriveFault when it cannot be believed."""
    try:
        identify = decode(data)
    except UnusableIdentify as error:
        raise DriveFault(f"{whose}: {error}") from error
    if identify.checksum == "invalid":
        raise DriveFault(
            f"{whose}: the drive's IDENTIFY data has a checksum that does not hold (ATA8-ACS word "
            "255), so nothing in it can be trusted; power-cycle the drive, check its cable, and "
            "read it again with `leadline identify`"
        )
    return identify


def ata_identity(identify: Identify) -> Identity:
    """The part of IDENTIFY data by which a drive is known."""
    return Identity(
        model=identify.model,
        serial=identify.serial,
        wwn=identify.wwn,
        firmware=identify.firmware,
        capacity_bytes=identify.capacity_bytes,
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """A drive that commands can be put to, through a handle.

    Its methods raise DriveFault when the drive fails the command, and RigTrouble (see
    :mod:`leadline.host.trouble`) when it cannot be put to it.
    """

    host: Host
    handle: int
    node: str

    def command(self, name: str, cdb: bytes, length: int) -> bytes:
        """The answer, of at most `length` bytes; `name` is the command's in messages."""
        news = 0  # of a reset, a power-on, changed parameters: told once each, instead of an answer
        while True:
            try:
                return self.host.sg_io(self.handle, cdb, length, DEADLINE_S)
            except CommandRefused as error:
                if error.key == _UNIT_ATTENTION and news < _MOST_NEWS:
                    news += 1
                    continue
                if error.key in _DRIVE_FAILED:
                    said = f"{self.host.name}: {self.node}: the drive failed {name}: {error}"
                    raise DriveFault(said) from error
                raise

    def optional(self, name: str, cdb: bytes, length: int) -> bytes | None:
        """As ``command``; None where the drive does not know it."""
        try:
            return self.command(name, cdb, length)
        except CommandRefused as error:
            if error.key == _ILLEGAL_REQUEST:
                return None
            raise


def _scsi_identity(asked: Asked) -> Identity:
    standard = inquiry.standard(asked.command("INQUIRY", INQUIRY, 96))
    serial = asked.optional("VPD page 80h", SERIAL_PAGE, 252)
    wwn = asked.optional("VPD page 83h", IDENTIFICATION_PAGE, 1024)
    capacity = inquiry.capacity(asked.command("READ CAPACITY (16)", READ_CAPACITY_16, 32))
    return Identity(
        model=f"{standard.vendor} {standard.product}".strip(),
        serial=inquiry.serial(serial) if serial else "",
        wwn=inquiry.wwn(wwn) if wwn else None,
        firmware=standard.revision,
        capacity_bytes=capacity.bytes,
    )
