"""Regression stations: where a candidate and what it is held against are measured in turn.

Two firmwares cannot be interleaved slice by slice.  A visit's end and the next one's start
are *stations*, where a drive is measured with the firmware that it has: released, candidate,
candidate, released, in the two flashes that it takes to come back to the first one.  A drive
that came with the candidate has them the other way round.  Further rounds of the same four
tell less from what stations differ by, at two flashes more each.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise

from leadline.errors import Misuse
from leadline.inventory.plan import Cell, Visit
from leadline.verdict.regression import ABBA, ABBA_MIRRORED, STATIONS, Firmware

MOST_ROUNDS = 20
"""Of `--rounds`, for each candidate: they take forty flashes."""


def checked_rounds(rounds: int) -> int:
    """`rounds` itself; Misuse unless it is from 1 to MOST_ROUNDS."""
    if not 1 <= rounds <= MOST_ROUNDS:
        raise Misuse(f"--rounds {rounds}: from 1 to {MOST_ROUNDS}, each of two flashes")
    return rounds


@dataclass(frozen=True)
class Stay:
    """A drive at one station of the four of each round, counted from 1: the odd ones end a visit,
    the even ones begin one.

    `candidate` is a visit to the cell that is held against that of `released`.  With
    a `stored_baseline` what is stored of the released firmware stands in for the first and the
    last station of one round, and the drive is measured with the candidate alone.
    """

    visit: Visit
    number: int
    candidate: Visit
    released: Cell
    stored_baseline: bool = False
    rounds: int = 1

    @property
    def id(self) -> str:
        """The visit's id and the number, as in ``bench-a-slot1-X-1.0-station1``."""
        return f"{self.visit.id}-station{self.number}"

    @property
    def ends_visit(self) -> bool:
        """Whether it is at the visit's end, and not at its start."""
        return self.number % 2 == 1

    @property
    def judges(self) -> bool:
        """Whether it is the last of those that are measured, where the claims are judged."""
        return self.number == (3 if self.stored_baseline else STATIONS * self.rounds)

    @property
    def order(self) -> tuple[Firmware, ...]:
        """Which of the two the drive has at each of the stations."""
        mirrored = self.candidate.installed and not self.stored_baseline
        return tuple(ABBA_MIRRORED if mirrored else ABBA) * self.rounds


@dataclass(frozen=True)
class Comparing:
    """The visits between which one candidate is compared, each of them a flash from the next.

    A single one is the candidate's own, which is held against a stored baseline.
    """

    candidate: Visit
    released: Cell
    visits: tuple[Visit, ...]

    def stays(self) -> Iterator[Stay]:
        """The stations, of which each flash lies between two."""
        if len(self.visits) == 1:
            for number in (2, 3):
                yield Stay(self.candidate, number, self.candidate, self.released, True)
        rounds = len(self.visits) // 2
        at = (each for pair in pairwise(self.visits) for each in pair)
        for number, each in enumerate(at, 1):
            yield Stay(each, number, self.candidate, self.released, rounds=rounds)


@dataclass(frozen=True)
class Route:
    """The visits in the order in which they are made, with the returns that comparing takes.

    The plan's own visits are all among them; a return is made for the stations alone.
    """

    visits: tuple[Visit, ...]
    compared: tuple[Comparing, ...] = ()

    @cached_property
    def stays(self) -> tuple[Stay, ...]:
        """Every station; made when they are asked for, since a large plan does without."""
        return tuple(stay for each in self.compared for stay in each.stays())

    @property
    def comparisons(self) -> tuple[tuple[Cell, Cell], ...]:
        """Each candidate with what it is held against: at stations, or as both are visited."""
        pairs = [(each.candidate.cell, each.released) for each in self.compared]
        visited = {visit.cell for visit in self.visits}
        for visit in self.visits:
            released = replace(visit.cell, firmware=visit.against or "")
            if released in visited and released != visit.cell:
                pairs.append((visit.cell, released))
        return tuple(dict.fromkeys(pairs))


def route_of(visits: Iterable[Visit], *, stored_baseline: bool = False, rounds: int = 1) -> Route:
    """How the drives go through the visits of a plan, in which each drive's stand together.

    A candidate is compared where the plan visits what it is held against, too, and the drive can
    go back to that, there and back as often as there are `rounds`; by what is stored of that,
    wherever there is a candidate.
    """
    if stored_baseline:
        return _by_what_is_stored(tuple(visits))
    drives = groupby(visits, key=lambda visit: (visit.cell.rig, visit.cell.slot))
    parts = [_of_drive(tuple(own), rounds) for _, own in drives]
    return Route(
        tuple(visit for part in parts for visit in part.visits),
        tuple(each for part in parts for each in part.compared),
    )


def _by_what_is_stored(visits: tuple[Visit, ...]) -> Route:
    compared = [
        Comparing(visit, replace(visit.cell, firmware=visit.against), (visit,))
        for visit in visits
        if visit.against is not None
    ]
    return Route(visits, tuple(compared))


def _of_drive(own: Sequence[Visit], rounds: int) -> Route:
    by_revision = {visit.cell.firmware: visit for visit in own}
    made: list[Visit] = []
    been: set[str] = set()  # firmware that it has been visited with
    compared: list[Comparing] = []
    for visit in own:
        released = by_revision.get(visit.against or "")
        if released is None or released is visit or not visit.compared:
            if visit.cell.firmware not in been:
                _next(made, been, visit)
            continue
        # From the firmware that the drive came with and back to it, where it is one of the two.
        outer, inner = (visit, released) if visit.installed else (released, visit)
        legs = [_next(made, been, each) for each in (outer, *(inner, outer) * rounds)]
        compared.append(Comparing(visit, released.cell, tuple(legs)))
    return Route(tuple(made), tuple(compared))


def _next(made: list[Visit], been: set[str], wanted: Visit) -> Visit:
    """The visit to a cell that comes next: the last one if the drive is there, else one more."""
    firmware = wanted.cell.firmware
    if made and made[-1].cell.firmware == firmware:
        return made[-1]
    after = made[-1].cell.firmware if firmware in been else None
    been.add(firmware)
    made.append(replace(wanted, n=len(made) + 1, after=after))
    return made[-1]
