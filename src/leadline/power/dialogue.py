"""Devices whose whole dialogue is a `DialogueSpec`: one that a user gives, or a family's own."""

import re

from leadline.inventory.pdu import PduSpec
from leadline.inventory.pdu_dialogue import DialogueSpec
from leadline.inventory.pdu_templates import (
    command_bytes,
    line_pattern,
    lines,
    names_outlet,
    outlet_base,
)
from leadline.power.command_line import CommandLine, Grammar, prompt_line
from leadline.power.frame_line import FrameLine, Query
from leadline.power.query_line import QueryLine
from leadline.power.session import Session

COMMAND_S = 10.0
STATUS_S = 5.0


class Rows:
    """Reads states out of what a device says."""

    def __init__(self, dialogue: DialogueSpec) -> None:
        self._dialogue = dialogue
        template = dialogue.row or "{state}"
        words = (*dialogue.on_words, *dialogue.off_words)
        self._row = line_pattern(template, dialogue.encoding, words) if words else None
        self._base = outlet_base(template, dialogue.encoding)
        self._errors = [line_pattern(one, "text", ()) for one in dialogue.errors]

    def is_state(self, line: str) -> bool:
        """Whether a line is a row."""
        return self._row is not None and self._row.fullmatch(line) is not None

    def states(self, heard: bytes, outlets: range) -> dict[int, bool]:
        """The states of the `outlets` asked for; empty unless each of them is told, and once.

        A row without an outlet's number is of the first: then only one was asked for.
        """
        if self._row is None:
            return {}
        found = [
            row
            for one in lines(heard, self._dialogue.encoding)
            if (row := self._row.fullmatch(one))
        ]
        words = self._dialogue.on_words
        states = {self._outlet(row, outlets[0]): row["state"] in words for row in found}
        return states if len(found) == len(states) and sorted(states) == list(outlets) else {}

    def refusal(self, heard: bytes) -> str | None:
        """The line that refuses the command, if there is one."""
        said = lines(heard, "text")
        return next((one for one in said if any(e.fullmatch(one) for e in self._errors)), None)

    def _outlet(self, row: re.Match[str], asked: int) -> int:
        number = row.groupdict().get("outlet")
        if number is None:
            return asked
        return int(number, self._base) - self._dialogue.first + 1


class Spoken:
    """A device that is typed to."""

    def __init__(self, session: Session, spec: PduSpec, dialogue: DialogueSpec) -> None:
        self._session = session
        self._dialogue = dialogue
        self._outlets = range(1, spec.outlets + 1)
        self._rows = Rows(dialogue)
        self._line: CommandLine | QueryLine
        if dialogue.prompt is not None:
            prompt = prompt_line(re.escape(dialogue.prompt.encode()) + b"[ ]*")
            self._line = CommandLine(session, spec, Grammar(f"a {spec.family} device", prompt))
        else:
            self._line = QueryLine(session, spec, dialogue.identify, self._rows.is_state)

    @property
    def reads_back(self) -> bool:
        """Whether the dialogue has a status."""
        return self._dialogue.status is not None

    def sync(self) -> None:
        """Lead the line to where a command can be typed."""
        self._line.sync()

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one outlet.  Raises LineTrouble when the device refuses."""
        dialogue = self._dialogue
        command = self._text(dialogue.on if on else dialogue.off, outlet)
        step = f"{'on' if on else 'off'} {outlet}"
        self._refuse(step, self._line.command(command, step=step, deadline_s=COMMAND_S))

    def status(self) -> dict[int, bool]:
        """Every outlet's state; LineTrouble unless each question got its own whole answer."""
        status = self._dialogue.status
        assert status is not None, "asked only where it reads back"
        if not names_outlet(status):
            return self._told(status, self._outlets)
        states: dict[int, bool] = {}
        for outlet in self._outlets:
            states |= self._told(self._text(status, outlet), range(outlet, outlet + 1))
        return states

    def _told(self, command: str, outlets: range) -> dict[int, bool]:
        step = "status" if outlets == self._outlets else f"status {outlets[0]}"
        heard = self._line.command(
            command,
            step=step,
            deadline_s=STATUS_S,
            is_answer=lambda heard: bool(
                self._rows.states(heard, outlets) or self._rows.refusal(heard)
            ),
        )
        self._refuse(step, heard)
        return self._rows.states(heard, outlets)

    def _refuse(self, step: str, heard: bytes) -> None:
        if (refusal := self._rows.refusal(heard)) is not None:
            raise self._session.trouble(
                step, f"refused: {self._session.plain(refusal.encode('latin-1'))}"
            )

    def _text(self, template: str, outlet: int) -> str:
        number = outlet - 1 + self._dialogue.first
        return command_bytes(template, "text", number).decode("ascii")


class Framed:
    """A device that takes bytes."""

    def __init__(
        self, session: Session, spec: PduSpec, dialogue: DialogueSpec, *, filler: bytes = b""
    ) -> None:
        self._dialogue = dialogue
        self._rows = Rows(dialogue)
        asked = range(1, spec.outlets + 1) if dialogue.status is not None else ()
        self._line = FrameLine(session, [self._query(n) for n in asked], filler=filler)

    @property
    def reads_back(self) -> bool:
        """Whether the dialogue has a status."""
        return self._line.reads_back

    def sync(self) -> None:
        """Get the line into step."""
        self._line.sync()

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one outlet."""
        template = self._dialogue.on if on else self._dialogue.off
        self._line.command(self._frame(template, outlet), f"{'on' if on else 'off'} {outlet}")

    def status(self) -> dict[int, bool]:
        """Every outlet's state, each asked for by itself."""
        return self._line.status()

    def _query(self, outlet: int) -> Query:
        asked = range(outlet, outlet + 1)
        return Query(
            self._frame(self._dialogue.status or "", outlet),
            lambda heard: self._rows.states(heard, asked) or None,
        )

    def _frame(self, template: str, outlet: int) -> bytes:
        return command_bytes(template, "hex", outlet - 1 + self._dialogue.first)
