"""A PDU whose word is not taken for it: every switching is read back.

"Command completed" means nothing until the status says so; a stuck outlet, a
lost line and a PDU wired otherwise than numbered are the rig's trouble, named
with the PDU, its port and the step.
"""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from leadline.errors import Misuse, RigTrouble
from leadline.inventory.pdu import PduSpec
from leadline.power.families import make_family
from leadline.power.family import Leaves
from leadline.power.port import open_port, where
from leadline.power.session import ByteLog, LineTrouble, Session

STATUS_S = 15.0
SWITCH_S = 30.0
OVERTIME_S = 10.0  # for what is under way at a deadline: a slow device takes many steps
READBACK_S = 3.0  # a relay that has not moved by then is told again
POLL_S = 0.2
COMMANDS = 3  # so often an outlet is told before it counts as stuck

T = TypeVar("T")


@dataclass(frozen=True)
class Switched:
    """One outlet switched: `verified` by readback, in `seconds`, with `attempts` commands.

    `command_s` of those seconds passed until the PDU had answered the last command.  Not
    `verified`: the PDU cannot tell, and `on` is what it was told.
    """

    outlet: int
    on: bool
    verified: bool
    seconds: float
    attempts: int
    command_s: float


def open_pdu(spec: PduSpec, *, log: ByteLog | None = None) -> "Pdu":
    """Open and lock the PDU's port.  A context manager; nothing is said to it yet.

    Raises RigTrouble at once, with the remedy, when the port cannot be had.
    """
    session = Session(lambda: open_port(spec), where(spec), log=log)
    pdu = Pdu(spec, session)
    session.open()
    return pdu


