"""Checks around slices in a visit: each is on record, and a failed one is in the verdict."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from leadline import vetting
from leadline.claims import Unsettled
from leadline.drive import conditions
from leadline.drive.conditions import Conditions, Surroundings
from leadline.drive.finding import MEANINGS
from leadline.drive.ladder import Rung
from leadline.errors import DriveFault, Misuse
from leadline.host.connection import Host
from leadline.load.target import SAMPLES
from leadline.load.workload import random_read, random_write, sequential_read
from leadline.quantities import Load
from leadline.station import Station
from leadline.visiting import OpenVisit
from selftests.slice_drive import SliceDrive
from selftests.visit_world import Bench, bench, kept, make_run, open_station, opened, station

__all__ = ["bench", "opened", "station"]  # fixtures


@pytest.fixture
def reads(opened: OpenVisit, request: pytest.FixtureRequest) -> Load:
    return opened.load(random_read(), request.node)


@pytest.fixture
def writing(bench: Bench) -> Iterator[OpenVisit]:
    """A visit in a run with --allow-writes."""
    run = replace(make_run(bench.folder), allow_writes=True)
    with open_station(bench, run) as station, OpenVisit(station, run.visits[0]) as visit:
        yield visit


def put(attribute: Path, text: str) -> None:
    """The kernel's attribute is this now."""
    attribute.write_text(text)


def voids_of(error: pytest.ExceptionInfo[Unsettled]) -> list[str]:
    verdict = error.value.verdict
    assert (verdict.outcome.value, verdict.reason) == ("INCONCLUSIVE", "void")
    return [void.partition(":")[0] for void in verdict.voids]


def test_every_check_of_every_batch_is_on_record(bench: Bench, reads: Load) -> None:
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    rows = kept(bench.folder, "findings")
    names = {row["name"] for row in rows}
    assert names == MEANINGS.keys() - {"not-preconditioned"}
    assert len(rows) == len(names) * bench.did.count("slices")
    by_name = {row["name"]: row for row in rows}
    assert by_name["merged"]["outcome"] == "unknown", "this drive's sysfs has no counters"
    assert by_name["settings-moved"]["outcome"] == "ok"
    assert by_name["span"]["meaning"] == MEANINGS["span"]
    assert {row["cell"] for row in rows} == {"bench-a-MODEL-1.0"}
    assert {row["claim"] for row in rows} == {"every_check_of_every_batch_is_on_record"}


def test_a_setting_that_moves_under_load_makes_the_verdict_void_and_is_named(
    bench: Bench, reads: Load
) -> None:
    bench.under_load = partial(put, bench.file("queue/nomerges"), "0")
    with pytest.raises(Unsettled) as error:
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert voids_of(error) == ["settings-moved"]
    assert "queue/nomerges was '2' and is '0'" in str(error.value)
    assert bench.did.count("slices") == 1, "no more drive time is spent on it"
    assert all("settings-moved" in row["details"] for row in kept(bench.folder, "slices"))


def test_a_full_link_is_the_limit_of_random_reads_and_the_aim_of_streams(
    opened: OpenVisit, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(host: Host, around: Surroundings, *, before: bool) -> Conditions:
        return replace(conditions.look(host, around, before=before), link_bytes_per_s=20e6)

    monkeypatch.setattr(vetting, "look", look)
    streams = opened.load(sequential_read(opened.kernel_capacity_bytes()), request.node)
    assert streams.at(depth=8) >= 3 * streams.at(depth=1)
    reads = opened.load(random_read(), request.node)
    with pytest.raises(Unsettled) as error:
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert voids_of(error) == ["link-limit"]


def test_a_drive_counted_errors_under_load(bench: Bench, opened: OpenVisit, reads: Load) -> None:
    errors = bench.file("device/ioerr_cnt")
    errors.write_text("0x0\n")
    bench.under_load = partial(put, errors, "0x2\n")
    with pytest.raises(Unsettled, match="2 commands failed") as error:
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert voids_of(error) == ["errors"]


def test_reads_of_blank_flash_are_void_and_the_remedy_has_its_price(
    bench: Bench, reads: Load
) -> None:
    bench.zeros = SAMPLES
    with pytest.raises(Unsettled, match=r"16 of 16 .*write the span .*about 0 s at 200 MB/s"):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)


