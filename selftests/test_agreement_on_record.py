"""Agreement with what is on record: of the drive itself, and of others of its kind."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from leadline.claims import ClaimFailed, NothingOnRecord, Unsettled
from leadline.errors import Inconclusive, Misuse
from leadline.inventory.plan import Cell
from leadline.judge import BLOCKS_ON_RECORD, SliceJudge
from leadline.load.workload import random_read
from leadline.on_record import History, Recorded
from leadline.quantities import Load
from leadline.results.history import ENOUGH_SLICES, before, own_session, twins, twins_sessions
from leadline.results.record import Record
from leadline.results.schema import CellRow, OutcomeRow, SliceRow, VerdictRow
from leadline.selection import CURVE_BUDGETS
from leadline.verdict.verdict import Verdict
from leadline.visiting import OpenVisit
from selftests.slice_drive import SliceDrive
from selftests.visit_world import Bench, bench, opened, station

__all__ = ["bench", "opened", "station"]  # fixtures

SIDE = "random_read.at(offered=32)"
OFF_SIDE = "random_read.at(offered=32, NCQ off)"
HEALTHY = (7000.0, 7100.0, 6900.0, 7050.0, 6950.0, 7000.0)


@dataclass
class Settled:
    """A load on a drive, and what came of the claims about it."""

    drive: SliceDrive
    kernel_depth: int = 32
    sides: list[str] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    def load(self) -> Load:
        judge = SliceJudge(
            cell="bench-slot1",
            measure=self.drive.measure,
            keep_slice=lambda side, _: self.sides.append(side),
            keep_verdict=lambda claim, verdict, text: self.verdicts.append(verdict),
            slice_s=0.5,
            budget_s=60.0,
            curve_budget_s=CURVE_BUDGETS * 60.0,
            repeat="leadline hil",
            keep_spent=self.spent.append,
        )
        return Load(random_read(), judge, full_depth=32, kernel_depth=self.kernel_depth)


def of_twin(rates: Sequence[float]) -> History:
    recorded = Recorded(tuple(rates), f"{SIDE} of SN2, 2026-11-20 10:00, run r")
    return History("a twin", lambda side: recorded if side == SIDE else None)


def test_a_drive_that_does_as_its_twin_did_passes_on_a_load_that_would_notice() -> None:
    healthy = Settled(SliceDrive({32: 7000, 1: 1000}))
    assert healthy.load().at(offered=32).agrees_with(of_twin(HEALTHY), within=0.25)
    (verdict,) = healthy.verdicts
    (note,) = [note for note in verdict.notes if note.startswith("NCQ on over off is ")]
    assert 6.5 < float(note.split()[5]) < 7.5
    assert note.endswith(": this load would notice")
    assert set(healthy.sides) == {SIDE, "random_read.at(offered=32, NCQ off)"}


def test_ncq_silently_off_is_found_by_the_twin_that_has_it_on() -> None:
    """The kernel lets the drive hold one request, whatever is offered."""
    off = Settled(SliceDrive({1: 1000}), kernel_depth=1)
    with pytest.raises(ClaimFailed) as failure:
        assert off.load().at(offered=32).agrees_with(of_twin(HEALTHY), within=0.25)
    text = str(failure.value)
    assert f"FAIL: {SIDE} agrees with a twin within 0.25 does not hold on bench-slot1" in text
    assert f"  {SIDE} of SN2, 2026-11-20 10:00, run r: 7" in text
    assert "ratio: 0.14" in text
    assert "  note: the slower one is this drive now: by 85." in text
    assert f"%] of {SIDE} of SN2, 2026-11-20 10:00, run r\n" in text


def test_agreement_on_a_load_that_ncq_does_not_change_is_no_evidence() -> None:
    alike = Settled(SliceDrive({32: 1000, 1: 1000}))
    with pytest.raises(Unsettled) as failure:
        assert alike.load().at(offered=32).agrees_with(of_twin([1000.0] * 8), within=0.25)
    text = str(failure.value)
    assert "void: no-difference: NCQ on over off is " in text
    assert "remedy: claim it of a load that needs the queue" in text


def test_whether_ncq_makes_a_difference_is_measured_on_beyond_the_record() -> None:
    """A quarter faster is told from a fifth by some thirty pairs, and six are on record."""
    little = Settled(SliceDrive({32: 7000, 1: 7000 / 1.24}))
    assert little.load().at(offered=32).agrees_with(of_twin(HEALTHY), within=0.25)
    (verdict,) = little.verdicts
    assert verdict.count == len(HEALTHY)
    (note,) = [note for note in verdict.notes if note.startswith("NCQ on over off is 1.2")]
    assert note.endswith(": this load would notice")
    assert len(little.sides) > 2 * 8


def test_no_more_is_measured_than_the_record_can_be_held_against() -> None:
    near = Settled(SliceDrive({32: 7700, 1: 1000}, noise=0.05))
    with pytest.raises(Unsettled, match="6 slices are on record, and no drive time tells more"):
        assert near.load().at(offered=32).agrees_with(of_twin(HEALTHY), within=0.25)
    assert near.verdicts[0].reason == "budget"
    assert len(near.sides) == 16, "eight blocks for six that are on record"


def test_what_was_measured_with_nothing_to_agree_with_is_on_record_afterwards() -> None:
    first = Settled(SliceDrive({32: 7000, 1: 1000}))
    nobody = History("this drive's own record", lambda side: None)
    with pytest.raises(
        NothingOnRecord, match=r"own record under .*is on record now: \d+ requests/s, \S+ MB/s"
    ):
        assert first.load().at(offered=32).agrees_with(nobody, within=0.25)
    assert first.sides.count(SIDE) == 16
    assert first.spent == [pytest.approx(0.5 * len(first.sides))], "no verdict has it"


def test_what_others_find_of_this_drive_is_not_measured_again() -> None:
    known = Recorded(HEALTHY, f"{SIDE} of SN1, 2026-11-20 10:00, run r")
    nobody = History("a twin", lambda side: None, known=lambda side: known)
    mine = Settled(SliceDrive({32: 7000, 1: 1000}))
    said = f"nothing is on record of a twin under {SIDE}; what this drive does is: {known.whose}"
    with pytest.raises(NothingOnRecord, match=f"^{re.escape(said)}$"):
        assert mine.load().at(offered=32).agrees_with(nobody, within=0.25)
    assert (mine.sides, mine.spent) == ([], [])


def test_what_came_on_record_meanwhile_is_held_against_and_the_verdict_is_its_own() -> None:
    """Of two drives on two workers: the slices that go on record are not those of the verdict."""
    later = iter([None, of_twin(HEALTHY).find(SIDE)])
    second = Settled(SliceDrive({32: 7000, 1: 1000}))
    assert (
        second.load()
        .at(offered=32)
        .agrees_with(History("a twin", lambda side: next(later)), within=0.25)
    )
    (verdict,) = second.verdicts
    assert second.sides.count(SIDE) == 16 + verdict.count
    assert second.spent == [pytest.approx(16.0)]


def test_slices_that_are_too_short_are_lengthened_before_they_go_on_record() -> None:
    """A slow disk: else nothing clean would ever be there, and every run would be the first."""
    first = Settled(SliceDrive({32: 120, 1: 96}))
    nobody = History("this drive's own record", lambda side: None)
    with pytest.raises(NothingOnRecord):
        assert first.load().at(offered=32).agrees_with(nobody, within=0.25)
    assert first.sides.count(SIDE) == 20, "four were too short"


def test_a_first_session_without_a_queue_is_not_skipped_as_if_it_were_a_record() -> None:
    """It would be the yardstick of the healthy ones after it, and nobody would have said so."""
    off = Settled(SliceDrive({1: 1000}), kernel_depth=1)
    nobody = History("another", lambda side: None)
    with pytest.raises(Inconclusive, match="nothing of a queue: no-difference: NCQ on over off is"):
        assert off.load().at(offered=32).agrees_with(nobody, within=0.25)


def test_what_cannot_go_on_record_is_said_and_why() -> None:
    first = Settled(SliceDrive({32: 7000, 1: 1000}, spoil="other-io"))
    nobody = History("this drive's own record", lambda side: None)
    with pytest.raises(Inconclusive, match=r"could not be put there: other-io: "):
        assert first.load().at(offered=32).agrees_with(nobody, within=0.25)


def test_what_is_not_on_record_is_refused() -> None:
    reads = Settled(SliceDrive({})).load()
    with pytest.raises(Misuse, match="rates without factors are on record"):
        (2 * reads.at(offered=32)).agrees_with(of_twin(HEALTHY), within=0.25)
    with pytest.raises(Misuse, match="rates without factors are on record"):
        reads.at(offered=32).mb_per_s.agrees_with(of_twin(HEALTHY), within=0.25)


CELL = Cell("bench", "a", "MODEL", "1.0", "chipset")
Keep = Callable[..., Record]


def verdict_row(cell: str, outcome: str) -> VerdictRow:
    """What became of a session that was held against its record."""
    return VerdictRow(
        cell=cell,
        claim="as_fast_as_before",
        statement=f"{SIDE} agrees with this drive's own record within 0.25",
        outcome=outcome,
        reason="settled",
        threshold=0.25,
        drive_seconds=1.0,
        settling="s",
        basis={},
        details={},
    )


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Keep]:
    """A function that puts a session on record; the record of its run."""
    made: list[Record] = []

    def session(
        run: str,
        serial: str,
        rates: Sequence[float],
        *,
        alone: Sequence[float] = (),
        clean: bool = True,
        on: str = "8086:a282",
        disagreed: str = "",
        image: str | None = None,
        **cell: str,
    ) -> Record:
        record = Record(tmp_path, run)
        made.append(record)
        record.start("command", "0")
        row = {"rig": "bench", "slot": "a", "model": "MODEL", "firmware": "1.0", **cell}
        details = {"controller": {"pci_id": on}, "image_sha256": image}
        record.add(CellRow(cell=serial, serial=serial, controller="c", details=details, **row))
        if disagreed:
            record.add(verdict_row(serial, disagreed))
        sides = [*((SIDE, rate) for rate in rates), *((OFF_SIDE, rate) for rate in alone)]
        for place, (side, rate) in enumerate(sides):
            record.add(
                SliceRow(
                    cell=serial,
                    claim="c",
                    settling=f"{run} {serial}",
                    place=place,
                    side=side,
                    clean=clean,
                    taken=1e9 + place,
                    device_depth=32,
                    offered_depth=32,
                    rate=rate,
                    details={},
                )
            )
        return record

    yield session
    for record in made:
        record.close()


def found(record: Record, *, own: bool) -> tuple[float, ...]:
    if own:
        recorded = own_session(record, CELL, "SN1", SIDE)
        return recorded.rates if recorded else ()
    return next((twin.rates for twin in twins_sessions(record, CELL, "SN1", SIDE)), ())


def test_the_own_record_is_the_last_one_of_another_run_on_this_rig(keep: Keep) -> None:
    keep("run-1", "SN1", [1.0] * 4)
    keep("run-2", "SN1", [2.0] * 4)
    keep("run-3", "SN1", [3.0] * 4, rig="elsewhere")
    keep("run-4", "SN1", [4.0] * 4, firmware="1.1")
    keep("run-5", "SN1", [5.0] * 4, clean=False)
    keep("run-6", "SN1", [6.0] * 3)
    now = keep("run-7", "SN1", [7.0] * 4)
    assert found(now, own=True) == (2.0,) * 4
    recorded = own_session(now, CELL, "SN1", SIDE)
    assert recorded
    assert recorded.whose.startswith(f"{SIDE} of SN1, 2001-09-0")
    assert recorded.whose.endswith(", run run-2")
    assert own_session(now, CELL, "SN1", "another load") is None


def test_a_rig_whose_sessions_differ_too_much_is_said_at_once() -> None:
    near = Settled(SliceDrive({32: 8700, 1: 1000}))
    with pytest.raises(Unsettled, match="whatever the drive time; three sessions of leadline cal"):
        assert (
            near.load()
            .at(offered=32)
            .agrees_with(of_twin([7000.0] * 8 + [7010.0] * 8), within=0.25)
        )
    assert len(near.sides) == 8


@pytest.mark.parametrize("own", [True, False])
def test_a_session_that_soon_agreed_is_no_shorter_record_for_the_next(
    keep: Keep, own: bool
) -> None:
    serial = "SN1" if own else "SN2"
    keep("run-1", serial, [1.0] * 6)
    keep("run-2", serial, [2.0] * 4)
    assert found(keep("run-3", "SN1", []), own=own) == (1.0,) * 6
    keep("run-4", serial, [4.0] * ENOUGH_SLICES)
    keep("run-5", serial, [5.0] * (ENOUGH_SLICES + 4))
    keep("run-6", serial, [6.0] * 12)
    assert found(keep("run-7", "SN1", []), own=own) == (5.0,) * (ENOUGH_SLICES + 4)
    assert ENOUGH_SLICES == BLOCKS_ON_RECORD


@pytest.mark.parametrize("own", [True, False])
def test_what_disagreed_with_the_record_is_no_record(keep: Keep, own: bool) -> None:
    """Else a drive that has become slower would agree with itself when its test is repeated."""
    serial = "SN1" if own else "SN2"
    keep("run-1", serial, [1.0] * 4, disagreed="PASS")
    keep("run-2", serial, [2.0] * 4, disagreed="FAIL")
    assert found(keep("run-3", "SN1", []), own=own) == (1.0,) * 4
    keep("run-4", serial, [4.0] * 4, disagreed="INCONCLUSIVE")
    assert found(keep("run-5", "SN1", []), own=own) == (4.0,) * 4


def test_on_another_controller_it_was_another_cell(keep: Keep) -> None:
    keep("run-1", "SN1", [1.0] * 4)
    keep("run-1", "SN2", [2.0] * 4)
    keep("run-2", "SN1", [3.0] * 4, on="1002:4391")
    keep("run-2", "SN2", [4.0] * 4, on="1002:4391")
    now = keep("run-3", "SN1", [])
    assert (found(now, own=True), found(now, own=False)) == ((1.0,) * 4, (2.0,) * 4)
    moved = keep("run-4", "SN1", [], on="1002:4391")
    assert (found(moved, own=True), found(moved, own=False)) == ((3.0,) * 4, (4.0,) * 4)
    assert found(keep("run-5", "SN3", []), own=True) == (3.0,) * 4, "nobody knows where SN1 is"


def test_another_image_by_the_same_name_is_another_firmware(keep: Keep) -> None:
    for run, image, rate in (("run-1", "a" * 64, 1.0), ("run-2", "b" * 64, 3.0)):
        keep(run, "SN1", [rate] * 4, image=image)
        keep(run, "SN2", [rate + 1.0] * 4, image=image)
    now = keep("run-3", "SN1", [], image="a" * 64)
    assert (found(now, own=True), found(now, own=False)) == ((1.0,) * 4, (2.0,) * 4)
    unknown = keep("run-4", "SN1", [])
    assert (found(unknown, own=True), found(unknown, own=False)) == ((3.0,) * 4, (4.0,) * 4)


def test_a_twin_is_another_drive_of_the_same_model_and_firmware_on_any_rig(keep: Keep) -> None:
    keep("run-1", "SN2", [1.0] * 4, rig="elsewhere")
    keep("run-2", "SN2", [2.0] * 4, model="OTHER")
    keep("run-3", "SN1", [3.0] * 4)
    assert found(keep("run-3", "SN1", []), own=False) == (1.0,) * 4
    now = keep("run-3", "SN3", [4.0] * ENOUGH_SLICES)
    assert found(now, own=False) == (4.0,) * ENOUGH_SLICES, "of this very run"


def test_what_twins_find_of_this_drive_is_of_any_run_and_a_whole_session_that_tells(
    keep: Keep,
) -> None:
    whole = {"rates": [7000.0] * ENOUGH_SLICES, "alone": [1000.0] * ENOUGH_SLICES}
    now = keep("run-2", "SN1", [7000.0] * 6, alone=[1000.0] * 6)
    history = twins(now, CELL, "SN1")
    assert history.known(SIDE) is None, "one of few slices is a poor yardstick"
    keep("run-0", "SN1", whole["rates"])
    assert history.known(SIDE) is None, "nobody can say that it was made with a queue"
    keep("run-1", "SN2", **whole)
    assert history.known(SIDE) is None, "that is another's"
    keep("run-1", "SN1", **whole)
    found = history.known(SIDE)
    assert found is not None and found.run == "run-1"
    keep("run-2", "SN1", **whole)
    found = before(now, CELL, "SN1").known(SIDE)
    assert found is not None and found.run == "run-2"


def test_a_twin_that_is_measured_just_now_is_not_on_record_yet(keep: Keep) -> None:
    now = keep("run-1", "SN2", [1.0] * 6)
    find = twins(now, CELL, "SN1").find
    assert find(SIDE) is None
    ended = {"node": "n", "outcome": "skipped", "message": "", "seconds": 1.0}
    now.add(OutcomeRow(cell="SN2", claim="another", **ended))
    assert find(SIDE) is None
    now.add(OutcomeRow(cell="SN2", claim="c", **ended))
    assert find(SIDE) is not None, "its test is over, and that is all there is"
    assert twins(keep("run-1", "SN3", [2.0] * ENOUGH_SLICES), CELL, "SN1").find(SIDE) is not None
    assert twins(keep("run-2", "SN4", []), CELL, "SN1").find(SIDE) is not None, "of an earlier run"


def test_a_first_session_is_skipped_with_the_reason_and_the_next_has_a_record(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    opened.rebound(replace(bench.drive, queue_depth=8))
    reads = opened.load(random_read(), request.node)
    own_record = before(opened.station.record, opened.visit.cell, opened.drive.identity.serial)
    nothing = pytest.raises(pytest.skip.Exception, match="nothing is on record of this drive's own")
    with nothing, opened.test(request.node):
        assert reads.at(offered=8).agrees_with(own_record, within=0.25)
    assert opened.station.record.phases()["drive"] > 0, "though there is no verdict"
    opened.station.record.run_id = "run-2"  # what this one kept is now an earlier run's
    with opened.test(request.node):
        assert reads.at(offered=8).agrees_with(own_record, within=0.25)
