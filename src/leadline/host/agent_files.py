"""The agent's files, locks and devices.  Runs on the rig; every function may raise OSError."""
# ruff: noqa: PTH101, PTH103, PTH104, PTH108, PTH112, PTH116, PTH120

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from array import array
from struct import pack, unpack

from leadline.host.agent_bytes import write_all

SG_IO = 0x2285
SG_DXFER_FROM_DEV = -3
SENSE_BYTES = 64
UDEV_S = 1.0
# struct sg_io_hdr of <scsi/sg.h>, version 3; "0P" pads its end as C does.
SG_IO_HDR = "@iiBBHIPPPIIiPBBBBHHiII0P"


def sync_directory(path: str) -> None:
    """fsync the directory that holds ``path``, so that a new or removed name lasts."""
    fd = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_file(path: str, data: bytes, mode: int, suffix: str) -> None:
    """Write a regular file in one step: the old contents or the new, never a part."""
    path = os.path.realpath(path)
    scratch = f"{path}.{suffix}"
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, mode)
        write_all(fd, data)
        os.fsync(fd)
        os.rename(scratch, path)
    except OSError:
        os.unlink(scratch)
        raise
    finally:
        os.close(fd)
    sync_directory(path)


def write_value(path: str, data: bytes) -> None:
    """One write(2), as a kernel attribute wants it; the file must exist."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def open_device(path: str, exclusive: bool) -> int:
    """Open for reading; O_EXCL on a block device is the kernel's exclusive claim.

    Held so, it is locked against udev too (systemd.io/BLOCK_DEVICE_LOCKING): whenever a program
    that may write closes a disk, udev reads it and asks it who it is, in the middle of a slice.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    fd = os.open(path, flags | (os.O_EXCL if exclusive else 0))
    if exclusive and not stat.S_ISBLK(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.ENOTBLK, "not a block device, so it cannot be held exclusively")
    if exclusive:
        _lock_against_udev(fd)
    return fd


def _lock_against_udev(fd: int) -> None:
    """Patiently, for it may be looking at the drive just now; not for ever, for others lock it."""
    limit = time.monotonic() + UDEV_S
    while time.monotonic() < limit:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return


def sg_io(fd: int, cdb: bytes, length: int, timeout_ms: int) -> dict[str, int | bytes]:
    """One command with ``length`` bytes of data in, by the SG_IO ioctl."""
    data, command = array("B", bytes(length)), array("B", cdb)
    sense = array("B", bytes(SENSE_BYTES))
    addresses = [buffer.buffer_info()[0] for buffer in (data, command, sense)]
    asked = [ord("S"), SG_DXFER_FROM_DEV, len(cdb), SENSE_BYTES, 0, length, *addresses, timeout_ms]
    header = bytearray(pack(SG_IO_HDR, *asked, *[0] * 12))
    fcntl.ioctl(fd, SG_IO, header, True)
    answer = unpack(SG_IO_HDR, header)[13:]
    status, _masked, _message, sense_length, host_status, driver_status, residue = answer[:7]
    return {
        "data": data.tobytes()[: length - residue],
        "sense": sense.tobytes()[:sense_length],
        "status": status,
        "host_status": host_status,
        "driver_status": driver_status,
    }


def lock_file(path: str, shared: bool) -> tuple[int, bool]:
    """Open and flock a file: its descriptor, and whether the lock is ours.

    ``shared``: among all users of the rig, as a lease is; otherwise the directory
    must be ours alone, for what a journal says will be written back by us.
    """
    _make_directory(os.path.dirname(path), shared)
    while True:
        fd = _open_lock(path, 0o666 if shared else 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return fd, False
        if _is_still_named(fd, path):
            return fd, True
        os.close(fd)  # its last holder removed it meanwhile: lock the new one


def _make_directory(path: str, shared: bool) -> None:
    if not os.path.isdir(path):
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o1777 if shared else 0o700)
        sync_directory(path)
    status = os.stat(path)
    if not shared and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        raise OSError(errno.EPERM, f"{path} belongs to somebody else, or others may write to it")


def _open_lock(path: str, mode: int) -> int:
    """First without O_CREAT: fs.protected_regular refuses that on another user's file."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            pass
        try:
            fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            continue
        os.fchmod(fd, mode)
        sync_directory(path)
        return fd


def _is_still_named(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False
