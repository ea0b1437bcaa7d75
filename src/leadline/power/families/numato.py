"""Numato Lab relay modules: a bare prompt, one relay a command, its echo before each answer.

`relay on 3` is answered by its echo and a prompt, `relay read 3` by its echo, `on` or `off`, and
a prompt; lines end in LF CR.  Relays count from 0, by one digit (0-9, A-F, on 32 relays
A-V), by two decimals on 64.  Sources: pdudaemon's `numatousb`, Numato's command list.
"""

import re
import string

from leadline.inventory.pdu import PduSpec
from leadline.power.command_line import CommandLine, Grammar, prompt_line
from leadline.power.session import Session

_PROMPT = rb">[ ]*"
GRAMMAR = Grammar(unit="a Numato relay module", prompt=prompt_line(_PROMPT))
DIGITS = (string.digits + string.ascii_uppercase)[:32]
ANSWER_S = 3.0


def relay_name(outlet: int, outlets: int) -> str:
    """What a module with so many relays calls that of an outlet, which counts from 1."""
    return DIGITS[outlet - 1] if outlets <= len(DIGITS) else f"{outlet - 1:02d}"


class Numato:
    """One module behind a session."""

    reads_back = True

    def __init__(self, session: Session, spec: PduSpec) -> None:
        self._outlets = spec.outlets
        self._line = CommandLine(session, spec, GRAMMAR)

    def sync(self) -> None:
        """Lead the session to a prompt, wherever it was left."""
        self._line.sync()

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one relay.  Raises LineTrouble when the module does not answer."""
        self._command("on" if on else "off", outlet, b"")

    def status(self) -> dict[int, bool]:
        """Every relay's state by its outlet's number, asked for one by one."""
        return {
            outlet: self._command("read", outlet, rb"(on|off)[\r\n]+") == b"on"
            for outlet in range(1, self._outlets + 1)
        }

    def _command(self, verb: str, outlet: int, said: bytes) -> bytes:
        """Do it; what was said to it, which is only an answer after this very command's echo."""
        command = f"relay {verb} {relay_name(outlet, self._outlets)}"
        answer = re.compile(rb"%b[ ]*[\r\n]+%b%b\Z" % (re.escape(command.encode()), said, _PROMPT))
        heard = self._line.command(
            command, deadline_s=ANSWER_S, is_answer=lambda heard: bool(answer.search(heard))
        )
        found = answer.search(heard)
        return found[1] if found and said else b""
