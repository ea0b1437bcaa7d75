"""A stored verdict computed again: its judge is put before its stored slices.

The judge is the one that measured (`judge.SliceJudge`); only its drive is `Replay`, which
has the slices that were kept and no others.  It asks for the same slices in the same order,
looks after the same blocks and so ends in the same verdict, bit for bit, or something has
changed: what is stored, or how verdicts are reached.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from leadline.basis import Basis, statement_of
from leadline.claims import Claim
from leadline.errors import Misuse
from leadline.judge import Settling, SliceJudge
from leadline.load.slices import Slice, SliceSetting
from leadline.load.workload import Workload
from leadline.results.rows import digest_of, finite, slice_row, verdict_row
from leadline.results.schema import SliceRow, VerdictRow
from leadline.selection import CURVE_BUDGETS

ABSENT = "absent"
_SLICE = TypeAdapter(Slice)
_SLICE_COLUMNS = ("taken", "device_depth", "offered_depth", "rate", "clean")
_VERDICT_COLUMNS = (
    "statement",
    "outcome",
    "reason",
    "estimate",
    "low",
    "high",
    "threshold",
    "drive_seconds",
)
_WORDS = ("explanation", "notes", "cause")
"""Of a verdict's details: text for people, which may be said better without being changed."""


@dataclass(frozen=True)
class Difference:
    """What is stored under `field` and what was computed again; ABSENT where there is nothing.

    Fields of a list have its index in their name (`rates.0.low`).
    """

    field: str
    stored: str | float | None
    recomputed: str | float | None


class Diverged(Exception):
    """The judge asks for another slice than the one that was measured."""


@dataclass
class Replay:
    """Stands for the drive: hands out stored slices, in order.

    Raises Diverged, with the reason, when the judge asks for others, or is told another side.
    """

    slices: Sequence[Slice]
    sides: Sequence[str]
    handed: int = 0
    _kept: int = field(default=0, init=False)

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> Sequence[Slice]:
        """The next slices, which must have been measured at these settings."""
        first, self.handed = self.handed, self.handed + len(settings)
        taken = self.slices[first : self.handed]
        for place, (asked, found) in enumerate(zip(settings, taken, strict=False), first):
            if found.setting != asked:
                raise Diverged(f"slice {place} is {found.setting}, and {asked} is asked for")
        if len(taken) < len(settings):
            raise Diverged(f"slice {first + len(taken)} is asked for, and is not stored")
        return taken

    def keep(self, side: str, measured: Slice) -> None:
        """The judge's own name for the side of a slice that it was handed."""
        if self.sides[self._kept] != side:
            raise Diverged(f"slice {self._kept} is of {self.sides[self._kept]!r}, not {side!r}")
        self._kept += 1

    def check_end(self) -> None:
        """Raises Diverged unless the judge has used every slice."""
        if self.handed < len(self.slices):
            raise Diverged(f"it settles after {self.handed} slices, of {len(self.slices)} stored")


def differences(row: VerdictRow, slices: Sequence[SliceRow]) -> tuple[Difference, ...]:
    """How `row` and `slices`, those of its settling by place, differ from what they should be.

    None when the verdict is the same: statement, outcome, reason, voids and every number
    (the same bits), by slices that are those it was reached by.  Never raises for what may
    be stored there.
    """
    try:
        basis = Basis.model_validate(row.basis)
    except (Misuse, ValueError) as error:
        return (_unlike("basis", "what is stored", f"cannot be read: {_one_line(error)}"),)
    found = list(_of_slices(basis, slices))
    try:
        measured = [_SLICE.validate_python(each.details) for each in slices]
        for each, stored in zip(measured, slices, strict=True):
            found += _of_columns(each, stored)
        again = _again(row, basis, Replay(measured, [each.side for each in slices]))
    except (Diverged, Misuse, ValueError, ArithmeticError, AssertionError, LookupError) as error:
        return (*found, _unlike("verdict", row.outcome, f"none: {_one_line(error)}"))
    return tuple(dict.fromkeys((*found, *_of_verdict(row, again))))


def _again(row: VerdictRow, basis: Basis, replay: Replay) -> VerdictRow:
    """The row of the verdict to which the judge comes before the stored slices."""
    judge = SliceJudge(
        cell=row.cell,
        measure=replay.measure,
        keep_slice=replay.keep,
        keep_verdict=lambda claim, verdict, explanation: None,
        slice_s=basis.slice_s,
        budget_s=basis.budget_s,
        curve_budget_s=basis.curve_budget_s or CURVE_BUDGETS * basis.budget_s,
        repeat="",
        noise=basis.noise,
        begin=lambda: Settling(row.settling, basis.seed),
    )
    claim = Claim(statement_of(basis.statement, judge), judge)
    settled = judge.settle(claim)
    replay.check_end()
    return verdict_row(
        row.cell,
        row.claim,
        claim,
        settled.verdict,
        settled.explanation,
        settling=row.settling,
        basis=basis,
    )


def _of_slices(basis: Basis, slices: Sequence[SliceRow]) -> Iterator[Difference]:
    """Whether the slices are those that the verdict was reached by."""
    if len(slices) != basis.slices:
        yield _unlike("slices", basis.slices, len(slices))
    for place, row in enumerate(slices):
        if row.place != place:
            yield _unlike("slices", f"slice {place}", ABSENT)
            return
    if digest_of(slices) != basis.slices_sha256:
        yield _unlike("slices_sha256", basis.slices_sha256, digest_of(slices))


def _of_columns(measured: Slice, stored: SliceRow) -> Iterator[Difference]:
    """A slice's columns against its details, which the verdict is computed from."""
    again = slice_row(
        stored.cell,
        stored.claim,
        stored.side,
        measured,
        settling=stored.settling,
        place=stored.place,
    )
    for name in _SLICE_COLUMNS:
        old, new = getattr(stored, name), getattr(again, name)
        if repr(old) != repr(new):
            yield _unlike(f"slice {stored.place} {name}", old, new)


def _of_verdict(stored: VerdictRow, again: VerdictRow) -> Iterator[Difference]:
    details = json.loads(json.dumps(again.details))  # as they come back from the database
    old, new = dict(_leaves("", stored.details)), dict(_leaves("", details))
    for name in old | new:
        if name.partition(".")[0] not in _WORDS:
            yield from _compared(name, old.get(name, ABSENT), new.get(name, ABSENT))
    for name in _VERDICT_COLUMNS:
        yield from _compared(name, getattr(stored, name), getattr(again, name))


def _compared(name: str, stored: object, again: object) -> Iterator[Difference]:
    # A float's repr is the shortest text that gives the same bits, and tells 0.0 from -0.0.
    if repr(stored) != repr(again):
        yield _unlike(name, stored, again)


def _leaves(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Every plain value inside JSON, named by its path."""
    match value:
        case Mapping() if value:
            parts = [(str(key), each) for key, each in value.items()]
        case list() | tuple() if value:
            parts = [(str(place), each) for place, each in enumerate(value)]
        case _:
            yield name, value
            return
    for part, each in parts:
        yield from _leaves(f"{name}.{part}" if name else part, each)


def _unlike(name: str, stored: object, recomputed: object) -> Difference:
    return Difference(name, _plain(stored), _plain(recomputed))


def _plain(value: object) -> Any:
    """A value that JSON and a terminal can show."""
    if value is None or isinstance(value, str | int | float):
        return finite(value)
    return str(value)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
