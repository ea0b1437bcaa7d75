"""Load in a visit: settings pinned once and given back, the depth put back, all of it kept."""

import json
from dataclasses import replace
from typing import cast

import pytest

from leadline.claims import ClaimFailed, NotPromised
from leadline.drive.identify import decode
from leadline.drive.ladder import Rung
from leadline.drive.overlap import Overlap
from leadline.errors import DriveFault, Inconclusive, RigTrouble, message_of
from leadline.judge import SliceJudge
from leadline.load.workload import random_read
from leadline.quantities import Load
from leadline.recompute import differences
from leadline.results.stored import read_run
from leadline.running import VERDICTS
from leadline.statements import Swept
from leadline.station import Station
from leadline.visiting import OpenVisit
from selftests.identify_images import image
from selftests.slice_drive import SliceDrive
from selftests.visit_world import Bench, bench, kept, opened, station, watch_of

__all__ = ["bench", "opened", "station"]  # fixtures


@pytest.fixture
def reads(opened: OpenVisit, request: pytest.FixtureRequest) -> Load:
    return opened.load(random_read(), request.node)


def judge_of(load: Load) -> SliceJudge:
    return cast(SliceJudge, load.judge)


def test_settings_are_pinned_under_load_and_given_back_with_the_station(
    bench: Bench, station: Station, request: pytest.FixtureRequest
) -> None:
    scheduler = bench.file("queue/scheduler")
    seen: list[str] = []
    bench.under_load = lambda: seen.append(scheduler.read_text())
    with OpenVisit(station, station.run.visits[0]) as visit:
        reads = visit.load(random_read(), request.node)
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert set(seen) == {"none"}
    assert scheduler.read_text() == "none"
    station.journal.give_back()
    assert scheduler.read_text() == "mq-deadline"


def test_settings_are_pinned_once_a_binding_and_the_drive_is_admitted_for_that(
    bench: Bench, opened: OpenVisit, reads: Load
) -> None:
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    admitted = "admitted a to change a setting"
    assert bench.did == ["bind a", "climb", admitted, "slices"]
    bench.did.clear()
    assert reads.at(depth=8) >= 2 * reads.at(depth=1)
    assert bench.did == ["slices"]
    bench.did.clear()
    opened.rebound(bench.drive)
    assert bench.did == ["released a"], "or the kernel would keep its node's name"
    assert reads.at(depth=8) >= 4 * reads.at(depth=1)
    assert bench.did == ["released a", "climb", admitted, "slices"]


def test_leave_is_asked_for_once_and_confirmed_after_that(bench: Bench, opened: OpenVisit) -> None:
    bench.did.clear()
    leave = opened.admitted("change a setting")
    assert opened.admitted("cut power") is leave
    assert bench.did == ["admitted a to change a setting", "confirmed a"]
    leave.release()
    assert opened.admitted("cut power") is not leave
    assert bench.did[-2:] == ["released a", "admitted a to cut power"]


def test_the_drive_is_let_go_before_its_lease(bench: Bench, station: Station) -> None:
    with OpenVisit(station, station.run.visits[0]) as visit:
        visit.admitted("change a setting")
    assert bench.did[-1] == "released a"


def test_the_depth_is_on_record_under_load_and_as_the_kernel_had_it_between(
    bench: Bench, reads: Load
) -> None:
    depth = bench.file("device/queue_depth")
    on_record: list[str] = []

    def look() -> None:
        assert depth.read_text() == "1", "as the last slice of a batch had it"
        journal = bench.folder / "journal" / "run-1.jsonl"
        records = [json.loads(line) for line in journal.read_text().splitlines() if line]
        on_record.extend(r["old"] for r in records if r.get("path") == str(depth.resolve()))

    bench.under_load = look
    assert reads.at(depth=1) <= 1 * reads.at(depth=8)
    assert on_record == ["32"]
    assert depth.read_text() == "32"


def test_the_depth_is_put_back_when_the_load_fails(bench: Bench, reads: Load) -> None:
    def fail() -> None:
        raise RigTrouble("fio could not be run")

    bench.under_load = fail
    with pytest.raises(RigTrouble, match="fio could not be run"):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert bench.file("device/queue_depth").read_text() == "32"


