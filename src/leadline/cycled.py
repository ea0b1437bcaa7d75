"""The power cycles of one visit, and what a test can claim of them.

    assert power_cycle.ready_within(10)
    assert power_cycle.times(20).identified_within(expected.ready_s)

A claim of a time is about every cycle of its kind, graceful or abrupt, that the visit has
had so far: each event counts once, and nothing is measured again for it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from leadline.claims import Claim, Judge, stated
from leadline.errors import DriveFault, Inconclusive, Misuse
from leadline.power.cycle import PowerCycle
from leadline.power.phases import Phases
from leadline.statements import Milestone, Within


class CarryOut(Protocol):
    """Cuts the power of the visited drive and sees it come back."""

    def __call__(self, *, abrupt: bool) -> PowerCycle: ...


@dataclass
class Cycles:
    """Those of one visit, by whether they were abrupt; carried out when they are asked for.

    A fault that the drive shows ends them: it is raised again, and no power is cut any more.
    """

    carry_out: CarryOut
    done: dict[bool, list[PowerCycle]] = field(default_factory=lambda: {False: [], True: []})
    _fault: DriveFault | None = None

    def at_least(self, count: int, *, abrupt: bool) -> None:
        """Carry out those that are missing for so many; raises what `cycling.cycle` does."""
        if self._fault is not None:
            raise self._fault  # whoever asks later: the one that failed is not among those done
        while len(self.done[abrupt]) < count:
            try:
                self.done[abrupt].append(self.carry_out(abrupt=abrupt))
            except DriveFault as fault:
                self._fault = fault
                raise

    def one_more(self, *, abrupt: bool) -> PowerCycle:
        """Carry out another, whatever there has been; raises as `at_least` does."""
        self.at_least(len(self.done[abrupt]) + 1, abrupt=abrupt)
        return self.done[abrupt][-1]


def proven(cycle: PowerCycle) -> PowerCycle:
    """The same, if its outlets were read back; Inconclusive if they cannot be.

    That is no fault of the drive's, and no proof either.
    """
    if not cycle.verified:
        raise Inconclusive(
            f"slot {cycle.before.spec.slot}: its outlet is unverified, for its PDU cannot be read "
            "back, so the power cycle proves nothing; use a PDU that tells what its outlets do"
        )
    return cycle


@dataclass(frozen=True)
class Cycled:
    """What a test is given: the last power cycle, and claims of all of its kind."""

    _cycles: Cycles
    _judge: Judge
    abrupt: bool = False

    def times(self, count: int) -> "Cycled":
        """The same, after as many cycles of this kind as that in this visit.

        Raises Misuse on a count below 1, DriveFault and RigTrouble as a single one does, and
        Inconclusive where one of them is not proven.
        """
        if count < 1:
            raise Misuse(f"power_cycle.times({count}): a number of power cycles, 1 or more")
        self._cycles.at_least(count, abrupt=self.abrupt)
        for cycle in self._cycles.done[self.abrupt]:
            proven(cycle)
        return self

    @property
    def last(self) -> PowerCycle:
        """The last cycle: the drive before and after, its phases, its counters."""
        return self._cycles.done[self.abrupt][-1]

    @property
    def verified(self) -> bool:
        """Whether off was proven, and who came back."""
        return all(cycle.verified for cycle in self._cycles.done[self.abrupt])

    @property
    def differences(self) -> tuple[str, ...]:
        """What the drive says of itself that it did not say before."""
        done = self._cycles.done[self.abrupt]
        return tuple(each for cycle in done for each in cycle.differences)

    @property
    def ready_s(self) -> float:
        """Seconds from power on until the drive had read from its medium, in the last cycle."""
        return self.last.ready_s

    def link_up_within(self, seconds: float) -> Claim:
        """Claim that its SATA link was up so soon after power on, every time."""
        return self._within("link_up", seconds, lambda phases: phases.link_up_s)

    def identified_within(self, seconds: float) -> Claim:
        """Claim that it said who it is so soon after power on, every time."""
        return self._within("identified", seconds, lambda phases: phases.identify_s)

    def ready_within(self, seconds: float) -> Claim:
        """Claim that it had read from its medium so soon after power on, every time."""
        return self._within("ready", seconds, lambda phases: phases.ready_s)

    def _within(
        self, milestone: Milestone, seconds: float, of: Callable[[Phases], float | None]
    ) -> Claim:
        limit = float(seconds) if isinstance(seconds, int | float) else math.nan
        if not 0.0 < limit < math.inf:
            raise Misuse(f"power_cycle.{milestone}_within({seconds!r}): seconds, more than 0")
        times = tuple(of(cycle.phases) for cycle in self._cycles.done[self.abrupt])
        source = str(getattr(seconds, "source", ""))
        return stated(Within(milestone, limit, times, self.abrupt, source), self._judge)

    def __repr__(self) -> str:
        return "abrupt_power_cycle" if self.abrupt else "power_cycle"
