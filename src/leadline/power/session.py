"""A conversation with a device on a serial line: what is on it, and how long to wait.

Somebody may have left the line in a menu, at a pager or in the middle of a word,
so a session listens before it speaks (`drain`), and believes a prompt only at
the end of all that has been read (`ask`).  Every step has a deadline.  A port
that goes away raises LineTrouble, whichever of pyserial's exceptions said so,
and `reopen` waits for it to come back under its name.
"""

import contextlib
import errno
import math
import termios
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from leadline.errors import RigTrouble
from leadline.power.masking import Mask

TICK_S = 0.05  # how long one read waits; what a lost port or a deadline is late by
QUIET_S = 0.3  # a line with nothing for so long has said what it had to say
NOISE_LIMIT = 16 * 1024  # bytes in one answer: more is a device that will not stop
# What pyserial 3.5 raises when the port goes: SerialException (an OSError) from read and
# write, a plain OSError from in_waiting, termios.error (no OSError) from the flushes.
PORT_LOST = (OSError, termios.error)


class LineTrouble(RigTrouble):
    """The port or the device did not do as it should in one step; a resync may mend it."""


class Clock(Protocol):
    """Seconds; tests put virtual ones here."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class MachineClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Port(Protocol):
    """The part of pyserial's `Serial` that a session needs.

    `read` waits up to TICK_S and returns what came, perhaps nothing.
    """

    @property
    def in_waiting(self) -> int: ...

    def read(self, size: int = 1, /) -> bytes: ...

    def write(self, data: bytes, /) -> int | None: ...

    def close(self) -> None: ...


ControlLine = Literal["dtr", "rts"]


@runtime_checkable
class ControlPort(Protocol):
    """A port that has control lines."""

    def set_line(self, line: ControlLine, *, asserted: bool) -> None: ...


@dataclass(frozen=True)
class Chunk:
    """Bytes that went one way at one moment of the session's clock (seconds)."""

    at: float
    sent: bool
    data: bytes


