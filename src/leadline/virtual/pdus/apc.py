"""What all virtual APC consoles share: the login, and a command line.

A console says nothing until the first Enter.  In which words a real one refuses a
password was not at hand: this one asks for the user name again.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from leadline.virtual.pdus import login
from leadline.virtual.pdus.line import Frames, Piece, Terminal
from leadline.virtual.pdus.outlets import Outlets

ESC = b"\x1b"
CTRL_C = b"\x03"
USER_NAME = b"\r\n\rUser Name : "
PASSWORD = b"\r\n\rPassword  : "
BYE = b"\r\nConnection Closed - Bye\r\n"
BANNER = """

American Power Conversion               Network Management Card AOS      v{0}
(c) Copyright 2009 All Rights Reserved  Rack PDU APP                     v{0}
-------------------------------------------------------------------------------
Name      : RackPDU                                   Date : 02/03/2010
Contact   : Unknown                                   Time : 10:15:22
Location  : Unknown                                   User : Administrator
Up Time   : 1 Day 9 Hours 16 Minutes                  Stat : P+ N+ A+

"""


def crlf(text: str) -> bytes:
    """Text as a console sends it."""
    return text.replace("\n", "\r\n").encode("latin-1")


class Console:
    """A login, and behind it whatever the unit has: `_welcome` and `_obey`.

    `_place` is where its session stands: closed, at the user name, at the password, or a
    place of the unit's own.
    """

    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        "username": USER_NAME,
        "password": PASSWORD,
    }
    SPEC: ClassVar[Mapping[str, object]] = login.SPEC
    FRAMING: ClassVar[Terminal | Frames] = Terminal(keys=ESC + CTRL_C)

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return self._place == "password"

    def begin(self, left_at: str) -> bytes:
        """As somebody left it, or closed."""
        self._place = left_at or "closed"
        self._username = login.USERNAME if left_at == "password" else ""
        return b""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line or key, once somebody is logged in."""
        if self._place == "closed":
            self._place = "username"
            yield 0.0, USER_NAME
        elif self._place == "username":
            self._username = line.decode("latin-1")
            self._place = "password" if line.strip(ESC + CTRL_C) else "username"
            yield 0.0, self.LEFT_AT[self._place]
        elif self._place == "password":
            yield 0.0, self._log_in(line)
        else:
            yield from self._obey(line)

    def _log_in(self, line: bytes) -> bytes:
        if login.right(self._username, line, self.outlets.faults):
            return self._welcome()
        self._place = "username"
        return USER_NAME

    def _welcome(self) -> bytes:
        raise NotImplementedError

    def _obey(self, line: bytes) -> Iterator[Piece]:
        raise NotImplementedError


@dataclass(frozen=True)
class CommandLine:
    """The words of a command line: its prompt, what it says when it obeyed, and its commands."""

    prompt: bytes
    done: str
    on: str
    off: str
    reboot: str
    status: str  # of all outlets
    leave: str

    def obey(self, line: bytes, outlets: Outlets) -> bytes | None:
        """What it says to a line; None when that ends the session."""
        words = line.decode("latin-1").split()
        if not words:
            return b"\r\n" + self.prompt
        if words == [self.leave]:
            return None
        return crlf(f"\n{self._carry_out(words, line, outlets)}\n\n") + self.prompt

    def _carry_out(self, words: list[str], line: bytes, outlets: Outlets) -> str:
        if " ".join(words).lower() == self.status.lower():
            rows = (
                f" {n}: {outlets.name(n, f'Outlet {n}')}: {'On' if on else 'Off'}"
                for n, on in outlets.shown.items()
            )
            return "\n".join([self.done, *rows])
        switches = {self.on.lower(): True, self.off.lower(): False, self.reboot.lower(): None}
        if words[0].lower() not in switches:
            return "E101: Command Not Found"
        chosen = _chosen(words[1:], len(outlets))
        if not chosen:
            return "E102: Parameter Error"
        on = switches[words[0].lower()]
        if on is None or not words[1].isdigit():
            outlets.careless.append(line)
        for outlet in chosen:
            for state in (False, True) if on is None else (on,):
                outlets.switch(outlet, on=state)
        return self.done


def _chosen(words: list[str], count: int) -> list[int]:
    """The outlets that `3`, `1-4`, `2,5` or `all` mean; none where that is nothing."""
    if len(words) != 1 or not re.fullmatch(r"all|\d+(-\d+)?(,\d+(-\d+)?)*", words[0]):
        return []
    if words[0] == "all":
        return list(range(1, count + 1))
    chosen: list[int] = []
    for part in words[0].split(","):
        first, _, last = part.partition("-")
        chosen += range(int(first), int(last or first) + 1)
    return chosen if all(1 <= outlet <= count for outlet in chosen) else []
