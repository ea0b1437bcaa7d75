"""Each seeded fault on a virtual rig, through the front door: is it caught, and by its name?

`./run bench faults [FAULT ...] [--seed N]`; with `twins` instead, the story of two drives alike
of which one has its NCQ off (`bench.fault_twins`); with `whole` before them, the whole suite on the
drives of each (`bench.fault_whole`); with `size` alone, the story of the large requests
(`bench.fault_size`).
"""

import argparse
import operator
import random
import re
import secrets
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench import fault_twins, fault_whole
from bench.fault_case import FAULTY, Case
from bench.fault_cases import CASES, UNTRIED
from bench.fault_rig import Ran, hil, in_short, running, settings_of
from bench.fault_size import measure as tell_of_size
from leadline.results.record import FILE_NAME

SIZE = "size"
TWINS = "twins"
WHOLE = "whole"
TRIES = 3


@dataclass(frozen=True)
class Tried:
    """One case: what is wrong with what came of it, in words (nothing, if the fault was caught).

    So of the last of its `tries`; `seconds` are those of all.
    """

    case: Case
    ran: Ran
    wrong: tuple[str, ...]
    seconds: float
    tries: int = 1

    @property
    def is_unsettled(self) -> bool:
        """Whether verdicts that are INCONCLUSIVE are all that is wrong, with the exit code."""
        unsettled = [": inconclusive, expected " in said for said in self.wrong]
        by_code = [said.startswith("exit code ") for said in self.wrong]
        return any(unsettled) and all(map(operator.or_, unsettled, by_code))


def measure(words: Sequence[str] = ()) -> dict[str, object]:
    """Each fault that `words` name, or all: what came of it.  A table, in Markdown, on stderr."""
    if list(words) == [SIZE]:
        return tell_of_size()
    asked = _arguments(words)
    if asked.fault == [TWINS]:
        return fault_twins.measure()
    if asked.whole:
        cases = [drawn(name, asked.seed) for name in asked.fault]
        return {"seed": asked.seed, **fault_whole.measure(cases)}
    tried = []
    for name in asked.fault or CASES:
        tried.append(settled(drawn(name, asked.seed), asked.tries))
        print(_row(tried[-1]), file=sys.stderr, flush=True)
    print(table(tried), file=sys.stderr, flush=True)
    wrong = [f"{each.case.name}: {said}" for each in tried for said in each.wrong]
    return {
        "seed": asked.seed,
        "faults": {each.case.name: _figures(each) for each in tried},
        "tried": len(tried),
        "untried": UNTRIED,
        "wrong": wrong,
        "within_limits": not wrong,
    }


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run bench faults",
        description="Seed faults on virtual drives, and see whether `leadline hil` names them.",
        epilog=f"{SIZE} alone: the story of the large requests, as in ./run bench stories 5",
    )
    parser.add_argument(
        "fault",
        nargs="*",
        help=f"some of {', '.join(CASES)} (default: all); or {TWINS} alone; after {WHOLE}: "
        "the whole suite on the drives of each (an hour or more a fault)",
    )
    parser.add_argument(
        "--seed", type=int, default=None, help="what parameters are drawn by (default: drawn)"
    )
    parser.add_argument(
        "--tries", type=int, default=TRIES, help=f"where a verdict is INCONCLUSIVE ({TRIES})"
    )
    asked = parser.parse_args(words)
    asked.whole = asked.fault[:1] == [WHOLE]
    if asked.whole:
        del asked.fault[0]
        if not asked.fault:
            parser.error(f"{WHOLE}: of which fault? some of {', '.join(CASES)}")
    unknown = [name for name in asked.fault if name not in CASES]
    if unknown and (asked.whole or asked.fault != [TWINS]):
        parser.error(f"unknown: {', '.join(unknown)}; some of {', '.join(CASES)}; or {TWINS} alone")
    if asked.seed is None:
        asked.seed = secrets.randbits(31)
    return asked


def drawn(name: str, seed: int) -> Case:
    """The case of that name, its parameters by the seed and by nothing else."""
    return CASES[name](random.Random(f"{seed}/{name}"))


