"""Which of the requests that a drive holds it begins next.

For drives whose order cannot be told when a request arrives: those that reorder, and those that
let a request starve.  Nothing here looks at a clock: a decision falls at the moment at which the
drive is free and holds something, and depends on what had arrived by then alone, however late it
is asked for.  Times are integers in nanoseconds of one clock.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

Op = Literal["read", "write", "flush"]

# A drive that gets the next request so soon after its last answer has not been idle: a host refills
# its queue a moment after each answer.
IDLE_NS = 20_000_000


@dataclass(slots=True, eq=False)
class Command:
    """A request that is held.  `due_ns` is set, and then `begun`, when its turn has come."""

    op: Op
    lba: int
    sectors: int
    arrived_ns: int
    work_ns: int
    """What it takes but for positioning and transfer."""
    stretch: float = 1.0
    """How many times as long as it should it takes for a fault."""
    delay_ns: int = 0
    """How much longer it takes for a fault."""
    reads_ahead: bool = True
    """Whether what was read ahead may serve it, and more be read ahead after it."""
    starved_ns: int = 0
    """How long it is passed over while there is anything else to do."""
    waits: bool = False
    """Whether it is begun only when nothing is held that does not."""
    due_ns: int = 0
    begun: threading.Event = field(default_factory=threading.Event)
    overtaken: int = 0

    @property
    def eligible_ns(self) -> int:
        """From when on it takes part in the choice, whatever else there is to do."""
        return self.arrived_ns + self.starved_ns


class Station(Protocol):
    """What works on commands."""

    @property
    def free_ns(self) -> int:
        """From when on a command can be begun."""

    @property
    def idle_ns(self) -> int:
        """From when on nothing is worked on."""

    def at_hand_ns(self, command: Command, now_ns: int, *, reads_on: bool) -> int | None:
        """When it has what was read ahead for this command; None when it has to be begun.

        With `reads_on` it may go on reading for that.
        """

    def positioning_ns(self, command: Command, at_ns: int) -> int:
        """How long it would be until its data passes, were it begun then."""

    def begin(self, command: Command, at_ns: int) -> tuple[int, int]:
        """Begin it; how long until it can be answered, and until the next can be begun."""

    def occupy_until(self, end_ns: int) -> None:
        """What was begun last leaves it free then."""


class Channels:
    """Identical servers behind one queue, as the moments at which each falls free."""

    def __init__(self, count: int) -> None:
        self._free_ns = [0] * count

    @property
    def free_ns(self) -> int:
        """When the first of them falls free."""
        return self._free_ns[0]

    @property
    def idle_ns(self) -> int:
        """When the last of them has."""
        return max(self._free_ns)

    def at_hand_ns(self, command: Command, now_ns: int, *, reads_on: bool) -> None:
        """Never: they read nothing ahead."""

    def positioning_ns(self, command: Command, at_ns: int) -> int:
        """None: all sectors are as near."""
        return 0

    def begin(self, command: Command, at_ns: int) -> tuple[int, int]:
        """It takes the work that it is."""
        return command.work_ns, command.work_ns

    def occupy_until(self, end_ns: int) -> None:
        """Of the one that falls free first."""
        heapq.heapreplace(self._free_ns, end_ns)


class Held:
    """The commands that a drive holds and has not begun, and the choice among them.

    Of those that it holds, it begins the one whose data passes first, or the first that came;
    but one that `overtaken_at_most` later ones have overtaken goes before all that came after it.
    `done` says when work that begins at a moment and takes so long is done.
    """

    def __init__(
        self,
        station: Station,
        done: Callable[[int, int], int],
        *,
        reorders: bool,
        overtaken_at_most: int,
    ) -> None:
        self._station = station
        self._done = done
        self._reorders = reorders
        self._overtaken_at_most = overtaken_at_most
        self._waiting: list[Command] = []  # as they came

    def add(self, command: Command) -> None:
        """Take one in.  First `decide` until its arrival: what it comes too late for is not its."""
        at_hand_ns = self._station.at_hand_ns(
            command, command.arrived_ns, reads_on=not self._waiting
        )
        if at_hand_ns is None or command.starved_ns:
            self._waiting.append(command)
            return
        work_ns = max(at_hand_ns - command.arrived_ns, command.work_ns)
        self._answer(command, command.arrived_ns, work_ns)

    def next_ns(self) -> int | None:
        """When the next decision falls if nothing arrives; None when nothing is held."""
        if not self._waiting:
            return None
        at_ns = max(self._station.free_ns, min(each.eligible_ns for each in self._waiting))
        if all(each.starved_ns for each in self._waiting):
            first_ns = min(each.arrived_ns for each in self._waiting)
            at_ns = min(at_ns, max(self._station.idle_ns + IDLE_NS, first_ns))
        return at_ns

    def decide(self, now_ns: int) -> None:
        """Make every decision that falls by now."""
        while (at_ns := self.next_ns()) is not None and at_ns <= now_ns:
            chosen = self._choose(at_ns)
            place = self._waiting.index(chosen)
            del self._waiting[place]
            for earlier in self._waiting[:place]:
                earlier.overtaken += 1
            work_ns, busy_ns = self._station.begin(chosen, at_ns)
            end_ns = self._answer(chosen, at_ns, work_ns)
            self._station.occupy_until(max(end_ns, self._done(at_ns, busy_ns)))

    def _choose(self, at_ns: int) -> Command:
        there = [each for each in self._waiting if each.eligible_ns <= at_ns] or self._waiting
        there = [each for each in there if not each.waits] or there
        first = there[0]
        if not self._reorders or first.overtaken >= self._overtaken_at_most:
            return first
        return min(there, key=lambda each: self._station.positioning_ns(each, at_ns))

    def _answer(self, command: Command, at_ns: int, work_ns: int) -> int:
        work_ns = round(work_ns * command.stretch) + command.delay_ns
        command.due_ns = self._done(at_ns, work_ns)
        command.begun.set()
        return command.due_ns