def test_a_drive_that_is_gone_under_load_has_failed_though_there_is_no_depth_to_put_back(
    bench: Bench, reads: Load
) -> None:
    def go() -> None:
        bench.file("device/queue_depth").unlink()
        raise DriveFault("reads failed")

    bench.under_load = go
    with pytest.raises(DriveFault, match="reads failed") as failed:
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert "when the device queue depth was to be put back" in message_of(failed.value)


def test_a_queue_that_error_handling_switched_off_is_not_brought_back(
    bench: Bench, opened: OpenVisit, reads: Load
) -> None:
    bench.rungs = (Rung("error handling", False, "NCQ disabled due to excessive errors"),)
    opened.rebound(bench.drive)
    with pytest.raises(DriveFault, match="NCQ disabled"):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert bench.file("queue/scheduler").read_text() == "none [mq-deadline]"
    assert "slices" not in bench.did


def test_a_queue_that_is_switched_off_later_is_not_brought_back_either(
    bench: Bench, opened: OpenVisit, reads: Load
) -> None:
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    watch_of(opened.station).says("ata1.00: NCQ disabled due to excessive errors")
    bench.did.clear()
    with pytest.raises(DriveFault, match="does not queue any more"):
        assert reads.at(depth=8) >= 2 * reads.at(depth=1)
    assert bench.did == []


UNABLE = (Rung("controller", False, "ata_piix takes 1 at once"),)


def test_a_drive_that_cannot_queue_is_not_loaded_deeper_and_that_is_why_it_fails(
    bench: Bench, opened: OpenVisit, reads: Load
) -> None:
    bench.rungs = UNABLE
    bench.file("device/queue_depth").write_text("1")
    opened.rebound(replace(bench.drive, queue_depth=1))
    with pytest.raises(DriveFault, match=r"controller: BROKEN: ata_piix takes 1 at once"):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert "slices" not in bench.did
    with pytest.raises(ClaimFailed):
        assert reads.at(depth=1) >= 10_000


def test_what_the_matrix_does_not_promise_is_not_missed(
    bench: Bench, opened: OpenVisit, reads: Load, request: pytest.FixtureRequest
) -> None:
    bench.rungs = UNABLE
    bench.file("device/queue_depth").write_text("1")
    opened.rebound(replace(bench.drive, queue_depth=1))
    opened.model = opened.model.model_copy(update={"queue_depth": 1})
    said = r"promises no queue of MODEL \(queue_depth: 1\), and there is none: .*ata_piix"
    with pytest.raises(NotPromised, match=said):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    with pytest.raises(pytest.skip.Exception, match=said), opened.test(request.node):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)


