"""What `power.pdu` asks of a family's dialogue."""

from typing import Protocol, runtime_checkable


class Family(Protocol):
    """One family's dialogue, made from a session and the PDU's entry in the rig file.

    Everything may raise LineTrouble; `sync` mends what can be mended, comes first, and
    again after any LineTrouble.
    """

    @property
    def reads_back(self) -> bool:
        """Whether the device can tell the state of its outlets; known after `sync`."""

    def sync(self) -> None:
        """Find out where the line was left, and make it ready for a command."""

    def status(self) -> dict[int, bool]:
        """Every outlet's state by its number, 1 to the last; asked only where it `reads_back`.

        Raises LineTrouble unless a whole answer to this very question came.
        """

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one outlet, absolutely: never a toggle, a range, or the device's reboot.

        Whether it was done is for `status` to say.
        """


@runtime_checkable
class Leaves(Protocol):
    """A family whose devices keep a session that outlives the open port."""

    def leave(self) -> None:
        """Log out, from a line that is in order, within seconds.  Raises LineTrouble."""
