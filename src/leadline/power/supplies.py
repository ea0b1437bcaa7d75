"""Outlets that are switched together: PDUs side by side, and disks one after the other."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from leadline.inventory.rig import OutletSpec, Rig
from leadline.power.byte_log import ByteLogs
from leadline.power.pdu import Pdu, Switched, open_pdu
from leadline.power.port import where
from leadline.power.spin_up import SpinUp, turn


@dataclass(frozen=True)
class Supply:
    """One outlet of an open PDU, by its number there, and the disks that it starts."""

    pdu: Pdu
    outlet: int
    spin_up: SpinUp | None = None

    def switch(self, on: bool) -> Switched:
        """Switch it, verified by readback where its PDU can tell."""
        return self.pdu.switch(self.outlet, on)

    def __str__(self) -> str:
        return f"outlet {self.outlet} of {where(self.pdu.spec)}"


def off_by(switched: Sequence[Switched]) -> str:
    """How it is known that outlets are off, for messages about what is not as it should be."""
    if all(one.verified for one in switched):
        return "was read back as off"
    return "was told to go off (it cannot be read back)"


# How it went with each: a result, or what was raised instead.
Outcomes = dict[Supply, Switched | Exception]


@contextmanager
def open_supplies(
    rig: Rig, outlets: Sequence[OutletSpec], logs: ByteLogs | None = None
) -> Iterator[list[Supply]]:
    """These outlets, in their order, their PDUs open and locked as long as this lasts.

    What is said to and by the PDUs is kept in `logs`.
    """
    with ExitStack() as stack:
        names = dict.fromkeys(outlet.pdu for outlet in outlets)
        specs = {spec.name: spec for spec in rig.pdus if spec.name in names}
        pdus = {
            name: stack.enter_context(open_pdu(spec, log=logs.of(spec) if logs else None))
            for name, spec in specs.items()
        }
        yield [Supply(pdus[each.pdu], each.outlet, SpinUp.by(rig, each)) for each in outlets]


def hear_from(supplies: Sequence[Supply]) -> None:
    """Have each of their PDUs tell the states of its outlets, where it can.

    Raises RigTrouble for one that does not: before a host is shut down, or a drive taken out of
    the kernel, for a power cut that would not come.
    """
    for pdu in dict.fromkeys(supply.pdu for supply in supplies):
        if pdu.reads_back():
            pdu.status()


def switch_all(supplies: Sequence[Supply], *, on: bool) -> list[Switched]:
    """Switch every one of them, also when one fails; how it went, in the order of `supplies`.

    PDUs are spoken to side by side, the outlets of one in turn.  Outlets that start disks
    come last, and take turns (`spin_up.turn`); one whose disks have been started by another
    of their outlets does not wait.

    Raises, in the end, the first error, with the others as notes.  Ctrl-C begins no further
    outlet, and is raised when those have ended that were under way.
    """
    outcomes = _side_by_side([each for each in supplies if not (on and each.spin_up)], on)
    outcomes |= _one_by_one([each for each in supplies if on and each.spin_up])
    switched = [outcomes[supply] for supply in supplies]
    errors = [outcome for outcome in switched if isinstance(outcome, Exception)]
    if errors:
        first, *others = errors
        for other in others:
            first.add_note(str(other))
        raise first
    return [outcome for outcome in switched if isinstance(outcome, Switched)]


def _side_by_side(supplies: Sequence[Supply], on: bool) -> Outcomes:
    by_pdu: dict[Pdu, list[Supply]] = {}
    for supply in supplies:
        by_pdu.setdefault(supply.pdu, []).append(supply)
    stop = threading.Event()
    outcomes: Outcomes = {}
    if len(by_pdu) < 2:  # in this thread, so that Ctrl-C need not wait for a silent PDU
        _in_turn(supplies, on, stop, outcomes)
        return outcomes
    threads = [
        threading.Thread(
            target=_in_turn, args=(group, on, stop, outcomes), name=f"pdu {pdu.spec.name}"
        )
        for pdu, group in by_pdu.items()
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    return outcomes


def _in_turn(
    supplies: Sequence[Supply], on: bool, stop: threading.Event, outcomes: Outcomes
) -> None:
    """Switch outlets of one PDU, until told to stop."""
    for supply in supplies:
        # Whoever comes after a Ctrl-C waits here until the switching under way has ended.
        with supply.pdu.turn:
            if stop.is_set():
                return
            outcomes[supply] = _outcome(partial(supply.switch, on))


def _one_by_one(supplies: Sequence[Supply]) -> Outcomes:
    """Switch on outlets of disks, each in its turn."""
    outcomes: Outcomes = {}
    started: set[str] = set()
    for supply in supplies:
        slots = supply.spin_up.slots if supply.spin_up else ()
        outcomes[supply] = _outcome(partial(_spin_up, supply, wait=not started.issuperset(slots)))
        started.update(slots)
    return outcomes


def _spin_up(supply: Supply, *, wait: bool) -> Switched:
    with turn(supply.spin_up) if wait and supply.spin_up else nullcontext(), supply.pdu.turn:
        return supply.switch(True)


def _outcome(action: Callable[[], Switched]) -> Switched | Exception:
    try:
        return action()
    except Exception as error:
        return error


def command_seconds(supplies: Sequence[Supply], switched: Sequence[Switched]) -> float:
    """How long it took until the PDUs had answered the last command of a `switch_all`."""
    of_pdu: dict[Pdu, list[Switched]] = {}
    for supply, one in zip(supplies, switched, strict=True):
        of_pdu.setdefault(supply.pdu, []).append(one)
    return max(
        sum(one.seconds for one in each[:-1]) + each[-1].command_s for each in of_pdu.values()
    )
