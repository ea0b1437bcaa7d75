"""A program on the rig that runs until it is stopped."""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from typing import Self

from leadline.host.agent_bytes import unpack
from leadline.host.programs import missing
from leadline.host.trouble import file_trouble
from leadline.host.wire import Call, Message

STOP_S = 10.0
STDERR_TAIL = 8192


class Running:
    """A long-lived program, such as ``dmesg --follow``; for one thread at a time.

    ``exit_code`` is None while it runs and when it would not say; ``stderr`` is the
    tail of what it complained about.
    """

    def __init__(self, call: Call, host_name: str, argv: Sequence[str]) -> None:
        self.argv = tuple(argv)
        self.exit_code: int | None = None
        self.stderr = b""
        self._call, self._host_name = call, host_name
        self._partial = b""
        self._lines: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def ended(self) -> bool:
        """Whether it ended, by itself or stopped by us."""
        return self._call.finished

    def lines(self, timeout: float, most: int | None = None) -> list[str]:
        """Whole lines that it has printed since the last call; may be empty.

        Waits at most ``timeout`` seconds for the first.  With ``most`` some lines after that
        many are left for the next call: of a program that prints as fast as it can there is no
        end otherwise.  Raises HostLost, ProgramMissing.
        """
        limit = time.monotonic() + timeout
        while not self._call.finished and (most is None or len(self._lines) < most):
            patience = 0.0 if self._lines else limit - time.monotonic()
            message = self._call.next(patience)
            if message is None:
                break
            self._take(message)
        lines, self._lines = self._lines, []
        return lines

    def _take(self, message: Message) -> None:
        if "stdout" in message:
            *whole, self._partial = (self._partial + unpack(message["stdout"])).split(b"\n")
            self._lines += [line.decode("utf-8", "replace") for line in whole]
        elif "stderr" in message:
            self.stderr = (self.stderr + unpack(message["stderr"]))[-STDERR_TAIL:]
        elif "os_error" in message:
            error = message["os_error"]
            if error["errno"] == errno.ENOENT:
                raise missing(self._host_name, self.argv[0])
            raise file_trouble(self._host_name, self.argv[0], error["errno"], error["text"])
        elif "defect" in message:
            raise RuntimeError(f"Leadline's agent on {self._host_name}:\n{message['defect']}")
        else:
            self.exit_code = message["done"]["code"]
            if self._partial:
                self._lines.append(self._partial.decode("utf-8", "replace"))
                self._partial = b""

    def stop(self) -> None:
        """End it, and wait until it is gone; lines that came until then are dropped."""
        self._call.stop(STOP_S)
