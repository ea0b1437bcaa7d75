"""Microcode: the commands that put an image on a drive, and what it means that one is refused.

`sg_write_buffer` sends WRITE BUFFER (SPC-4), which a SAS HBA translates for a SATA drive into
DOWNLOAD MICROCODE (SAT-4, ACS-4); Linux's own libata has no such translation, so that there
hdparm, which sends DOWNLOAD MICROCODE itself, is the way.
"""

import errno
import hashlib
import math
from dataclasses import dataclass

from leadline.drive.bind import Drive
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import Host
from leadline.host.programs import require
from leadline.host.trouble import ProgramFailed, last_lines
from leadline.inventory.flash import SELECT, WHOLE, FlashSpec

COMMAND_S = 600
"""For one command; some drives erase half their flash before they answer again."""
MARGIN_S = 60.0
PIECE_S = 10.0
"""For one piece of an image, beside all that a command may take."""
MOST_BYTES = 1 << 24
"""BUFFER OFFSET and PARAMETER LIST LENGTH have 24 bits: SPC-4, WRITE BUFFER."""
BLOCK_BYTES = 512
MOST_BLOCKS = 0xFFFF
"""The block count of DOWNLOAD MICROCODE has 16 bits: ACS-4."""
ACTIVATE = 0xF
_PO_ACT = 4
"""Of mode 0Dh's MODE SPECIFIC field: a power-on activates it (SPC-4)."""

# Exit statuses of sg3_utils: sg3_utils(8).
_NOT_READY, _MEDIUM_HARDWARE, _ILLEGAL, _ATTENTION, _PROTECTED = 2, 3, 5, 6, 7
_CHANGED = b"Microcode has been changed"
"""Of unit attentions 3Fh/01h and 3Fh/16h, in sg3_utils' words (SPC-4)."""
_INVALID_OPCODE, _ABORTED, _FILE, _TIMEOUT = 9, 11, 15, 33
# hdparm ends with the errno of what failed: these are of its file and its own rights.
_NOT_SENT = frozenset({errno.EPERM, errno.ENOENT, errno.ENOMEM, errno.EACCES})
_BROKEN_OFF = errno.EBADE  # hdparm's word for the status of a host or its driver: timeout, reset


@dataclass(frozen=True)
class Image:
    """A firmware image: its file on this machine, and what was read from that."""

    path: str
    data: bytes

    @property
    def sha256(self) -> str:
        """In hex digits, as sha256sum prints it."""
        return hashlib.sha256(self.data).hexdigest()


def refuse_hopeless(spec: FlashSpec, drive: Drive, image: Image) -> None:
    """Raise Misuse for a download that cannot be what was meant, before its first byte."""
    who = f"slot {drive.spec.slot}: {drive.identity.model} {drive.identity.serial}"
    if not image.data:
        raise Misuse(f"{who}: {image.path} is empty: nothing was sent to the drive")
    if spec.method == "program":
        return
    if drive.identify and len(image.data) % BLOCK_BYTES:
        raise Misuse(
            f"{who}: {image.path} has {len(image.data)} bytes, and DOWNLOAD MICROCODE carries "
            f"blocks of {BLOCK_BYTES} (ACS-4): is this the image as its vendor delivers it?"
        )
    most, command = MOST_BYTES - 1, "WRITE BUFFER carries at most {} (SPC-4)"
    if spec.method == "hdparm":
        most, command = MOST_BLOCKS * BLOCK_BYTES, "DOWNLOAD MICROCODE carries at most {} (ACS-4)"
    if len(image.data) > most:
        raise Misuse(
            f"{who}: {image.path} has {len(image.data)} bytes, and {command.format(most)}; use the "
            "vendor's own program (method: program)"
        )
    says = drive.identify and drive.identify.microcode
    if not says or spec.method != "write-buffer" or spec.mode == WHOLE or drive.link:
        return
    first = min(spec.chunk_kib * 1024, len(image.data))
    blocks, last = first // BLOCK_BYTES, first == len(image.data)
    if (says.most_blocks and blocks > says.most_blocks) or (
        says.least_blocks and blocks < says.least_blocks and not last
    ):
        raise Misuse(
            f"{who}: by chunk_kib {spec.chunk_kib} it is sent {blocks} blocks of 512 bytes, and it "
            f"takes {says.least_blocks or 1} to {says.most_blocks or 'any number'} in one command "
            "(IDENTIFY DEVICE words 234 and 235, ACS-4); set chunk_kib in the rig file"
        )


