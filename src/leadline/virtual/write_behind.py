"""Writes that a disk answers before its arm has written them.

A write is answered as soon as there is room for it, and written when there is nothing else to do,
or when something waits for room or for a flush.  So a disk has many writes to choose from, and
queueing more of them gains little.

This is about time alone.  What a power cut takes is the `store`'s affair, which keeps a write in
memory until it is flushed, whether the arm has written it or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from leadline.virtual.scheduling import Command, Held


class WriteBehind:
    """What stands before the commands that a disk holds, with room for `most` answered writes.

    Its methods are those of `Held`, and are called as they are; it takes in flushes as well.
    """

    def __init__(self, held: Held, done: Callable[[int, int], int], *, most: int) -> None:
        self._held = held
        self._done = done
        self._most = most
        self._unwritten: list[Command] = []
        self._for_room: deque[Command] = deque()
        self._flushes: list[tuple[Command, set[Command]]] = []
        self._written_ns = 0
        """Until when the arm writes what has left its room."""

    def add(self, command: Command) -> None:
        """Take one in, and answer it if it can be."""
        if command.op == "read":
            if any(_covers(each, command) for each in self._unwritten):
                self._answer(command, command.arrived_ns)
            else:
                self._held.add(command)
        elif command.op == "flush":
            if self._unwritten or self._for_room:
                self._flushes.append((command, {*self._unwritten, *self._for_room}))
            else:
                self._answer(command, max(command.arrived_ns, self._written_ns))
        elif len(self._unwritten) < self._most and not self._for_room:
            self._take(command, command.arrived_ns)
        else:
            self._for_room.append(command)
        self._hurry()

    def next_ns(self) -> int | None:
        """As of `Held`."""
        return self._held.next_ns()

    def decide(self, now_ns: int) -> None:
        """As of `Held`; whatever waited for what is written then is answered."""
        while (at_ns := self._held.next_ns()) is not None and at_ns <= now_ns:
            self._held.decide(at_ns)
            for written in [each for each in self._unwritten if each.begun.is_set()]:
                self._unwritten.remove(written)
                self._written(written)
            self._hurry()

    def _take(self, command: Command, at_ns: int) -> None:
        """Answer a write, and have it written."""
        self._answer(command, at_ns)
        later = Command("write", command.lba, command.sectors, command.due_ns, 0, waits=True)
        self._unwritten.append(later)
        self._held.add(later)
        for _, awaited in self._flushes:
            if command in awaited:
                awaited.remove(command)
                awaited.add(later)

    def _written(self, written: Command) -> None:
        self._written_ns = written.due_ns
        if self._for_room:
            waiting = self._for_room.popleft()
            self._take(waiting, max(waiting.arrived_ns, written.due_ns))
        for flush, awaited in self._flushes:
            awaited.discard(written)
            if not awaited:
                self._answer(flush, max(flush.arrived_ns, self._written_ns))
        self._flushes = [(flush, awaited) for flush, awaited in self._flushes if awaited]

    def _hurry(self) -> None:
        """What is waited for is written in turn with all else."""
        if self._for_room or self._flushes:
            for each in self._unwritten:
                each.waits = False

    def _answer(self, command: Command, at_ns: int) -> None:
        work_ns = round(command.work_ns * command.stretch) + command.delay_ns
        command.due_ns = self._done(at_ns, work_ns)
        command.begun.set()


def _covers(write: Command, read: Command) -> bool:
    end = read.lba + read.sectors
    return write.lba <= read.lba and end <= write.lba + write.sectors
