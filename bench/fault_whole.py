"""Faults under the whole suite: which tests see each, beside the one that is there for it?

`./run bench faults whole FAULT ...` runs all of `-m acceptance` (of `-m soak`, for the faults that
are found there) on the drive with the fault and on the healthy one beside it.  What else fails on
the faulty drive is no mistake, and is listed; on the other one nothing may.
"""

import re
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.acceptance import limits_of
from bench.fault_case import FAULTY, Case
from bench.fault_rig import Seeded, hil, in_short, running, slot_of
from leadline.results.record import FILE_NAME

DEADLINE_S = 4 * 3600.0
RIGHT = frozenset({"pass", "skipped", "recorded"})
TOGETHER = ("test_scaling.py", "test_layers.py")
"""Files of tests that load both drives at once: the healthy one's see what the other has."""
TWINS = "test_agreement.py"
"""Holds the drives against one another: which of them is the odd one may be impossible to tell."""
SLOW_MS, FASTER = 12.0, 0.5
"""A service time above which 128 requests offered at depth 1, which some tests of the whole suite
do, need longer slices than there are; and what is left of one."""


@dataclass(frozen=True)
class Row:
    """How one test ended on one of the drives, by its name and the file that it is in."""

    slot: str
    file: str
    test: str
    claim: str
    outcome: str
    said: str

    @property
    def is_right(self) -> bool:
        """Whether nothing was found."""
        return self.outcome in RIGHT

    @property
    def is_of_both(self) -> bool:
        """Whether the fault of the other drive may be why it did not pass."""
        return self.file in TOGETHER or (self.file == TWINS and self.outcome == "inconclusive")

    def __str__(self) -> str:
        return f"{self.test}: {self.outcome}: {in_short(self.said)}"


@dataclass(frozen=True)
class Whole:
    """What the whole suite came to on the drives of a case; `seconds` with the rig's own start."""

    case: Case
    rows: Sequence[Row]
    code: int
    seconds: float

    @property
    def others(self) -> list[Row]:
        """What found the faulty drive besides the tests that are there for its fault."""
        return [row for row in self._not_right(FAULTY) if row.claim not in self.case.right]

    @property
    def shared(self) -> list[Row]:
        """What did not pass beside it, and may be the faulty drive's doing."""
        return [row for row in self._beside() if row.is_of_both]

    @property
    def wrong(self) -> list[str]:
        """What did not come as it must: misses on the faulty drive, alarms on the other."""
        is_fault = any(outcome == "fail" for outcome, _ in self.case.right.values())
        alarms = [row for row in self._beside() if not row.is_of_both]
        alarms += [] if is_fault else self.others
        code = 1 if any(row.outcome == "fail" for row in self.rows) else 0
        by_code = [f"exit code {self.code}, expected {code}"] if self.code != code else []
        return [*self._missed(), *(f"{row.slot}: {row}" for row in alarms), *by_code]

    def _missed(self) -> Iterator[str]:
        for claim, (outcome, words) in self.case.right.items():
            rows = [row for row in self.rows if (row.slot, row.claim) == (FAULTY, claim)]
            named = [row for row in rows if row.outcome == outcome and re.search(words, row.said)]
            # A claim may be made size by size: one that fails is enough; where it holds, none may.
            if not named or (outcome == "pass" and not all(row.is_right for row in rows)):
                came = "; ".join(map(str, rows)) or "not run"
                yield f"{FAULTY}: {claim}: expected {outcome} with {words!r}: {came}"

    def _not_right(self, slot: str) -> list[Row]:
        return [row for row in self.rows if row.slot == slot and not row.is_right]

    def _beside(self) -> list[Row]:
        others = {drive.slot for drive in self.case.drives} - {FAULTY}
        return [row for slot in sorted(others) for row in self._not_right(slot)]

    def figures(self) -> dict[str, Any]:
        """All of it, as one object of JSON."""
        slots = [drive.slot for drive in self.case.drives]
        return {
            "seeded": self.case.seeded,
            "there_for_it": sorted(self.case.right),
            "others": [str(row) for row in self.others],
            "beside_by_both": [str(row) for row in self.shared],
            "outcomes": {slot: self._counted(slot) for slot in slots},
            "wrong": self.wrong,
            "exit_code": self.code,
            "minutes": round(self.seconds / 60, 1),
        }

    def in_markdown(self) -> str:
        """A row of `TABLE`."""
        tests = Counter(row.test.partition("[")[0] for row in self.others)
        others = (f"{test} ({n} times)" if n > 1 else test for test, n in tests.items())
        beside = [row.slot for row in self._beside()]
        cells = (
            self.case.name,
            self.case.seeded,
            ", ".join(sorted(self.case.right)),
            ", ".join(others) or "none",
            f"{len(beside)} not right, {len(self.shared)} of them for both drives",
            "yes" if not self.wrong else "; ".join(self.wrong),
            f"{self.seconds / 60:.0f}",
        )
        return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"

    def _counted(self, slot: str) -> dict[str, int]:
        return dict(Counter(row.outcome for row in self.rows if row.slot == slot))