def test_a_note_of_one_claim_is_not_of_the_next(bench: Bench, reads: Load) -> None:
    bench.under_load = partial(put, bench.file("queue/nomerges"), "0")
    with pytest.raises(Unsettled):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    bench.under_load = lambda: None
    bench.file("queue/nomerges").write_text("2")
    assert reads.at(depth=8) >= 2 * reads.at(depth=1)
    held = kept(bench.folder, "verdicts")[-1]
    assert "nomerges was" not in held["details"]


def test_a_span_that_fits_the_cache_is_void(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    near = opened.load(random_read((0, 15 * 65536)), request.node)
    with pytest.raises(Unsettled) as error:
        assert near.at(depth=8) >= 3 * near.at(depth=1)
    assert voids_of(error) == ["span"]


def test_what_is_read_is_sampled_once_a_binding(
    bench: Bench, opened: OpenVisit, reads: Load
) -> None:
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    bench.zeros = SAMPLES
    assert reads.at(depth=8) >= 2 * reads.at(depth=1)
    opened.rebound(bench.drive)
    with pytest.raises(Unsettled) as error:
        assert reads.at(depth=8) >= 4 * reads.at(depth=1)
    assert voids_of(error) == ["unwritten"]


def test_writes_need_both_keys_before_anything_is_done(
    bench: Bench, station: Station, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    writes = opened.load(random_write(), request.node)
    with pytest.raises(Misuse, match="both are needed"):
        assert writes.at(depth=8) >= 3 * writes.at(depth=1)
    assert not [deed for deed in bench.did if deed.startswith(("precondition", "slices"))]


def test_a_drive_is_preconditioned_once_for_a_workload_and_its_price_said_before(
    bench: Bench, writing: OpenVisit, request: pytest.FixtureRequest
) -> None:
    bench.load = SliceDrive({8: 7000, 1: 1000})
    writes = writing.load(random_write(), request.node)
    assert writes.at(depth=8) >= 3 * writes.at(depth=1)
    assert writes.at(depth=8) >= 2 * writes.at(depth=1)
    done = [deed for deed in bench.did if deed.startswith("precondition")]
    assert done == ["precondition 1048576 bytes at depth 32"]
    admitted = bench.did.index("admitted a to write")
    assert admitted < bench.did.index(done[0]) < bench.did.index("slices")
    (said,) = bench.told.said
    assert "preconditioning for random_write" in said
    assert "5 to 25 rounds of 10 s" in said
    phases = [row["seconds"] for row in kept(bench.folder, "phases") if row["name"] == "drive"]
    assert phases[0] == 4.0 + 5 * 60.0, "its drive time is counted"
    rows = kept(bench.folder, "findings")
    assert {r["outcome"] for r in rows if r["name"] == "not-preconditioned"} == {"ok"}
    assert "unwritten" not in {row["name"] for row in rows}, "what is written need not be there"


def test_a_drive_that_does_not_queue_is_not_filled_to_find_that_out(
    bench: Bench, writing: OpenVisit, request: pytest.FixtureRequest
) -> None:
    """That takes minutes, and wears it."""
    bench.rungs = (Rung("kernel", False, "libata.force=1:noncq takes NCQ away"),)
    writing.rebound(replace(bench.drive, queue_depth=1))
    writes = writing.load(random_write(), request.node)
    with pytest.raises(DriveFault, match="does not queue"):
        assert writes.at(depth=8) >= 3 * writes.at(depth=1)
    assert not [deed for deed in bench.did if deed.startswith(("admitted", "precondition"))]


FILLED, AGAIN = (f"precondition 1048576 bytes at depth 32{how}" for how in ("", ", not filled"))


def preconditionings(bench: Bench) -> list[str]:
    return [deed for deed in bench.did if deed.startswith("precondition")]


@pytest.mark.parametrize(
    "disturb",
    [
        pytest.param(lambda visit: visit.rebound(visit.drive), id="it lost power"),
        pytest.param(lambda visit: visit.admitted("cut power"), id="it may have lost power"),
        pytest.param(lambda visit: visit.admitted("write"), id="verified writes, say"),
    ],
)
def test_a_steady_state_that_is_gone_is_sought_again_and_the_drive_not_filled_again(
    bench: Bench,
    writing: OpenVisit,
    request: pytest.FixtureRequest,
    disturb: Callable[[OpenVisit], object],
) -> None:
    writes = writing.load(random_write(), request.node)
    assert writes.at(depth=8) >= 3 * writes.at(depth=1)
    disturb(writing)
    bench.steady = False
    with pytest.raises(Unsettled, match=r"filled before, and now 5 rounds .*not steady"):
        assert writes.at(depth=8) >= 2 * writes.at(depth=1)
    assert preconditionings(bench) == [FILLED, AGAIN]
    assert "again, for something else wrote to it or it lost power: " in bench.told.said[-1]


def test_another_workload_that_writes_ends_the_steady_state_of_the_first(
    bench: Bench, writing: OpenVisit, request: pytest.FixtureRequest
) -> None:
    writes = writing.load(random_write(), request.node)
    others = writing.load(random_write((0, 1 << 20)), request.node)
    assert writes.at(depth=8) >= 3 * writes.at(depth=1)
    assert others.at(depth=8) >= 3 * others.at(depth=1)
    assert writes.at(depth=8) >= 2 * writes.at(depth=1)
    assert preconditionings(bench) == [FILLED, FILLED, AGAIN]
    reads = writing.load(random_read(), request.node)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert writes.at(depth=8) >= 4 * writes.at(depth=1)
    assert len(preconditionings(bench)) == 3, "reads leave it as it is"


def test_what_is_read_is_sampled_again_after_it_was_written(
    bench: Bench, writing: OpenVisit, request: pytest.FixtureRequest
) -> None:
    reads = writing.load(random_read(), request.node)
    bench.zeros = SAMPLES
    with pytest.raises(Unsettled):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    bench.zeros = 0
    writes = writing.load(random_write(), request.node)
    assert writes.at(depth=8) >= 3 * writes.at(depth=1)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)


def test_writes_to_a_drive_that_is_not_steady_are_void(
    bench: Bench, writing: OpenVisit, request: pytest.FixtureRequest
) -> None:
    bench.steady = False
    writes = writing.load(random_write(), request.node)
    with pytest.raises(Unsettled, match="not steady: the last 5 rounds differ") as error:
        assert writes.at(depth=8) >= 3 * writes.at(depth=1)
    assert voids_of(error) == ["not-preconditioned"]


def test_leave_to_change_a_setting_is_given_up_for_leave_to_write(
    bench: Bench, writing: OpenVisit
) -> None:
    bench.did.clear()
    writing.admitted("change a setting")
    leave = writing.admitted("write")
    assert writing.admitted("change a setting") is leave
    assert bench.did == [
        "admitted a to change a setting",
        "released a",
        "admitted a to write",
        "confirmed a",
    ]


def test_a_drive_that_was_held_for_writing_is_remembered_when_it_is_let_go(
    writing: OpenVisit,
) -> None:
    writing.admitted("change a setting")
    writing.let_go()
    assert writing.station.written == set(), "fio has not opened it for writing"
    writing.admitted("write")
    writing.let_go()
    assert writing.station.written == {writing.drive.name}
