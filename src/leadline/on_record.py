"""What is on record of a drive, or of drives like it, in the form in which claims are held against
it; `results.history` finds it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Recorded:
    """The rates (requests a second) of some slices of one session, in their order.

    `whose` says in words which drive it was, and when; `run` and `cell` by what else that session
    has on record is found, "" where nobody knows.  `alone` are the rates of its slices with NCQ
    off, None where nobody kept them with the verdict.
    """

    rates: tuple[float, ...]
    whose: str
    run: str = ""
    cell: str = ""
    alone: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Beside:
    """What else is on record where a drive is held against another of its kind.

    `others` are sessions of further ones, `own` is this drive's last, if it has any.
    """

    others: tuple[Recorded, ...] = ()
    own: Recorded | None = None


Found = tuple[Recorded | None, Beside | None]
"""What is on record under a name, and what else there is beside it."""


def _nothing_beside(name: str) -> Beside | None:
    return None


def _nothing_known(name: str) -> Recorded | None:
    return None


@dataclass(frozen=True)
class History:
    """What is on record of a drive, or of drives like it; `find(name)` by a quantity's name.

    `beside(name)` is what else there is: None where it is the drive's own record.  `known(name)` is
    what others find there of this drive, from this run or before it.
    """

    of: str
    find: Callable[[str], Recorded | None]
    beside: Callable[[str], Beside | None] = _nothing_beside
    known: Callable[[str], Recorded | None] = _nothing_known

    def look(self, name: str) -> Found:
        """What is on record now, by a quantity's name."""
        return self.find(name), self.beside(name)

    def __repr__(self) -> str:
        return self.of
