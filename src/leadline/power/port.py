"""Opening a serial port for ourselves alone, or saying plainly why it cannot be had.

pyserial's `exclusive` stops a second pyserial only.  So a port is locked three
times: by that (flock on the device), by lockf on the device (which powermand
and others take), and by a lock file of Leadline's own, which also covers ports
that have no device here (`socket://`) and says who holds it.
"""

import contextlib
import errno
import fcntl
import grp
import os
import re
import socket
import stat
import tempfile
import termios
from pathlib import Path

import serial

from leadline.errors import Misuse, RigTrouble
from leadline.inventory.pdu import PduSpec
from leadline.power.session import PORT_LOST, TICK_S, ControlLine, Port

LOCK_DIRECTORY = Path("/run/lock/leadline")
WRITE_TIMEOUT_S = 5.0
BY_ID = Path("/dev/serial/by-id")
BUSY = {errno.EAGAIN, errno.EACCES, errno.EBUSY}


class LockedPort:
    """A pyserial port and the lock file that goes with it; both are let go by `close`."""

    def __init__(self, port: Port, lock: int) -> None:
        self._port = port
        self._lock = lock

    @property
    def in_waiting(self) -> int:
        return self._port.in_waiting

    def read(self, size: int = 1, /) -> bytes:
        return self._port.read(size)

    def write(self, data: bytes, /) -> int | None:
        return self._port.write(data)

    def set_line(self, line: ControlLine, *, asserted: bool) -> None:
        setattr(self._port, line, asserted)

    def close(self) -> None:
        try:
            self._port.close()
        finally:
            os.close(self._lock)  # and with it the lock


def open_port(spec: PduSpec) -> Port:
    """Open and lock a PDU's port: a device here, or any URL that `serial_for_url` takes.

    Raises Misuse for a URL of an unknown kind, and RigTrouble, with the remedy,
    when the port is missing, forbidden, in use (by whom, if it can be known), no
    serial port, or does not connect.
    """
    local = "://" not in spec.port
    device = Path(spec.port).resolve() if local else None
    if device is not None and not device.exists():
        raise RigTrouble(f"{where(spec)}: open: {_missing()}")
    lock = _take_lock(spec, str(device or spec.port))
    try:
        return LockedPort(_open(spec, device), lock)
    except BaseException:
        os.close(lock)
        raise


def where(spec: PduSpec) -> str:
    """The words that name a PDU in every message."""
    return f"PDU {spec.name!r} (port {spec.port})"