def download_argv(spec: FlashSpec, node: str, image: str, size: int) -> list[str]:
    """The command that sends an image of `size` bytes, a file on the rig, to the drive at `node`.

    The size is always told: without it, sg_write_buffer sends the first 8 MiB of a file.
    """
    if spec.method == "hdparm":
        sure = ["--yes-i-know-what-i-am-doing", "--please-destroy-my-drive"]
        return ["hdparm", *sure, "--fwdownload", image, node]
    words = ["sg_write_buffer", "-v", f"--mode={spec.mode}", f"--length={size}", f"--in={image}"]
    words.append(f"--timeout={COMMAND_S}")
    if spec.mode == SELECT:
        words.append(f"--specific={_PO_ACT}")
    if spec.mode != WHOLE:
        words.append(f"--bpw={spec.chunk_kib * 1024}")
    return [*words, node]


def download_deadline_s(spec: FlashSpec, size: int) -> float:
    """Seconds that an image of `size` bytes may take: 660, and 10 for each piece of it.

    Whatever sends it: the pieces of hdparm and of a vendor's program are not known, and are taken
    for usual ones.
    """
    whole = spec.method == "write-buffer" and spec.mode == WHOLE
    pieces = 1 if whole else math.ceil(size / (spec.chunk_kib * 1024))
    return COMMAND_S + MARGIN_S + PIECE_S * pieces


def activate_argv(node: str) -> list[str]:
    """The command that has the drive at `node` take up what modes 0Dh and 0Eh have saved."""
    return ["sg_write_buffer", "-v", f"--mode={ACTIVATE}", f"--timeout={COMMAND_S}", node]


def download(host: Host, drive: Drive, spec: FlashSpec, image: Image, there: str) -> float:
    """Send an image, whose copy on the rig is `there`, to the drive; seconds that it took.

    Raises what `explained` makes of a refusal.
    """
    size = len(image.data)
    argv = download_argv(spec, drive.node, there, size)
    return _run(host, drive, spec, argv, download_deadline_s(spec, size))


def activate(host: Host, drive: Drive, spec: FlashSpec) -> float:
    """Have the drive take up what it has saved; seconds that it took.  Raises as `download`."""
    return _run(host, drive, spec, activate_argv(drive.node), COMMAND_S + MARGIN_S)


def _run(host: Host, drive: Drive, spec: FlashSpec, argv: list[str], deadline_s: float) -> float:
    require(host, argv[0])
    try:
        return host.run(argv, deadline=deadline_s).seconds
    except ProgramFailed as failed:
        raise explained(spec, drive, failed) from failed


def explained(
    spec: FlashSpec, drive: Drive, failed: ProgramFailed
) -> DriveFault | RigTrouble | Misuse:
    """Whose fault it is that a download or an activation was refused, and what to do.

    The drive's, where it refuses what it says that it supports or breaks off; the user's where
    it, or what lies before it, cannot do what the rig file asks for; else the rig's.
    """
    who = f"slot {drive.spec.slot}: {drive.identity.model} {drive.identity.serial}"
    said = last_lines(failed.stderr) or last_lines(failed.stdout)
    if spec.method == "hdparm":
        owner, why = _hdparm_refused(drive, failed.exit_code)
    else:
        owner, why = _write_buffer_refused(spec, drive, failed)
    return owner(f"{who}: {why} ({failed.argv[0]} ended with exit code {failed.exit_code}){said}")


def was_refused(spec: FlashSpec, failed: ProgramFailed) -> bool:
    """Whether a download was refused, so that nothing of it is kept, and did not break off.

    One that ended by a timeout, a reset or a signal may have reached the drive whole; what a
    vendor's program does, nobody knows.
    """
    code = failed.exit_code
    if spec.method == "write-buffer":
        refusals = (_NOT_READY, _ILLEGAL, _PROTECTED, _INVALID_OPCODE, _ABORTED, _FILE)
        return code in refusals or 50 < code < 97
    return spec.method == "hdparm" and code > 0 and code != _BROKEN_OFF


Refusal = tuple[type[DriveFault] | type[RigTrouble] | type[Misuse], str]

_MEANT: dict[int, Refusal] = {
    _NOT_READY: (RigTrouble, "the drive was not ready for {}: is it spun down, or just reset?"),
    _MEDIUM_HARDWARE: (DriveFault, "the drive broke off {} with a medium or hardware error"),
    _ATTENTION: (RigTrouble, "the drive or its bus was reset in the middle of {}: try it again"),
    _PROTECTED: (Misuse, "the drive refused {} (DATA PROTECT): it is locked or frozen"),
    _TIMEOUT: (DriveFault, f"the drive did not answer {{}} within {COMMAND_S} s"),
}


