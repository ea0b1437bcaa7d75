"""WTI RPS-10: no session and no prompt, each command under a fixed password.

A command is nine bytes, `^B^X^X^B^X^X`, a module's address (0 to 9, `*` for all), an operation
(`0`, `1`, `T` or `?`) and CR.  It is answered by `Plug 3 Off` for each module and
`Complete`.  Outlet 1 of a rig file is the module at address 0, the master.  When
the line's DTR comes up the unit starts its own side anew, hears nothing for 5 to 10 s, and
says `RPS-10 Ready` (user's guide; powerman's `wti-rps10`; cluster-glue's `rps10`).
"""

import re
from collections.abc import Callable

from leadline.inventory.pdu import PduSpec
from leadline.power.session import Session

PASSWORD = b"\x02\x18\x18\x02\x18\x18"
PLUG = re.compile(r"[ ]*Plug ([0-9]) (On|Off)[ ]*")
COMPLETE = "Complete"
READY = re.compile(rb"(?:\A|[\r\n])[ ]*RPS-10 Ready[ ]*[\r\n]")

ANSWER_S = 3.0
# The quiet that the unit wants before a command (user's guide), by the baud rate of its line.
PAUSE_S = 0.5
SLOW_PAUSE_S = 1.5
SLOW_BAUD = 2400
# Listening for an answer that did not come in time, where nothing else tells it from the next.
LATE_S = 2.5


def parse_answers(text: bytes) -> list[dict[int, bool]]:
    """The modules by their addresses in each whole answer, in order.

    An answer that names a module twice is an empty one: two ran into each other.
    """
    answers: list[dict[int, bool]] = []
    plugs: list[tuple[int, bool]] = []
    *whole, _ = re.split(r"[\r\n]+", text.decode("latin-1"))
    for line in whole:
        if row := PLUG.fullmatch(line):
            plugs.append((int(row[1]), row[2] == "On"))
        elif line.strip() == COMPLETE:
            named = dict(plugs)
            answers.append(named if len(named) == len(plugs) else {})
            plugs = []
    return answers


class WtiRps10:
    """A master and its modules behind a session."""

    reads_back = True

    def __init__(self, session: Session, spec: PduSpec) -> None:
        self._session = session
        self._modules = range(spec.outlets)
        self._enter = spec.enter
        self._pause_s = SLOW_PAUSE_S if spec.baud <= SLOW_BAUD else PAUSE_S
        self._asked = 0  # the module that the last sync asked for
        self._open = False  # a command is without its answer, which may still come

    def sync(self) -> None:
        """Get in step: ask for one module, and read on until the answer is for that one alone.

        Answers come in order, and nothing in them tells to which command they are.  So
        after a command that was left open another module is asked for than before.  Where
        there is one module only, a late answer is waited for instead.
        """
        quiet_s = self._pause_s
        if self._open:
            self._asked = (self._asked + 1) % len(self._modules)
            quiet_s = LATE_S if len(self._modules) == 1 else self._pause_s
        asked = {self._asked}
        self._ask(f"{self._asked}?", lambda answers: answers[-1].keys() == asked, quiet_s)
        self._open = False

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one module.  Raises LineTrouble unless the unit says that it did just that."""
        command = f"{outlet - 1}{'1' if on else '0'}"
        said = self._ask(command)
        if said != {outlet - 1: on}:
            raise self._session.trouble(_step(command), f"answered by {_worded(said)}")
        self._open = False

    def status(self) -> dict[int, bool]:
        """Every outlet's state by its number; LineTrouble unless all modules answered."""
        said = self._ask("*?")
        if list(said) != list(self._modules):
            last = self._modules[-1]
            raise self._session.trouble(
                _step("*?"), f"answered by {_worded(said)}; the rig file says plugs 0 to {last}"
            )
        self._open = False
        return {module + 1: on for module, on in said.items()}

    def _ask(
        self,
        command: str,
        fits: Callable[[list[dict[int, bool]]], bool] = lambda _: True,
        quiet_s: float | None = None,
    ) -> dict[int, bool]:
        """Send one command into a quiet line; the last answer, once all that came `fits`.

        The command stays open: whether it was answered is for the caller to say.
        """
        step = _step(command)
        self._session.drain(step, quiet_s=self._pause_s if quiet_s is None else quiet_s)
        self._open = True
        heard = self._session.ask(
            PASSWORD + command.encode() + self._enter,
            lambda heard: _answered(heard, fits) or bool(READY.search(heard)),
            step=step,
            deadline_s=ANSWER_S,
        )
        if not _answered(heard, fits):
            raise self._session.trouble(step, "the unit has started anew, and lost the command")
        return parse_answers(heard)[-1]


def _answered(heard: bytes, fits: Callable[[list[dict[int, bool]]], bool]) -> bool:
    answers = parse_answers(heard)
    return bool(answers) and fits(answers)


def _step(command: str) -> str:
    return f"command {command}"


def _worded(said: dict[int, bool]) -> str:
    plugs = ", ".join(f"plug {plug} {'on' if on else 'off'}" for plug, on in said.items())
    return plugs or "no plug, or one of them twice"
