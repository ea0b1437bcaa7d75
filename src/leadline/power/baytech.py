"""BayTech RPC3-NC and RPC-3/4: a prompt, absolute commands, a status table.

The dialogue is that of powerman's `baytech-rpc3-nc` (units RPC3-NC F4.00 and
RPC-3/4(A)DE F1.08): `on N`, `off N` and `status`, ended by CR, are answered by a
prompt alone, by `Input error`, or by the table and a prompt.  Confirmation, the
status menu and access control must be off in the unit.
"""

import re

from leadline.power.session import QUIET_S, Session, plain

_NAME = rb"RPC[\w/()-]{1,12}>[ ]*"
# A line of prompts and nothing else, at the end: elsewhere such a text is a name of the user's.
PROMPT = re.compile(rb"(?:\A|[\r\n])[ ]*(?:" + _NAME + rb")+\Z")
ONLY_PROMPTS = re.compile(rb"(?:\s*" + _NAME + rb")+\Z")
REFUSED = re.compile(rb"^[ ]*Input error", re.MULTILINE)
PAGER = re.compile(rb"(?:Press <ENTER>[^\r\n]*|(More) \(Y/es N/o\):[ ]*)\Z")
QUESTION = re.compile(rb"(?:\(Y/N\)[?>: ]*|'YES'[^\r\n]*)\Z", re.IGNORECASE)
LOGIN = re.compile(rb"(?:password|username|login)[> :]*\Z", re.IGNORECASE)
# The name is whatever the user called the outlet: only what ends the line is its state.
ROW = re.compile(r"[ ]*(\d{1,2})\)\.{3}.*:[ ]*(On|Off)[ ]*")

ENTER = b"\r"
# Erases what somebody typed and never sent, for our Enter would carry it out.
ERASE = b"\x08" * 32

HANDSHAKE_S = 3.0
COMMAND_S = 10.0  # the prompt comes back when the relay has moved; powerman waits as long
STATUS_S = 5.0  # a table of 1000 characters takes 1 s at 9600 baud

SYNC_ENTERS = 6
SYNC_S = 15.0
# Listening after each Enter of a sync, longer each time that nothing came, so that a slow unit's
# answers to the Enters before are all in before anything is believed.
SYNC_QUIETS_S = (QUIET_S, 1.0, 2.5)


def parse_status(text: bytes) -> dict[int, bool] | None:
    """The outlets of a status table by their numbers; None where there is no table.

    None too when an outlet is listed twice: then two answers ran into each other.
    """
    rows = [
        row for line in re.split(r"[\r\n]+", text.decode("latin-1")) if (row := ROW.fullmatch(line))
    ]
    states = {int(row[1]): row[2] == "On" for row in rows}
    return states if states and len(states) == len(rows) else None


class BaytechRpc3:
    """One RPC3 behind a session.  `sync` comes first, and again after any LineTrouble."""

    def __init__(self, session: Session, outlets: int) -> None:
        self._session = session
        self._outlets = outlets

    def sync(self) -> None:
        """Find out where the session was left, and lead it to a prompt.

        A pager or a question gets a bare Enter, and N if it asks again; never a
        yes.  Raises LineTrouble when no prompt comes.
        """
        step = "finding the prompt"
        self._session.drain(step)
        answer = ERASE + ENTER
        silent = 0
        for _ in range(SYNC_ENTERS):
            self._session.send(answer, step)
            heard = self._session.drain(step, quiet_s=SYNC_QUIETS_S[silent], deadline_s=SYNC_S)
            if PROMPT.search(heard):
                self._handshake()
                return
            if LOGIN.search(heard):
                raise self._session.trouble(
                    step, f"the unit asks {plain(heard, 30)}: turn its access control off"
                )
            silent += not heard
            if silent == len(SYNC_QUIETS_S):
                break
            answer = b"N\r" if QUESTION.search(heard) else ENTER
        what = f"no RPC prompt, but {plain(heard)}" if heard else "no answer"
        raise self._session.trouble(
            step, f"{what}; is it a BayTech RPC3, powered, at the baud rate of the rig file?"
        )

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one outlet.  Whether it was done is for `status` to say.

        Raises LineTrouble when the unit refuses or does not answer.
        """
        command = f"{'on' if on else 'off'} {outlet}"
        heard = self._command(command, COMMAND_S)
        if REFUSED.search(heard):
            raise self._session.trouble(command, f"refused: {plain(heard)}")
        if QUESTION.search(heard):
            raise self._session.trouble(
                command, f"the unit asks {plain(heard, 40)}: turn its confirmation off"
            )

    def status(self) -> dict[int, bool]:
        """Every outlet's state by its number; LineTrouble unless the whole table came."""
        heard = self._command("status", STATUS_S)
        while pager := PAGER.search(heard):
            more = b"Y\r" if pager[1] else ENTER
            heard = (
                heard[: pager.start()]
                + b"\n"
                + self._session.ask(more, _ends, step="status: next page", deadline_s=STATUS_S)
            )
        states = parse_status(heard)
        if states is None:
            raise self._session.trouble("status", f"no whole table; the last was {plain(heard)}")
        if list(states) != list(range(1, self._outlets + 1)):
            listed = ", ".join(map(str, states))
            raise self._session.trouble(
                "status", f"it lists outlets {listed}; the rig file says 1 to {self._outlets}"
            )
        return states

    def _handshake(self) -> None:
        """An Enter, answered by a prompt; some units drop a command that none came before."""
        self._session.ask(
            ENTER,
            lambda heard: bool(PROMPT.search(heard)),
            step="handshake",
            deadline_s=HANDSHAKE_S,
        )

    def _command(self, command: str, deadline_s: float) -> bytes:
        """The answer to one command: what came, up to the prompt that ends it.

        A prompt alone answers an on or off, if the unit does not echo; before a table
        it is one left over, and we read on.
        """
        self._handshake()
        return self._session.ask(
            command.encode() + ENTER,
            lambda heard: _ends(heard) and not (command == "status" and ONLY_PROMPTS.match(heard)),
            step=command,
            deadline_s=deadline_s,
        )


def _ends(heard: bytes) -> bool:
    """Whether the unit waits for us: a prompt, a pager or a question is the last thing said."""
    return any(wait.search(heard) for wait in (PROMPT, PAGER, QUESTION))