class Pdu:
    """One PDU behind an open session."""

    def __init__(self, spec: PduSpec, session: Session) -> None:
        self.spec = spec
        self.session = session
        self._family = make_family(session, spec)
        self._synced = False
        # Who holds it may speak to this PDU: one thread at a time.
        self.turn = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Log out where the line is in order, and let the port go; no outlet changes."""
        try:
            if self._synced and self.session.is_open and isinstance(self._family, Leaves):
                self._end_of(0.0)
                with contextlib.suppress(LineTrouble):  # the next to come finds its way anyhow
                    self._family.leave()
        finally:
            self.session.close()

    def reads_back(self, *, deadline_s: float = STATUS_S) -> bool:
        """Whether this PDU can tell the state of its outlets, as far as it can be reached.

        Some devices must be asked to know.  Raises RigTrouble when they do not answer.
        """
        return self._tells(self._end_of(deadline_s))

    def status(self, *, deadline_s: float = STATUS_S) -> dict[int, bool]:
        """Every outlet's state (True is on) by its number, 1 to the last.

        Raises RigTrouble when no whole and current table came in time, or when this
        PDU cannot tell.
        """
        end = self._end_of(deadline_s)
        if not self._tells(end):
            raise RigTrouble(
                f"{where(self.spec)}: status: a device of family {self.spec.family} cannot tell "
                "the state of its outlets: they are unverified, whatever it was told"
            )
        return self._read(end)

    def switch(self, outlet: int, on: bool, *, deadline_s: float = SWITCH_S) -> Switched:
        """Switch one outlet and see it switched; unverified where the PDU cannot tell.

        The command goes out even when the outlet is in that state already: what
        the status says of a PDU that is wired otherwise than numbered is no
        reason to leave it.  It is repeated only after a resync and a status that
        says otherwise.  Raises Misuse for an outlet that the PDU does not have,
        RigTrouble when the readback is wrong, missing, or shows that another
        outlet moved instead.  Without any readback an outlet is told to go on all the
        same (not off): outlets end on.
        """
        self.check(outlet)
        start = self._now()
        end = self._end_of(deadline_s)
        if not self._tells(end):
            return self._switch_blindly(outlet, on, end)
        before = self._before(outlet, on, end)
        for attempt in range(1, COMMANDS + 1):
            trouble = self._tell(outlet, on, end)
            command_s = self._now() - start
            after = self._poll(outlet, on, end)
            if moved := [n for n in before if n != outlet and after[n] != before[n]]:
                if not (on and after[outlet]):  # it went on as well: nothing moved instead of it
                    self._tell(outlet, before[outlet], self._end_of(0.0))
                raise self._wired_otherwise(outlet, moved, after)
            if after[outlet] == on:
                return Switched(outlet, on, True, self._now() - start, attempt, command_s)
            if self._now() >= end:
                break
        state = "on" if after[outlet] else "off"
        raise RigTrouble(
            f"{where(self.spec)}: outlet {outlet}: still {state} after {attempt} commands to "
            f"switch it {'on' if on else 'off'} in {self._now() - start:.1f} s "
            f"({trouble or 'the PDU reported success'}); is the outlet stuck or locked?"
        )

    def _before(self, outlet: int, on: bool, end: float) -> dict[int, bool]:
        try:
            return self._read(end)
        except LineTrouble as trouble:
            if on and self._tell(outlet, on, self._end_of(0.0)) is None:
                trouble.add_note(
                    f"outlet {outlet} was told to go on all the same; whether it did is not known"
                )
            raise

    def _switch_blindly(self, outlet: int, on: bool, end: float) -> Switched:
        """Command it until one command went out whole: absolute, it does no harm twice."""
        start = self._now()
        for attempt in range(1, COMMANDS + 1):
            trouble = self._tell(outlet, on, end)
            if trouble is None:
                spent = self._now() - start
                return Switched(outlet, on, False, spent, attempt, spent)
            if self._now() >= end:
                break
        assert trouble is not None
        raise trouble

    def check(self, outlet: int) -> None:
        """Raise Misuse unless the PDU has such an outlet (0 would be all of them)."""
        if not 1 <= outlet <= self.spec.outlets:
            raise Misuse(
                f"{where(self.spec)}: found outlet {outlet}, expected 1 to {self.spec.outlets}"
            )

    def _now(self) -> float:
        return self.session.clock.now()

    def _end_of(self, deadline_s: float) -> float:
        """When what begins now is to have ended; nothing goes on for more than OVERTIME_S after."""
        end = self._now() + deadline_s
        self.session.give_up_at = end + OVERTIME_S
        return end

    def _once(self, action: Callable[[], T], end: float) -> T:
        """Do it on a line that is known to be in order; whatever cuts in leaves it unknown."""
        if not self.session.is_open:
            self.session.reopen(max(0.0, end - self._now()))
            self._synced = False
        if not self._synced:
            self._family.sync()
        self._synced = False
        result = action()
        self._synced = True
        return result

    def _until(self, action: Callable[[], T], end: float) -> T:
        while True:
            try:
                return self._once(action, end)
            except LineTrouble:
                if self._now() >= end:
                    raise

    def _tells(self, end: float) -> bool:
        return self._until(lambda: self._family.reads_back, end)

    def _read(self, end: float) -> dict[int, bool]:
        return self._until(self._family.status, end)

    def _tell(self, outlet: int, on: bool, end: float) -> LineTrouble | None:
        """Command it once.  What went wrong is returned: only the readback decides."""
        try:
            self._once(lambda: self._family.switch(outlet, on=on), end)
        except LineTrouble as error:
            return error
        return None

    def _poll(self, outlet: int, on: bool, end: float) -> dict[int, bool]:
        """The status, as soon as it is right, or when the relay has had its time."""
        until = min(end, self._now() + READBACK_S)
        while True:
            states = self._read(end)
            if states[outlet] == on or self._now() >= until:
                return states
            self.session.clock.sleep(POLL_S)

    def _wired_otherwise(self, outlet: int, moved: list[int], after: dict[int, bool]) -> RigTrouble:
        names = " and ".join(f"outlet {n} went {'on' if after[n] else 'off'}" for n in moved)
        return RigTrouble(
            f"{where(self.spec)}: outlet {outlet}: when it was switched, {names}; "
            "are the outlets wired as they are numbered, and is nobody else switching them?"
        )
