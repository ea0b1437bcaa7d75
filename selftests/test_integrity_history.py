"""What a sector may hold: no drive that keeps its promise is wronged, and the promise is whole."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.errors import DriveFault, RigTrouble
from leadline.integrity.account import Account
from leadline.integrity.check import Checked, Sectors
from leadline.integrity.history import BEFORE, History
from leadline.integrity.plan import FLUSH, FUA, READ, Plan
from leadline.integrity.report import found_in, line_of, told
from selftests.simulated_drive import Fault, SimulatedDrive

SMALL = Plan(11, 4096, 1 << 20, 1, 256)


def account_of(drive: SimulatedDrive) -> Account:
    account = Account(drive.plan)
    for line in drive.lines:
        account.take(line)
    return account


def checked(drive: SimulatedDrive, account: Account, *, cut: bool) -> Checked:
    """The whole span as the rig reads it back."""
    history, plan = account.history, drive.plan
    allowed = history.lasting if cut else history.current
    unheard: Callable[[int], bool] = account.is_unheard if cut else (lambda number: False)
    sectors = Sectors(plan, allowed, history.current, unheard)
    for chunk in plan.chunks():
        data = b"".join(map(drive.sector, chunk))
        sectors.take(chunk.start, found_in(line_of(told(data, plan.seed, chunk.start))))
    return sectors.checked()


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 1 << 40), requests=st.integers(1, 250), in_flight=st.integers(1, 32))
def test_a_drive_that_keeps_its_promise_is_never_wronged(
    seed: int, requests: int, in_flight: int
) -> None:
    """Whatever it does with its cache, whenever its power goes, and in which order it works."""
    drive = SimulatedDrive(SMALL, random.Random(seed), in_flight=in_flight)
    drive.run(requests)
    account = account_of(drive)
    drive.cut()
    assert checked(drive, account, cut=True).wrong == ()


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1 << 40), lost=st.integers(0, 200))
def test_news_that_does_not_come_through_before_the_cut_is_held_against_nobody(
    seed: int, lost: int
) -> None:
    drive = SimulatedDrive(SMALL, random.Random(seed))
    drive.run(250)
    drive.lines = drive.lines[: len(drive.lines) - lost]
    account = account_of(drive)
    drive.cut()
    assert checked(drive, account, cut=True).wrong == ()


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1 << 40), requests=st.integers(1, 250))
def test_read_back_at_once_and_after_a_shutdown(seed: int, requests: int) -> None:
    drive = SimulatedDrive(SMALL, random.Random(seed))
    drive.run(requests)
    drive.finish()
    account = account_of(drive)
    assert account.ended
    assert account.history.under_way() == 0
    assert checked(drive, account, cut=False).wrong == ()
    drive.shut_down()
    drive.cut()
    assert checked(drive, account, cut=False).wrong == ()
    assert checked(drive, account, cut=True).older == 0


AFTER_A_CUT: tuple[Fault, ...] = (
    "ignores flush",
    "loses a flushed write",
    "ignores FUA",
    "tears a sector",
    "misplaces a write",
    "writes a sector to two places",
    "replays an older generation",
    "forgets an acknowledged write",
)


@pytest.mark.parametrize("fault", AFTER_A_CUT)
def test_each_fault_is_found_after_a_power_cut(fault: Fault) -> None:
    """In most loads: what a fault did may be overwritten, or not flushed, before the power goes."""
    found = []
    for seed in range(12):
        drive = SimulatedDrive(SMALL, random.Random(seed), fault, fault_from=150)
        drive.run(200)
        try:
            account = account_of(drive)
        except DriveFault:
            found.append(seed)  # a read had met it before
            continue
        drive.cut()
        wrong = checked(drive, account, cut=True).wrong
        if wrong and drive.befell:
            assert any(abs(each.lba - drive.befell[0]) <= 64 for each in wrong), wrong[0]
        found += [seed] if wrong else []
    assert len(found) >= 4, f"{fault}: found in {len(found)} of 12"


def test_another_sectors_data_are_found_by_the_read_that_returns_them() -> None:
    for seed in range(5):
        drive = SimulatedDrive(SMALL, random.Random(seed), "returns another sector's data")
        drive.run(300)
        assert drive.befell
        with pytest.raises(DriveFault) as caught:
            account_of(drive)
        lba = drive.befell[0]
        assert f"LBA {lba} holds the data of LBA {lba ^ 128} (write " in str(caught.value)


@dataclass
class Naive:
    """The promise as it is written, over all events that there ever were."""

    events: list[tuple[str, int]] = field(default_factory=list)
    plan: Plan = SMALL

    def at(self, event: str, number: int) -> int | None:
        return next((n for n, each in enumerate(self.events) if each == (event, number)), None)

    def lasting(self, lba: int) -> set[int]:
        writes = [n for e, n in self.events if e == "i" and self.plan.wrote(n, lba)]
        durable = [n for n in writes if self.is_durable(n)]
        gone = {w for w in writes for d in durable if self.is_before(w, d)}
        return ({BEFORE} if not durable else set()) | (set(writes) - gone)

    def current(self, lba: int) -> set[int]:
        writes = [n for e, n in self.events if e == "i" and self.plan.wrote(n, lba)]
        acked = [n for n in writes if self.at("a", n) is not None]
        gone = {w for w in writes for a in acked if self.is_before(w, a)}
        return ({BEFORE} if not acked else set()) | (set(writes) - gone)

    def is_before(self, one: int, other: int) -> bool:
        acked, issued = self.at("a", one), self.at("i", other)
        return acked is not None and issued is not None and acked < issued

    def is_durable(self, number: int) -> bool:
        acked = self.at("a", number)
        if acked is None or self.plan.request(number).kind == FUA:
            return acked is not None
        flushes = [n for e, n in self.events if e == "i" and self.plan.request(n).kind == FLUSH]
        return any(
            (self.at("i", flush) or 0) > acked and self.at("a", flush) is not None
            for flush in flushes
        )


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 1 << 40), requests=st.integers(1, 90))
def test_the_compact_history_allows_what_the_whole_one_does(seed: int, requests: int) -> None:
    drive = SimulatedDrive(SMALL, random.Random(seed), in_flight=12)
    drive.run(requests)
    history = account_of(drive).history
    naive = Naive([(line[0].replace("r", "a"), int(line.split()[1])) for line in drive.lines])
    chance = random.Random(seed)
    for lba in chance.sample(range(4096, 4096 + SMALL.sectors), 12):
        assert history.lasting(lba) == naive.lasting(lba)
        assert history.current(lba) == naive.current(lba)


def test_covered_and_durable_are_counted() -> None:
    history = History()
    history.issue_write(1, range(0, 4))
    history.ack_write(1, fua=False)
    history.issue_flush(2)
    history.issue_write(3, range(2, 8))
    history.ack_write(3, fua=False)
    assert (history.covered, history.durable) == (0, 0)
    history.ack_flush(2)
    assert (history.covered, history.durable) == (4, 1), "write 3 came after the flush was issued"
    assert history.lasting(3) == {1, 3}
    assert history.lasting(5) == {BEFORE, 3}
    history.issue_write(4, range(3, 4))
    history.ack_write(4, fua=True)
    assert history.lasting(3) == {4}
    assert history.under_way() == 0


def test_a_read_may_return_what_was_there_while_it_was_under_way() -> None:
    history = History()
    history.issue_write(1, range(0, 1))
    history.ack_write(1, fua=True)
    history.issue_read(2, range(0, 1))
    history.issue_write(3, range(0, 1))
    history.ack_write(3, fua=True)
    history.issue_write(4, range(0, 1))
    history.ack_write(4, fua=True)
    assert history.ack_read(2) == [{1, 3, 4}]
    history.issue_read(5, range(0, 1))
    assert history.ack_read(5) == [{4}]


def test_of_two_writes_side_by_side_the_one_that_was_read_has_won() -> None:
    history = History()
    for number in (1, 2):
        history.issue_write(number, range(0, 1))
    for number in (1, 2):
        history.ack_write(number, fua=False)
    assert history.current(0) == {1, 2}
    history.observed(0, 1)
    assert history.current(0) == {1}
    assert history.lasting(0) == {BEFORE, 1, 2}, "none of it was flushed"


@pytest.mark.parametrize("line", ["", "i", "i x", "a 1", "z 1", "r 1 5", "a 1 2 3"])
def test_a_line_that_is_no_event_is_the_rigs_trouble(line: str) -> None:
    with pytest.raises(RigTrouble, match="no event"):
        Account(SMALL).take(line)


def test_a_command_beside_which_nothing_was_under_way_does_not_count() -> None:
    account = Account(SMALL)
    counted = []
    for line in ("c", "i 1", "c", "a 1", "c"):
        account.take(line)
        counted.append(account.commands)
    assert counted == [0, 0, 1, 1, 1]


def test_a_read_of_too_few_sectors_is_the_rigs_trouble() -> None:
    account = Account(SMALL)
    number = next(n for n in range(1, 200) if SMALL.request(n).kind == READ)
    account.take(f"i {number}")
    with pytest.raises(RigTrouble, match="no event"):
        account.take(f"r {number} 1*{SMALL.request(number).sectors - 1 or 2}")
