"""A WTI RPS-10, as powerman's description `wti-rps10` and cluster-glue's `rps10` know it.

There is no session: `^B^X^X^B^X^X`, an address, an operation and CR are obeyed wherever they
end a line, and anything else is not answered.  Outlet 1 is the module at address 0.  A
module reports that it did what it was told, whatever its relay did.  It says
`RPS-10 Ready` when the line's DTR comes up; nothing that is typed is echoed.
"""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus.line import Frames, Piece, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets

PASSWORD = b"\x02\x18\x18\x02\x18\x18"
COMMAND = re.compile(PASSWORD + rb"([0-9*])([01T?])\Z")
READY = b"\r\nRPS-10 Ready\r\n"


class Rps10:
    """A master with nine modules."""

    # Nobody can leave it anywhere but in the middle of a command.
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {"half-typed": b"", "ready": READY}
    SPEC: ClassVar[Mapping[str, object]] = {}
    FRAMING: ClassVar[Terminal | Frames] = Terminal(echo=False, ready=READY)

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return False

    def begin(self, left_at: str) -> bytes:
        """Nothing is remembered of what was before, but what was typed without CR."""
        return PASSWORD + b"00" if left_at == "half-typed" else b""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line that ends in a command."""
        command = COMMAND.search(line)
        chosen = self._addressed(command[1]) if command else []
        if not command or not chosen:
            return
        operation = command[2]
        if operation == b"T" or (command[1] == b"*" and operation != b"?"):
            self.outlets.careless.append(command[1] + operation)
        if operation == b"?":
            said = b"".join(_plug(outlet, self.outlets.shown[outlet]) for outlet in chosen)
            yield 0.0, b"\r\n" + said + b"Complete\r\n"
            return
        if operation == b"T":
            yield 0.0, b"\r\n" + self._switch(chosen, on=False)
            yield self.outlets.reboot_s, b""
        yield 0.0, b"\r\n" + self._switch(chosen, on=operation != b"0") + b"Complete\r\n"

    def _addressed(self, address: bytes) -> list[int]:
        every = list(self.outlets.contacts)
        return every if address == b"*" else [n for n in every if n == int(address) + 1]

    def _switch(self, chosen: list[int], *, on: bool) -> bytes:
        for outlet in chosen:
            self.outlets.switch(outlet, on=on)
        return b"".join(_plug(outlet, on) for outlet in chosen)


class Rps10Pair(Rps10):
    """A master with one module."""

    SPEC: ClassVar[Mapping[str, object]] = {"outlets": 2}


def _plug(outlet: int, on: bool) -> bytes:
    return b"Plug %d %s\r\n" % (outlet - 1, b"On" if on else b"Off")


UNITS: tuple[type[Unit], ...] = (Rps10, Rps10Pair)
