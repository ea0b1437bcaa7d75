"""Each fault of a PDU on each family: what came of it and when, on real ptys.

Every unit of a family is tried with its outlet to be switched off, by Leadline's driver with the
deadlines that it has.  Afterwards the fault is gone (but the wiring is as it was), and the
outlet is to be switched on by whoever comes next.
"""

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

from leadline.errors import RigTrouble
from leadline.power import port as port_module
from leadline.power.port import where
from leadline.virtual.pdus import login
from leadline.virtual.pdus.faults import Faults
from selftests.pdu_specimens import SPECIMENS, Specimen
from selftests.pdu_worlds import Outage, World, in_memory, over_pty

SIDE_BY_SIDE = 40  # they mostly wait
OUTAGE_S = 1.0

RECOVERED = "recovered"  # switched off, read back, and so it is
UNVERIFIED = "unverified"  # told to go off, by one that cannot tell, and that is said
NAMED = "error"  # RigTrouble that names the PDU, its port and the step
BELIEVED = "believed"  # the status says off, and only the drive can tell otherwise
# None of these may be.
FALSE = "FALSE"  # said to be off, and is not
UNNAMED = "UNNAMED"  # an error without PDU, port and step
STAYS_OFF = "STAYS OFF"  # not on in the end
LATE = "LATE"  # over its deadline, and what is under way then
WRONG = frozenset([FALSE, UNNAMED, STAYS_OFF, LATE])

MENDED = frozenset([RECOVERED, UNVERIFIED])
TOLD = frozenset([NAMED, UNVERIFIED])


@dataclass(frozen=True)
class Row:
    """One fault: how it is made for the outlet that is switched, and what may come of it.

    `has` says on which units it can be.
    """

    name: str
    faults: Callable[[int], Faults]
    right: frozenset[str]
    has: Callable[[Specimen], bool] = lambda _: True
    outage: Outage | None = None


@dataclass(frozen=True)
class Tried:
    """What came of one fault on one unit, after so many seconds."""

    outcome: str
    seconds: float


PAGES = {
    "baytech-rpc3", "baytech-rpc28", "baytech-rpc3-menu", "apc-menu", "wti-nps", "sentry-cdu"
}  # fmt: skip
MAY_BE_MUTE = {"lcus"}


def _of_the_line(name: str, *, right: frozenset[str], lines: int | None = None) -> Row:
    how_long = "for good" if lines is None else f"for {lines} inputs"
    kinds: dict[str, Callable[[], Faults]] = {
        "silent": lambda: Faults(silent=True, lines=lines),
        "obeys in silence": lambda: Faults(mute=True, lines=lines),
        "garbage": lambda: Faults(garbage=True, lines=lines),
        "half lines": lambda: Faults(half=True, lines=lines),
        "stale answers": lambda: Faults(stale=True, lines=lines),
        "slow": lambda: Faults(slow_s=1.0, lines=lines),
    }
    return Row(f"{name} {how_long}", lambda _: kinds[name](), right)


_LINE = ("silent", "obeys in silence", "garbage", "half lines", "stale answers")
ROWS = (
    *(_of_the_line(name, right=MENDED, lines=2) for name in (*_LINE, "slow")),
    *(_of_the_line(name, right=TOLD) for name in _LINE),
    _of_the_line("slow", right=MENDED | TOLD),
    Row("wrong outlet", lambda n: Faults(rewired={n: n - 1}), TOLD, lambda one: one.outlets > 1),
    Row("stuck outlet", lambda n: Faults(stuck={n}), TOLD),
    Row("lying status: still on", lambda n: Faults(blind={n}), TOLD),
    Row("lying status: off", lambda n: Faults(welded={n}), frozenset([BELIEVED, UNVERIFIED])),
    Row("pager", lambda _: Faults(page_lines=5), MENDED, lambda one: one.family in PAGES),
    Row("unplugged and back", lambda _: Faults(), MENDED, outage=Outage(0.0, OUTAGE_S, "", b"")),
    Row("locked out", lambda _: Faults(locked_out=True), TOLD, lambda one: one.has_login),
    Row("password refused", lambda _: Faults(password_refused=True), TOLD, lambda o: o.has_login),
)


def rows(specimen: Specimen) -> Iterator[Row]:
    """The faults of a unit, and each place where somebody may have left its session."""
    yield from (row for row in ROWS if row.has(specimen))
    for place, said in specimen.unit.LEFT_AT.items():
        yield Row("left somewhere", _left(place, said), MENDED)


