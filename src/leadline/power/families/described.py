"""A device that the rig file describes (docs/how-to/describe-a-pdu.md)."""

from leadline.errors import Misuse
from leadline.inventory.pdu import PduSpec
from leadline.power.dialogue import Framed, Spoken
from leadline.power.session import Session


class Described:
    """One described device behind a session."""

    def __init__(self, session: Session, spec: PduSpec) -> None:
        dialogue = spec.dialogue
        if dialogue is None:  # the model refuses such a file
            raise Misuse(f"{session.label}: family described, and no dialogue")
        how = Framed if dialogue.encoding == "hex" else Spoken
        self._device: Framed | Spoken = how(session, spec, dialogue)

    @property
    def reads_back(self) -> bool:
        """Whether the dialogue has a status."""
        return self._device.reads_back

    def sync(self) -> None:
        """Get the line into step."""
        self._device.sync()

    def status(self) -> dict[int, bool]:
        """Every outlet's state."""
        return self._device.status()

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one outlet."""
        self._device.switch(outlet, on=on)
