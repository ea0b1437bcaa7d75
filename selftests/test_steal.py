"""Steal time while slices run: which of them met it."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from leadline import together, vetting
from leadline.drive import conditions, steal
from leadline.drive.conditions import ProcessorTime
from leadline.drive.finding import MERGED, STEAL_TIME, Finding
from leadline.drive.steal import EVERY_S, NEAR_S, Watched, watching
from leadline.host.connection import Host
from leadline.load.slices import Slice, SliceSetting
from leadline.load.workload import Workload, random_read
from leadline.together import Together
from leadline.vetting import voided
from leadline.visiting import OpenVisit
from selftests.slice_drive import SliceDrive
from selftests.test_together import measured_by, run_of
from selftests.test_together import opened as opened_rig
from selftests.visit_world import Bench, bench, kept, opened, station

__all__ = ["bench", "opened", "station"]  # fixtures

BEGAN = 1000.0
BURST = (1004.0, 1005.0)
"""In it all that one processor could have is gone."""


def watched(until: float = 1010.0) -> Watched:
    """A look each twentieth of a second, of processors that count hundredths."""
    seen = Watched()
    for number in range(round((until - BEGAN) / EVERY_S) + 1):
        at = BEGAN + number * EVERY_S
        gone = min(max(at - BURST[0], 0.0), BURST[1] - BURST[0])
        seen.at.append(at)
        seen.looks.append(ProcessorTime(elapsed=500 + 100 * (at - BEGAN), stolen=7 + 100 * gone))
    return seen


@pytest.mark.parametrize(
    ("since", "until", "met"),
    [
        (1002.0, 1003.0, False),
        (1004.2, 1004.7, True),
        (1003.5, 1004.0 + 0.2, True),
        (1004.0 - NEAR_S - 0.51, 1004.0 - NEAR_S - 0.01, False),
        (1004.0 - 0.6, 1004.0 - 0.1, True),
        (1005.0 + 0.1, 1005.0 + 0.6, True),
        (1005.0 + NEAR_S + 0.01, 1005.0 + NEAR_S + 0.51, False),
        (1000.0, 1000.5, False),
        (1009.5, 1010.0, False),
        (1000.0, 1010.0, False),
        (1001.0, 1008.0, True),
        (999.9, 1000.4, False),
        (1009.6, 1010.1, False),
        (1000.0 - NEAR_S - 0.01, 1000.4, None),
        (1009.6, 1010.0 + NEAR_S + 0.01, None),
    ],
)
def test_a_slice_met_what_was_taken_while_it_ran_or_near_it(
    since: float, until: float, met: bool | None
) -> None:
    assert watched().met_by(since, until) is met
    other = watched()
    ahead = Watched(3.25, other.at, other.looks)
    assert ahead.met_by(since + 3.25, until + 3.25) is met, "by another clock"


def test_where_nobody_looked_nothing_is_known() -> None:
    assert Watched().met_by(1000.0, 1001.0) is None
    stands = Watched(0.0, [1000.0, 1002.0], [ProcessorTime(5, 1), ProcessorTime(5, 1)])
    assert stands.met_by(1000.5, 1001.0) is None, "its time stands still"


def of_batch(*began: float) -> list[Slice]:
    drive = SliceDrive({8: 800.0})
    slices = drive.measure(random_read(), [SliceSetting(8, 16)] * len(began))
    return [replace(each, began=at) for at, each in zip(began, slices, strict=True)]


FOUND = Finding(STEAL_TIME, "ok", "a hypervisor kept 0.10 of a processor's time from the rig")
OTHER = Finding(MERGED, "void", "3 requests merged of 800")


def test_those_slices_alone_are_void_and_the_finding_says_how_many() -> None:
    batch = of_batch(1002.0, 1004.0, 1004.6, 1008.0)
    slices, findings = voided(batch, [FOUND], watched())
    assert [each.voids for each in slices] == [(), (STEAL_TIME,), (STEAL_TIME,), ()]
    (finding,) = findings
    assert finding.outcome == "void"
    assert finding.found == f"{FOUND.found}, more than 0.1 in 2 of 4 slices"


def test_what_was_taken_beside_the_slices_is_nothing_and_other_checks_void_all() -> None:
    stolen = Finding(STEAL_TIME, "void", FOUND.found)
    slices, findings = voided(of_batch(1002.0, 1008.0), [OTHER, stolen], watched())
    assert [each.voids for each in slices] == [(MERGED,), (MERGED,)]
    assert [each.outcome for each in findings] == ["void", "ok"]
    assert findings[0] == OTHER


@pytest.mark.parametrize("seen", [Watched(), watched(until=1007.0)], ids=["nobody", "other clock"])
def test_where_that_is_not_known_of_each_the_check_around_them_tells(seen: Watched) -> None:
    batch = of_batch(1002.0, 1008.0)
    stolen = Finding(STEAL_TIME, "void", FOUND.found)
    slices, findings = voided(batch, [stolen], seen)
    assert [each.voids for each in slices] == [(STEAL_TIME,)] * 2
    assert findings == (stolen,)
    slices, findings = voided(batch, [FOUND], seen)
    assert [each.voids for each in slices] == [()] * 2
    assert findings == (FOUND,)


def test_a_check_that_could_not_be_made_is_none() -> None:
    unknown = Finding(STEAL_TIME, "unknown", "the kernel does not tell")
    _, findings = voided(of_batch(1004.0), [unknown], watched())
    assert findings == (unknown,)


class Clock:
    """Of a rig that is fifty seconds ahead."""

    def now(self) -> float:
        return time.time() + 50.0


CLOCK = cast("Host", Clock())


def test_this_machine_is_watched_throughout_and_no_longer() -> None:
    since = time.time()
    with watching(CLOCK, emulated=True) as seen:
        deadline = since + 30.0
        while len(seen.at) < 3 and time.time() < deadline:
            time.sleep(EVERY_S)
    until = time.time()
    assert since <= seen.at[0]
    assert seen.at[-1] <= until
    assert seen.met_by(seen.at[0] + 50.0, seen.at[-1] + 50.0) in (True, False)
    assert len(seen.at) == len(seen.looks) >= 3
    assert seen.at == sorted(seen.at)
    assert seen.ahead_s == pytest.approx(50.0, abs=0.1)
    assert not [each for each in threading.enumerate() if each.name == "leadline-steal"]


def test_it_is_looked_at_before_and_after_however_short_that_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steal, "EVERY_S", 60.0)
    with watching(CLOCK, emulated=True) as seen:
        assert len(seen.at) == 1
    assert len(seen.at) == 2


def test_of_another_machine_this_one_is_no_matter() -> None:
    with watching(CLOCK, emulated=False) as seen:
        assert not [each for each in threading.enumerate() if each.name == "leadline-steal"]
    assert not seen.at


def test_a_kernel_without_steal_time_is_not_watched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(conditions, "PROCESSORS", str(tmp_path / "stat"))
    with watching(CLOCK, emulated=True) as seen:
        pass
    assert not seen.at


class Dated(SliceDrive):
    """Its slices of 0.5 s begin one after another, the fourth of them in the burst."""

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        measured = super().measure(workload, settings)
        return [replace(each, began=1002.5 + 0.5 * n) for n, each in enumerate(measured)]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the rig's processors are said to be those of this machine, each time."""
    asked: list[bool] = []

    @contextmanager
    def looked(host: Host, *, emulated: bool) -> Iterator[Watched]:
        asked.append(emulated)
        yield watched()

    monkeypatch.setattr(vetting, "watching", looked)
    monkeypatch.setattr(together, "watching", looked)
    return asked


MET = [False, False, True, True, True, True, False, False]
"""Of a batch of four pairs, in the order in which they ran."""


@pytest.mark.parametrize("virtual", [None, object()], ids=["physical", "virtual"])
def test_on_a_visit_those_slices_are_void_and_the_others_count(
    bench: Bench,
    opened: OpenVisit,
    request: pytest.FixtureRequest,
    told: list[bool],
    virtual: object,
) -> None:
    station = opened.station
    station.rig = station.rig.model_copy(update={"virtual": virtual})
    bench.load = Dated({8: 7000, 1: 1000})
    reads = opened.load(random_read(), request.node)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert told == [virtual is not None]
    assert [row["clean"] == 0 for row in kept(bench.folder, "slices")] == MET


def test_over_two_drives_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, told: list[bool]
) -> None:
    bench.load = Dated({8: 7000, 1: 1000})
    measured_by(bench, monkeypatch)
    with opened_rig(bench, run_of(bench.folder)) as visit, Together(visit, request.node) as both:
        reads = both.random_read_over(2)
        assert reads.at(depth=8, drives=2) >= 1.5 * reads.at(depth=8)
    assert told == [False]
    assert [row["clean"] == 0 for row in kept(bench.folder, "slices")] == MET
