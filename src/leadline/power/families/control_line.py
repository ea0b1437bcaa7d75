"""A relay on a port's control lines: outlet 1 on DTR, outlet 2 on RTS; no byte is sent.

On is the line dropped and off the line asserted, for a dropped line is what is left when
the machine or the cable fails, and outlets end on.  Nothing comes back: reading the line's
state would tell what we set, not what the relay did, so it is not asked.
"""

from leadline.inventory.pdu import PduSpec
from leadline.power.session import ControlLine as Line
from leadline.power.session import Session

LINES: dict[int, Line] = {1: "dtr", 2: "rts"}


class ControlLine:
    """The relays behind a session's port."""

    reads_back = False

    def __init__(self, session: Session, spec: PduSpec) -> None:
        self._session = session
        self._unread = f"family {spec.family} has no status"

    def sync(self) -> None:
        """There is nothing to find out."""

    def status(self) -> dict[int, bool]:
        """Never asked, for it does not read back."""
        raise self._session.trouble("status", self._unread)

    def switch(self, outlet: int, *, on: bool) -> None:
        """Set the outlet's line."""
        step = f"{'on' if on else 'off'} {outlet}"
        self._session.set_line(LINES[outlet], step, asserted=not on)
