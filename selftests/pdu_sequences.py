"""Random faults while outlets are switched, one step after the other; what must hold meanwhile.

The same steps can be gone in memory on a virtual clock and over a real pty.
"""

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

from leadline.errors import RigTrouble
from leadline.power.port import where
from leadline.virtual.pdus import login
from leadline.virtual.pdus.faults import Faults
from selftests.pdu_specimens import HOSTILE, Specimen
from selftests.pdu_worlds import Outage, World

OUTLETS = 3  # of those that a unit has, the first few are switched
OF_THE_LINE = ["silent", "mute", "garbage", "half", "stale"]

T = TypeVar("T")


@dataclass(frozen=True)
class Step:
    """One outlet switched, perhaps with other faults than before, and with an outage during it."""

    outlet: int
    on: bool
    faults: Faults | None
    outage: Outage | None


def random_steps(
    rng: random.Random, specimen: Specimen, *, most: int, slow_s: Sequence[float]
) -> list[Step]:
    """At least one and at `most` so many; a slow answer takes one of `slow_s` seconds."""
    outlets = min(OUTLETS, specimen.outlets)
    return [
        Step(
            outlet=rng.randint(1, outlets),
            on=rng.random() < 0.5,
            faults=_faults(rng, outlets, slow_s) if rng.random() < 0.7 else None,
            outage=_outage(rng, specimen) if rng.random() < 0.3 else None,
        )
        for _ in range(rng.randint(1, most))
    ]


def _faults(rng: random.Random, outlets: int, slow_s: Sequence[float]) -> Faults:
    """One of the line or none; perhaps noise, slowness, some of outlets and of logins."""

    def perhaps(share: float, value: T, otherwise: T) -> T:
        return value if rng.random() < share else otherwise

    def one_outlet() -> int:
        return rng.randint(1, outlets)

    faults = Faults(
        noise=perhaps(0.3, rng.randint(1, 40), 0),
        slow_s=perhaps(0.3, rng.choice(slow_s), 0.0),
        lines=perhaps(0.7, rng.randint(0, 9), None),
        stuck=perhaps(0.15, {one_outlet()}, set()),
        welded=perhaps(0.15, {one_outlet()}, set()),
        blind=perhaps(0.15, {one_outlet()}, set()),
        rewired=perhaps(0.15, {one_outlet(): one_outlet()}, {}),
        names=perhaps(0.3, {one_outlet(): rng.choice(HOSTILE)}, {}),
        page_lines=perhaps(0.3, rng.choice([5, 14]), 0),
        password_refused=rng.random() < 0.1,
        locked_out=rng.random() < 0.1,
        password_echoed=rng.random() < 0.2,
    )
    for name in rng.choice([[], [], *([name] for name in OF_THE_LINE)]):
        setattr(faults, name, True)
    return faults


def _outage(rng: random.Random, specimen: Specimen) -> Outage:
    said = [b"", *specimen.unit.LEFT_AT.values()]
    return Outage(
        after_s=rng.choice([0.0, 0.0, 0.05, 0.5, 2.0]),
        for_s=rng.choice([0.0, 0.3, 1.5]),
        left_at=rng.choice(["", *specimen.unit.LEFT_AT]),
        leftover=rng.choice([*said, bytes(rng.randrange(256) for _ in range(rng.randint(1, 20)))]),
    )


def carry_out(world: World, specimen: Specimen, steps: Sequence[Step]) -> None:
    """Go the steps; AssertionError where one reports what is not so, or takes too long.

    Afterwards nothing is wrong any more, and the next to come switches everything on.
    """
    outlets = world.dialogue.outlets
    for step in steps:
        if step.faults is not None:
            world.dialogue.faults = step.faults
        with world.unplugged(step.outage) if step.outage else nullcontext():
            _switched(world, step.outlet, step.on, tells=specimen.tells())
        _told(world, tells=specimen.tells())
        # Where an answer of long ago asks for the password, that goes astray (twice at most), and
        # perhaps the choice of a menu after it; nothing else does.
        assert login.PASSWORD.encode() in outlets.careless or outlets.careless == []
    world.dialogue.faults = Faults()
    world.begin_anew()
    for outlet in range(1, min(OUTLETS, len(outlets)) + 1):
        assert world.pdu.switch(outlet, True).verified == specimen.tells()
        assert world.comes_on(outlet)


def _switched(world: World, outlet: int, on: bool, *, tells: bool) -> None:
    """What is said to be on or off is; of a unit that cannot tell, nothing is."""
    outlets = world.dialogue.outlets
    # A unit that lies is believed, for only the drive can tell.
    lies = world.dialogue.faults.welded | world.dialogue.faults.blind
    lies |= {n for n, shown in outlets.shown.items() if outlets.contacts[n] is not shown}
    with _in_time(world):
        done = world.pdu.switch(outlet, on, deadline_s=world.deadline_s)
        assert (done.outlet, done.on) == (outlet, on)
        if done.verified:
            assert tells, "nothing can have read it back"
            assert outlets.shown[outlet] is on
            assert outlets.contacts[outlet] is on or outlet in lies


def _told(world: World, *, tells: bool) -> None:
    """The same of what the unit says unasked for a change."""
    with _in_time(world):
        states = world.pdu.status(deadline_s=world.deadline_s)
        assert tells, "nothing can have told it"
        assert states == world.dialogue.outlets.shown


@contextmanager
def _in_time(world: World) -> Iterator[None]:
    """It ends in its time, rightly or with an error that names PDU, port and step."""
    start = world.now()
    try:
        yield
    except RigTrouble as trouble:
        where_and_step = rf"{re.escape(where(world.pdu.spec))}: [^:]+: ."
        assert re.match(where_and_step, str(trouble)), trouble
    took = world.now() - start
    assert took < world.deadline_s + world.late_s, f"it took {took:.1f} s"
