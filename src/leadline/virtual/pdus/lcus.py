"""LCUS relay boards, as public code knows them: `A0 channel state sum` switches, no answer.

A frame with a wrong sum is ignored.  Three firmwares answer `FF` in three ways: lines
`CH1: ON`, a byte a channel, and nothing at all.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus.line import Frames, Piece, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets

HEAD = 0xA0


def _length(typed: bytes) -> int:
    if not typed or typed[0] != HEAD:
        return len(typed[:1])
    return 4 if len(typed) >= 4 else 0


class Board:
    """The firmware that answers in lines."""

    # Nothing is said there: a frame of which somebody sent half.
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {"head": b"", "half": b"", "unsummed": b""}
    SPEC: ClassVar[Mapping[str, object]] = {}
    FRAMING: ClassVar[Terminal | Frames] = Frames(_length)

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return False

    def begin(self, left_at: str) -> bytes:
        """A board has no session, only bytes that it waits to have completed."""
        begun = {"head": b"\xa0", "half": b"\xa0\x01", "unsummed": b"\xa0\x01\x00"}
        return begun.get(left_at, b"")

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one frame."""
        if line == b"\xff":
            yield 0.0, self._states()
        elif len(line) == 4:
            _, channel, state, total = line
            whole = total == sum(line[:3]) % 256 and state in (0, 1)
            if whole and channel in self.outlets.contacts:
                self.outlets.switch(channel, on=state == 1)

    def _states(self) -> bytes:
        shown = self.outlets.shown.items()
        return b"".join(b"CH%d: %s\r\n" % (n, b"ON" if on else b"OFF") for n, on in shown)


class ByteBoard(Board):
    """The firmware that answers one byte a channel."""

    def _states(self) -> bytes:
        return bytes(self.outlets.shown.values())


class MuteBoard(Board):
    """The firmware that answers nothing (LCUS-1)."""

    def _states(self) -> bytes:
        return b""


class SingleMuteBoard(MuteBoard):
    """The board with one relay."""

    SPEC: ClassVar[Mapping[str, object]] = {"outlets": 1}


UNITS: tuple[type[Unit], ...] = (Board, ByteBoard, MuteBoard, SingleMuteBoard)