def _open(spec: PduSpec, device: Path | None) -> Port:
    if spec.family == "control-line" and spec.port.startswith("socket:"):
        raise Misuse(
            f"{where(spec)}: open: a bare socket carries no DTR or RTS; name a device here, or "
            "the terminal server's rfc2217:// port"
        )
    try:
        port = serial.serial_for_url(
            spec.port,
            do_not_open=True,
            baudrate=spec.baud,
            timeout=TICK_S,
            # rfc2217:// refuses a write timeout, and only a device can be opened exclusively.
            write_timeout=WRITE_TIMEOUT_S if device else None,
            exclusive=True if device else None,
        )
        if spec.family == "control-line":
            # Else pyserial asserts both, and the relay on them switches.
            port.dtr = port.rts = False
        port.open()
    except PORT_LOST as error:
        raise RigTrouble(f"{where(spec)}: open: {_reason(error, device)}") from error
    except ValueError as error:
        raise Misuse(f"{where(spec)}: open: {error}") from error
    if device is not None:
        try:
            fcntl.lockf(port.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            port.close()
            raise RigTrouble(f"{where(spec)}: open: {_in_use(device)}") from error
        if spec.family == "control-line":
            _keep_lines_when_closed(port.fileno())
    return port


def _keep_lines_when_closed(descriptor: int) -> None:
    """Have the kernel leave DTR and RTS as they are when the port is closed (`stty -hupcl`)."""
    attributes = termios.tcgetattr(descriptor)
    attributes[2] &= ~termios.HUPCL
    termios.tcsetattr(descriptor, termios.TCSANOW, attributes)


def _reason(error: BaseException, device: Path | None) -> str:
    number = getattr(error, "errno", None)
    if device is None:
        return f"{error}; is the serial server running and the address right?"
    if not device.exists():
        return _missing()
    if number == errno.EACCES and not os.access(device, os.R_OK | os.W_OK, effective_ids=True):
        return _forbidden(device)
    if number in BUSY:
        return _in_use(device)
    if not stat.S_ISCHR(device.stat().st_mode):
        return f"{device} is no serial port; name a device, best one of {BY_ID}/"
    return f"{error}; is {device} a serial port whose adapter is plugged in?"


def _missing() -> str:
    ports = sorted(str(path) for path in BY_ID.glob("*"))
    there = f"there are: {', '.join(ports)}" if ports else "there is none now"
    return (
        "there is no such port; plug the adapter in, and name it by its stable name "
        f"under {BY_ID}/ ({there})"
    )


def _forbidden(device: Path) -> str:
    group = device.stat().st_gid
    with contextlib.suppress(KeyError):
        name = grp.getgrgid(group).gr_name
        return (
            f"permission denied on {device}, which belongs to group {name}: "
            f"sudo usermod -aG {name} $USER (Debian's name for it is dialout), then log in again"
        )
    return f"permission denied on {device}, which belongs to group {group}"


def _in_use(device: Path) -> str:
    holders = lock_holders(device)
    who = f"by {', '.join(holders)}" if holders else "by whom is not known"
    return f"in use {who}; one program at a time can speak to a PDU: stop the other"


def lock_holders(device: Path, locks: Path = Path("/proc/locks")) -> tuple[str, ...]:
    """Programs that hold a lock on `device`, as "name (pid n)"; empty when none can be seen."""
    node = device.stat()
    inode = f"{os.major(node.st_dev):02x}:{os.minor(node.st_dev):02x}:{node.st_ino}"
    try:
        lines = [line.split() for line in locks.read_text().splitlines()]
    except OSError:
        return ()
    pids = {
        # "1: POSIX  ADVISORY  WRITE 1234 00:18:5 0 EOF", and "->" before a waiter
        int(words[4])
        for words in lines
        if len(words) > 5 and words[1] != "->" and words[5] == inode and words[4].isdigit()
    }
    return tuple(f"{_program(pid)} (pid {pid})" for pid in sorted(pids))


def _program(pid: int) -> str:
    try:
        name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "a program"
    return ascii(name)[1:-1]


def _take_lock(spec: PduSpec, resource: str) -> int:
    """The descriptor of the lock file that is ours; RigTrouble says who has it."""
    lock = open_lock_file(f"port{re.sub(r'[^A-Za-z0-9._-]', '-', resource)}")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = ascii(os.pread(lock, 200, 0).decode("latin-1").strip())[1:-1]
        os.close(lock)
        raise RigTrouble(
            f"{where(spec)}: lock: in use by another Leadline: {holder or 'unknown'}; "
            "wait for it or stop it"
        ) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    return lock


def open_lock_file(name: str) -> int:
    """The descriptor of the file of that name among all users' locks, which is made if missing."""
    path = _lock_directory() / name
    # Opened without O_CREAT first: the kernel forbids that on another user's file in
    # a directory for everybody (fs.protected_regular).
    try:
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_CREAT, 0o666)
        os.fchmod(lock, 0o666)  # whatever the umask: every user must be able to lock it
        return lock


def _lock_directory() -> Path:
    """Where all users' locks are; the temporary directory where /run/lock is not for everybody."""
    for directory in (LOCK_DIRECTORY, Path(tempfile.gettempdir()) / "leadline-locks"):
        with contextlib.suppress(OSError):
            if not directory.is_dir():
                directory.mkdir()
                directory.chmod(0o1777)
        if os.access(directory, os.W_OK | os.X_OK, effective_ids=True):
            return directory
    raise RigTrouble(f"no place for the lock of a serial port: {LOCK_DIRECTORY} is not writable")
