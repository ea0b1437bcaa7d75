"""A PDU before a virtual unit whose faults and plug are at hand: in memory, and on a real pty."""

import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from leadline.errors import RigTrouble
from leadline.inventory.pdu import PduSpec
from leadline.power.pdu import OVERTIME_S, SWITCH_S, Pdu, open_pdu
from leadline.power.port import where
from leadline.power.session import Session
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.line import Dialogue
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.pdu_line import VirtualLine, bench
from selftests.pdu_specimens import Specimen

COMES_ON_S = 60.0
LATE_S = 2 * OVERTIME_S + 1  # another outlet that moved has been put back in it


@dataclass(frozen=True)
class Outage:
    """The adapter is unplugged so long after a switching began, and back so much later.

    Somebody has been at the unit meanwhile, left its session at `left_at`, and `leftover` on
    the line.
    """

    after_s: float
    for_s: float
    left_at: str
    leftover: bytes


class World(Protocol):
    """What both are."""

    @property
    def pdu(self) -> Pdu: ...

    @property
    def dialogue(self) -> Dialogue: ...

    @property
    def deadline_s(self) -> float:
        """What a switching is given, and a status."""

    @property
    def late_s(self) -> float:
        """How much longer they may take."""

    def now(self) -> float:
        """Seconds, by the clock that both live by."""

    def unplugged(self, outage: Outage) -> AbstractContextManager[None]:
        """The adapter goes and comes back while this lasts, at the latest when it ends."""

    def begin_anew(self) -> None:
        """Let the PDU go and open it again, as the next command does."""

    def comes_on(self, outlet: int) -> bool:
        """Whether an outlet that was told to go on does, which one that cannot tell may do late."""


@dataclass
class InMemory:
    """A `World` on a virtual clock."""

    line: VirtualLine
    pdu: Pdu
    deadline_s: float = SWITCH_S
    late_s: float = LATE_S

    @property
    def dialogue(self) -> Dialogue:
        return self.line.dialogue

    def now(self) -> float:
        return self.line.now()

    @contextmanager
    def unplugged(self, outage: Outage) -> Iterator[None]:
        """One that would come after the block comes at its end, and spoils no later step."""

        def back() -> None:
            self.dialogue.faults.left_at = outage.left_at
            self.dialogue.begin()
            self.line.coming[:] = [(self.line.time, outage.leftover)]

        self.line.unplug(outage.for_s, after_s=outage.after_s, when_back=back)
        yield
        if self.line.time < self.line.gone_at < math.inf:
            self.line.unplug(0.0, when_back=back)

    def begin_anew(self) -> None:
        self.pdu.close()
        spec = self.pdu.spec
        session = Session(self.line.open, where(spec), clock=self.line)
        session.reopen(SWITCH_S)
        self.pdu = Pdu(spec, session)

    def comes_on(self, outlet: int) -> bool:
        return self.dialogue.contacts[outlet]  # it has done what it was told


@contextmanager
def in_memory(specimen: Specimen, faults: Faults | None = None) -> Iterator[InMemory]:
    """A unit with these faults, or healthy, and its PDU just opened."""
    with bench(faults, specimen.family, specimen.unit) as (pdu, line):
        yield InMemory(line, pdu)


@dataclass
class OverPty:
    """A `World` on the machine's clock."""

    unit: VirtualPdu
    pdu: Pdu
    moved: threading.Condition
    deadline_s: float
    late_s: float

    @property
    def dialogue(self) -> Dialogue:
        return self.unit.dialogue

    def now(self) -> float:
        return time.monotonic()

    @contextmanager
    def unplugged(self, outage: Outage) -> Iterator[None]:
        """By another thread, for whoever is in the block is busy with the PDU."""
        over = threading.Event()
        thread = threading.Thread(target=self._go_and_come, args=(outage, over), name="outage")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _go_and_come(self, outage: Outage, over: threading.Event) -> None:
        over.wait(outage.after_s)
        self.unit.unplug()
        over.wait(outage.for_s)
        self.dialogue.faults.left_at = outage.left_at
        self.dialogue.faults.leftover = outage.leftover
        self.unit.plug_in()

    def begin_anew(self) -> None:
        self.pdu.close()
        self.pdu = open_pdu(self.pdu.spec)

    def comes_on(self, outlet: int) -> bool:
        with self.moved:
            return self.moved.wait_for(lambda: self.dialogue.contacts[outlet], COMES_ON_S)


@contextmanager
def over_pty(
    folder: Path,
    specimen: Specimen,
    faults: Faults | None = None,
    *,
    deadline_s: float = SWITCH_S,
    late_s: float = LATE_S,
) -> Iterator[OverPty]:
    """The same in `folder`.  The unit's password is for the environment to have."""
    link = folder / str(specimen)
    spec = specimen.spec(str(link))
    moved = threading.Condition()

    def tell(outlet: int, on: bool) -> None:
        with moved:
            moved.notify_all()

    with VirtualPdu(spec.outlets, tell, link, unit=specimen.unit, faults=faults) as unit:
        world = OverPty(unit, _opened(spec), moved, deadline_s, late_s)
        try:
            yield world
        finally:
            world.pdu.close()


def _opened(spec: PduSpec) -> Pdu:
    """The PDU, once no other world of this process holds a port that had the same number.

    A pty that was unplugged gives its number away before its user notices.
    """
    limit = time.monotonic() + COMES_ON_S
    while True:
        try:
            return open_pdu(spec)
        except RigTrouble as trouble:
            if f"pid {os.getpid()} " not in str(trouble) or time.monotonic() > limit:
                raise
            time.sleep(0.1)
