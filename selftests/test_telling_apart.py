"""Which of two that do not agree is slow: what is looked up of both, and what is said of it."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from leadline import telling_apart
from leadline.claims import ClaimFailed, Unsettled
from leadline.drive.ladder import Rung
from leadline.inventory.matrix import LimitSpec
from leadline.load.workload import random_read
from leadline.on_record import History
from leadline.quantities import Load
from leadline.results.history import before, twins
from leadline.results.schema import CellRow, Environment, SliceRow
from leadline.results.stood import Stood, broken_rung
from leadline.running import Run
from leadline.telling_apart import Asked, asked_of, by_gain, where_to_look
from leadline.verdict.interval import Interval, interval_of
from leadline.visiting import OpenVisit
from selftests.slice_drive import SliceDrive
from selftests.visit_world import Bench, bench, opened, refuse, station

__all__ = ["bench", "opened", "station"]  # fixtures

SIDE = "random_read.at(offered=8)"
OFF = "random_read.at(offered=8, NCQ off)"
TAKEN_AWAY = Rung("kernel", False, "libata.force=1:noncq takes NCQ away")
HOLDS = Rung("kernel", True, "the boot log says 'NCQ (depth 32)'")
WITHIN = 0.4
"""Wide of what the rig is taken to differ by from session to session, and far from a half."""


def keep(
    visit: OpenVisit,
    serial: str,
    queued: float,
    alone: float,
    *,
    ladder: Sequence[Rung] = (HOLDS,),
    depth: int = 8,
) -> None:
    """Put an earlier session of a drive on record."""
    record, cell, now = visit.station.record, f"cell-{serial}", visit.station.record.run_id
    record.run_id = "run-0"
    details = {
        "controller": {"pci_id": "", "driver": "ahci"},
        "image_sha256": None,
        "queue_depth": depth,
        "link": {"speed": "6.0 Gbps"},
    }
    row = {"rig": "bench", "slot": "x", "model": "MODEL", "firmware": "1.0", "controller": "c"}
    record.add(CellRow(cell=cell, serial=serial, details=details, **row))
    rungs = "\n".join(map(str, ladder))
    record.add(Environment(rig="bench", name=f"NCQ ladder of {cell}", value=rungs))
    for place in range(16):
        side, rate = ((SIDE, queued), (OFF, alone))[place % 2]
        record.add(
            SliceRow(
                cell=cell,
                claim="c",
                settling=serial,
                place=place,
                side=side,
                clean=True,
                taken=1e9 + place,
                device_depth=depth,
                offered_depth=8,
                rate=rate,
                details={},
            )
        )
    record.run_id = now


def twin_of(visit: OpenVisit) -> History:
    return twins(visit.station.record, visit.visit.cell, visit.drive.identity.serial)


def failure(
    reads: Load, other: History, ends: type[ClaimFailed] | type[Unsettled] = ClaimFailed
) -> str:
    with pytest.raises(ends) as failed:
        assert reads.at(offered=8).agrees_with(other, within=WITHIN)
    return str(failed.value)


@pytest.fixture
def reads(bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest) -> Load:
    """Loads on a healthy drive whose kernel lets it hold eight."""
    bench.load = SliceDrive({8: 7000, 1: 1000}, noise=0.001)
    opened.rebound(replace(bench.drive, queue_depth=8))
    return opened.load(random_read(), request.node)


def test_a_drive_that_lost_its_queue_is_the_slow_one(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    bench.load, bench.rungs = SliceDrive({1: 1000}, noise=0.001), (TAKEN_AWAY,)
    opened.rebound(replace(bench.drive, queue_depth=1))
    keep(opened, "SN2", 7000, 1000)
    text = failure(opened.load(random_read(), request.node), twin_of(opened))
    assert "  note: the slower one is this drive now: by 85.7% [" in text
    assert f"%] of {SIDE} of SN2, 2001-09-0" in text
    assert "] of this drive now, and 7 [" in text
    assert "at least 3 is asked (depth_8_over_depth_1: a source)" in text
    assert "so the slow one is this drive now, for it gains less by its queue than it must" in text
    assert "this drive has no earlier run of its own on record" in text
    stands = "this drive now: device queue depth 1, controller ahci, link at 6.0 Gbps, "
    assert f"{stands}{TAKEN_AWAY}" in text
    assert "SN2 in run run-0: device queue depth 8, controller ahci, link at 6.0 Gbps, no " in text
    assert f"look first at the ladder of this drive now: {TAKEN_AWAY}" in text


def test_a_twin_whose_queue_was_lost_is_the_slow_one(opened: OpenVisit, reads: Load) -> None:
    keep(opened, "SN2", 1000, 1000, ladder=(TAKEN_AWAY,))
    text = failure(reads, twin_of(opened), Unsettled)
    assert f"void: no-difference: {SIDE} of SN2, 2001-09-0" in text
    assert "NCQ on over off was 1 [" in text
    assert "there, as of a drive without a queue, so this drive may well be right" in text
    assert f"  note: the slower one is {SIDE} of SN2, 2001-09-0" in text
    assert "%] of this drive now\n" in text
    assert "so the slow one is the one on record, for it gains less by its queue" in text
    assert f"look first at the ladder of SN2 in run run-0: {TAKEN_AWAY}" in text


def test_a_drive_that_has_become_slower_is_told_by_its_own_record(
    bench: Bench, opened: OpenVisit, reads: Load
) -> None:
    """And not by its queue, which does for it what it must."""
    bench.load = SliceDrive({8: 3500, 1: 500}, noise=0.001)
    keep(opened, "SN2", 7000, 1000)
    keep(opened, "SERIAL-a", 7000, 1000)
    text = failure(reads, twin_of(opened))
    assert "this drive now gains by its queue what it must: that is not why it is slower" in text
    assert "by its own record this drive has become slower, 0." in text
    assert f"] times {SIDE} of SERIAL-a, 2001-09-0" in text
    assert "run run-0: the slow one is this drive now" in text
    assert "they stand alike: look at what else a rate hangs on" in text


@pytest.mark.parametrize(
    ("twin", "said"),
    [
        (3500, "the slow one is the one on record"),
        (14000, "it was the slower one then, too"),
    ],
)
def test_a_drive_that_is_as_it_was_leaves_the_other(
    opened: OpenVisit, reads: Load, twin: float, said: str
) -> None:
    keep(opened, "SN2", twin, twin / 7)
    keep(opened, "SERIAL-a", 7000, 1000)
    text = failure(reads, twin_of(opened), Unsettled)
    assert "void: which-is-off: " in text
    assert "by its own record this drive is as fast as it was, " in text
    assert f"run run-0: {said}" in text


def test_a_drive_held_against_its_own_record_is_not_told_of_it_again(
    bench: Bench, opened: OpenVisit, reads: Load
) -> None:
    bench.load = SliceDrive({8: 3500, 1: 500}, noise=0.001)
    keep(opened, "SERIAL-a", 7000, 1000, depth=31)
    own = before(opened.station.record, opened.visit.cell, "SERIAL-a")
    text = failure(reads, own)
    assert "of SERIAL-a, 2001-09-0" in text
    assert "SERIAL-a in run run-0: device queue depth 31" in text
    assert "look first at what differs: device queue depth" in text
    assert "own record this drive" not in text
    assert "no earlier run" not in text


def test_what_cannot_be_looked_up_is_said_and_the_verdict_stays(
    opened: OpenVisit, reads: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(opened, "SN2", 3500, 500)
    monkeypatch.setattr(telling_apart, "stood", refuse)
    text = failure(reads, twin_of(opened), Unsettled)
    assert "the slower one is " in text
    assert "which of the two is slow could not be looked up: the rig does not answer" in text


@pytest.mark.parametrize(
    ("asked", "limit"),
    [
        ({"offered": 8}, "depth_8_over_depth_1"),
        ({"depth": 8}, "depth_8_over_depth_1"),
        ({"threads": 8}, "threads_ncq_on_over_off"),
        ({"offered": 4}, None),
        ({"depth": 1, "offered": 8}, None),
        ({"threads": 4}, None),
    ],
)
def test_the_limit_is_that_of_a_load_like_it(
    opened: OpenVisit,
    reads: Load,
    monkeypatch: pytest.MonkeyPatch,
    asked: dict[str, int],
    limit: str | None,
) -> None:
    limits = {
        "depth_8_over_depth_1": LimitSpec(at_least=3.0, source="s"),
        "threads_ncq_on_over_off": LimitSpec(at_least=2.5, source="s"),
    }
    monkeypatch.setattr(Run, "limits", lambda *_: limits)
    found = asked_of(opened, reads.at(**asked))
    assert (found and found.limit) == (limit and f"{limit}: s")


@pytest.mark.parametrize("at_least", [0.5, 1.0])
def test_a_limit_that_a_drive_without_a_queue_meets_tells_nothing(
    opened: OpenVisit, reads: Load, monkeypatch: pytest.MonkeyPatch, at_least: float
) -> None:
    """That of disks."""
    limits = {"depth_8_over_depth_1": LimitSpec(at_least=at_least, source="s")}
    monkeypatch.setattr(Run, "limits", lambda *_: limits)
    assert asked_of(opened, reads.at(offered=8)) is None


def gain(ratio: float) -> Interval:
    return interval_of([math.log(ratio)] * 8, value_seconds=1.0, sigma_d=0.01)


@pytest.mark.parametrize(
    ("now", "then", "slower_now", "end"),
    [
        (1.0, 7.0, True, "so the slow one is this drive now, for it gains less"),
        (7.0, 1.0, False, "so the slow one is the one on record, for it gains less"),
        (7.0, 1.0, True, "this drive now gains by its queue what it must"),
        (1.0, 7.0, False, "the one on record gains by its queue what it must"),
        (3.0, 7.0, True, "NCQ on over off is 3 ["),
    ],
)
def test_only_the_slower_one_is_blamed_for_its_queue(
    now: float, then: float, slower_now: bool, end: str
) -> None:
    *_, last = by_gain(gain(now), gain(then), Asked(3.0, "a limit"), slower_now=slower_now)
    assert last.startswith(end)


def test_without_a_limit_or_a_record_there_are_figures_alone() -> None:
    (line,) = by_gain(gain(1.0), gain(7.0), None, slower_now=True)
    assert line.startswith("NCQ on over off is 1 [")
    (line,) = by_gain(gain(7.0), None, Asked(3.0, "a limit"), slower_now=False)
    assert line.endswith("of this drive now; at least 3 is asked (a limit)")
    assert list(by_gain(None, None, None, slower_now=True)) == []


def test_what_is_looked_at_first() -> None:
    here = Stood("here", 32, "ahci (1:2)", "6.0 Gbps", "")
    there = replace(here, who="there")
    assert where_to_look(here, there).startswith("they stand alike")
    assert where_to_look(here, Stood("there")).startswith("they stand alike"), "for all we know"
    other = replace(there, queue_depth=1, controller="ahci (1:3)", link="3.0 Gbps")
    assert where_to_look(here, other) == (
        "look first at what differs: device queue depth, controller, speed of the link"
    )
    broken = replace(other, broken="kernel: BROKEN: why")
    assert where_to_look(here, broken) == "look first at the ladder of there: kernel: BROKEN: why"


def test_the_first_broken_rung_is_read_from_a_ladder_on_record() -> None:
    assert broken_rung(f"{HOLDS}\n{TAKEN_AWAY}\noverlap: BROKEN: none") == str(TAKEN_AWAY)
    assert broken_rung(str(HOLDS)) == ""
    assert str(Stood("X")) == "X: its ladder is not on record"
