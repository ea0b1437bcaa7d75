"""Which request a drive begins next: every arrival in simulated time."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.virtual.disk import Disk
from leadline.virtual.rotation import Rotation
from leadline.virtual.scheduling import IDLE_NS, Channels, Command, Held, Op, Station

MS = 1_000_000
CAPACITY = 1 << 30
SECTORS = 64

Arrival = tuple[int, int, Op]
"""Nanoseconds after the one before, a block of SECTORS, and what is done with it."""

arrivals = st.lists(
    st.tuples(
        st.integers(0, 30 * MS),
        st.integers(0, CAPACITY // 512 // SECTORS - 1),
        st.sampled_from(["read", "write"]),
    ),
    min_size=1,
    max_size=60,
)
streams = st.lists(  # blocks near each other, often one after the other
    st.tuples(st.integers(0, 2 * MS), st.integers(0, 40), st.just("read")), min_size=1, max_size=60
)


def disk(*, read_ahead_kib: int = 512, mb_per_s: float = 150) -> Disk:
    rotation = Rotation(rpm=7200, mb_per_s=mb_per_s, read_ahead_kib=read_ahead_kib)
    return Disk(rotation, CAPACITY, write_cache=True)


def served(
    station: Station,
    came: Sequence[Arrival],
    *,
    reorders: bool = True,
    overtaken_at_most: int = 64,
    every_ns: int | None = None,
) -> list[Command]:
    """All of them, as they came, once all have been begun.

    Decisions are asked for when something arrives, and every `every_ns` besides.
    """
    held = Held(
        station, lambda at, work: at + work, reorders=reorders, overtaken_at_most=overtaken_at_most
    )
    commands = []
    now_ns = 1
    for after_ns, block, op in came:
        for at_ns in range(now_ns, now_ns + after_ns, every_ns or after_ns + 1):
            held.decide(at_ns)
        now_ns += after_ns
        commands.append(Command(op, block * SECTORS, SECTORS, now_ns, 100_000))
        held.decide(now_ns)
        held.add(commands[-1])
    while (next_ns := held.next_ns()) is not None:
        held.decide(next_ns)
    assert all(command.begun.is_set() for command in commands)
    return commands


@given(arrivals)
def test_decisions_do_not_depend_on_when_they_are_asked_for(came: list[Arrival]) -> None:
    late = [command.due_ns for command in served(disk(), came)]
    punctual = [command.due_ns for command in served(disk(), came, every_ns=MS)]
    assert late == punctual


@given(arrivals)
def test_a_drive_that_does_not_reorder_answers_in_order(came: list[Arrival]) -> None:
    due = [each.due_ns for each in served(disk(read_ahead_kib=0), came, reorders=False)]
    assert due == sorted(due)


@given(arrivals, st.integers(0, 5))
def test_nothing_is_overtaken_more_often_than_said(came: list[Arrival], most: int) -> None:
    commands = served(disk(read_ahead_kib=0), came, overtaken_at_most=most)
    for index, command in enumerate(commands):
        later = commands[index + 1 :]
        assert sum(each.due_ns < command.due_ns for each in later) <= most
        assert command.overtaken <= most


@given(st.one_of(arrivals, streams), st.integers(0, 2048))
def test_no_data_is_answered_that_has_not_passed_under_the_heads(
    came: list[Arrival], read_ahead_kib: int
) -> None:
    station = disk(read_ahead_kib=read_ahead_kib, mb_per_s=20)
    reads = [each for each in served(station, came) if each.op == "read"]
    sectors_ns = 512 / 20 * 1e3
    for until in reads:
        answered = {each.lba for each in reads if each.due_ns <= until.due_ns}
        passed_ns = until.due_ns - reads[0].arrived_ns
        assert len(answered) * SECTORS * sectors_ns <= passed_ns + len(reads)


def test_the_heads_stay_for_what_they_have_promised_to_read() -> None:
    near, far = 10, CAPACITY // 512 // SECTORS - 1
    first = served(disk(), [(0, 0, "read")])[0]
    came: list[Arrival] = [(0, 0, "read"), (first.due_ns, near, "read"), (1, far, "read")]
    _, promised, other = served(disk(), came)
    read_ns = 10 * SECTORS * 512 / 150 * 1e3
    assert promised.due_ns == pytest.approx(first.due_ns + read_ns, abs=2)
    assert other.due_ns > promised.due_ns + 16 * MS  # the full stroke


def test_a_stream_does_not_keep_the_arm_from_what_waits() -> None:
    stream: list[Arrival] = [(MS // 10, block, "read") for block in range(300)]
    far: Arrival = (0, CAPACITY // 512 // SECTORS - 1, "read")
    commands = served(disk(), [*stream[:5], far, *stream[5:]], overtaken_at_most=8)
    assert commands[5].due_ns < commands[5].arrived_ns + 50 * MS
    assert commands[-1].due_ns > commands[5].due_ns


@given(arrivals)
def test_one_arm_transfers_one_command_at_a_time(came: list[Arrival]) -> None:
    due = sorted(each.due_ns for each in served(disk(read_ahead_kib=0), came))
    transfer_ns = SECTORS * 512 / 150 * 1e3
    assert all(b - a >= transfer_ns - 2 for a, b in itertools.pairwise(due))


def test_the_data_that_passes_first_is_read_first() -> None:
    def block_at(share: float) -> int:
        """A block of the first track that passes at this share of a revolution."""
        return round(share * 8_333_333 / (512 / 150 * 1e3) / SECTORS)

    # The first is begun before there is a choice.
    came: list[Arrival] = [(0, block_at(share), "read") for share in (0.1, 0.75, 0.25, 0.5)]
    first, *others = served(disk(read_ahead_kib=0), came)
    assert [each.due_ns > first.due_ns for each in others] == [True] * 3
    assert sorted(others, key=lambda each: each.due_ns) == [others[1], others[2], others[0]]
    in_order = served(disk(read_ahead_kib=0), came, reorders=False)
    assert in_order[-1].due_ns == others[-1].due_ns + 8_333_333


@pytest.mark.parametrize("channels", [1, 3])
def test_a_starved_request_waits_while_there_is_anything_else(channels: int) -> None:
    def run(patience_ns: int) -> tuple[int, int]:
        held = Held(
            Channels(channels), lambda at, work: at + work, reorders=False, overtaken_at_most=64
        )
        starved = Command("read", 0, 8, 5 * MS, 10 * MS, starved_ns=patience_ns)
        held.add(Command("read", 0, 8, 0, 10 * MS))
        held.add(starved)
        last = None
        for at_ms in range(10, 1000, 8):
            held.decide(at_ms * MS)
            last = Command("read", 0, 8, at_ms * MS, 10 * MS)
            held.add(last)
        while (next_ns := held.next_ns()) is not None:
            held.decide(next_ns)
        assert last is not None
        return starved.due_ns, last.due_ns

    due_ns, last_ns = run(60_000 * MS)
    assert due_ns == last_ns + IDLE_NS + 10 * MS
    due_ns, last_ns = run(300 * MS)
    assert 315 * MS <= due_ns <= 335 * MS < last_ns
