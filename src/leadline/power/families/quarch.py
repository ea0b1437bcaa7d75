"""Quarch power and hot-plug modules: a prompt, and one drive that is fed or not.

`run:power up`, `run:power down` and `run:power?`, lines ended by CR LF, are those of
Quarch's own client (quarchpy) and application note AN-006, answered by `OK` or `FAIL...`.
Down is `OFF` or `PULLED` there; for up, `ON` and `PLUGGED` are their opposites, seen on no module.
"""

from leadline.inventory.pdu import PduSpec
from leadline.inventory.pdu_dialogue import DialogueSpec
from leadline.power.dialogue import Spoken
from leadline.power.session import Session

DIALOGUE = DialogueSpec(
    on="run:power up",
    off="run:power down",
    status="run:power?",
    prompt=">",
    row="{state}",
    on_words=("ON", "PLUGGED"),
    off_words=("OFF", "PULLED"),
    errors=("FAIL*",),
)


class Quarch(Spoken):
    """One module behind a session."""

    def __init__(self, session: Session, spec: PduSpec) -> None:
        super().__init__(session, spec, DIALOGUE)
