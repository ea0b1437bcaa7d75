"""A Devantech USB-RLY08 and 02, as their technical documentation has them.

One byte a command, nothing acknowledged; `5A` answers id and version, `5B` the states as
bits, and `5C` sets all relays by the byte after it, whatever that was meant to be.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus.line import Frames, Piece, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets

VERSION, STATES, SET_ALL, ON, OFF = 0x5A, 0x5B, 0x5C, 0x64, 0x6E


def _length(typed: bytes) -> int:
    if not typed or typed[0] != SET_ALL:
        return len(typed[:1])
    return 2 if len(typed) >= 2 else 0


class Rly08:
    """Eight relays."""

    # Nothing is said there: "set all", of which somebody sent half.
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {"set-all": b""}
    SPEC: ClassVar[Mapping[str, object]] = {}
    FRAMING: ClassVar[Terminal | Frames] = Frames(_length)
    IDENTITY: ClassVar[bytes] = b"\x08\x01"

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return False

    def begin(self, left_at: str) -> bytes:
        """A board has no session, only bytes that it waits to have completed."""
        return bytes([SET_ALL]) if left_at == "set-all" else b""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one command."""
        command = line[0]
        if command == VERSION:
            yield 0.0, self.IDENTITY
        elif command == STATES:
            yield 0.0, bytes([sum(on << (n - 1) for n, on in self.outlets.shown.items())])
        elif command == SET_ALL:
            self._set_all(line)
        elif command in (ON, OFF):
            self.outlets.careless.append(line)
            for outlet in self.outlets.contacts:
                self.outlets.switch(outlet, on=command == ON)
        elif command - ON in self.outlets.contacts:
            self.outlets.switch(command - ON, on=True)
        elif command - OFF in self.outlets.contacts:
            self.outlets.switch(command - OFF, on=False)

    def _set_all(self, line: bytes) -> None:
        if line[1] != 0xFF:  # all on harms nothing that was on
            self.outlets.careless.append(line)
        for outlet in self.outlets.contacts:
            self.outlets.switch(outlet, on=bool(line[1] >> (outlet - 1) & 1))


class Rly02(Rly08):
    """Two relays."""

    SPEC: ClassVar[Mapping[str, object]] = {"outlets": 2}
    IDENTITY: ClassVar[bytes] = b"\x0a\x02"


UNITS: tuple[type[Unit], ...] = (Rly08, Rly02)
