"""WTI NPS, IPS, TPS, RSM, MPC, NBB and VMR switches: a prompt, `/on N,y`, a table of pipes.

The dialogue is that of powerman's `wti` (NPS v3.02), cluster-glue's `wti_nps` and
fence-agents' `fence_wti` (IPS-800-CE v1.40h, RSM-8R4, MPC).  `,y` answers the question
that the unit would ask before it switches; the prompt comes back when it is done.
"""

import re

from leadline.inventory.pdu import PduSpec
from leadline.power.command_line import (
    ERASE,
    CommandLine,
    Grammar,
    Wait,
    only_prompts,
    prompt_line,
)
from leadline.power.login import LoginWords
from leadline.power.session import Session

# A line's beginning: what stands within a row of the table is a name that the user chose.
_LINE = rb"(?:\A|[\r\n])"
_NAME = rb"(?:NPS|IPS|TPS|RSM|MPC|NBB|BB|VMR)>"
ONLY_PROMPTS = only_prompts(_NAME)
REFUSED = re.compile(rb"^[ ]*(?:Invalid\b|\?)", re.IGNORECASE | re.MULTILINE)
NUMBER = re.compile(r"[ ]*(\d{1,2})[ ]*")

GRAMMAR = Grammar(
    unit="a WTI power switch",
    prompt=prompt_line(_NAME + rb"[ ]*"),
    pagers=(Wait(re.compile(_LINE + rb"[ ]*Enter:[^\r\n]*\Z", re.IGNORECASE)),),
    questions=re.compile(_LINE + rb"(?![ ]*\d+[ ]*\|)[^\r\n]*\(Y/N\)[?>: ]*\Z", re.IGNORECASE),
    login=LoginWords(
        username=re.compile(
            _LINE + rb"[\w ]*(?:login(?: name)?|user ?name)[ ]*:[ ]*\Z", re.IGNORECASE
        ),
        password=re.compile(_LINE + rb"[\w ]*password[ ]*:[ ]*\Z", re.IGNORECASE),
        denied=re.compile(_LINE + rb"[ ]*Invalid (?:password|login)", re.IGNORECASE),
    ),
    # Escape leaves the unit's menus, which an Enter does not; at the prompt it is erased.
    wake=b"\x1b" * 3 + ERASE,
)

COMMAND_S = 10.0  # the prompt comes back when the relay has moved; cluster-glue waits as long
STATUS_S = 5.0  # a page of 20 rows takes 2 s at 9600 baud
BUSY = "*"


def parse_status(text: bytes) -> dict[int, str] | None:
    """What the column `Status` says by plug number; None where there is no table.

    None too when a plug is listed twice: then two answers ran into each other.
    """
    head: list[str] = []
    states: dict[int, str] = {}
    for line in re.split(r"[\r\n]+", text.decode("latin-1")):
        cells = line.split("|")
        if cells[0].strip().upper() == "PLUG":
            head = [cell.strip().upper() for cell in cells]
        elif "STATUS" in head and len(cells) >= len(head) and (row := NUMBER.fullmatch(cells[0])):
            if int(row[1]) in states:
                return None
            # Counted from the right: a name, which may hold anything, is left of it.
            states[int(row[1])] = cells[head.index("STATUS") - len(head)].strip().upper()
    return states or None


class WtiNps:
    """One switch behind a session."""

    reads_back = True

    def __init__(self, session: Session, spec: PduSpec) -> None:
        self._session = session
        self._outlets = spec.outlets
        self._line = CommandLine(session, spec, GRAMMAR)

    def sync(self) -> None:
        """Lead the session to a prompt, wherever it was left."""
        self._line.sync()

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one plug.  Raises LineTrouble when the unit refuses or does not answer."""
        command = f"/{'on' if on else 'off'} {outlet},y"
        heard = self._line.command(command, deadline_s=COMMAND_S)
        if REFUSED.search(heard):
            raise self._session.trouble(command, f"refused: {self._session.plain(heard)}")
        if GRAMMAR.asks(heard):
            raise self._session.trouble(
                command,
                f"the unit asks {self._session.plain(heard, 40)}: turn its command "
                "confirmation off",
            )

    def status(self) -> dict[int, bool]:
        """Every plug's state by its number; LineTrouble unless the whole table came.

        LineTrouble too while the unit is still busy with a plug, which it marks by an asterisk.
        """
        heard = self._line.command(
            "/s", deadline_s=STATUS_S, is_answer=lambda heard: not ONLY_PROMPTS.match(heard)
        )
        states = parse_status(heard)
        if states is None:
            raise self._session.trouble(
                "/s", f"no whole table; the last was {self._session.plain(heard)}"
            )
        if list(states) != list(range(1, self._outlets + 1)):
            listed = ", ".join(map(str, states))
            raise self._session.trouble(
                "/s", f"it lists plugs {listed}; the rig file says 1 to {self._outlets}"
            )
        for plug, state in states.items():
            if state not in {"ON", "OFF"}:
                why = "is still busy with it" if BUSY in state else "does not say on or off"
                said = self._session.plain(state.encode("latin-1"))
                raise self._session.trouble("/s", f"plug {plug}: the unit {why} ({said})")
        return {plug: state == "ON" for plug, state in states.items()}
