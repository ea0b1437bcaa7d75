"""A Numato Lab relay module, as pdudaemon's `numatousb` and Numato's command list know it.

A prompt `>`, `relay on X`, `relay off X`, `relay read X`, and `relay writeall` for all at once;
lines end in LF CR.  What a module says to a command that it does not know stands in no
source at hand; here it is nothing but the prompt.
"""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus.line import Frames, Piece, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets

END = b"\n\r"
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUV"
PROMPT = END + b">"


class Numato8:
    """A module with eight relays; with more, if a rig file says so."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        "prompt": PROMPT,
        "half-typed": PROMPT + b"relay off 0",
    }
    SPEC: ClassVar[Mapping[str, object]] = {}
    FRAMING: ClassVar[Terminal | Frames] = Terminal()

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return False

    def begin(self, left_at: str) -> bytes:
        """Nothing is remembered but what was typed without Enter."""
        return b"relay off 0" if left_at == "half-typed" else b""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line."""
        command = re.fullmatch(r"relay (on|off|read|writeall) (\w+)", line.decode("latin-1"))
        said = self._obey(command[1], command[2]) if command else b""
        yield 0.0, (END + said if said else b"") + PROMPT

    def _obey(self, verb: str, name: str) -> bytes:
        if verb == "writeall":
            self.outlets.careless.append(b"writeall")
            return b""
        names = _names(len(self.outlets))
        if name not in names:
            return b""
        outlet = names.index(name) + 1
        if verb == "read":
            return b"on" if self.outlets.shown[outlet] else b"off"
        self.outlets.switch(outlet, on=verb == "on")
        return b""


def _names(relays: int) -> list[str]:
    """What a module with so many relays calls them: 0 to 9 and A to V, or 00 to 63."""
    return [DIGITS[n] if relays <= len(DIGITS) else f"{n:02d}" for n in range(relays)]


class Numato32(Numato8):
    """A module with 32 relays."""

    SPEC: ClassVar[Mapping[str, object]] = {"outlets": 32}


class Numato64(Numato8):
    """A module with 64 relays."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = {"prompt": PROMPT}
    SPEC: ClassVar[Mapping[str, object]] = {"outlets": 64}


UNITS: tuple[type[Unit], ...] = (Numato8, Numato32, Numato64)
