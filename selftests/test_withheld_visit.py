"""On a visit: batches and replays in which the rig's processors are kept from it are made again."""

import time
from pathlib import Path

import pytest

from leadline import visiting
from leadline.drive import conditions
from leadline.drive.finding import STEAL_TIME
from leadline.load.workload import random_read
from leadline.station import Station
from leadline.vetting import Vetting, vet
from leadline.visiting import OpenVisit
from leadline.withheld import FIRST_PAUSE_S, ONE_TEST_S, PATIENCE_S
from selftests.test_trace_replay_visit import Drive, ask, drive
from selftests.visit_world import Bench, bench, kept, opened, station

__all__ = ["bench", "drive", "opened", "station"]  # fixtures


class Processors:
    """Two of them; while a batch runs, each has had 1 s more, and `stolen` ticks are gone."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._had = self._gone = 0
        self.run(0)

    def run(self, stolen: int) -> None:
        self._had += 200 - stolen
        self._gone += stolen
        total = f"{self._had} 0 0 0 0 0 0 {self._gone} 0 0"
        self._file.write_text(f"cpu  {total}\ncpu0 {total}\ncpu1 {total}\n")


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Processors:
    monkeypatch.setattr(conditions, "PROCESSORS", str(tmp_path / "stat"))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    return Processors(tmp_path / "stat")


def test_a_batch_is_measured_again_and_the_claim_has_the_second_alone(
    bench: Bench, processors: Processors, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    stolen = iter([60])
    bench.under_load = lambda: processors.run(next(stolen, 0))
    reads = opened.load(random_read(), request.node)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert bench.did.count("slices") == 2
    assert bench.told.said == [
        "a hypervisor keeps processors from the rig: measuring again in 2 s; there are 120 s for "
        "that"
    ]
    assert [row["clean"] for row in kept(bench.folder, "slices")] == [1] * 8
    found = [row for row in kept(bench.folder, "findings") if row["name"] == "steal-time"]
    assert [row["outcome"] for row in found] == ["void", "ok"]
    assert found[0]["found"] == "a hypervisor kept 0.60 of a processor's time from the rig"
    loads = [row["seconds"] for row in kept(bench.folder, "phases") if row["name"] == "drive"]
    assert loads == [pytest.approx(4.0)] * 2, "what was given up took drive time, too"
    assert opened.patience.left_s == pytest.approx(PATIENCE_S - FIRST_PAUSE_S - 4.0)


def test_so_is_a_round_of_replays(
    bench: Bench, processors: Processors, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    """Both replays of a round are one process: in the first time of the second round."""
    drive.beside = lambda number: processors.run(60 if number == 3 else 0)
    answer = ask(opened, tmp_path, rounds=2)
    assert [depth for depth, *_ in drive.seen] == [1, 32, 32, 1, 32, 1]
    (trace,) = answer.traces
    assert [each.voids for each in trace.rounds] == [(), ()]
    assert sum(row["seconds"] for row in kept(bench.folder, "phases")) == 9.0
    assert opened.patience.left_s == PATIENCE_S - FIRST_PAUSE_S - 3.0


@pytest.mark.usefixtures("processors")
def test_each_test_of_a_visit_has_its_share(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    said = []
    for _ in range(2):
        with opened.test(request.node):
            while opened.patience.again([STEAL_TIME], took_s=0.0):
                pass
        said.append(opened.patience.left_s)
    assert said == [PATIENCE_S - ONE_TEST_S, PATIENCE_S - 2 * ONE_TEST_S]


def test_replays_count_where_no_patience_is_left(
    processors: Processors, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    opened.patience.left_s = 0.0
    drive.beside = lambda number: processors.run(60)
    (trace,) = ask(opened, tmp_path, rounds=2).traces
    assert [each.voids for each in trace.rounds] == [(), ()]
    assert len(drive.seen) == 4


@pytest.mark.parametrize("virtual", [None, object()], ids=["physical", "virtual"])
def test_a_virtual_rigs_processors_are_those_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, opened: OpenVisit, station: Station, virtual: object
) -> None:
    told: list[object] = []

    def told_of(*what: object, emulated: bool) -> Vetting:
        told.append(emulated)
        return vet(*what, emulated=emulated)  # type: ignore[arg-type]

    monkeypatch.setattr(visiting, "vet", told_of)
    station.rig = station.rig.model_copy(update={"virtual": virtual})
    opened.pinned(random_read())
    assert told == [virtual is not None]
