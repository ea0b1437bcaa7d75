"""Devantech USB-RLY relay boards: one byte a command, `0x64 + N` on and `0x6E + N` off.

Commands as in Devantech's technical documentation of the USB-RLY08 and 16: 0x5A answers
the module's id and version, 0x5B one byte with a bit a relay; switching is not
acknowledged.
"""

from leadline.inventory.pdu import PduSpec
from leadline.power.frame_line import FrameLine, Query
from leadline.power.session import Session

ON, OFF = 0x64, 0x6E
# The states between two identities, which are alike only where nothing is late or lost.
ASK = b"\x5a\x5b\x5a"
# No command; but after half a "set relay states" (0x5C) it means all on, where the first byte
# of a question would be taken for a pattern of relays.
FILLER = b"\xff"


def read_states(heard: bytes, outlets: int) -> dict[int, bool] | None:
    """The states of one whole answer; None where it is none."""
    if len(heard) != 5 or heard[:2] != heard[3:] or heard[2] >> outlets:
        return None
    return {outlet: bool(heard[2] >> (outlet - 1) & 1) for outlet in range(1, outlets + 1)}


class DevantechRly:
    """One board behind a session."""

    def __init__(self, session: Session, spec: PduSpec) -> None:
        query = Query(ASK, lambda heard: read_states(heard, spec.outlets))
        self._line = FrameLine(session, [query], filler=FILLER)

    @property
    def reads_back(self) -> bool:
        """Every module can tell."""
        return self._line.reads_back

    def sync(self) -> None:
        """Get the line into step."""
        self._line.sync()

    def status(self) -> dict[int, bool]:
        """Every relay's state."""
        return self._line.status()

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one relay."""
        frame = bytes([(ON if on else OFF) + outlet])
        self._line.command(frame, f"{'on' if on else 'off'} {outlet}")
