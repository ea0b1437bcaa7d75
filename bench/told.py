"""What some tests of the suite say of a virtual drive, through `leadline hil`, for a story."""

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.fault_rig import Ran, Seeded, hil, running
from leadline.inventory.rig import Rig

SLOT = "told"
TRIES = 3
"""A busy machine makes verdicts void, which says nothing of the drive."""
DEADLINE_S = 7200.0
"""Of one ask: a curve under a busy server, after a steady state that was long in coming."""
Right = Mapping[str, tuple[str, str]]
"""By claim: the outcome, and what must be found in what is said of it (a regular expression)."""


def as_it_is(rig: Rig) -> AbstractContextManager[object]:
    """Nothing is done to the rig while the tests run."""
    return nullcontext()


@dataclass(frozen=True)
class Asked:
    """Which tests (`words`, for `leadline hil`), and what must come of them on the drive in SLOT.

    `meanwhile` is entered with the rig, which is up, for as long as the tests run.
    """

    words: tuple[str, ...]
    right: Right
    meanwhile: Callable[[Rig], AbstractContextManager[object]] = field(default=as_it_is)


@dataclass(frozen=True)
class Told:
    """What came of them, of the last of `tries`: a story's material."""

    asked: Asked
    ran: Ran
    tries: int = 1

    @property
    def outcomes(self) -> dict[str, tuple[str, str]]:
        """Outcome and message by claim."""
        return self.ran.outcomes(SLOT)

    @property
    def is_unsettled(self) -> bool:
        """Whether a claim that has another outcome than it must is INCONCLUSIVE."""
        found, right = self.outcomes, self.asked.right
        came = {claim: found.get(claim, ("not run", ""))[0] for claim in right}
        return any(
            came[claim] == "inconclusive" != outcome for claim, (outcome, _) in right.items()
        )

    def verdict(self, claim: str) -> Mapping[str, Any]:
        """The last verdict on that claim as the run's record has it; empty where there is none."""
        found = [each for each in self.ran.summary["verdicts"] if each["claim"] == claim]
        return found[-1] if found else {}

    def wrong(self) -> Iterator[str]:
        """What did not come as it must, in words."""
        return (f"{what}: {_first(said)}" for what, said in self._unlike())

    def wrong_in_full(self) -> Iterator[str]:
        """The same with all that was said, such as the lines of the kernel's log."""
        return (f"{what}:\n{said}" for what, said in self._unlike())

    def _unlike(self) -> Iterator[tuple[str, str]]:
        for claim, (wanted, words) in self.asked.right.items():
            outcome, said = self.outcomes.get(claim, ("not run", ""))
            if outcome != wanted:
                yield f"{claim}: {outcome}, expected {wanted}", said
            elif not re.search(words, said):
                yield f"{claim}: {outcome} without {words!r}", said


def tell(drive: Seeded, asked: Sequence[Asked], tries: int = TRIES) -> list[Told]:
    """Ask one drive, on a rig of its own; each of `asked` by itself, again where it is unsettled.

    Raises ValueError for a drive that is not in SLOT, and as `leadline.virtual.rig.running` does.
    """
    if drive.slot != SLOT:
        raise ValueError(f"the drive is in {drive.slot!r}, and {SLOT!r} is looked at")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(folder, [drive]) as (rig, matrix):
            return [_settled(each, rig, matrix, folder / "results", tries) for each in asked]


def _settled(asked: Asked, rig: Rig, matrix: Path, results: Path, tries: int) -> Told:
    for number in range(1, tries + 1):
        with asked.meanwhile(rig):
            told = Told(asked, hil(rig, matrix, results, asked.words, DEADLINE_S), number)
        for each in told.wrong_in_full():
            print(f"try {number} of {tries}: {each}", file=sys.stderr, flush=True)
        if not told.is_unsettled:
            break
    return told


def _first(said: str) -> str:
    """The first line, and what voids the evidence."""
    first, *more = said.split("\n")
    return "; ".join([first, *(line.strip() for line in more if line.startswith("  void: "))])


def interval(verdict: Mapping[str, Any]) -> str:
    """A verdict's estimate and the ends of its interval, as "3.02 [2.9, 3.1]"; "none" without."""
    estimate, low, high = (verdict.get(name) for name in ("estimate", "low", "high"))
    if estimate is None:
        return "none"
    ends = "" if low is None or high is None else f" [{low:.3g}, {high:.3g}]"
    return f"{estimate:.3g}{ends}"
