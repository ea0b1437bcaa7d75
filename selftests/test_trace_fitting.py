"""A trace fitted to a drive: which requests, how wide, and where on a smaller one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.errors import Misuse
from leadline.trace.figures import figures_of
from leadline.trace.fitting import Fitted, Reach, fit
from leadline.trace.loads import LOADS, generate
from leadline.trace.patterns import Drive
from leadline.trace.trace import READ, SYNC, WRITE, Trace, trace_of
from selftests.traces import CAPACITY, few

TRACED = 1 << 40


def fitted(trace: Trace, capacity: int, *, writes: bool = True, most: int | None = None) -> Fitted:
    return fit(
        trace,
        capacity_bytes=capacity,
        traced_bytes=TRACED,
        block_bytes=512,
        writes=writes,
        most=most,
    )


pages = st.tuples(st.integers(0, TRACED // 4096 - 300), st.integers(1, 256))


@given(st.lists(pages, min_size=1, max_size=40), st.integers(41 << 20, 1 << 39))
@settings(max_examples=150)
def test_on_a_smaller_drive_what_touches_still_does_and_order_is_kept(
    rows: list[tuple[int, int]], capacity: int
) -> None:
    offsets, lengths = (np.array(column, np.int64) * 4096 for column in zip(*rows, strict=True))
    before = trace_of(np.arange(len(rows)), READ, offsets, lengths)
    after = fitted(before, capacity).trace
    assert int(after.offset.min()) >= 0
    assert int(after.end.max()) <= capacity
    assert np.array_equal(after.length, before.length)
    assert np.array_equal(after.time_us, before.time_us)
    assert not (after.offset % 4096).any()
    # Each pair is in the same order, overlaps as much or touches as it did, and is no further.
    was, now = (each.offset[:, None] - each.offset for each in (before, after))
    assert (np.sign(was) * np.sign(now) >= 0).all()
    assert (abs(now) <= abs(was)).all()
    near = (was >= 0) & (was <= before.length)
    assert (now[near] == was[near]).all()
    apart = was > before.length
    assert (now[apart] >= np.broadcast_to(before.length, was.shape)[apart]).all()


@given(st.integers(1, 8))
def test_a_request_that_is_no_whole_page_stays_within_the_drive(sectors: int) -> None:
    offsets = [512 * 3, TRACED - 512 * sectors]
    trace = fitted(trace_of([1, 2], READ, offsets, 512 * sectors), CAPACITY).trace
    assert int(trace.end.max()) <= CAPACITY
    assert (trace.offset % 4096).tolist() == [1536, 4096 - 512 * sectors]


def test_scaling_is_said_and_keeps_what_is_sequential() -> None:
    trace = generate(LOADS["copy-archive-create"], Drive(4 << 30), 1)
    found = fit(trace, capacity_bytes=2 << 30, traced_bytes=4 << 30, block_bytes=512, writes=True)
    (note,) = found.notes
    assert note.startswith("SCALED: the trace is of a drive of 4.295 GB and this one has 2.147 GB")
    before, after = figures_of(trace), figures_of(found.trace)
    assert after.sequential_share == before.sequential_share
    assert after.bytes_read == before.bytes_read
    assert before.highest > 2 << 30 >= after.highest


def test_a_drive_with_room_has_every_request_where_it_was() -> None:
    trace = generate(LOADS["dual-copy"], Drive(CAPACITY), 1)
    found = fit(
        trace, capacity_bytes=CAPACITY, traced_bytes=CAPACITY, block_bytes=4096, writes=True
    )
    assert found.trace.equals(trace)
    assert found.notes == ()


def test_a_drive_without_room_for_what_is_touched_is_refused_with_what_to_do() -> None:
    trace = trace_of([1, 2], READ, [0, TRACED - (1 << 24)], 1 << 24)
    with pytest.raises(Misuse, match=r"touches 0.03355 GB, .* --capacity 33550336\), or replay"):
        fitted(trace, (32 << 20) - 4096)


def test_without_leave_to_write_reads_alone_are_left_and_that_is_said() -> None:
    found = fit(
        few(), capacity_bytes=CAPACITY, traced_bytes=CAPACITY, block_bytes=512, writes=False
    )
    assert found.trace.time_us.tolist() == [3, 500, 2_000_000]
    assert set(found.trace.kind.tolist()) == {READ}
    reads, trims = found.notes
    assert reads.startswith("reads alone: 1 writes and 1 syncs were left out, for writes need")
    assert "--allow-writes" in reads
    assert trims == "1 trims were left out: fio before 3.34 replays none"


def test_with_leave_to_write_trims_alone_are_left_out() -> None:
    found = fit(few(), capacity_bytes=CAPACITY, traced_bytes=CAPACITY, block_bytes=512, writes=True)
    assert found.trace.kind.tolist() == [READ, WRITE, READ, 3, READ]
    assert [note[:8] for note in found.notes] == ["1 trims "]


def test_the_first_requests_alone() -> None:
    found = fitted(few(), TRACED, most=2)
    assert found.trace.time_us.tolist() == [3, 3]
    assert found.notes[0] == "the first 2 of 6 requests"
    assert fitted(few(), TRACED, most=6).trace.kind.tolist() == [READ, WRITE, READ, 3, READ]


def test_requests_are_widened_to_larger_logical_blocks() -> None:
    found = fit(
        few(), capacity_bytes=CAPACITY, traced_bytes=CAPACITY, block_bytes=4096, writes=True
    )
    assert (int(found.trace.offset[-1]), int(found.trace.length[-1])) == (CAPACITY - 4096, 4096)
    assert found.trace.offset[:3].tolist() == [0, 4096, 8192]
    assert "places and sizes were widened to logical blocks of 4096 bytes" in found.notes


def test_a_trace_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(Misuse, match="nothing of the trace would be replayed; reads alone"):
        fitted(trace_of([1, 2], [1, 3], [0, 0], [512, 0]), TRACED, writes=False)


def test_replays_of_a_trace_that_is_cut_off_lie_apart_and_stay_on_the_drive() -> None:
    trace = trace_of([1, 2, 3], READ, [0, 1 << 20, 1 << 30], 1 << 16)
    found = fitted(trace, TRACED, most=2)
    assert (found.step_bytes, len(found.trace)) == (1 << 20, 2)
    assert "each replay lies 1 MiB or more further on than the one before" in found.notes
    assert found.of_replay(0).equals(found.trace)
    assert found.of_replay(3).offset.tolist() == [3 << 20, 4 << 20]
    last = found.steps - 1
    assert TRACED - (1 << 20) < int(found.of_replay(last).end.max()) <= TRACED
    assert found.of_replay(last + 1).equals(found.trace), "and from the beginning again"


def test_replays_of_several_traces_lie_apart_from_one_another_too() -> None:
    """Each reads from the beginning of one file, as the nine loads do."""
    short, long = (
        fitted(trace_of([1, 2, 3], READ, [0, 1 << 20, 1 << 30], length), TRACED, most=2)
        for length in (1 << 16, 1 << 20)
    )
    reach = Reach()
    replays = [reach.next_of(each) for each in (short, long, long, short, short, long)]
    places = [int(each.offset[0]) >> 20 for each in replays]
    assert places == [0, 2, 4, 6, 7, 8], "steps of 1 MiB and of 2, each where the others end"
    whole = fitted(few(), TRACED)
    assert reach.next_of(whole).equals(whole.trace), "a whole one is where it was"


def test_a_flush_has_no_place_to_be_moved() -> None:
    found = fitted(few(), TRACED, most=5)
    moved = found.of_replay(1)
    at = found.trace.kind.tolist().index(SYNC)
    assert (moved.offset - found.trace.offset).tolist()[at] == 0
    assert set((moved.offset - found.trace.offset).tolist()) == {0, found.step_bytes}


def test_a_whole_trace_and_one_without_room_stay_where_they_are() -> None:
    whole = fitted(few(), TRACED)
    assert whole.of_replay(5).equals(whole.trace)
    full = trace_of([1, 2, 3], READ, [0, TRACED - 4096, 0], 4096)
    found = fitted(full, TRACED, most=2)
    assert found.steps == 1
    assert found.of_replay(5).equals(found.trace)
    assert not [note for note in found.notes if "further on" in note]