TABLE = (
    "| fault | seeded | there for it | others that do not pass | beside it | right | min |\n"
    "|---|---|---|---|---|---|---|"
)


def measure(cases: Sequence[Case]) -> dict[str, object]:
    """Each case under the whole suite.  A table, in Markdown, on stderr, row by row."""
    print(TABLE, file=sys.stderr, flush=True)
    done = []
    for case in cases:
        done.append(carry_out(case))
        print(done[-1].in_markdown(), file=sys.stderr, flush=True)
    wrong = [f"{each.case.name}: {said}" for each in done for said in each.wrong]
    return {
        "whole": {each.case.name: each.figures() for each in done},
        "wrong": wrong,
        "within_limits": not wrong,
    }


def fit(case: Case) -> Case:
    """The case with drives of which a healthy one passes the whole suite.

    They are fast enough, and ready in the time that is given to those whose outlet feeds the host.
    What is drawn of a fault is a factor, a depth or a share, and stays as it is.
    """
    return replace(case, drives=tuple(map(_fit, case.drives)))


def _fit(drive: Seeded) -> Seeded:
    if not drive.is_scsi:
        ready = {"ready_s": limits_of("LEADLINE VSSD")["ready_s"]}
        drive = replace(drive, limits={**drive.limits, **ready})
    profile: Mapping[str, Any] = drive.profile
    times = {key: profile.get(key, 0.0) for key in ("read_ms", "overhead_ms")}
    if times["read_ms"] <= SLOW_MS:
        return drive
    faster = {key: FASTER * ms for key, ms in times.items()}
    return replace(drive, profile={**profile, **faster})


def carry_out(case: Case) -> Whole:
    """Make the rig, seed the fault, run everything.

    Settings are not looked at afterwards: the suite cuts the host's power, which discards them.
    """
    begun = time.monotonic()
    case = fit(case)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(folder, case.drives, case.kernel_arguments) as (rig, matrix):
            case.before(rig)
            with case.beside_the_tests(rig):
                ran = hil(rig, matrix, folder / "results", case.whole_words, DEADLINE_S)
        rows = rows_of(folder / "results")
    return Whole(case, rows, ran.code, time.monotonic() - begun)


def rows_of(results: Path) -> list[Row]:
    """Every test that ended, from the results of one run: its summary names claims, not tests."""
    with closing(sqlite3.connect(results / FILE_NAME)) as connection:
        found = connection.execute(
            "select node, cell, claim, outcome, message from outcomes where cell is not null"
        )
        return [_row(*values) for values in found]


def _row(node: str, cell: str, claim: str, outcome: str, message: str) -> Row:
    path, _, test = node.partition("::")
    name = re.sub(r"\[-?", "[", test.replace(cell, "")).removesuffix("[]")
    return Row(slot_of(cell), path.rpartition("/")[2], name, claim, outcome, message)
