"""Relays on DTR and RTS, whose contacts are closed while the line is dropped.

There is no dialogue: whatever comes as bytes is ignored, and nothing is ever said.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from leadline.virtual.pdus.line import Frames, Piece, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets


class Relays:
    """One relay on DTR."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = {}
    SPEC: ClassVar[Mapping[str, object]] = {}
    FRAMING: ClassVar[Terminal | Frames] = Frames(len)

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return False

    def begin(self, left_at: str) -> bytes:
        """There is no session."""
        return b""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Say nothing."""
        yield from ()

    def signal(self, line: Literal["dtr", "rts"], *, asserted: bool) -> None:
        """A control line was set."""
        outlet = {"dtr": 1, "rts": 2}[line]
        if outlet in self.outlets.contacts:
            self.outlets.switch(outlet, on=not asserted)


class TwoRelays(Relays):
    """One on DTR, one on RTS."""

    SPEC: ClassVar[Mapping[str, object]] = {"outlets": 2}


UNITS: tuple[type[Unit], ...] = (Relays, TwoRelays)
