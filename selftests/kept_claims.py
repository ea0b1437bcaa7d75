"""Claims settled on simulated drives and kept in a results file, as a visit keeps them."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from leadline.claims import Claim, ClaimFailed, Unsettled
from leadline.drive.request_limits import RequestLimits
from leadline.judge import SliceJudge
from leadline.keeping import Keeping
from leadline.load.workload import random_read
from leadline.on_record import History, Recorded
from leadline.plans import Noise
from leadline.quantities import Load
from leadline.recompute import Difference, differences
from leadline.results.record import FILE_NAME, Record
from leadline.results.stored import read_run
from leadline.selection import CURVE_BUDGETS
from leadline.statements import AtStation
from selftests.regression_stays import at_station
from selftests.slice_drive import SliceDrive

CELL = "bench-slot1-MODEL-1.0"
CURVE = (1, 2, 4, 8, 16, 32)
RATES = (6000.0, 6060.0, 5980.0, 6010.0, 6050.0, 5950.0)
RECORD = History("a twin", lambda side: Recorded(RATES, f"{side} of a twin"))
STATIONS = tuple(AtStation(n, (*RATES, *RATES), 0.5, 6.0, "this run") for n in (1, 2, 3))
RELEASED = at_station(4, STATIONS)
CLAIMS: dict[str, Callable[[Load, float], Claim]] = {
    "ratio": lambda reads, x: reads.at(depth=8) >= (1.0 + 4.0 * x) * reads.at(depth=1),
    "two factors": lambda reads, x: 0.3 * reads.at(depth=8) <= (0.5 + x) * reads.at(depth=1),
    "figure": lambda reads, x: reads.at(depth=8) >= 6000.0 * x,
    "scaled figure": lambda reads, x: 2 * reads.at(depth=8, offered=9) <= 11000.0 * x,
    "MB/s": lambda reads, x: reads.at(depth=16).mb_per_s <= 50.0 * x,
    "time": lambda reads, x: reads.at(offered=16).time_for(10**9) <= 100.0 * x,
    "agreement": lambda reads, x: reads.at(depth=16).agrees_with(
        reads.at(depth=32), within=0.01 + 0.5 * x
    ),
    "threads": lambda reads, x: reads.at(threads=8) >= 4.0 * x * reads.at(depth=1, threads=8),
    "drives": lambda reads, x: (
        replace(reads, most_drives=2).at(depth=8, drives=2) >= 1.5 * x * reads.at(depth=8)
    ),
    "record": lambda reads, x: reads.at(offered=16).agrees_with(RECORD, within=0.1 + 0.5 * x),
    "regression": lambda reads, x: reads.at(depth=16).has_not_regressed(
        RELEASED, within=0.01 + 0.5 * x
    ),
    "dip": lambda reads, x: reads.curve(CURVE).has_no_dip(0.01 + 0.2 * x),
    "arrival": lambda reads, x: reads.arrives_as(
        RequestLimits(4, 4, 1 + int(8 * x), 512, page_bytes=512).promise(4096)
    ),
    "arrival from hugepages": lambda reads, x: reads.arrives_as(
        RequestLimits(int(4 + 8 * x), 8, 4, 4096).promise(8192, hugepages=True)
    ),
    "two sizes": lambda reads, x: (
        reads.at(depth=8, size=8192).mb_per_s >= 3.0 * x * reads.at(depth=8).mb_per_s
    ),
    "collapse": lambda reads, x: reads.curve(CURVE).does_not_collapse(0.01 + 0.5 * x),
    "as many offered": lambda reads, x: reads.curve(CURVE, offered=64).does_not_collapse(
        0.01 + 0.5 * x
    ),
}
"""A claim of each kind; `x`, between 0 and 1, moves its limit."""


@dataclass
class Kept:
    """A run whose claims, made of `reads`, are settled on `drive` and kept in `folder`."""

    folder: Path
    drive: SliceDrive
    budget_s: float = 130.0
    noise: Noise = field(default_factory=Noise)
    run: str = "run-1"

    def __post_init__(self) -> None:
        self.record = Record(self.folder, self.run)
        self.record.start("a command", "0.1.0")
        keeping = Keeping(self.record, CELL, "a_claim")
        judge = SliceJudge(
            cell=CELL,
            measure=self.drive.measure,
            keep_slice=lambda side, measured: keeping.slice(judge, side, measured),
            keep_verdict=lambda claim, verdict, text: keeping.verdict(judge, claim, verdict, text),
            slice_s=0.5,
            budget_s=self.budget_s,
            curve_budget_s=CURVE_BUDGETS * self.budget_s,
            repeat="leadline hil -k this",
            noise=self.noise,
        )
        self.reads = Load(random_read(), judge, full_depth=32)

    def settle(self, *claims: Claim) -> None:
        """Each of them, whatever comes of it."""
        for claim in claims:
            with suppress(ClaimFailed, Unsettled):
                assert claim

    def close(self) -> None:
        """Let go of the file."""
        self.record.close()


def unlike(folder: Path) -> list[Difference]:
    """How the verdicts of the last run differ from what their slices say."""
    run = read_run(folder, None)
    return [
        each for row in run.verdicts for each in differences(row, run.slices.get(row.settling, ()))
    ]


def fields(folder: Path) -> set[str]:
    return {each.field for each in unlike(folder)}


def change(folder: Path, statement: str, *values: object) -> None:
    """Meddle with the results file."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def details(folder: Path, table: str, number: int, column: str = "details") -> Any:
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        query = f"select {column} from {table} where id = {number}"
        return json.loads(connection.execute(query).fetchone()[0])


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The results of one claim, which holds; its slices have the ids from 1."""
    run = Kept(tmp_path, SliceDrive({8: 7000, 1: 1000}))
    run.settle(run.reads.at(depth=8) >= 3 * run.reads.at(depth=1))
    run.close()
    return tmp_path
