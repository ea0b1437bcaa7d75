"""Bench supplies that speak SCPI as a Rigol DP800 does: an outlet is a channel.

`:OUTP CH1,ON` and `:OUTP? CH1`, from public code for the DP800.  Supplies with other words
(Aim-TTi's `OP1 1`) are described in the rig file: docs/how-to/describe-a-pdu.md.
"""

from leadline.inventory.pdu import PduSpec
from leadline.inventory.pdu_dialogue import DialogueSpec
from leadline.power.dialogue import Spoken
from leadline.power.session import Session

DIALOGUE = DialogueSpec(
    on=":OUTP CH{outlet},ON",
    off=":OUTP CH{outlet},OFF",
    status=":OUTP? CH{outlet}",
    identify="*IDN?",  # IEEE 488.2: every such device answers it
    row="{state}",
    on_words=("ON", "1"),
    off_words=("OFF", "0"),
)


class Scpi(Spoken):
    """One supply behind a session."""

    def __init__(self, session: Session, spec: PduSpec) -> None:
        super().__init__(session, spec, DIALOGUE)
