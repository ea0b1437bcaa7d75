"""KMTronic relay boards: `FF channel 01|00` switches, `FF channel 03` asks for one channel.

From public code for these boards.  An answer names its channel; a command has none.
"""

from leadline.inventory.pdu import PduSpec
from leadline.inventory.pdu_dialogue import DialogueSpec
from leadline.power.dialogue import Framed
from leadline.power.session import Session

DIALOGUE = DialogueSpec(
    encoding="hex",
    on="FF {outlet} 01",
    off="FF {outlet} 00",
    status="FF {outlet} 03",
    row="FF {outlet} {state}",
    on_words=("01",),
    off_words=("00",),
)
# After half a frame these are a channel and a command that no board has.
FILLER = b"\x55\x55\x55"


class Kmtronic(Framed):
    """One board behind a session."""

    def __init__(self, session: Session, spec: PduSpec) -> None:
        super().__init__(session, spec, DIALOGUE, filler=FILLER)