class ByteLog:
    """Every byte, both ways, with times: the last few thousand chunks.

    Each is given to `keep`, too, which must not raise (`power.byte_log`).
    """

    def __init__(self, keep: Callable[[Chunk], None] | None = None) -> None:
        self.chunks: deque[Chunk] = deque(maxlen=4096)
        self._keep = keep

    def add(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        if self._keep is not None:
            self._keep(chunk)


def plain(data: bytes, limit: int = 80) -> str:
    """The end of what a device said, quoted and fit for a terminal: no control characters."""
    cut = "..." if len(data) > limit else ""
    return cut + ascii(data[-limit:].decode("latin-1"))


class Session:
    """One line to one device.  `label` names the device and its port in every error."""

    def __init__(
        self,
        open_port: Callable[[], Port],
        label: str,
        *,
        clock: Clock | None = None,
        log: ByteLog | None = None,
    ) -> None:
        self.label = label
        self.clock = clock if clock is not None else MachineClock()
        self.log = log if log is not None else ByteLog()
        self.give_up_at = math.inf
        """By the clock: what is under way then ends, whatever time its steps have left."""
        self._open_port = open_port
        self._port: Port | None = None
        self._mask = Mask()

    def open(self) -> None:
        """Open the port once.  Raises RigTrouble with the remedy when it cannot be had."""
        self.close()
        self._port = self._open_port()

    def reopen(self, deadline_s: float) -> None:
        """Open the port, trying again with growing pauses until it is there.

        Raises the last RigTrouble when it is not within `deadline_s` seconds.
        """
        end = self.clock.now() + deadline_s
        pause = 0.1
        while True:
            try:
                self.open()
            except RigTrouble:
                if self.clock.now() + pause > end:
                    raise
            else:
                return
            self.clock.sleep(pause)
            pause = min(2 * pause, 1.0)

    def close(self) -> None:
        port, self._port = self._port, None
        self._log_held()
        if port is not None:
            with contextlib.suppress(*PORT_LOST):  # it may be gone already: nothing is lost
                port.close()

    @property
    def is_open(self) -> bool:
        return self._port is not None

    def trouble(self, step: str, what: str) -> LineTrouble:
        """The error for this device at this step."""
        return LineTrouble(f"{self.label}: {step}: {what}")

    def plain(self, heard: bytes, limit: int = 80) -> str:
        """What the device said as an error may quote it: `plain`, and without a secret in it."""
        return plain(self._mask.whole(heard), limit)

    def send(self, data: bytes, step: str, *, secret: bytes = b"") -> None:
        """Write it all.  Raises LineTrouble when the port is gone or full.

        A `secret` in it (a password) is neither logged nor quoted, now or when the device
        echoes it.
        """
        try:
            self._opened(step).write(data)
        except PORT_LOST as error:
            raise self._lost(step, error) from error
        finally:
            if secret:
                self._mask.hide(secret)
        self._log_held()
        self.log.add(Chunk(self.clock.now(), sent=True, data=self._mask.whole(data)))

    def set_line(self, line: ControlLine, step: str, *, asserted: bool) -> None:
        """Assert or drop a control line.  Raises LineTrouble where the port has none, or is gone.

        That it was set says nothing of what hangs on it; the log has it as `<dtr asserted>`.
        """
        port = self._opened(step)
        try:
            if not isinstance(port, ControlPort):
                raise self.trouble(step, "this port has no control lines")
            port.set_line(line, asserted=asserted)
        except PORT_LOST as error:
            if getattr(error, "errno", None) in (errno.ENOTTY, errno.EINVAL):
                raise self.trouble(
                    step, f"this port has no {line.upper()} line (a pseudo-terminal has none)"
                ) from error
            raise self._lost(step, error) from error
        said = f"<{line} {'asserted' if asserted else 'dropped'}>"
        self.log.add(Chunk(self.clock.now(), sent=True, data=said.encode()))

    def read(self, step: str) -> bytes:
        """What has come, waiting for up to a tick; b"" when nothing did."""
        try:
            port = self._opened(step)
            # in_waiting is the true count on a tty, and only 0 or 1 on socket://.
            data = port.read(max(1, port.in_waiting))
        except PORT_LOST as error:
            raise self._lost(step, error) from error
        if data and (shown := self._mask.next(data)):
            self.log.add(Chunk(self.clock.now(), sent=False, data=shown))
        return data

    def drain(self, step: str, *, quiet_s: float = QUIET_S, deadline_s: float = 5.0) -> bytes:
        """Listen until the line has been quiet for `quiet_s`; all that came.

        Raises LineTrouble when it never falls quiet.
        """
        end = self.clock.now() + deadline_s
        heard = bytearray()
        quiet_since = self.clock.now()
        while self.clock.now() - quiet_since < quiet_s:
            data = self.read(step)
            heard += data
            if data:
                quiet_since = self.clock.now()
            if self.clock.now() > end or len(heard) > NOISE_LIMIT:
                raise self.trouble(
                    step, f"the line never falls quiet; the last was {self.plain(bytes(heard))}"
                )
        return bytes(heard)

    def ask(
        self,
        text: bytes,
        enough: Callable[[bytes], bool],
        *,
        step: str,
        deadline_s: float,
        secret: bytes = b"",
    ) -> bytes:
        """Send `text`; what came back, once `enough` of all that came says so.

        `enough` is asked whenever something came, with all that came since the
        sending: a prompt counts at its end only.  Raises LineTrouble at the deadline.
        """
        self.send(text, step, secret=secret)
        end = self.clock.now() + deadline_s
        heard = bytearray()
        while True:
            data = self.read(step)
            heard += data
            if data and enough(bytes(heard)):
                return bytes(heard)
            if self.clock.now() >= end or len(heard) > NOISE_LIMIT:
                raise self.trouble(step, self._unanswered(bytes(heard), deadline_s))

    def _unanswered(self, heard: bytes, deadline_s: float) -> str:
        if not heard:
            return (
                f"no answer within {deadline_s:g} s; is the PDU powered, "
                "the cable its own (null modem or not), and the baud rate right?"
            )
        junk = sum(byte > 126 or (byte < 32 and byte not in b"\r\n\t\x08\x1b") for byte in heard)
        if 3 * junk > len(heard):
            return f"noise instead of an answer: {self.plain(heard)}; is the baud rate right?"
        return f"no whole answer within {deadline_s:g} s; the last was {self.plain(heard)}"

    def _log_held(self) -> None:
        if held := self._mask.rest():
            self.log.add(Chunk(self.clock.now(), sent=False, data=held))

    def _opened(self, step: str) -> Port:
        if self._port is None:
            raise self.trouble(step, "the port is not open")
        if self.clock.now() >= self.give_up_at:
            raise self.trouble(
                step, "there is no time left for it: the device answers, but too slowly, or in part"
            )
        return self._port

    def _lost(self, step: str, error: Exception) -> LineTrouble:
        self.close()
        return self.trouble(
            step, f"the port went away ({error}); is the adapter plugged in, and the line its own?"
        )
