"""A Sentry Switched CDU, as powerman's description `sentry_cdu` and fence_cdu know it.

A login, a prompt, `on`, `off`, `reboot` and `status` with the outlets' own names or `all`,
`version`; an Enter alone lists commands, and long answers stop after 16 outlets at a pager
that takes its key without an Enter.  What it says to a wrong command or password is not
known: here a wrong password brings back the username, and a wrong command some text.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus import login
from leadline.virtual.pdus.line import Frames, Piece, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets

PAGER = b"More (Y/es N/o): "
DONE = b"\r\n   Command successful\r\n\r\n"
COMMANDS = (
    b"\r\n   Commands are:\r\n\r\n   ISTAT    LIST     LOGIN    LOGOUT   OFF      ON\r\n"
    b"   PING     QUIT     REBOOT   STATUS   VERSION\r\n\r\n"
)
HEAD = (
    "\r\n\r\n   Outlet   Outlet                     Outlet      Control\r\n"
    "   ID       Name                       Status      State\r\n\r\n"
)
HEAD_8 = (
    "\r\n\r\n  Outlet  Outlet                           Control        State  Status\r\n\r\n\r\n"
)
SCREEN = 21  # the lines of a head and 16 outlets
TAIL = 4
NAME_LENGTH = 24


class SwitchedCdu:
    """A unit of one tower, `.A1` to `.A8`."""

    PROMPT: ClassVar[bytes] = b"Switched CDU: "
    VERSION: ClassVar[bytes] = b"Sentry Switched CDU Version 6.0g"
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        "prompt": b"\r\n" + PROMPT,
        "pager": b"\r\n" + PAGER,
        "half-typed": PROMPT + b"off .A1",
        "username": b"\r\nUsername: ",
        "password": b"\r\nPassword: ",
    }
    SPEC: ClassVar[Mapping[str, object]] = login.SPEC

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets
        # The last command to each, whatever became of it.
        self._told = dict(outlets.shown)

    @property
    def FRAMING(self) -> Terminal | Frames:
        return Terminal(keys=b"yYnN") if self._state == "pager" else Terminal()

    @property
    def hides(self) -> bool:
        return self._state == "password"

    def begin(self, left_at: str) -> bytes:
        """As somebody left it, or fresh: then it asks for the username."""
        self._state = left_at or "username"
        self._username = ""
        self._rest = b""  # what the pager holds back
        return b"off " + self._id(1).encode() if left_at == "half-typed" else b""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line, or a key at the pager."""
        if self._state == "pager":
            yield 0.0, self._turn(line)
        elif self._state == "username":
            self._username = line.decode("latin-1")
            self._state = "password" if line else "username"
            banner = b"" if line else b"\r\n\r\n" + self.VERSION + b"\r\n"
            yield 0.0, banner + self.LEFT_AT[self._state]
        elif self._state == "password":
            right = login.right(self._username, line, self.outlets.faults)
            self._state = "prompt" if right else "username"
            yield 0.0, b"\r\n\r\nLocation: \r\n\r\n" + self.PROMPT if right else self._asks()
        else:
            yield 0.0, self._page(self._obey(line.decode("latin-1").lower().split()))

    def _asks(self) -> bytes:
        return b"\r\n" + self.LEFT_AT["username"]

    def _turn(self, key: bytes) -> bytes:
        if key[-1:] not in b"yYnN" or not key:
            return b"\r\n" + PAGER
        rest, self._rest = self._rest, b""
        self._state = "prompt"
        more = self._page(rest, SCREEN) if rest and key[-1:] in b"yY" else self.PROMPT
        return key[-1:] + b"\r\n\r\n" + more

    def _page(self, text: bytes, length: int = 0) -> bytes:
        """The first page; the pager holds back the rest."""
        lines = text.splitlines(keepends=True)
        forced = 0 if length else self.outlets.faults.page_lines
        first = forced or SCREEN
        if len(lines) <= (forced or SCREEN + TAIL):
            return text
        self._state = "pager"
        self._rest = b"".join(lines[first:])
        return b"".join(lines[:first]) + PAGER

    def _obey(self, words: list[str]) -> bytes:
        match words:
            case []:
                return COMMANDS + self.PROMPT
            case ["version"]:
                return b"\r\n   " + self.VERSION + b"\r\n" + DONE + self.PROMPT
            case ["quit" | "logout" | "login"]:
                self._state = "username"
                return self._asks()
            case ["status", *which] if self._lists(which):
                return self._table(list(self.outlets.shown))
            case ["on" | "off" | "reboot" as action, which] if chosen := self._chosen(which):
                return self._act(action, which, chosen)
            case _:
                return b"\r\n   Invalid command\r\n\r\n" + self.PROMPT

    def _act(self, action: str, which: str, chosen: list[int]) -> bytes:
        if action == "reboot" or which == "all":
            self.outlets.careless.append(f"{action} {which}".encode())
        for outlet in chosen:
            for on in (False, True) if action == "reboot" else (action == "on",):
                self._told[outlet] = on
                self.outlets.switch(outlet, on=on)
        return self._table(chosen)

    def _chosen(self, which: str) -> list[int]:
        every = list(self.outlets.shown)
        return every if which == "all" else [n for n in every if self._id(n).lower() == which]

    def _table(self, chosen: list[int]) -> bytes:
        rows = "".join(self._row(outlet) + "\r\n" for outlet in chosen)
        return (self._head() + rows).encode("latin-1") + DONE + self.PROMPT

    def _name(self, outlet: int) -> str:
        return self.outlets.name(outlet, f"TowerA_Outlet{outlet}")[:NAME_LENGTH]

    # What firmware and build make of it.

    def _id(self, outlet: int) -> str:
        return f".A{outlet}"

    def _lists(self, which: list[str]) -> bool:
        return not which

    def _head(self) -> str:
        return HEAD

    def _row(self, outlet: int) -> str:
        state = "On" if self.outlets.shown[outlet] else "Off"
        told = "On" if self._told[outlet] else "Idle Off"
        return f"   {self._id(outlet):<9}{self._name(outlet):<27}{state:<12}{told}"


class ThreeBanks(SwitchedCdu):
    """Three banks of eight, `.AA1` to `.AC8`, which take two pages."""

    VERSION: ClassVar[bytes] = b"Sentry Switched CDU Version 7.1c"
    SPEC: ClassVar[Mapping[str, object]] = {**login.SPEC, "outlets": 24}

    def _id(self, outlet: int) -> str:
        bank, place = divmod(outlet - 1, 8)
        return f".A{'ABC'[bank]}{place + 1}"


class SwitchedPdu8(SwitchedCdu):
    """Firmware 8: another prompt, names without a dot, and what it was told before what it is."""

    PROMPT: ClassVar[bytes] = b"Switched PDU: "
    VERSION: ClassVar[bytes] = b"Sentry Switched PDU Version 8.0i"
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        **SwitchedCdu.LEFT_AT,
        "prompt": b"\r\n" + PROMPT,
        "half-typed": PROMPT + b"off AA1",
    }

    def _id(self, outlet: int) -> str:
        return f"AA{outlet}"

    def _lists(self, which: list[str]) -> bool:
        return which == ["all"]

    def _head(self) -> str:
        return HEAD_8

    def _row(self, outlet: int) -> str:
        state = "On" if self.outlets.shown[outlet] else "Off"
        told = "Wake On" if self._told[outlet] else "Off"
        return f"  {self._id(outlet):<6}{self._name(outlet):<33}{told:<15}{state:<7}Normal"


UNITS: tuple[type[Unit], ...] = (SwitchedCdu, ThreeBanks, SwitchedPdu8)
