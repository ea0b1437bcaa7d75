"""Sentry Switched CDU, firmware 6 to 8: a login, outlets with names of their own, a pager.

The dialogue is that of powerman's `sentry_cdu` (6.0r) and of fence_cdu (6a to 8.0i): `on
.A1`, `off .AA3`, `status` (8: `status all`), each ended by `Command successful`; the states
are those of Server Technology's manuals.  Outlet number k is the k-th row of the status
table, which lists what the account may switch.

Firmware 6 and 7 print an outlet's state and then the state that it was told; firmware 8 the
other way round, and something more.  Only the first of these is believed.  An Enter at the
prompt lists commands, so what goes before a command here is `version`: its answer, too,
is none that was left over.
"""

import re
from dataclasses import dataclass

from leadline.inventory.pdu import PduSpec
from leadline.power.command_line import CommandLine, Grammar, Wait, only_prompts, prompt_line
from leadline.power.login import LoginWords
from leadline.power.session import Session

_LINE = rb"(?:\A|[\r\n])[ ]*"
_PROMPT = rb"Switched [CP]DU:"
ONLY_PROMPTS = only_prompts(_PROMPT)
GRAMMAR = Grammar(
    unit="a Sentry Switched CDU",
    prompt=prompt_line(_PROMPT + rb"[ ]*"),
    # It takes its key without an Enter.
    pagers=(Wait(re.compile(_LINE + rb"More \(Y/es N/o\):[ ]*\Z"), b"y", enter=False),),
    login=LoginWords(
        username=re.compile(_LINE + rb"Username:[ ]*\Z"),
        password=re.compile(_LINE + rb"Password:[ ]*\Z"),
    ),
    handshake=False,
)
VERSION = re.compile(_LINE + rb"Sentry Switched [CP]DU Version (\d+)")
DONE = re.compile(_LINE + rb"Command successful[ ]*[\r\n]")

# A state is one word, or two ("Idle On", "Off/Error"); at least two spaces part the columns.
_STATE = r"(?<![ ])[ ]{2,}([A-Z][a-z]+(?:[ /][A-Z][a-z]+)?)"
ROW = re.compile(r"[ ]*(\.[A-Z]{1,2}\d{1,2})(?:[ ].*)?" + _STATE + _STATE + r"[ ]*")
ROW_8 = re.compile(r"[ ]*([A-Z]{2}\d{1,2})(?:[ ].*)?" + _STATE + _STATE + r"[ ]{2,}(?!On|Off)\S.*")
# Of an outlet in trouble, the first word is what current was sensed; Wait is on its way.
IS_ON = {
    **dict.fromkeys(("On", "On/Error", "On Error", "On/Fuse", "On Fuse"), True),
    **dict.fromkeys(("Off", "Off/Error", "Off Error", "Off/Fuse", "Off Fuse"), False),
}

VERSION_S = 5.0
COMMAND_S = 10.0  # powerman waits as long
STATUS_S = 5.0  # for a page of 16 rows, 1.5 s at 9600 baud


@dataclass(frozen=True)
class Outlet:
    """A row of the table: the outlet's own name, such as `.A1`, and the state it is in."""

    name: str
    state: str


def parse_status(text: bytes, firmware: int) -> list[Outlet] | None:
    """The outlets of a status table, in its order; None where there is no whole table.

    None too when an outlet is listed twice: then two answers ran into each other.
    """
    pattern, state = (ROW_8, 3) if firmware >= 8 else (ROW, 2)
    rows = [
        Outlet(row[1], row[state])
        for line in re.split(r"[\r\n]+", text.decode("latin-1"))
        if (row := pattern.fullmatch(line))
    ]
    whole = rows and len({row.name for row in rows}) == len(rows)
    return rows if whole else None


class SentryCdu:
    """One Switched CDU behind a session."""

    reads_back = True

    def __init__(self, session: Session, spec: PduSpec) -> None:
        self._session = session
        self._outlets = spec.outlets
        self._line = CommandLine(session, spec, GRAMMAR)
        self._names: list[str] = []  # as the last table had them

    def sync(self) -> None:
        """Lead the session to a prompt, wherever it was left, of whatever unit is there now."""
        self._names = []
        self._line.sync()

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one outlet.  Raises LineTrouble when the unit refuses or does not answer."""
        if not self._names:
            self.status()
        self._firmware()
        command = f"{'on' if on else 'off'} {self._names[outlet - 1]}"
        heard = self._line.command(command, deadline_s=COMMAND_S, is_answer=_is_more)
        if not DONE.search(heard):
            raise self._session.trouble(command, f"refused: {self._session.plain(heard)}")

    def status(self) -> dict[int, bool]:
        """Every outlet's state by its number; LineTrouble unless the whole table came."""
        firmware = self._firmware()
        heard = self._line.command(
            "status all" if firmware >= 8 else "status", deadline_s=STATUS_S, is_answer=_is_more
        )
        rows = parse_status(heard, firmware)
        if rows is None:
            raise self._session.trouble(
                "status", f"no whole table; the last was {self._session.plain(heard)}"
            )
        if len(rows) != self._outlets:
            listed = ", ".join(row.name for row in rows)
            raise self._session.trouble(
                "status", f"it lists outlets {listed}; the rig file says {self._outlets} of them"
            )
        for outlet, row in enumerate(rows, 1):
            if row.state not in IS_ON:
                raise self._session.trouble(
                    "status", f"outlet {outlet} ({row.name}) is neither on nor off: {row.state}"
                )
        self._names = [row.name for row in rows]
        return {outlet: IS_ON[row.state] for outlet, row in enumerate(rows, 1)}

    def _firmware(self) -> int:
        heard = self._line.command("version", deadline_s=VERSION_S, is_answer=_is_version)
        if not (version := VERSION.search(heard)):
            raise self._session.trouble(
                "version", f"no firmware's version, but {self._session.plain(heard)}"
            )
        return int(version[1])


def _is_more(heard: bytes) -> bool:
    """Whether it is more than prompts, which were left over then."""
    return not ONLY_PROMPTS.match(heard)


def _is_version(heard: bytes) -> bool:
    """Whether it is no answer to an Enter that was late, which ends with the prompt."""
    return bool(VERSION.search(heard)) or not GRAMMAR.prompt.search(heard)
