"""APC AP8xxx and others with AOS 5 and later: a command line.

`olOn N`, `olOff N` and `olStatus all` are answered by `E000: Success` (below 100 is
success) and, after the last, by lines such as ` 3: Outlet 3: On` (pdudaemon's
apc8959.py, get_power_status5 of fence_apc, APC's command line manuals).
"""

from leadline.inventory.pdu import PduSpec
from leadline.power.command_line import Grammar, prompt_line
from leadline.power.families.apc import Cli, Words, login_words
from leadline.power.session import Session

GRAMMAR = Grammar(
    unit="an APC with AOS 5 or later", prompt=prompt_line(rb"apc>[ ]?"), login=login_words()
)
WORDS = Words(on="olOn", off="olOff", status="olStatus all", leave="exit")


class ApcCli8(Cli):
    """One AP8xxx behind a session."""

    def __init__(self, session: Session, spec: PduSpec) -> None:
        super().__init__(session, spec, GRAMMAR, WORDS)