def right_on(specimen: Specimen, row: Row) -> frozenset[str]:
    """What may come of a fault there: a unit that can tell is taken for none that cannot.

    But for a board that may be mute by make, and says nothing at all.
    """
    faults = row.faults(1)
    says_nothing = (faults.silent or faults.mute) and faults.lines is None
    if not specimen.tells() or (says_nothing and specimen.family in MAY_BE_MUTE):
        return row.right
    return row.right - {UNVERIFIED}


def _left(place: str, said: bytes) -> Callable[[int], Faults]:
    return lambda _: Faults(left_at=place, leftover=said)


def measure(specimens: Sequence[Specimen] = SPECIMENS) -> dict[str, object]:
    """The table on stderr, in Markdown; and the same by families, faults and units."""
    jobs = [(specimen, row) for specimen in specimens for row in rows(specimen)]
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(port_module, "LOCK_DIRECTORY", Path(folder)),
        patch.dict(os.environ, {login.PASSWORD_ENV: login.PASSWORD}),
        ThreadPoolExecutor(SIDE_BY_SIDE) as pool,
    ):
        numbered = enumerate(jobs)
        done = pool.map(lambda job: _one(Path(folder) / str(job[0]), *job[1]), numbered)
        seen = list(zip(jobs, done, strict=True))
    found: dict[str, dict[str, list[Tried]]] = {}
    wrong = []
    for (specimen, row), tried in seen:
        of_family = found.setdefault(specimen.family, {})
        of_family.setdefault(row.name, []).append(tried)
        if tried.outcome not in right_on(specimen, row):
            wrong.append(f"{row.name} on {specimen}: {tried.outcome}")
    print(table(found), file=sys.stderr, flush=True)
    return {
        "families": {
            family: {name: _cell(each) for name, each in of_family.items()}
            for family, of_family in found.items()
        },
        "tried": len(seen),
        "wrong": wrong,
        "within_limits": not wrong,
    }


def _one(folder: Path, specimen: Specimen, row: Row) -> Tried:
    folder.mkdir()
    outlet = min(3, specimen.outlets)
    faults = row.faults(outlet)
    world: AbstractContextManager[World] = (
        over_pty(folder, specimen, faults) if specimen.fits_a_pty else in_memory(specimen, faults)
    )
    with world as opened:
        return tried(opened, outlet, row.outage)


def tried(world: World, outlet: int, outage: Outage | None = None) -> Tried:
    """Switch the outlet off, with the faults that there are; and on again without them."""
    start = world.now()
    try:
        with world.unplugged(outage) if outage else nullcontext():
            done = world.pdu.switch(outlet, False, deadline_s=world.deadline_s)
    except RigTrouble as trouble:
        named = re.match(rf"{re.escape(where(world.pdu.spec))}: [^:]+: .", str(trouble))
        outcome = NAMED if named else UNNAMED
    else:
        outcome = _outcome(world, outlet, verified=done.verified)
    seconds = world.now() - start
    if seconds >= world.deadline_s + world.late_s and outcome not in WRONG:
        outcome = LATE
    world.dialogue.faults = Faults(rewired=world.dialogue.faults.rewired)
    world.begin_anew()
    world.pdu.switch(outlet, True)
    on = world.comes_on(outlet) and all(world.dialogue.contacts.values())
    return Tried(outcome if on else STAYS_OFF, seconds)


def _outcome(world: World, outlet: int, *, verified: bool) -> str:
    if not verified:
        return UNVERIFIED
    if not world.dialogue.contacts[outlet]:
        return RECOVERED
    return BELIEVED if outlet in world.dialogue.faults.welded else FALSE


def _cell(each: Sequence[Tried]) -> dict[str, object]:
    outcomes = sorted(one.outcome for one in each)
    return {
        "outcomes": {outcome: len(list(same)) for outcome, same in groupby(outcomes)},
        "longest_s": round(max(one.seconds for one in each), 1),
    }


def table(found: Mapping[str, Mapping[str, Sequence[Tried]]]) -> str:
    """Faults by families, in Markdown: what came of it on all units, and the longest it took."""
    names = dict.fromkeys(name for of_family in found.values() for name in of_family)
    lines = [f"| fault | {' | '.join(found)} |", f"|---|{'---|' * len(found)}"]
    for name in names:
        cells = [_shown(of_family.get(name, ())) for of_family in found.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _shown(each: Sequence[Tried]) -> str:
    if not each:
        return "n.a."
    outcomes = " or ".join(sorted({one.outcome for one in each}))
    return f"{outcomes}, {max(one.seconds for one in each):.1f} s"
