"""LCUS relay boards on a CH340 (1a86:7523): `A0 channel state sum`, never acknowledged.

From public code for these boards.  `FF` asks for states, and what comes depends on the
firmware: lines `CH1: ON`, one byte a channel, or nothing (LCUS-1).  So whether a board can
be read back is found out by asking it.
"""

import re

from leadline.inventory.pdu import PduSpec
from leadline.power.frame_line import FrameLine, Query
from leadline.power.session import Session

ASK = b"\xff"
# After half a frame these are a channel, a state and a sum that are none.
FILLER = b"\x55\x55\x55"
ROW = re.compile(rb"CH(\d): ?(ON|OFF) ?\r?\n")


def frame(outlet: int, on: bool) -> bytes:
    """The command for one relay."""
    body = bytes([0xA0, outlet, on])
    return body + bytes([sum(body) % 256])


def read_states(heard: bytes, outlets: int) -> dict[int, bool] | None:
    """The states of one whole answer, whichever firmware's; None where it is none."""
    if len(heard) == outlets and set(heard) <= {0, 1}:
        return {outlet: bool(state) for outlet, state in enumerate(heard, 1)}
    rows = ROW.findall(heard)
    whole = ROW.sub(b"", heard) == b"" and [int(n) for n, _ in rows] == [*range(1, outlets + 1)]
    return {int(n): state == b"ON" for n, state in rows} if whole else None


class Lcus:
    """One board behind a session."""

    def __init__(self, session: Session, spec: PduSpec) -> None:
        query = Query(ASK, lambda heard: read_states(heard, spec.outlets))
        self._line = FrameLine(session, [query], filler=FILLER, may_be_mute=True)

    @property
    def reads_back(self) -> bool:
        """Whether this board's firmware tells states; known after `sync`."""
        return self._line.reads_back

    def sync(self) -> None:
        """Get the line into step."""
        self._line.sync()

    def status(self) -> dict[int, bool]:
        """Every relay's state."""
        return self._line.status()

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one relay."""
        self._line.command(frame(outlet, on), f"{'on' if on else 'off'} {outlet}")
