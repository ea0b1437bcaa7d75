"""A WTI NPS, as powerman's description `wti` and cluster-glue's `wti_nps` know it.

`/on N`, `/off N` and `/boot N` with `*` for all, `/s` and the menu of `/g`.  Confirmation is
on: without `,y` the unit asks.  A listing that is too long for the screen stops at
`Enter: `, as fence_wti found on RSM and MPC units.  What a unit says to a command that it does
not know stands in no source at hand; here it is worded as a wrong password is.
"""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus import login
from leadline.virtual.pdus.line import Frames, Piece, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets

ESCAPE = b"\x1b"
QUESTION = b"Sure? (Y/N): "
PAGER = b"Enter: "
MENU = (
    b"\r\nGENERAL PARAMETERS:\r\n\r\n 1. System Password:       (undefined)\r\n"
    b" 8. Command Confirmation:  On\r\n\r\nEnter: "
)
RULE = b"-----+------------------+-------------+--------+-----------------+---------+\r\n"
HEAD = (
    b"\r\nNetwork Power Switch v3.02       Site ID: (undefined)\r\n\r\n"
    b"Plug | Name             | Password    | Status | Boot/Seq. Delay | Default |\r\n" + RULE
)
NAME_WIDTH = 16
REFUSAL = b"Invalid command\r\n\r\n"


class Nps:
    """The unit with no password set: it asks for none."""

    PROMPT: ClassVar[bytes] = b"NPS> "
    # A question that Enter leaves, one that only N leaves, and `/off 1,y` without its Enter.
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        "prompt": b"\r\nNPS> ",
        "menu": MENU,
        "pager": PAGER,
        "confirm": QUESTION,
        "insist": QUESTION,
        "half-typed": b"NPS> /off 1,y",
    }
    SPEC: ClassVar[Mapping[str, object]] = {}
    FRAMING: ClassVar[Terminal | Frames] = Terminal(keys=ESCAPE)

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return False

    def begin(self, left_at: str) -> bytes:
        """As somebody left it, or fresh."""
        self._state = left_at
        self._rest = b""  # what a pager holds back
        self._asked = "/off 1"  # what is done when a question is answered with yes
        return b"/off 1,y" if left_at == "half-typed" else b""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line."""
        escaped = line.endswith(ESCAPE)
        text = line.rstrip(ESCAPE).decode("latin-1").strip()
        if self._state in {"menu", "pager", "confirm", "insist"}:
            yield 0.0, b"\r\n" + self._leave(text, escaped)
        elif not escaped:
            yield 0.0, b"\r\n" + self._obey(text)

    def _leave(self, text: str, escaped: bool) -> bytes:
        if self._state == "menu" and not escaped:
            return MENU
        if self._state == "insist" and text.upper() not in {"Y", "N"}:
            return QUESTION
        asks = self._state in {"confirm", "insist"}
        rest = self._rest if self._state == "pager" and not escaped else b""
        self._state, self._rest = "prompt", b""
        if asks and text.upper() == "Y" and not escaped:
            self.outlets.careless.append(text.encode("latin-1"))
            return self._switch(self._asked)
        return rest + self.PROMPT

    def _obey(self, text: str) -> bytes:
        if not text:
            return self.PROMPT
        if text.lower() == "/s":
            return self._page(self._status())
        if text.lower() == "/g":
            self._state = "menu"
            return MENU
        command, comma, sure = text.partition(",")
        if not self._addressed(command) or (comma and sure.lower() != "y"):
            return REFUSAL + self.PROMPT
        if not comma:
            self._state, self._asked = "confirm", command
            return QUESTION
        return self._switch(command)

    def _addressed(self, command: str) -> list[int]:
        """The plugs that a command to switch is for; none when it is no such command."""
        word = re.fullmatch(r"/(?:on|off|boot) +(\d+|\*)", command, re.IGNORECASE)
        if not word:
            return []
        every = list(self.outlets.contacts)
        return every if word[1] == "*" else [n for n in every if n == int(word[1])]

    def _switch(self, command: str) -> bytes:
        boot = command.lower().startswith("/boot")
        if boot or "*" in command:
            self.outlets.careless.append(command.encode("latin-1"))
        for plug in self._addressed(command):
            if boot:
                self.outlets.switch(plug, on=False)
            self.outlets.switch(plug, on=boot or command.lower().startswith("/on"))
        return b"Processing - please wait ...\r\n\r\n" + self.PROMPT

    def _status(self) -> bytes:
        rows = bytearray()
        for plug, on in self.outlets.shown.items():
            name = self.outlets.name(plug, "(undefined)")[:NAME_WIDTH]
            state = "ON" if on else "OFF"
            rows += (
                f" {plug:<3} | {name:<{NAME_WIDTH}} | (defined)   |  {state:<3}   "
                "|     0.5 Secs    |   ON    |\r\n"
            ).encode("latin-1")
        return HEAD + bytes(rows) + RULE + b"\r\n" + self.PROMPT

    def _page(self, text: bytes) -> bytes:
        lines = text.splitlines(keepends=True)
        first = self.outlets.faults.page_lines
        if not 0 < first < len(lines):
            return text
        self._state = "pager"
        self._rest = b"".join(lines[first:]).removesuffix(self.PROMPT)
        return b"".join(lines[:first]) + PAGER


class NpsWithPassword(Nps):
    """The same with a system password, which is all that it asks for."""

    ASKS: ClassVar[Mapping[str, bytes]] = {"password": b"\r\nEnter Password: "}
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {**Nps.LEFT_AT, **ASKS}
    SPEC: ClassVar[Mapping[str, object]] = login.PASSWORD_ONLY

    def begin(self, left_at: str) -> bytes:
        """A fresh session asks who it is."""
        self._username: str | None = None
        return super().begin(left_at or next(iter(self.ASKS)))

    @property
    def hides(self) -> bool:
        return self._state == "password"

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line, once somebody is logged in."""
        if self._state not in self.ASKS:
            yield from super().answer(line)
        elif not line.endswith(ESCAPE):
            yield 0.0, self._log_in(line)

    def _log_in(self, line: bytes) -> bytes:
        if not line:
            self.begin("")  # it starts over
            return self.ASKS[self._state]
        if self._state == "username":
            self._username = line.decode("latin-1")
            self._state = "password"
            return self.ASKS["password"]
        if not login.right(self._username, line, self.outlets.faults):
            self.begin("")
            return b"\r\nInvalid password\r\n" + self.ASKS[self._state]
        self._state = "prompt"
        return b"\r\n\r\nNetwork Power Switch v3.02\r\n\r\n" + self.PROMPT


class RsmWithLogin(NpsWithPassword):
    """An RSM-8R4 with accounts: a username, too, and a prompt of its own."""

    PROMPT: ClassVar[bytes] = b"RSM> "
    ASKS: ClassVar[Mapping[str, bytes]] = {
        "username": b"\r\nlogin: ",
        "password": b"\r\nPassword: ",
    }
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        **Nps.LEFT_AT,
        **ASKS,
        "prompt": b"\r\nRSM> ",
        "half-typed": b"RSM> /off 1,y",
    }
    SPEC: ClassVar[Mapping[str, object]] = login.SPEC


UNITS: tuple[type[Unit], ...] = (Nps, NpsWithPassword, RsmWithLogin)