def settled(case: Case, tries: int = TRIES) -> Tried:
    """The case tried until no verdict is INCONCLUSIVE, on a rig of its own each time.

    A busy machine makes verdicts void, which says nothing of the drive; what else went wrong in
    such a try is kept.
    """
    tried = carry_out(case)
    while tried.is_unsettled and tried.tries < tries:
        again = carry_out(case)
        seconds = tried.seconds + again.seconds
        tried = replace(again, tries=tried.tries + 1, seconds=seconds)
    return tried


def carry_out(case: Case) -> Tried:
    """Make the rig, seed the fault, run the tests that are there for it, and look."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(folder, case.drives, case.kernel_arguments) as (rig, matrix):
            case.before(rig)
            before = settings_of(rig)
            with case.beside_the_tests(rig):
                ran = hil(rig, matrix, folder / "results", case.words, case.deadline_s)
            moved = _moved(before, settings_of(rig))
        lost = _lost(folder / "results") if case.loses else 1
    unproven = () if lost else ("nothing was lost, so that nothing was shown",)
    return Tried(case, ran, (*wrong_of(case, ran), *moved, *unproven), time.monotonic() - begun)


def wrong_of(case: Case, ran: Ran) -> Iterator[str]:
    """What did not come as it must: each outcome, its words, and tests that were not run."""
    for drive in case.drives:
        found = ran.outcomes(drive.slot)
        right = case.right_for(drive.slot)
        for claim in sorted(found.keys() | right.keys()):
            outcome, said = found.get(claim, ("not run", ""))
            wanted, words = right.get(claim, ("not run", ""))
            if outcome != wanted:
                yield f"{drive.slot}: {claim}: {outcome}, expected {wanted}: {in_short(said)}"
            elif not re.search(words, said):
                yield f"{drive.slot}: {claim}: {outcome} without {words!r}: {in_short(said)}"
    code = 1 if any(outcome == "fail" for outcome, _ in case.right.values()) else 0
    if ran.code != code:
        yield f"exit code {ran.code}, expected {code}"


def _moved(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """What was not given back."""
    return tuple(
        f"{name} was {value!r} and is {after.get(name)!r}"
        for name, value in before.items()
        if after.get(name) != value
    )


def _lost(results: Path) -> int:
    """How many sectors were old after a power cut, which they may be where nothing was flushed."""
    with sqlite3.connect(results / FILE_NAME) as connection:
        rows = connection.execute("select value from environment where name like 'verified %cut'")
        found = [re.search(r"(\d+) old and never flushed", value) for (value,) in rows]
    return sum(int(each[1]) for each in found if each)


def _figures(tried: Tried) -> dict[str, Any]:
    slots = [drive.slot for drive in tried.case.drives]
    return {
        "seeded": tried.case.seeded,
        "outcomes": {
            slot: {
                claim: {"outcome": outcome, "said": said.partition("\n")[0]}
                for claim, (outcome, said) in tried.ran.outcomes(slot).items()
            }
            for slot in slots
        },
        "wrong": list(tried.wrong),
        "exit_code": tried.ran.code,
        "tries": tried.tries,
        "seconds": round(tried.seconds, 1),
    }


def table(tried: Sequence[Tried]) -> str:
    """Fault, what was seeded, what came of the faulty drive and of the one beside it."""
    head = (
        "| fault | seeded | the faulty drive | beside it | right | s |\n|---|---|---|---|---|---|"
    )
    return "\n".join([head, *map(_row, tried)])


def _row(tried: Tried) -> str:
    others = [drive.slot for drive in tried.case.drives if drive.slot != FAULTY]
    beside = [outcome for slot in others for outcome, _ in tried.ran.outcomes(slot).values()]
    cells = (
        tried.case.name,
        tried.case.seeded,
        "; ".join(
            f"{claim}: {outcome}" + (f": {in_short(said)}" if said else "")
            for claim, (outcome, said) in tried.ran.outcomes(FAULTY).items()
        ),
        ", ".join(f"{beside.count(each)} {each}" for each in sorted(set(beside))) or "n.a.",
        "yes" if not tried.wrong else "; ".join(tried.wrong),
        f"{tried.seconds:.0f}",
    )
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"
