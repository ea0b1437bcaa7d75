"""A virtual drive that is visited as by a test: verdicts as the product makes them, and timed.

So their wall time has all that a verdict costs its user: the ladder and the pinned settings of
the first, the conditions before and after each batch, the queue depth put back, every slice and
verdict committed.  The hunt that follows a FAIL comes after the verdict, and is timed apart.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.virtual_drive import SLOT, UnderTest, under_test
from leadline.claims import Claim
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import plan
from leadline.inventory.rig import Rig
from leadline.live import Live
from leadline.load.slices import Slice, SliceSetting
from leadline.load.workload import Workload, random_read
from leadline.plans import Noise
from leadline.quantities import Load
from leadline.results.record import Record
from leadline.running import Run
from leadline.selection import DRIVE_TIME_S
from leadline.station import Station
from leadline.verdict.verdict import Verdict
from leadline.visiting import OpenVisit

MATRIX = """\
classes: {}
models:
  - model: LEADLINE VSSD
    class: ssd
    protocol: sata
    queue_depth: 32
    cache_bytes: 67108864
    firmware: [{revision: "1.0", status: released}]
"""


class TimedVisit(OpenVisit):
    """A visit that knows how long its batches took: fio, from its start to its results."""

    batches_s = 0.0

    def batch(self, workload: Workload, wanted: Sequence[SliceSetting]) -> list[Slice]:
        begun = time.monotonic()
        try:
            return super().batch(workload, wanted)
        finally:
            self.batches_s += time.monotonic() - begun


@dataclass
class Judged:
    """Verdicts on one drive, and their wall time in seconds, that of hunts apart."""

    drive: UnderTest
    visit: TimedVisit
    verdicts: list[Verdict] = field(default_factory=list)
    wall_s: float = 0.0
    batches_s: float = 0.0
    hunts_s: float = 0.0

    def settle(self, stated: Callable[[Load], Claim]) -> Verdict:
        """The verdict on what is claimed of random reads, by a test's own judge."""
        before_s, hunted_s = self.visit.batches_s, 0.0
        begun = time.monotonic()
        load = self.visit.load(random_read(), _item(len(self.verdicts)))
        judge: Any = load.judge
        judge.noise = Noise(note="")
        hunt = judge.hunt

        def timed(*failed: Any) -> Sequence[str]:
            nonlocal hunted_s
            batches_s, since = self.visit.batches_s, time.monotonic()
            seen: Sequence[str] = hunt(*failed)
            hunted_s += time.monotonic() - since
            self.visit.batches_s = batches_s
            return seen

        judge.hunt = timed
        verdict: Verdict = judge.settle(stated(load)).verdict
        self.wall_s += time.monotonic() - begun - hunted_s
        self.hunts_s += hunted_s
        self.batches_s += self.visit.batches_s - before_s
        self.verdicts.append(verdict)
        said = f"{verdict.outcome}, {verdict.estimate or 0.0:.3f} in {verdict.drive_seconds:.1f} s"
        print(f"verdict {len(self.verdicts)}: {said}", file=sys.stderr, flush=True)
        return verdict

    def figures(self) -> dict[str, float]:
        """What a second of drive time cost, of whole verdicts and in their batches alone."""
        drive_s = sum(each.drive_seconds for each in self.verdicts)
        return {
            "wall_over_drive": round(self.wall_s / drive_s, 3),
            "batches_over_drive": round(self.batches_s / drive_s, 3),
            "hunts_s": round(self.hunts_s, 1),
        }


@contextmanager
def judged(folder: Path, profile: str) -> Iterator[Judged]:
    """The drive of such a profile, visited for as long as the block lasts."""
    with under_test(folder, profile) as drive:
        run = run_on(folder, drive.rig)
        record = Record(run.results, run.id)
        record.start(run.command, run.version)
        (visit,) = (each for each in run.visits if each.cell.slot == SLOT)
        try:
            with (
                Station(drive.rig, run, record, Live(None)) as station,
                TimedVisit(station, visit) as opened,
            ):
                yield Judged(drive, opened)
        finally:
            record.close()


def run_on(folder: Path, rig: Rig) -> Run:
    """A run of the rig's one drive, its results in the folder."""
    path = folder / "matrix.yaml"
    path.write_text(MATRIX)
    matrix = load_matrix(path)
    return Run(
        id=rig.name,
        command="./run bench",
        version="0",
        rigs={rig.name: rig},
        matrix=matrix,
        visits=plan([rig], matrix),
        results=folder / rig.name,
        allow_writes=False,
        no_excuses=True,
        drive_time_s=DRIVE_TIME_S,
    )


def _item(number: int) -> pytest.Item:
    """As much of a test as its judge asks for."""
    here = Path.cwd()
    item = SimpleNamespace(
        name=f"test_verdict_{number}",
        nodeid=f"bench::test_verdict_{number}",
        path=here / "bench",
        config=SimpleNamespace(invocation_params=SimpleNamespace(dir=here)),
        stash=pytest.Stash(),
        get_closest_marker=lambda name: None,
    )
    return cast(pytest.Item, item)
