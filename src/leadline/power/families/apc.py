"""What all APC consoles share: their login, and the command line of the newer ones.

A console asks `User Name :` and `Password  :` and is silent until the first Enter
(pdudaemon's apcbase.py).  It takes one session at a time and leaves it logged in when
the port is closed, so a driver logs out (`leave`).
"""

import re
from dataclasses import dataclass

from leadline.inventory.pdu import PduSpec
from leadline.power.command_line import CommandLine, Grammar
from leadline.power.login import LoginWords
from leadline.power.session import Session

# A line's beginning, for names that users chose stand within a line only.
LINE = rb"(?:\A|[\r\n])[ ]*"

COMMAND_S = 10.0
LOGOUT_QUIET_S = 0.3


def login_words(suffix: bytes = b"") -> LoginWords:
    """The login; none of the sources says in which words it is refused."""
    return LoginWords(
        username=re.compile(LINE + rb"User Name[ ]*:[ ]*\Z"),
        password=re.compile(LINE + rb"Password[ ]*:[ ]*\Z"),
        suffix=suffix,
    )


def log_out(session: Session, keys: bytes) -> None:
    """Say goodbye, and see it out of the port."""
    session.send(keys, "logging out")
    session.drain("logging out", quiet_s=LOGOUT_QUIET_S)


@dataclass(frozen=True)
class Words:
    """The commands of one command line; the outlet's number follows `on` and `off`."""

    on: str
    off: str
    status: str
    leave: str


# E000 and E001 are successes; from 100 on they are errors.
RESULT = re.compile(r"^[ ]*(?:OK|E(\d{3}))\b", re.MULTILINE)
# The name is whatever the user called the outlet: only what ends the line is its state.
ROW = re.compile(r"[ ]*(\d{1,2}): .*: (On|Off)[ ]*", re.IGNORECASE)


def answer_of(command: str, heard: bytes) -> str | None:
    """What followed the echo of a command, its lines ended by LF; None before the result came.

    The echo tells this command's answer from one that was late.
    """
    text = re.sub(r"[\r\n]+", "\n", heard.decode("latin-1"))
    _, echo, answer = text.partition(command)
    return answer if echo and RESULT.search(answer) else None


def parse_status(answer: str) -> dict[int, bool]:
    """The outlets of a status answer by their numbers; empty when one is listed twice."""
    rows = [row for line in answer.split("\n") if (row := ROW.fullmatch(line))]
    states = {int(row[1]): row[2].lower() == "on" for row in rows}
    return states if len(states) == len(rows) else {}


class Cli:
    """One APC command line behind a session."""

    reads_back = True

    def __init__(self, session: Session, spec: PduSpec, grammar: Grammar, words: Words) -> None:
        self._session = session
        self._outlets = spec.outlets
        self._enter = spec.enter
        self._words = words
        self._line = CommandLine(session, spec, grammar)

    def sync(self) -> None:
        """Lead the session to a prompt, wherever it was left."""
        self._line.sync()

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one outlet.  Raises LineTrouble when the unit refuses or does not answer."""
        self._command(f"{self._words.on if on else self._words.off} {outlet}")

    def status(self) -> dict[int, bool]:
        """Every outlet's state by its number; LineTrouble unless the whole list came."""
        command = self._words.status
        states = parse_status(self._command(command))
        if list(states) != list(range(1, self._outlets + 1)):
            listed = ", ".join(map(str, states)) or "none, or one twice"
            raise self._session.trouble(
                command, f"it lists outlets {listed}; the rig file says 1 to {self._outlets}"
            )
        return states

    def leave(self) -> None:
        """Log out."""
        log_out(self._session, self._words.leave.encode() + self._enter)

    def _command(self, command: str) -> str:
        heard = self._line.command(
            command,
            deadline_s=COMMAND_S,
            is_answer=lambda heard: answer_of(command, heard) is not None,
        )
        answer = answer_of(command, heard) or ""
        result = RESULT.search(answer)
        if result is None or int(result[1] or 0) >= 100:
            raise self._session.trouble(command, f"refused: {self._session.plain(heard)}")
        return answer
