"""From what a sector holds to a verdict: allowed, or whose data it is; pure."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from leadline.integrity.history import BEFORE
from leadline.integrity.pattern import SECTOR_BYTES, Stamp, Torn, stamp_of
from leadline.integrity.plan import Plan
from leadline.integrity.report import UNTOLD

Found = int | bytes | str
"""As `report.found_in` gives it: a generation, foreign bytes, or a word for what was not sent."""

SHOWN_BYTES = 16
SHOWN_GENERATIONS = 4


@dataclass(frozen=True)
class Wrong:
    """A sector that holds what it must not; in words, as parts of a sentence."""

    lba: int
    holds: str
    expected: str

    def __str__(self) -> str:
        return f"LBA {self.lba} holds {self.holds}, and should hold {self.expected}"


@dataclass(frozen=True)
class Checked:
    """What became of sectors that were read: `wrong` are the wrong ones, lowest LBA first.

    `older` hold what was written before the last write that was acknowledged, which was not
    flushed: allowed after a power cut.  `unheard` hold a write of which nobody had heard that
    it was issued: the news did not come through before the cut.
    """

    sectors: int
    wrong: tuple[Wrong, ...]
    older: int = 0
    unheard: int = 0


class Sectors:
    """Judges sectors of one load.

    `allowed` gives the generations that an LBA may hold, `newest` those that it may hold where
    nothing was lost.  `unheard` says whether a request may have been issued without our
    knowledge; nothing can, where the load ended in order.
    """

    def __init__(
        self,
        plan: Plan,
        allowed: Callable[[int], Collection[int]],
        newest: Callable[[int], Collection[int]],
        unheard: Callable[[int], bool] = lambda number: False,
    ) -> None:
        self._plan = plan
        self._allowed = allowed
        self._newest = newest
        self._unheard = unheard
        self._wrong: list[Wrong] = []
        self._sectors = self._older = self._news = 0

    def take(self, lba: int, found: Iterable[Found]) -> None:
        """Judge what was found from `lba` on."""
        for place, each in enumerate(found, lba):
            self._sectors += 1
            allowed = self._allowed(place)
            if isinstance(each, int) and self._is_unheard_write(each, place):
                self._news += 1
            elif wrong := verdict(self._plan, place, each, allowed):
                self._wrong.append(wrong)
            elif (each if isinstance(each, int) else BEFORE) not in self._newest(place):
                self._older += 1

    def checked(self) -> Checked:
        """All of it."""
        wrong = tuple(sorted(self._wrong, key=lambda each: each.lba))
        return Checked(self._sectors, wrong, self._older, self._news)

    def _is_unheard_write(self, number: int, lba: int) -> bool:
        return self._unheard(number) and self._plan.wrote(number, lba)


def verdict(plan: Plan, lba: int, found: Found, allowed: Collection[int]) -> Wrong | None:
    """What is wrong with a sector; None when it holds what it may."""
    if isinstance(found, int):
        if found in allowed:
            return None
        return Wrong(lba, _of_another_time(plan, lba, found, allowed), _expected(allowed))
    if isinstance(found, str):
        if found == UNTOLD and BEFORE in allowed:
            return None
        holds = "what is no write of its own" if found == UNTOLD else _cannot_be_read(found)
        return Wrong(lba, holds, _expected(allowed))
    stamp = stamp_of(found)
    ours = isinstance(stamp, Stamp) and stamp.seed == plan.seed
    if BEFORE in allowed and not ours:
        return None
    return Wrong(lba, _foreign(plan, lba, found, stamp), _expected(allowed))


def _of_another_time(plan: Plan, lba: int, number: int, allowed: Collection[int]) -> str:
    if not plan.wrote(number, lba):
        return f"write {number}, which was never sent there"
    if number < max(allowed):
        return f"an older generation (write {number})"
    return f"write {number}, which cannot have been there yet"


def _cannot_be_read(word: str) -> str:
    return f"nothing that can be read (errno {word.removeprefix('e')})"


def _foreign(plan: Plan, lba: int, found: bytes, stamp: Stamp | Torn | None) -> str:
    if isinstance(stamp, Torn):
        return _torn(plan, lba, stamp)
    if stamp is not None:
        if stamp.seed != plan.seed:
            place = "its data" if stamp.lba == lba else f"the data of LBA {stamp.lba}"
            return f"{place} from an earlier load (write {stamp.generation} of that)"
        return f"the data of LBA {stamp.lba} (write {stamp.generation})"
    if found.count(found[0]) == SECTOR_BYTES:
        return "zeros" if found[0] == 0 else f"nothing but bytes {found[0]:02x}h"
    begin = found[:SHOWN_BYTES]
    text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in begin)
    return f'what is no write of ours (it begins {begin.hex(" ")}, "{text}")'


def _torn(plan: Plan, lba: int, torn: Torn) -> str:
    head, tail = torn.head, torn.tail_generation
    begins = f"write {head.generation}" + (f" of LBA {head.lba}" if head.lba != lba else "")
    if head.seed == plan.seed and tail != head.generation and plan.wrote(tail, lba):
        return f"a torn sector: it begins as {begins} and ends as write {tail}"
    return f"a damaged sector: it begins as {begins}, and its checksum does not hold"


def _expected(allowed: Collection[int]) -> str:
    shown = sorted(allowed)[-SHOWN_GENERATIONS:]
    names = ["what it held before" if each == BEFORE else f"write {each}" for each in shown]
    left = len(allowed) - len(shown)
    return " or ".join(names) + (f" (or one of {left} others)" if left else "")
