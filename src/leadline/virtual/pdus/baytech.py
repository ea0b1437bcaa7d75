"""A BayTech RPC3-NC, as powerman's description `baytech-rpc3-nc` knows it.

A prompt `RPC3-NC>`, `on N`, `off N`, `reboot N` with 0 for all, `status`, `Input error`
for anything else.  The real unit's traps are kept: commands are case sensitive, `on 2-4`
switches outlet 2 alone and reports success, `reboot` leaves an outlet that was off off,
and the banner ends in two prompts.

With access control it asks for a login first: the prompts are those of a BayTech RPC-5
(cluster-glue's baytech.c), for no dialogue of an RPC3-NC's was at hand.
"""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus import login
from leadline.virtual.pdus.line import Frames, Piece, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets

PROMPT = b"RPC3-NC>"
BANNER = (
    b"\r\n\r\nRPC3-NC Series\r\n(C) 2002 by BayTech\r\nF4.00\r\n\r\nOption(s) Installed:\r\n"
    b"True RMS Current\r\nInternal Temperature\r\nTrue RMS Voltage\r\n\r\n"
)
STATUS_HEAD = (
    b"\r\n\r\n   Average Power:     338 Watts\r\nTrue RMS Voltage:   120.9 Volts\r\n"
    b"True RMS Current:     2.9 Amps\r\nMaximum Detected:     4.3 Amps\r\n"
    b" Circuit Breaker:       Good\r\n\r\nInternal Temperature:  40.0 C\r\n\r\n\r\n"
)
STATUS_TAIL = b'\r\nType "Help" for a list of commands\r\n\r\n'
PAGER = b"Press <ENTER> to continue..."
QUESTION = b"Turn Off Outlet 1 (Y/N)?"
NAME_WIDTH = 16


class Rpc3Nc:
    """The unit without access control."""

    # A question that Enter leaves, one that only N leaves, and `off 1` without its Enter.
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        "prompt": b"\r\n" + PROMPT,
        "pager": PAGER,
        "confirm": QUESTION,
        "insist": QUESTION,
        "half-typed": PROMPT + b"off 1",
    }
    SPEC: ClassVar[Mapping[str, object]] = {}
    FRAMING: ClassVar[Terminal | Frames] = Terminal()
    BANNER: ClassVar[bytes] = BANNER
    STATUS_HEAD: ClassVar[bytes] = STATUS_HEAD
    OUTLETS_A_LINE: ClassVar[int] = 1

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return False

    def begin(self, left_at: str) -> bytes:
        """As somebody left it, or fresh: then the first Enter brings the banner."""
        self._greeted = False
        self._state = left_at
        self._rest = b""  # what a pager holds back
        return b"off 1" if left_at == "half-typed" else b""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line."""
        text = line.decode("latin-1")
        if self._state in {"pager", "confirm", "insist"}:
            yield from self._leave(text)
            return
        if not self._greeted:
            self._greeted = True
            if not text:
                yield 0.0, self.BANNER + self._prompt() + self._prompt()
                return
        yield 0.0, b"\r\n"
        yield from self._obey(text)

    def _leave(self, line: str) -> Iterator[Piece]:
        if self._state == "insist" and not line.strip():
            yield 0.0, b"\r\n" + QUESTION
            return
        confirmed = self._state != "pager" and line.strip().upper() in {"Y", "YES"}
        rest, self._rest = self._rest or self._prompt(), b""
        self._state = "prompt"
        self._greeted = True
        if confirmed:
            self.outlets.careless.append(line.encode("latin-1"))
            self.outlets.switch(1, on=False)
        yield 0.0, b"\r\n" + rest

    def _obey(self, line: str) -> Iterator[Piece]:
        command = re.match(r"(on|off|reboot) +(\d+)", line)
        if not line.strip():
            yield 0.0, self._prompt()
        elif line.strip() == "status":
            yield 0.0, self._page(self._status())
        elif line.strip() == "exit":
            self.begin(self.outlets.faults.left_at)
        elif command and int(command[2]) <= len(self.outlets):
            # Like the real unit's, this parser stops at the number: `on 2-4` is `on 2`.
            number = int(command[2])
            chosen = list(self.outlets.contacts) if number == 0 else [number]
            if command[1] == "reboot" or number == 0:
                self.outlets.careless.append(line.encode("latin-1"))
            if command[1] == "reboot":
                yield from self._reboot(chosen)
            else:
                for outlet in chosen:
                    self.outlets.switch(outlet, on=command[1] == "on")
            yield 0.0, self._prompt()
        else:
            yield 0.0, b"Input error\r\n\r\n" + self._prompt()

    def _prompt(self) -> bytes:
        return PROMPT

    def _status(self) -> bytes:
        cells = []
        for outlet, on in self.outlets.shown.items():
            name = self.outlets.name(outlet, f"Outlet {outlet:2d}")[: NAME_WIDTH - 1]
            state = "On" if on else "Off"
            cells.append(f"{outlet:2d})...{name:<{NAME_WIDTH}}: {state:<13}")
        n = self.OUTLETS_A_LINE
        rows = "".join("".join(cells[at : at + n]) + "\r\n" for at in range(0, len(cells), n))
        return self.STATUS_HEAD + rows.encode("latin-1") + STATUS_TAIL + self._prompt()

    def _page(self, text: bytes) -> bytes:
        lines = text.splitlines(keepends=True)
        first = self.outlets.faults.page_lines
        if not 0 < first < len(lines):
            return text
        self._state = "pager"
        self._rest = b"".join(lines[first:])
        return b"".join(lines[:first]) + PAGER

    def _reboot(self, chosen: list[int]) -> Iterator[Piece]:
        were_on = [outlet for outlet in chosen if self.outlets.shown[outlet]]
        for outlet in were_on:
            self.outlets.switch(outlet, on=False)
        yield 0.0, b"\r\nRebooting...  "
        for left in reversed(range(self.outlets.reboot_s)):
            yield 0.0, b"\x08%d" % (left % 10)
            yield 1.0, b""
        for outlet in were_on:
            self.outlets.switch(outlet, on=True)
        yield 0.0, b"\r\n"


class Rpc3NcWithLogin(Rpc3Nc):
    """The same with access control on."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        **Rpc3Nc.LEFT_AT,
        "username": b"\r\nEnter username>",
        "password": b"\r\nEnter password>",
    }
    SPEC: ClassVar[Mapping[str, object]] = login.SPEC

    def begin(self, left_at: str) -> bytes:
        """A fresh session asks for the username."""
        self._username = ""
        return super().begin(left_at or "username")

    @property
    def hides(self) -> bool:
        return self._state == "password"

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line, once somebody is logged in."""
        if self._state == "username":
            self._username = line.decode("latin-1")
            self._state = "password" if line else "username"
            yield 0.0, self.LEFT_AT[self._state]
        elif self._state == "password":
            yield 0.0, self._log_in(line)
        else:
            yield from super().answer(line)

    def _log_in(self, line: bytes) -> bytes:
        faults = self.outlets.faults
        if faults.locked_out:
            self._state = "username"
            return b"\r\nAccess denied: too many attempts" + self.LEFT_AT["username"]
        if not login.right(self._username, line, faults):
            self._state = "username"
            return b"\r\nInvalid password." + self.LEFT_AT["username"]
        self._state = "prompt"
        self._greeted = True
        return self.BANNER + self._prompt()


UNITS: tuple[type[Unit], ...] = (Rpc3Nc, Rpc3NcWithLogin)
