"""A KMTronic relay board, as public code knows it.

`FF channel 01|00` switches, and `FF channel 03` is answered by `FF channel state`.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus.line import Frames, Piece, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets


def _length(typed: bytes) -> int:
    if not typed or typed[0] != 0xFF:
        return len(typed[:1])
    return 3 if len(typed) >= 3 else 0


class Board:
    """The board with eight relays."""

    # Nothing is said there: a frame of which somebody sent half.
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {"head": b"", "half": b""}
    SPEC: ClassVar[Mapping[str, object]] = {}
    FRAMING: ClassVar[Terminal | Frames] = Frames(_length)

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return False

    def begin(self, left_at: str) -> bytes:
        """A board has no session, only bytes that it waits to have completed."""
        return {"head": b"\xff", "half": b"\xff\x01"}.get(left_at, b"")

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one frame."""
        if len(line) != 3 or line[1] not in self.outlets.contacts:
            return
        channel, command = line[1], line[2]
        if command == 3:
            yield 0.0, bytes([0xFF, channel, self.outlets.shown[channel]])
        elif command in (0, 1):
            self.outlets.switch(channel, on=command == 1)


class SingleBoard(Board):
    """The board with one relay."""

    SPEC: ClassVar[Mapping[str, object]] = {"outlets": 1}


UNITS: tuple[type[Unit], ...] = (Board, SingleBoard)
