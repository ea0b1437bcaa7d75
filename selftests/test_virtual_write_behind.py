"""Writes that a disk answers before it has written them, in simulated time."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.virtual.disk import Disk
from leadline.virtual.profile import Profile
from leadline.virtual.rotation import Rotation
from leadline.virtual.scheduling import Command, Held, Op
from leadline.virtual.service import Service
from leadline.virtual.write_behind import WriteBehind
from selftests.simulated_host import Host, longest_ns, scattered

MS = 1_000_000
SECOND = 1_000_000_000
CAPACITY = 1 << 30
SECTORS = 8
WORK_NS = 100_000

arrivals = st.lists(
    st.tuples(
        st.integers(0, 30 * MS),
        st.integers(0, CAPACITY // 512 // SECTORS - 1),
        st.sampled_from(["read", "write", "write", "flush"]),
    ),
    min_size=1,
    max_size=50,
)


class Watched(Disk):
    """A disk that notes until when its arm was writing what."""

    def __init__(self) -> None:
        super().__init__(Rotation(rpm=7200, mb_per_s=150), CAPACITY, write_cache=True)
        self.written: list[tuple[int, int]] = []

    def begin(self, command: Command, at_ns: int) -> tuple[int, int]:
        work_ns, busy_ns = super().begin(command, at_ns)
        if command.op == "write":
            self.written.append((at_ns + work_ns, command.lba))
        return work_ns, busy_ns


def served(
    came: list[tuple[int, int, Op]], most: int, every_ns: int | None = None
) -> tuple[list[Command], list[tuple[int, int]]]:
    """The commands once all is answered and written, and when what was written."""
    disk = Watched()
    held = Held(disk, lambda at, work: at + work, reorders=True, overtaken_at_most=64)
    behind = WriteBehind(held, lambda at, work: at + work, most=most)
    commands, now_ns = [], 1
    for after_ns, block, op in came:
        for at_ns in range(now_ns, now_ns + after_ns, every_ns or after_ns + 1):
            behind.decide(at_ns)
        now_ns += after_ns
        commands.append(Command(op, block * SECTORS, SECTORS, now_ns, WORK_NS))
        behind.decide(now_ns)
        behind.add(commands[-1])
    while (next_ns := behind.next_ns()) is not None:
        behind.decide(next_ns)
    assert all(command.begun.is_set() for command in commands)
    return commands, disk.written


@given(arrivals, st.integers(1, 40))
def test_every_write_is_written_once(came: list[tuple[int, int, Op]], most: int) -> None:
    commands, written = served(came, most)
    assert sorted(lba for _, lba in written) == sorted(
        each.lba for each in commands if each.op == "write"
    )


@given(arrivals, st.integers(1, 40))
def test_a_flush_is_answered_when_all_before_it_is_written(
    came: list[tuple[int, int, Op]], most: int
) -> None:
    commands, written = served(came, most)
    for index, flush in enumerate(commands):
        if flush.op != "flush":
            continue
        before = [each.lba for each in commands[:index] if each.op == "write"]
        by_then = [lba for at_ns, lba in written if at_ns <= flush.due_ns]
        assert all(before.count(lba) <= by_then.count(lba) for lba in set(before))


@given(arrivals, st.integers(1, 10))
def test_no_more_is_answered_and_unwritten_than_there_is_room_for(
    came: list[tuple[int, int, Op]], most: int
) -> None:
    commands, written = served(came, most)
    answered = sorted(each.due_ns - WORK_NS for each in commands if each.op == "write")
    for count, at_ns in enumerate(answered, 1):
        # What is being written has left its room.
        assert count - sum(end_ns <= at_ns for end_ns, _ in written) <= most + 1


@given(arrivals, st.integers(1, 40))
def test_decisions_do_not_depend_on_when_they_are_asked_for(
    came: list[tuple[int, int, Op]], most: int
) -> None:
    late, punctual = served(came, most), served(came, most, every_ns=MS)
    assert [each.due_ns for each in late[0]] == [each.due_ns for each in punctual[0]]
    assert late[1] == punctual[1]


def test_what_waits_to_be_written_is_read_from_memory() -> None:
    came: list[tuple[int, int, Op]] = [(0, 5, "read"), (1000, 900, "write"), (1000, 900, "read")]
    first, _, again = served(came, 4)[0]
    assert again.due_ns == again.arrived_ns + WORK_NS < first.due_ns


def test_reads_go_before_writes_that_nobody_waits_for() -> None:
    writes: list[tuple[int, int, Op]] = [(1000, 1000 * n, "write") for n in range(8)]
    reads: list[tuple[int, int, Op]] = [(1000, 100_000 + 1000 * n, "read") for n in range(8)]
    commands, written = served([(0, 0, "read"), *writes, *reads], 8)
    assert max(each.due_ns for each in commands if each.op == "read") < written[0][0]


@pytest.mark.parametrize("waits_for_room", [True, False])
def test_writes_that_are_waited_for_have_their_turn_among_reads(waits_for_room: bool) -> None:
    writes: list[tuple[int, int, Op]] = [(1000, 1000 * n, "write") for n in range(5)]
    waiter: tuple[int, int, Op] = (1000, 9000, "write" if waits_for_room else "flush")
    reads: list[tuple[int, int, Op]] = [(MS, 104_729 * n % 262_144, "read") for n in range(600)]
    commands, _ = served([*reads[:5], *writes, waiter, *reads[5:]], 5)
    assert commands[10].due_ns < commands[10].arrived_ns + 400 * MS
    assert max(each.due_ns for each in commands) > commands[10].arrived_ns + 900 * MS


def disk(depths_of: int, **fields: object) -> Profile:
    rotation = {"rpm": 7200, "mb_per_s": 150, "write_behind": depths_of}
    return Profile.model_validate(
        {"model": "D", "serial": "S", "firmware": "1", "capacity_bytes": 1 << 33}
        | {"channels": 1, "read_ms": 0.2, "write_ms": 0.2, "jitter": 0, "rotation": rotation}
        | fields
    )


def random_writes(profile: Profile, depth: int) -> float:
    return Host(profile).offer(depth, 30, op="write", lbas=scattered(profile))


def test_queueing_gains_little_for_writes_that_are_written_behind() -> None:
    through = {depth: random_writes(disk(0), depth) for depth in (1, 8)}
    behind = {depth: random_writes(disk(32), depth) for depth in (1, 8)}
    assert through[8] / through[1] > 1.5
    assert behind[8] / behind[1] < 1.1
    assert behind[1] > 2 * through[1]


def test_a_burst_of_writes_takes_no_time_and_the_next_flush_takes_it() -> None:
    profile = disk(32)
    host = Host(profile)
    host.offer(1, 0.015, op="write", lbas=scattered(profile))
    assert 20 < len(host.log) <= 32
    assert longest_ns(host.log) < 0.3 * MS
    flush = host.service.admit("flush", 0, 0, host.now_ns)
    while (next_ns := host.service.next_decision_ns()) is not None:
        host.service.decide(next_ns)
    assert 100 * MS < flush.due_ns - host.now_ns < 400 * MS
    again = host.service.admit("flush", 0, 0, 10 * SECOND)
    assert again.due_ns == 10 * SECOND + 2 * MS


@pytest.mark.parametrize("write_behind", [0, 8])
def test_a_write_that_hangs_is_answered_late(write_behind: int) -> None:
    faults = {"end_of_range": {"sectors": 8, "seconds": 5}}
    service = Service(disk(write_behind, faults=faults), cycle=0, power_on_ns=0)
    last = service.admit("write", (1 << 33) // 512 - 8, 8, 0)
    for at_ns in itertools.takewhile(lambda at: at < SECOND, itertools.count(1, MS)):
        service.decide(at_ns)
    assert 5 * SECOND < last.due_ns < 5.1 * SECOND
