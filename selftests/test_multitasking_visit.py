"""The nine loads on the drive of a visit: generated for it, replayed by turns, given back."""

from collections.abc import Sequence
from dataclasses import replace as changed

import numpy as np
import pytest

from leadline.drive.ladder import Rung
from leadline.errors import DriveFault
from leadline.multitasking import Multitasking, VisitRounds, generated, why_not
from leadline.trace.loads import LOADS
from leadline.trace.trace import READ, Trace
from leadline.visiting import OpenVisit
from selftests.test_trace_replay_visit import Drive, behind_ide, drive
from selftests.vendor import run, vendor
from selftests.visit_world import Bench, bench, kept, opened, station

__all__ = ["bench", "drive", "opened", "station", "vendor"]  # fixtures

CAPACITY = 1 << 33
NO_NCQ = (Rung("advertised", False, "word 76 has no NCQ"),)


@pytest.fixture
def rounds(bench: Bench, drive: Drive, opened: OpenVisit) -> VisitRounds:
    bench.file("size").write_text(str(CAPACITY // 512))
    return VisitRounds(opened)


def depths(drive: Drive) -> Sequence[int]:
    return [depth for depth, *_ in drive.seen]


def pages(trace: Trace) -> set[int]:
    """Those of 4 KiB that a trace asks for."""
    ranges = zip((trace.offset // 4096).tolist(), (-(-trace.end // 4096)).tolist(), strict=True)
    return {page for begin, end in ranges for page in range(begin, end)}


def test_a_round_is_of_all_nine_and_off_and_on_take_turns(
    bench: Bench, drive: Drive, rounds: VisitRounds
) -> None:
    assert rounds.so_far(100) == ()
    assert rounds.one_more(100, LOADS) == 2 * 9 * 1.5
    assert rounds.one_more(100, LOADS) == 2 * 9 * 1.5
    assert depths(drive) == [1, 32] * 9 + [32, 1] * 9
    assert drive.queued == [depth > 1 for depth in depths(drive)]
    found = rounds.so_far(100)
    assert [each.trace for each in found] == list(LOADS)
    assert {len(each.rounds) for each in found} == {2}
    assert [each.in_flight for each in found] == [load.in_flight for load in LOADS.values()]
    assert {in_flight for _, in_flight, *_ in drive.seen} == {each.in_flight for each in found}
    assert found[0].rounds[0].off.reads.mean_s == 0.010
    assert found[0].rounds[1].on is not None
    assert found[0].rounds[1].on.reads.mean_s == 0.008
    assert bench.file("device/queue_depth").read_text() == "32"


def test_a_round_may_be_of_some_and_each_goes_on_with_its_own_order(
    drive: Drive, rounds: VisitRounds
) -> None:
    rounds.one_more(100, LOADS)
    assert rounds.one_more(100, ("dual-copy", "copy-mail-import")) == 2 * 2 * 1.5
    assert depths(drive)[18:] == [32, 1] * 2
    counts = {each.trace: len(each.rounds) for each in rounds.so_far(100)}
    assert counts == dict.fromkeys(LOADS, 1) | {"dual-copy": 2, "copy-mail-import": 2}
    rounds.one_more(100, LOADS)
    assert depths(drive)[22:] == [
        depth for name in LOADS for depth in ((1, 32) if counts[name] == 2 else (32, 1))
    ]


def test_ncq_on_is_the_deepest_queue_whatever_the_kernel_was_left_with(
    bench: Bench, drive: Drive, opened: OpenVisit, rounds: VisitRounds
) -> None:
    """Left at 2, a drive of 32 would have been said to gain what a queue of 2 gains."""
    opened.drive = changed(opened.drive, queue_depth=2)
    bench.file("device/queue_depth").write_text("2")
    rounds.one_more(100, LOADS)
    assert set(depths(drive)) == {1, 32}
    assert bench.file("device/queue_depth").read_text() == "2", "it is put back"
    assert rounds.so_far(100)[0].ncq_off.startswith("NCQ off is one request at a time")
    assert rounds.so_far(100)[0].ncq_on == (
        "NCQ on is a device queue depth of 32, the deepest of this drive; it was left at 2, which "
        "is put back"
    )


def test_without_leave_the_reads_alone_are_replayed(drive: Drive, rounds: VisitRounds) -> None:
    rounds.one_more(100, LOADS)
    assert "admitted a to change a setting" in drive.bench.did
    for name, trace in zip(LOADS, drive.traces[::2], strict=True):
        whole = generated(name, CAPACITY).take(slice(100))
        assert len(trace) == int((whole.kind == READ).sum())
        assert set(trace.kind.tolist()) == {READ}


def test_with_both_keys_writes_are_replayed(
    drive: Drive, opened: OpenVisit, rounds: VisitRounds
) -> None:
    opened.spec = opened.spec.model_copy(update={"writes": "allowed"})
    opened.station.run = changed(opened.station.run, allow_writes=True)
    rounds.one_more(100, LOADS)
    assert "admitted a to write" in drive.bench.did
    assert {len(trace) for trace in drive.traces} == {100}


def test_no_replay_of_a_short_cut_finds_what_another_left_in_the_cache(
    drive: Drive, rounds: VisitRounds
) -> None:
    """Of whichever load: all nine read the same large file from its beginning."""
    for _ in range(2):
        rounds.one_more(200, LOADS)
    seen: set[int] = set()
    for each in drive.traces:
        read = pages(each)
        # Streams that have no order may meet by chance, a page here and there.
        assert len(read & seen) < 0.05 * len(read)
        assert int(each.end.max()) <= CAPACITY
        seen |= read


def test_replays_of_a_load_ask_for_the_same_at_another_place(
    drive: Drive, rounds: VisitRounds
) -> None:
    for _ in range(3):
        rounds.one_more(200, LOADS)
    first, *others = drive.traces[:2] + drive.traces[18:20] + drive.traces[36:38]
    step = int(first.length.sum(dtype=np.int64))
    moved = [set((other.offset - first.offset).tolist()) for other in others]
    assert [len(each) for each in moved] == [1] * 5
    places = sorted([0, *(each.pop() for each in moved)])
    assert min(np.diff(places)) >= step, "no stream reaches so far"


def test_what_one_claim_had_replayed_is_there_for_the_next(
    drive: Drive, opened: OpenVisit, rounds: VisitRounds
) -> None:
    rounds.one_more(100, LOADS)
    assert rounds.so_far(200) == ()
    rounds.one_more(200, LOADS)
    assert {len(each.rounds) for each in rounds.so_far(100)} == {1}
    assert {len(each.rounds) for each in rounds.so_far(200)} == {1}


def test_a_round_that_breaks_off_counts_for_nothing(drive: Drive, rounds: VisitRounds) -> None:
    drive.fails_at = 5
    with pytest.raises(DriveFault):
        rounds.one_more(100, LOADS)
    assert rounds.so_far(100) == ()
    assert drive.bench.file("device/queue_depth").read_text() == "32"
    rounds.one_more(100, LOADS)
    assert {len(each.rounds) for each in rounds.so_far(100)} == {1}


def test_each_replay_is_on_record_and_its_time_with_the_verdict(
    bench: Bench, drive: Drive, opened: OpenVisit, rounds: VisitRounds
) -> None:
    rounds.one_more(100, LOADS)
    rows = [row for row in kept(bench.folder, "environment") if row["name"].startswith("replay")]
    assert len(rows) == 18
    assert rows[1]["name"].endswith(" of dual-copy, round 1, device queue depth 32")
    assert not [row for row in kept(bench.folder, "phases") if row["name"] == "drive"]


def test_a_drive_with_a_queue_is_tested(opened: OpenVisit) -> None:
    assert why_not(opened) == ""


def test_a_drive_without_ncq_fails_where_the_matrix_promises_it(
    bench: Bench, opened: OpenVisit
) -> None:
    bench.rungs = NO_NCQ
    with pytest.raises(DriveFault, match=r"a: MODEL SERIAL-a does not queue, .*holds 32 requests"):
        why_not(opened)


def test_so_does_one_behind_an_ide_port_and_the_port_is_named(
    bench: Bench, opened: OpenVisit
) -> None:
    bench.rungs = (Rung("advertised", None, "?"), Rung("controller", False, "takes 1 at once"))
    opened.drive = behind_ide(opened)
    bench.file("device/queue_depth").write_text("1")
    with pytest.raises(DriveFault, match=r"does not queue, .*takes 1 at once"):
        why_not(opened)


def test_a_drive_without_ncq_of_which_nobody_promises_it_is_left_out(
    bench: Bench, opened: OpenVisit
) -> None:
    bench.rungs = NO_NCQ
    opened.model = opened.model.model_copy(update={"queue_depth": 1})
    assert why_not(opened).startswith("a: MODEL SERIAL-a has no NCQ to gain by; as a baseline")


def test_a_drive_whose_queue_was_taken_away_fails_and_says_by_what(
    bench: Bench, opened: OpenVisit, rounds: VisitRounds
) -> None:
    bench.rungs = (Rung("advertised", True, "NCQ"), Rung("kernel", False, "libata.force=noncq"))
    opened.drive = changed(opened.drive, queue_depth=1)
    bench.file("device/queue_depth").write_text("1")
    assert why_not(opened) == ""
    with pytest.raises(DriveFault, match=r"libata\.force=noncq"):
        rounds.one_more(100, LOADS)


def test_one_whose_queue_was_taken_away_is_left_out_where_nobody_promises_it(
    bench: Bench, opened: OpenVisit
) -> None:
    """As with every other claim that needs a queue."""
    bench.rungs = (Rung("advertised", True, "NCQ"), Rung("kernel", False, "libata.force=noncq"))
    opened.drive = changed(opened.drive, queue_depth=1)
    opened.model = opened.model.model_copy(update={"queue_depth": 1})
    reason = why_not(opened)
    assert "promises no queue of MODEL" in reason
    assert "libata.force=noncq" in reason


def test_its_name_is_what_a_test_writes(
    opened: OpenVisit, rounds: VisitRounds, request: pytest.FixtureRequest
) -> None:
    made = Multitasking(rounds, opened.judge(request.node))
    assert repr(made) == "multitasking"
    assert repr(made.first(300)) == "multitasking.first(300)"


ASKS = """
import leadline.multitasking
import pytest

@pytest.fixture(scope="session", autouse=True)
def no_ncq():
    leadline.multitasking.why_not = lambda visit: "it has no NCQ to gain by"

def test_it(visit, multitasking):
    raise AssertionError("there is nothing to compare")
"""


def test_its_test_is_skipped_with_that_reason(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(ASKS)
    result = run(vendor, "-rs")
    result.assert_outcomes(skipped=3)
    assert "it has no NCQ to gain by" in result.stdout.str()
