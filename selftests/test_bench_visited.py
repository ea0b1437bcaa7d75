"""Verdicts of the benchmarks as a test's visit makes them: what their wall time has in it."""

import time
from pathlib import Path
from typing import Any

import pytest

from bench.virtual_drive import SLOT, _rig_of_its_own
from bench.visited_drive import Judged, TimedVisit, run_on
from leadline import judging, vetting
from leadline.drive.conditions import look
from leadline.inventory.rig import load_rig
from leadline.load.slices import SliceSetting
from leadline.load.workload import random_read
from leadline.station import Station
from leadline.verdict.verdict import Outcome
from selftests.visit_world import Bench, bench, kept, station

__all__ = ["bench", "station"]  # fixtures

NO_RIG: Any = None
BATCH_S, LOOK_S, HUNT_S = 0.03, 0.05, 0.4


def test_the_wall_time_of_a_verdict_is_whole_and_the_hunt_is_apart(
    bench: Bench, station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow_look(*around: Any, **when: Any) -> Any:
        time.sleep(LOOK_S)
        return look(*around, **when)

    def hunt(visit: TimedVisit, *failed: Any) -> tuple[str, ...]:
        time.sleep(HUNT_S)
        visit.batch(random_read(), [SliceSetting(8, 12, 0.5)])
        return ("where the time went: nowhere",)

    monkeypatch.setattr(vetting, "look", slow_look)
    monkeypatch.setattr(judging, "hunt", hunt)
    bench.under_load = lambda: time.sleep(BATCH_S)
    with TimedVisit(station, station.run.visits[0]) as visit:
        judged = Judged(NO_RIG, visit)
        begun = time.monotonic()
        passed = judged.settle(lambda reads: reads.at(depth=8) >= 3 * reads.at(depth=1))
        failed = judged.settle(lambda reads: reads.at(depth=8) >= 9 * reads.at(depth=1))
        took = time.monotonic() - begun
    assert (passed.outcome, failed.outcome) == (Outcome.PASS, Outcome.FAIL)
    batches = len(bench.load.batches) - 1
    assert judged.batches_s >= batches * BATCH_S
    assert judged.wall_s >= judged.batches_s + 2 * batches * LOOK_S
    assert judged.hunts_s >= HUNT_S + BATCH_S
    assert judged.wall_s == pytest.approx(took - judged.hunts_s, abs=0.01)
    drive_s = passed.drive_seconds + failed.drive_seconds
    assert judged.figures()["wall_over_drive"] == pytest.approx(judged.wall_s / drive_s, abs=1e-3)
    assert len(kept(bench.folder, "verdicts")) == 2, "committed, as a test's are"


def test_a_rig_of_the_benchs_own_has_the_one_visit(tmp_path: Path) -> None:
    run = run_on(tmp_path, load_rig(_rig_of_its_own(tmp_path, "ahci")))
    (visit,) = run.visits
    assert (visit.cell.slot, visit.cell.firmware, visit.installed) == (SLOT, "1.0", True)
