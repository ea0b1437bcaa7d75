"""What a sector says of itself, which request comes when, and how both are told."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.integrity.check import Sectors, verdict
from leadline.integrity.history import BEFORE
from leadline.integrity.pattern import NOISE_BYTES, SECTOR_BYTES, Stamp, Torn, stamp_of, stamped
from leadline.integrity.plan import FLUSH, FUA, MANNERS, READ, TURN, WRITE, Plan
from leadline.integrity.report import found_in, line_of, told, unreadable

NOISE = random.Random(5).randbytes(NOISE_BYTES)
PLAN = Plan(3, 2048, 4096, 8, 512)
BIG_BLOCKS = Plan(4, 2048, 1 << 16, 4, 512, 8)
U64 = st.integers(0, (1 << 64) - 1)


@given(seed=U64, lba=st.integers(0, 1 << 48), generation=st.integers(1, 1 << 40))
def test_a_sector_names_its_origin(seed: int, lba: int, generation: int) -> None:
    data = stamped(seed, lba, 3, generation, NOISE)
    assert len(data) == 3 * SECTOR_BYTES
    for place in range(3):
        sector = data[place * SECTOR_BYTES : (place + 1) * SECTOR_BYTES]
        assert stamp_of(sector) == Stamp(seed, lba + place, generation)


@given(place=st.integers(0, SECTOR_BYTES - 1), bits=st.integers(1, 255))
def test_no_byte_can_change_unseen(place: int, bits: int) -> None:
    sector = bytearray(stamped(1, 2, 1, 3, NOISE))
    sector[place] ^= bits
    assert not isinstance(stamp_of(bytes(sector)), Stamp)


@given(at=st.integers(1, SECTOR_BYTES - 1))
def test_a_torn_sector_is_none_of_the_two(at: int) -> None:
    new, old = stamped(1, 2, 1, 8, NOISE), stamped(1, 2, 1, 7, NOISE)
    stamp = stamp_of(new[:at] + old[at:])
    assert stamp != Stamp(1, 2, 8), "the checksum is at its end"
    if 32 <= at <= 500:
        assert stamp == Torn(Stamp(1, 2, 8), 7)


@pytest.mark.parametrize("plan", [PLAN, BIG_BLOCKS])
def test_every_request_is_within_one_stretch_and_of_whole_blocks(plan: Plan) -> None:
    stretches = [
        range(first, first + plan.blocks * plan.block)
        for first in range(plan.first, plan.last, plan.stride)
    ]
    assert len(stretches) == plan.stretches
    for number in range(1, plan.fills + 40 * TURN):
        request = plan.request(number)
        if request.kind == FLUSH:
            assert request.sectors == 0
            continue
        assert 1 <= request.sectors <= 64 * plan.block
        assert request.sectors % plan.block == 0
        (inside,) = [each for each in stretches if request.lba in each]
        assert (request.lba - inside.start) % plan.block == 0
        assert request.lbas[-1] in inside


def test_the_span_is_filled_first_and_read_back_in_the_same_pieces() -> None:
    filled = [lba for number in range(1, PLAN.fills + 1) for lba in PLAN.request(number).lbas]
    assert all(PLAN.request(number).kind == WRITE for number in range(1, PLAN.fills + 1))
    assert len(filled) == len(set(filled)) == PLAN.sectors
    assert [lba for chunk in PLAN.chunks() for lba in chunk] == filled
    assert max(filled) == PLAN.last


def test_each_turn_is_in_its_manner_and_ends_with_a_flush() -> None:
    for turn in range(12):
        begin = PLAN.fills + 1 + turn * TURN
        requests = [PLAN.request(number) for number in range(begin, begin + TURN)]
        assert [each.kind == FLUSH for each in requests] == [False] * (TURN - 1) + [True]
        *asked, _ = requests
        if MANNERS[turn % 3] == "random":
            assert len({(each.lba - PLAN.first) // PLAN.stride for each in asked}) > 3
        elif MANNERS[turn % 3] == "sequential":
            begins = [each.lba for each in asked if each.kind != READ]
            assert begins == sorted(begins)
            assert asked[-1].lba - asked[0].lba <= 8 * TURN
        else:
            touched = [lba for each in asked for lba in each.lbas]
            assert max(touched) - min(touched) < 64
            assert len(touched) > 2 * len(set(touched)), "they overlap"


def test_all_kinds_occur() -> None:
    kinds = [PLAN.request(number).kind for number in range(PLAN.fills + 1, PLAN.fills + 961)]
    share = {kind: kinds.count(kind) / len(kinds) for kind in (READ, FUA, WRITE)}
    assert share[READ] == pytest.approx(0.24, abs=0.05)
    assert share[FUA] == pytest.approx(0.12, abs=0.04)
    assert share[WRITE] == pytest.approx(0.61, abs=0.06)


def test_a_request_is_the_same_for_every_python_at_both_ends() -> None:
    assert [tuple(PLAN.request(number)) for number in (1, 66, 99, 100, 131)] == REMEMBERED
    assert tuple(PLAN._replace(seed=4).request(66)) != REMEMBERED[1]


REMEMBERED = [
    ("write", 2048, 64),
    ("write", 31088, 9),
    ("write", 2192, 8),
    ("read", 2192, 8),
    ("read", 6281, 1),
]


def test_a_write_covers_its_sectors_alone() -> None:
    number = next(n for n in range(PLAN.fills + 1, 200) if PLAN.request(n).kind == WRITE)
    request = PLAN.request(number)
    assert PLAN.wrote(number, request.lba)
    assert PLAN.wrote(number, request.lbas[-1])
    assert not PLAN.wrote(number, request.lbas[-1] + 1)
    flush = PLAN.fills + TURN
    assert not PLAN.wrote(flush, 0)
    assert not PLAN.wrote(0, PLAN.first)


def test_what_was_found_comes_over_the_wire_as_it_was() -> None:
    own = stamped(3, 100, 2, 17, NOISE) + stamped(3, 102, 1, 18, NOISE)
    other = stamped(3, 200, 1, 5, NOISE)
    words = [*told(own + other + bytes(SECTOR_BYTES), 3, 100), unreadable(5)]
    assert told(own, 4, 100)[0].startswith("x"), "of another load"
    line = line_of(words)
    assert line.startswith("17*2 18*1 x")
    assert found_in(line) == [17, 17, 18, other, "-", "e5"]


@pytest.mark.parametrize("line", ["x00*1", "q*2", "3", "3*x", "e*1"])
def test_a_line_that_cannot_be_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        found_in(line)


OLD, LATER = 3, 99  # both write this LBA
FIRST = PLAN.request(LATER).lba


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        (bytes(512), "zeros"),
        (b"\xff" * 512, "nothing but bytes ffh"),
        (b"\x1b[31mA" + bytes(506), r'begins 1b 5b 33 31 6d 41 00 .*"\.\[31mA\.'),
        (stamped(3, FIRST + 9, 1, 1, NOISE), rf"the data of LBA {FIRST + 9} \(write 1\)"),
        (stamped(9, FIRST, 1, 7, NOISE), r"its data from an earlier load \(write 7 of that\)"),
        (stamped(9, 5, 1, 7, NOISE), r"the data of LBA 5 from an earlier load"),
        (OLD, rf"an older generation \(write {OLD}\)"),
        (2, r"write 2, which was never sent there"),
        ("-", "no write of its own"),
        ("e5", r"nothing that can be read \(errno 5\)"),
        (
            stamped(3, FIRST, 1, LATER, NOISE)[:300] + stamped(3, FIRST, 1, OLD, NOISE)[300:],
            f"a torn sector: it begins as write {LATER} and ends as write {OLD}",
        ),
        (
            stamped(3, FIRST, 1, LATER, NOISE)[:300] + bytes(212),
            f"a damaged sector: it begins as write {LATER}, and its checksum does not hold",
        ),
    ],
)
def test_what_a_wrong_sector_holds_is_named(found: int | bytes | str, holds: str) -> None:
    wrong = verdict(PLAN, FIRST, found, {LATER})
    assert wrong is not None
    assert wrong.lba == FIRST
    assert re.search(holds, wrong.holds), wrong.holds
    assert wrong.expected == f"write {LATER}"
    assert str(wrong).startswith(f"LBA {FIRST} holds ")


def test_what_a_sector_held_before_is_nobodys_business_but_a_misplaced_write_is() -> None:
    for found in (bytes(512), "-", stamped(9, 5, 1, 7, NOISE), 1):
        assert verdict(PLAN, FIRST, found, {0, 1}) is None
    assert verdict(PLAN, FIRST, stamped(3, 9, 1, 1, NOISE), {0, 1}) is not None
    assert verdict(PLAN, FIRST, "e5", {0}) is not None


def test_a_write_that_was_not_heard_of_may_be_where_it_belongs_and_nowhere_else() -> None:
    for lba, wrong, unheard in ((FIRST, 0, 1), (FIRST + 300, 1, 0)):
        sectors = Sectors(PLAN, lambda _: {OLD}, lambda _: {OLD}, lambda number: number >= LATER)
        sectors.take(lba, [LATER])
        checked = sectors.checked()
        assert (len(checked.wrong), checked.unheard) == (wrong, unheard)


def test_many_allowed_writes_are_counted_and_the_newest_named() -> None:
    wrong = verdict(PLAN, FIRST, "e5", {BEFORE, 5, 9, 10, 11, 12})
    assert wrong is not None
    assert wrong.expected == "write 9 or write 10 or write 11 or write 12 (or one of 2 others)"
