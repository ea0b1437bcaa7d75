"""BayTech RPC3-NC and RPC-3/4: a prompt, absolute commands, a status table.

The dialogue is that of powerman's `baytech-rpc3-nc` (units RPC3-NC F4.00 and
RPC-3/4(A)DE F1.08): `on N`, `off N` and `status`, ended by CR, are answered by a
prompt alone, by `Input error`, or by the table and a prompt.  Confirmation and the
status menu must be off in the unit.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from leadline.inventory.pdu import PduSpec
from leadline.power.command_line import CommandLine, Grammar, Wait, only_prompts, prompt_line
from leadline.power.login import LoginWords
from leadline.power.session import Session

# A line's beginning: what stands within a row of the table is a name that the user chose.
_LINE = rb"(?:\A|[\r\n])"
_LAST_LINE = _LINE + rb"(?=[^\r\n]*\Z)"
_NAME = rb"RPC[\w/()-]{1,12}>"
ONLY_PROMPTS = only_prompts(_NAME)
REFUSED = re.compile(rb"^[ ]*Input error", re.MULTILINE)
# The name is whatever the user called the outlet: only what ends the line is its state.
ROW = re.compile(r"[ ]*(\d{1,2})\)\.{3}.*:[ ]*(On|Off)[ ]*")

GRAMMAR = Grammar(
    unit="a BayTech RPC3",
    prompt=prompt_line(_NAME + rb"[ ]*"),
    pagers=(
        Wait(re.compile(_LINE + rb"[ ]*Press <ENTER>[^\r\n]*\Z")),
        Wait(re.compile(_LINE + rb"[ ]*More \(Y/es N/o\):[ ]*\Z"), b"Y"),
    ),
    questions=re.compile(
        _LAST_LINE + rb"(?![ ]*\d+\)\.)[^\r\n]*(?:\(Y/N\)[?>: ]*|'YES'[^\r\n]*)\Z", re.IGNORECASE
    ),
    login=LoginWords(
        username=re.compile(_LINE + rb"[\w ]*(?:user ?name|login)[> :]*\Z", re.IGNORECASE),
        password=re.compile(_LINE + rb"[\w ]*password[> :]*\Z", re.IGNORECASE),
        denied=re.compile(rb"Invalid (?:password|login)", re.IGNORECASE),
    ),
)

COMMAND_S = 10.0  # the prompt comes back when the relay has moved; powerman waits as long
STATUS_S = 5.0  # a table of 1000 characters takes 1 s at 9600 baud


def parse_status(text: bytes) -> dict[int, bool] | None:
    """The outlets of a status table by their numbers; None where there is no table.

    None too when an outlet is listed twice: then two answers ran into each other.
    """
    rows = [
        row for line in re.split(r"[\r\n]+", text.decode("latin-1")) if (row := ROW.fullmatch(line))
    ]
    states = {int(row[1]): row[2] == "On" for row in rows}
    return states if states and len(states) == len(rows) else None


@dataclass(frozen=True)
class Dialect:
    """What a BayTech's words are, and how its status table is read (None where it is not whole)."""

    grammar: Grammar
    table: Callable[[bytes], dict[int, bool] | None]


class BaytechRpc3:
    """One RPC3, or a unit with another dialect of the same commands, behind a session."""

    reads_back = True
    dialect: ClassVar[Dialect] = Dialect(GRAMMAR, parse_status)

    def __init__(self, session: Session, spec: PduSpec) -> None:
        self._session = session
        self._outlets = spec.outlets
        self._line = CommandLine(session, spec, self.dialect.grammar)

    def sync(self) -> None:
        """Lead the session to a prompt, wherever it was left."""
        self._line.sync()

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one outlet.  Raises LineTrouble when the unit refuses or does not answer."""
        command = f"{'on' if on else 'off'} {outlet}"
        heard = self._line.command(command, deadline_s=COMMAND_S)
        if REFUSED.search(heard):
            raise self._session.trouble(command, f"refused: {self._session.plain(heard)}")
        if self.dialect.grammar.asks(heard):
            raise self._session.trouble(
                command,
                f"the unit asks {self._session.plain(heard, 40)}: turn its confirmation off",
            )

    def status(self) -> dict[int, bool]:
        """Every outlet's state by its number; LineTrouble unless the whole table came."""
        # A prompt alone answers an on or off, if the unit does not echo; before a table it is
        # one left over.
        heard = self._line.command(
            "status", deadline_s=STATUS_S, is_answer=lambda heard: not ONLY_PROMPTS.match(heard)
        )
        states = self.dialect.table(heard)
        if states is None:
            raise self._session.trouble(
                "status", f"no whole table; the last was {self._session.plain(heard)}"
            )
        if list(states) != list(range(1, self._outlets + 1)):
            listed = ", ".join(map(str, states))
            raise self._session.trouble(
                "status", f"it lists outlets {listed}; the rig file says 1 to {self._outlets}"
            )
        return states