def test_ncq_that_is_off_is_not_held_against_itself(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    """The broken rung is said; where somebody has left a depth of 1, nobody's fault is."""

    def on_against_off() -> None:
        opened.rebound(replace(bench.drive, queue_depth=1))
        reads = opened.load(random_read(), request.node)
        assert reads.at(threads=8) >= 0.95 * reads.at(depth=1, threads=8)

    bench.file("device/queue_depth").write_text("1")
    healthy, bench.rungs = bench.rungs, UNABLE
    with pytest.raises(DriveFault, match=r"controller: BROKEN: ata_piix takes 1 at once"):
        on_against_off()
    bench.rungs = healthy
    with pytest.raises(Inconclusive, match="the device queue depth was left at 1"):
        on_against_off()
    assert "slices" not in bench.did
    bench.rungs = UNABLE
    opened.model = opened.model.model_copy(update={"queue_depth": 1})
    with pytest.raises(NotPromised, match="promises no queue of MODEL"):
        on_against_off()


def test_slices_and_verdict_are_kept_and_reported(
    bench: Bench, reads: Load, request: pytest.FixtureRequest
) -> None:
    bench.load = SliceDrive({8: 1400, 1: 1000})
    with pytest.raises(ClaimFailed, match="does not hold"):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (verdict,) = kept(bench.folder, "verdicts")
    name = "slices_and_verdict_are_kept_and_reported"
    assert (verdict["cell"], verdict["claim"]) == ("bench-a-MODEL-1.0", name)
    assert (verdict["outcome"], verdict["threshold"]) == ("FAIL", 3.0)
    slices = kept(bench.folder, "slices")
    assert len(slices) == len(bench.load.settings)
    assert {(row["side"], row["device_depth"]) for row in slices} == {("left", 8), ("right", 1)}
    (phase,) = kept(bench.folder, "phases")
    assert (phase["name"], phase["seconds"]) == ("drive", verdict["drive_seconds"])
    (facts,) = request.node.stash[VERDICTS]
    assert facts["verdict"] == "FAIL"
    assert f"leadline hil --rig {bench.folder / 'bench.yaml'} " in facts["explanation"]
    assert bench.told.line == "", "the live line is gone before the verdict is said"


def test_the_claims_of_a_visit_can_be_computed_again(bench: Bench, reads: Load) -> None:
    bench.load = SliceDrive({8: 7000, 4: 4000, 1: 1000})
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    with pytest.raises(ClaimFailed):
        assert reads.at(depth=8).mb_per_s >= 40
    assert reads.curve([1, 4, 8]).has_no_dip()
    results = read_run(bench.folder / "results", "run-1")
    assert len(results.verdicts) == 3
    assert results.unsettled_slices == 0
    for row in results.verdicts:
        assert differences(row, results.slices[row.settling]) == ()


def test_a_claims_budget_is_the_runs(reads: Load) -> None:
    assert judge_of(reads).budget_s == 20.0


def test_a_sata_drive_may_be_asked_for_every_tag_and_another_for_what_the_kernel_lets_it(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    opened.rebound(replace(bench.drive, queue_depth=31))
    assert opened.load(random_read(), request.node).full_depth == 32
    opened.rebound(replace(bench.drive, identify=None, queue_depth=64))
    assert opened.load(random_read(), request.node).full_depth == 64
    opened.rebound(replace(bench.drive, identify=None, queue_depth=1))
    assert opened.load(random_read(), request.node).full_depth == 32, "1 is a setting"
    shallow = decode(image(model="MODEL", serial="SERIAL-a", words={75: 15}))
    opened.rebound(replace(bench.drive, identify=shallow))
    reads = opened.load(random_read(), request.node)
    assert reads.full_depth == 16, "by its own word"
    with pytest.raises(DriveFault, match="a queue of 16, and the firmware matrix has 32"):
        reads.at(depth=32)


@pytest.mark.parametrize(("rate", "slice_s"), [(1e6, 0.5), (40.0, 3.6)])
def test_the_first_slice_is_as_long_as_the_ladders_probe_calls_for(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest, rate: float, slice_s: float
) -> None:
    """Six rounds of an offered depth of 24; half a second at least."""
    assert judge_of(opened.load(random_read(), request.node)).slice_s == 0.5, "by no probe at all"
    opened.rebound(bench.drive)
    bench.overlap = Overlap("libata", 256, {}, 256, 8, 6.5, busy_s=256 / rate)
    made = opened.load(random_read(), request.node)
    assert judge_of(made).slice_s == pytest.approx(slice_s)


@pytest.mark.parametrize(("class_", "concave_from"), [("ssd", 1), ("hdd", 2)])
def test_a_curve_is_concave_from_where_the_class_of_the_drive_has_it(
    opened: OpenVisit, request: pytest.FixtureRequest, class_: str, concave_from: int
) -> None:
    opened.model = opened.model.model_copy(update={"class_": class_})
    assert opened.load(random_read(), request.node).concave_from == concave_from


def test_the_tests_of_a_visit_have_its_sweeps_in_common(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    one, other = (opened.judge(request.node) for _ in range(2))
    assert one.sweeps is other.sweeps
    beside = opened.judge(request.node, by=opened.measure)
    assert beside.sweeps is not one.sweeps, "what somebody else measures is another curve"
    curve = opened.load(random_read(), request.node).curve([1, 2, 3])
    one.sweeps[curve.settings] = Swept({}, {})
    opened.rebound(bench.drive)
    assert other.sweeps == {}, "it has been switched off since"
