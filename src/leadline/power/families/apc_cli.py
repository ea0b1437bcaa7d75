"""APC AP79xx by its command line, which it gives to who types ` -c` after the password.

`on N`, `off N` and `status` are answered by `OK` or `Exxx`, and by lines such as
` 3: Outlet 3: On` (pduapc.py of PDU-Commander on AP7900, AP7901 and AP7902; APC's
"Command Line Interface for Switched Rack PDUs").
"""

from leadline.inventory.pdu import PduSpec
from leadline.power.command_line import Grammar, Wait, prompt_line
from leadline.power.families import apc_menu
from leadline.power.families.apc import Cli, Words, login_words
from leadline.power.session import Session

GRAMMAR = Grammar(
    unit="an APC AP79xx that lets this user have its command line",
    prompt=prompt_line(rb"APC>[ ]?"),
    # Somebody logged in without ` -c`: out of the menus, to log in again.  (Enter leaves
    # their pagers, and their questions undone.)
    menus=(
        *(Wait(apc_menu.at_main_menu(number), b"%d" % number) for number in range(1, 10)),
        Wait(apc_menu.GRAMMAR.prompt, apc_menu.MAIN_MENU, enter=False),
    ),
    login=login_words(b" -c"),
)
WORDS = Words(on="on", off="off", status="status", leave="bye")


class ApcCli(Cli):
    """One AP79xx behind a session."""

    def __init__(self, session: Session, spec: PduSpec) -> None:
        super().__init__(session, spec, GRAMMAR, WORDS)