def _hdparm_refused(drive: Drive, code: int) -> Refusal:
    if code < 0 or code in _NOT_SENT:
        return RigTrouble, "DOWNLOAD MICROCODE was not sent, or hdparm was ended in the middle"
    if code == _BROKEN_OFF:
        return RigTrouble, (
            "DOWNLOAD MICROCODE had no answer of the drive: it timed out, or the drive, its bus or "
            "its controller was reset in the middle; see the rig's kernel log"
        )
    says = drive.identify.microcode.download if drive.identify else "unknown"
    if says == "enabled":
        return DriveFault, (
            "the drive failed DOWNLOAD MICROCODE, which it says that it supports (IDENTIFY DEVICE "
            "words 83 and 86 bit 0, ACS-4): is the image made for it?"
        )
    return Misuse, f"the drive takes no DOWNLOAD MICROCODE: {_not_supported(says)}"


def _not_supported(says: str) -> str:
    return (
        f"its IDENTIFY DEVICE data has it as {says} (words 83 and 86 bit 0, ACS-4), so its "
        "firmware cannot be changed this way; use the vendor's own program (method: program)"
    )


def _write_buffer_refused(spec: FlashSpec, drive: Drive, failed: ProgramFailed) -> Refusal:
    activates = f"--mode={ACTIVATE}" in failed.argv
    mode, code = ACTIVATE if activates else spec.mode, failed.exit_code
    asked = f"WRITE BUFFER mode {mode:02X}h"
    if activates and code in (_ILLEGAL, _INVALID_OPCODE, _ABORTED):
        return Misuse, (
            f"the drive took the image by mode {spec.mode:02X}h, and refused {asked}, which is to "
            "activate it; have a power cycle do that: activates: power-cycle in the rig file, "
            "unless the matrix has an activation of this firmware"
        )
    if code == _ATTENTION and _CHANGED in failed.stderr and not activates:
        return DriveFault, (
            f"the drive said in the middle of {asked} that its microcode has changed, so it took "
            "the pieces that it had for the whole; send it in one (mode: 0x5, or chunk_kib above "
            "the size of the image), or have it saved first (mode: 0xe)"
        )
    if code == _INVALID_OPCODE:
        return _no_such_command(drive)
    if code in (_ILLEGAL, _ABORTED):
        return _refused(spec, drive, asked)
    if code == _FILE or 50 < code < 97:
        return RigTrouble, (
            f"{asked} did not reach the drive: the rig's kernel or HBA refused to send it; is "
            f"{_in_one_command(spec)} more than max_sectors_kb in its queue's sysfs?"
        )
    unknown = RigTrouble, "{} failed in a way that sg3_utils has no word for"
    owner, why = _MEANT.get(code, unknown)
    return owner, why.format(asked)


def _in_one_command(spec: FlashSpec) -> str:
    if spec.mode == WHOLE:
        return "the image, which goes in one command (mode: 0x7 sends pieces),"
    return f"chunk_kib {spec.chunk_kib}"


def _no_such_command(drive: Drive) -> Refusal:
    """INVALID COMMAND OPERATION CODE (20h/00h): from libata, an HBA's translation, or the drive."""
    if drive.link:
        says = drive.identify.microcode.download if drive.identify else "unknown"
        remedy = "use method: hdparm, which sends DOWNLOAD MICROCODE itself, or a SAS HBA"
        if says != "enabled":
            remedy = f"nor would the drive take it: {_not_supported(says)}"
        return Misuse, (
            "DOWNLOAD MICROCODE was refused before it reached the drive: the kernel's libata, "
            f"which drives its controller ({drive.controller.driver or 'unknown'}), translates no "
            f"WRITE BUFFER (SAT-4 would have it do so); {remedy}"
        )
    return Misuse, (
        "there is no WRITE BUFFER: the drive, or the HBA that translates for it, does not know the "
        "command (INVALID COMMAND OPERATION CODE, SPC-4); use the vendor's own program (method: "
        "program)"
    )


def _refused(spec: FlashSpec, drive: Drive, asked: str) -> Refusal:
    """ILLEGAL REQUEST or ABORTED COMMAND: the mode, the chunks, or the image."""
    says = drive.identify and drive.identify.microcode
    pieces = "the whole image in one" if spec.mode == WHOLE else f"chunks of {spec.chunk_kib} KiB"
    remedy = (
        "is the image made for this drive (COMMAND SEQUENCE ERROR, INVALID FIELD IN PARAMETER "
        f"LIST), and does the drive know the mode and take {pieces} (INVALID FIELD IN CDB)?"
    )
    if says and (says.download if spec.mode == WHOLE else says.offsets) == "enabled":
        words = "83 and 86 bit 0" if spec.mode == WHOLE else "119 and 120 bit 4"
        return DriveFault, (
            f"the drive refused {asked}, and says that it supports it (IDENTIFY DEVICE words "
            f"{words}, ACS-4); {remedy}"
        )
    if says and says.download != "enabled":
        return Misuse, f"the drive refused {asked}: {_not_supported(says.download)}"
    return Misuse, f"the drive refused {asked}; {remedy}"
