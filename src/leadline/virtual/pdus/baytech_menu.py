"""A BayTech RPC-3 of before the NC, as powerman's description `baytech` knows it.

It asks for a password, shows a menu, and obeys the commands of an RPC3-NC once 1, Outlet
Control, was chosen.  Each on and off prints the whole table again.  What stands in the
other menus is not known: here a number that is chosen there is remembered as careless,
and an Enter leaves them.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus import login
from leadline.virtual.pdus.baytech import Rpc3Nc
from leadline.virtual.pdus.line import Piece, Unit

PROMPT = b"  RPC-3>"
BANNER = (
    b"\r\n\r\n\r\n        RPC-3 Telnet Host\r\n    Revision F 5.01, (C) 2001 \r\n"
    b"    Bay Technical Associates\r\n    Unit ID: BT RPC3-20\r\n\r\n"
)
ASKS = b"    Enter password>"
CHOOSE = b"  Enter Selection>"
MENU = (
    b"\r\n  RPC-3 Menu:\r\n\r\n    1)...Outlet Control\r\n    2)...Manage Users\r\n"
    b"    3)...Configuration\r\n    4)...Unit Status\r\n    5)...Reset Unit\r\n"
    b"    6)...Logout\r\n\r\n" + CHOOSE
)
ELSEWHERE = b"\r\n  Configuration:\r\n\r\n    1)...Unit ID\r\n    2)...Outlets\r\n\r\n" + CHOOSE
STATUS_HEAD = (
    b"\r\n  True RMS current:  1.7 Amps\r\n  Maximum Detected:  2.5 Amps\r\n\r\n"
    b"  Internal Temperature: 32.0 C\r\n\r\n  Circuit Breaker: On \r\n\r\n"
    b"  Selection   Outlet    Outlet   Power\r\n    Number     Name     Number   Status\r\n"
)
STATUS_TAIL = b'\r\n  Type "Help" for a list of commands\r\n\r\n'
NAME_WIDTH = 12


class Rpc3Menu(Rpc3Nc):
    """The unit whose line asks for a password."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        **Rpc3Nc.LEFT_AT,
        "prompt": b"\r\n" + PROMPT,
        "half-typed": PROMPT + b"off 1",
        "menu": MENU,
        "elsewhere": ELSEWHERE,
        "password": BANNER + ASKS,
    }
    SPEC: ClassVar[Mapping[str, object]] = login.PASSWORD_ONLY
    FIRST: ClassVar[str] = "password"

    def begin(self, left_at: str) -> bytes:
        """A fresh session is at the first place."""
        typed = super().begin(left_at or self.FIRST)
        self._greeted = True  # by BANNER, which is of another kind here
        return typed

    @property
    def hides(self) -> bool:
        return self._state == "password"

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line, in the place where the session is."""
        if self._state == "password":
            yield 0.0, self._log_in(line)
        elif self._state == "menu":
            yield 0.0, self._choose(line.strip())
        elif self._state == "elsewhere":
            if line.strip():
                self.outlets.careless.append(line)
            self._state = "menu"
            yield 0.0, MENU
        else:
            yield from super().answer(line)

    def _log_in(self, line: bytes) -> bytes:
        if not login.right(None, line, self.outlets.faults):
            return (b"\r\n    Invalid password.\r\n\r\n\r\n" if line else BANNER) + ASKS
        self._state = "menu"
        return b"\r\n  Option(s) installed:\r\n  True RMS Current\r\n\r\n\r\n" + MENU

    def _choose(self, choice: bytes) -> bytes:
        if choice == b"1":
            self._state = "prompt"
            return self._page(self._status())
        if choice == b"6":
            self._state = self.FIRST
            return self.LEFT_AT[self.FIRST]
        if choice:
            self.outlets.careless.append(choice)
            self._state = "elsewhere"
        return self.LEFT_AT[self._state]

    def _obey(self, line: str) -> Iterator[Piece]:
        if line.strip() == "menu":
            self._state = "menu"
            yield 0.0, MENU
            return
        for pause, text in super()._obey(line):
            switched = line.strip() and text == PROMPT
            yield pause, self._page(self._status()) if switched else text

    def _prompt(self) -> bytes:
        return PROMPT

    def _status(self) -> bytes:
        rows = bytearray()
        for outlet, on in self.outlets.shown.items():
            name = self.outlets.name(outlet, f"Outlet {outlet}")[: NAME_WIDTH - 1]
            state = "On" if on else "Off"
            row = f"{outlet:7d}       {name:<{NAME_WIDTH}}{outlet:<8d}{state:<4}\r\n"
            rows += row.encode("latin-1")
        return STATUS_HEAD + bytes(rows) + STATUS_TAIL + PROMPT


class Rpc3MenuWithoutPassword(Rpc3Menu):
    """The same with its password turned off: it begins at its menu."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        place: said for place, said in Rpc3Menu.LEFT_AT.items() if place != "password"
    }
    SPEC: ClassVar[Mapping[str, object]] = {}
    FIRST: ClassVar[str] = "menu"


UNITS: tuple[type[Unit], ...] = (Rpc3Menu, Rpc3MenuWithoutPassword)
