"""Outlets switched together: PDUs side by side, disks one after the other, all of them."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from leadline.errors import Misuse, RigTrouble
from leadline.inventory.pdu import PduSpec
from leadline.inventory.rig import Rig, load_rig
from leadline.power import spin_up as spin_up_module
from leadline.power import supplies as supplies_module
from leadline.power.pdu import Pdu, Switched, open_pdu
from leadline.power.spin_up import SpinUp, turn
from leadline.power.supplies import Supply, command_seconds, open_supplies, switch_all
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.outlet_rig import rig_file
from selftests.power_world import Clock, quick

__all__ = ["quick"]  # a fixture

OUTLETS = 4
DISK = SpinUp("bench", ("a",), 5.0)
OTHER_DISK = SpinUp("bench", ("b",), 7.0)


@dataclass
class Rack:
    """Two PDUs on ptys, our driver before each, and every movement of a contact."""

    units: dict[str, VirtualPdu] = field(default_factory=dict)
    pdus: dict[str, Pdu] = field(default_factory=dict)
    moves: list[tuple[str, int, bool]] = field(default_factory=list)

    def add(self, name: str, folder: Path, stack: ExitStack) -> None:
        link = folder / name

        def switched(outlet: int, on: bool) -> None:
            self.moves.append((name, outlet, on))

        self.units[name] = stack.enter_context(VirtualPdu(OUTLETS, switched, link))
        spec = PduSpec(name=name, family="baytech-rpc3", port=str(link), outlets=OUTLETS)
        self.pdus[name] = stack.enter_context(open_pdu(spec))

    def supply(self, name: str, outlet: int, spin_up: SpinUp | None = None) -> Supply:
        return Supply(self.pdus[name], outlet, spin_up)

    def off(self, name: str) -> set[int]:
        self.units[name].settle(5)
        return {outlet for outlet, on in self.units[name].contacts.items() if not on}


@pytest.fixture
def rack(tmp_path: Path, quick: None) -> Iterator[Rack]:
    made = Rack()
    with ExitStack() as stack:
        for name in ("p", "q"):
            made.add(name, tmp_path, stack)
        yield made


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Supply], None]], None]:
    """Have something done before each switching of an outlet, in its thread."""
    real = Supply.switch

    def put(before: Callable[[Supply], None]) -> None:
        def switch(self: Supply, on: bool) -> Switched:
            before(self)
            return real(self, on)

        monkeypatch.setattr(Supply, "switch", switch)

    return put


def test_pdus_are_switched_side_by_side(
    rack: Rack, around: Callable[[Callable[[Supply], None]], None]
) -> None:
    """Each waits for the other before its first outlet: one after the other, neither would go."""
    both, met = threading.Barrier(2), set[Pdu]()

    def meet(supply: Supply) -> None:
        if supply.pdu not in met:
            met.add(supply.pdu)
            both.wait(10)

    around(meet)
    supplies = [rack.supply("p", 2), rack.supply("q", 3), rack.supply("p", 1)]
    switched = switch_all(supplies, on=False)
    assert [(one.outlet, one.on, one.verified) for one in switched] == [
        (2, False, True),
        (3, False, True),
        (1, False, True),
    ]
    assert (rack.off("p"), rack.off("q")) == ({1, 2}, {3})
    assert [outlet for name, outlet, _ in rack.moves if name == "p"] == [2, 1], "in their order"


def test_all_are_switched_though_some_fail_and_all_that_failed_is_said(rack: Rack) -> None:
    rack.units["p"].faults.stuck.add(2)
    rack.units["q"].faults.stuck.add(1)
    supplies = [rack.supply(name, outlet) for outlet in (1, 2, 3) for name in ("p", "q")]
    with pytest.raises(RigTrouble, match=r"^PDU 'q' .*outlet 1: still on") as caught:
        switch_all(supplies, on=False)
    (other,) = caught.value.__notes__
    assert other.startswith("PDU 'p' ")
    assert "outlet 2: still on" in other
    assert (rack.off("p"), rack.off("q")) == ({1, 3}, {2, 3})


def test_what_is_no_trouble_of_the_rigs_is_raised_too(rack: Rack) -> None:
    with pytest.raises(Misuse, match="found outlet 9, expected 1 to 4"):
        switch_all([rack.supply("p", 9), rack.supply("q", 1)], on=False)
    assert rack.off("q") == {1}


def test_ctrl_c_begins_no_further_outlet_and_waits_for_those_under_way(
    rack: Rack, around: Callable[[Callable[[Supply], None]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, go_on = threading.Barrier(3), threading.Event()

    def hold(supply: Supply) -> None:
        if not go_on.is_set():
            under_way.wait(10)
        assert go_on.wait(10)

    around(hold)
    real = threading.Thread.join
    interrupted: list[threading.Thread] = []

    def join(self: threading.Thread, timeout: float | None = None) -> None:
        if threading.current_thread() is threading.main_thread() and not interrupted:
            under_way.wait(10)
            interrupted.append(self)
            raise KeyboardInterrupt
        go_on.set()
        real(self, timeout)

    monkeypatch.setattr(threading.Thread, "join", join)
    supplies = [rack.supply(name, outlet) for name in ("p", "q") for outlet in (1, 2)]
    with pytest.raises(KeyboardInterrupt):
        switch_all(supplies, on=False)
    assert not [one for one in threading.enumerate() if one.name.startswith("pdu p")]
    assert (rack.off("p"), rack.off("q")) == ({1}, {1})


@pytest.mark.parametrize("on", [False, True])
def test_who_comes_after_a_second_ctrl_c_waits_for_his_turn(
    rack: Rack, around: Callable[[Callable[[Supply], None]], None], on: bool
) -> None:
    """Two threads that spoke to one PDU at once would garble what it hears."""
    begun = threading.Event()
    around(lambda _: begun.set())
    disk = rack.supply("p", 1, SpinUp("bench", ("a",), 0.0))
    late = threading.Thread(target=switch_all, args=([disk],), kwargs={"on": on})
    with rack.pdus["p"].turn:
        late.start()
        assert not begun.wait(0.3)
    late.join()
    assert begun.is_set()


# Disks.


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(spin_up_module, "time", made)
    return made


def test_disks_spin_up_one_after_the_other_across_pdus_and_after_all_else(
    rack: Rack, clock: Clock
) -> None:
    supplies = [rack.supply("p", 1, DISK), rack.supply("q", 1, OTHER_DISK), rack.supply("p", 2)]
    switch_all(supplies, on=False)
    assert clock.sleeps == [], "off is not staggered"
    rack.units["p"].settle(5)
    rack.units["q"].settle(5)
    rack.moves.clear()
    assert [one.outlet for one in switch_all(supplies, on=True)] == [1, 1, 2]
    rack.units["p"].settle(5)
    rack.units["q"].settle(5)
    assert [move for move in rack.moves if move[0] == "p"] == [("p", 2, True), ("p", 1, True)]
    assert clock.sleeps == [5.0]
    switch_all(supplies[:1], on=True)
    assert clock.sleeps == [5.0, 7.0], "the gap of who went before, by an earlier command, too"
    clock.now += 4.0
    switch_all(supplies[1:2], on=True)
    assert clock.sleeps == [5.0, 7.0, 1.0]


def test_the_second_supply_of_a_disk_does_not_wait(rack: Rack, clock: Clock) -> None:
    switch_all([rack.supply("p", 1, DISK), rack.supply("q", 1, DISK)], on=True)
    assert clock.sleeps == []
    shelf = SpinUp("bench", ("a", "b"), 5.0)
    switch_all([rack.supply("p", 1, DISK), rack.supply("q", 1, shelf)], on=True)
    assert clock.sleeps == [5.0, 5.0], "but one that starts another disk as well does"
    clock.sleeps.clear()
    clock.now += 60
    parts = [DISK, SpinUp("bench", ("b",), 5.0), shelf]
    switch_all([rack.supply("p", n, part) for n, part in enumerate(parts, 1)], on=True)
    assert clock.sleeps == [5.0]


def test_another_rig_has_another_supply(rack: Rack, clock: Clock) -> None:
    switch_all(
        [rack.supply("p", 1, DISK), rack.supply("q", 1, SpinUp("other", ("a",), 5.0))], on=True
    )
    assert clock.sleeps == []


def test_a_disk_that_failed_to_start_may_spin_and_stops_nobody(rack: Rack, clock: Clock) -> None:
    rack.units["p"].faults.stuck.add(1)
    switch_all([rack.supply("q", 1)], on=False)
    with pytest.raises(Misuse, match="outlet 9"):
        switch_all([rack.supply("p", 9, DISK), rack.supply("q", 1, OTHER_DISK)], on=True)
    assert clock.sleeps == [5.0]
    assert rack.off("q") == set()


@pytest.mark.parametrize("kept", ["1.0e9\n", "nan\n", "no number", "", "-5"])
def test_a_moment_of_an_earlier_boot_is_not_waited_for(
    tmp_path: Path, quick: None, clock: Clock, kept: str
) -> None:
    (tmp_path / "spin-up-bench").write_text(kept)
    with turn(DISK):
        assert clock.sleeps == []
    assert (tmp_path / "spin-up-bench").read_text() == "1005.0\n"


def test_turns_are_taken_by_one_at_a_time(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is opened anew for each turn, so a thread stands for another process here."""
    at_once = SpinUp("bench", ("a",), 0.0)
    waits, has_it = threading.Event(), threading.Event()

    def sleep(seconds: float) -> None:
        waits.set()
        time.sleep(seconds)

    monkeypatch.setattr(
        spin_up_module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep)
    )

    def other() -> None:
        with turn(at_once):
            has_it.set()

    late = threading.Thread(target=other)
    with turn(at_once):
        late.start()
        assert waits.wait(10)
        assert not has_it.is_set()
    assert has_it.wait(10)
    late.join()


def test_a_turn_that_never_comes_is_said(
    tmp_path: Path, quick: None, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spin_up_module, "TURN_S", 1.0)
    with turn(DISK), pytest.raises(RigTrouble, match="rig bench: another Leadline"), turn(DISK):
        pass


# From a rig file.


def rig_of(folder: Path, *outlets: str) -> Rig:
    path = folder / "rig.yaml"
    text = rig_file(folder, *outlets).replace("off_s: 0.2}", "off_s: 0.2, spin_up_gap_s: 9}")
    path.write_text(text)
    return load_rig(path)


def test_a_rig_files_outlets_are_opened_with_what_they_start(tmp_path: Path, quick: None) -> None:
    rig = rig_of(
        tmp_path,
        "{name: one, pdu: q, outlet: 3, feeds: [a, b]}",
        "{name: two, pdu: p, outlet: 2, feeds: [a]}",
        "{name: three, pdu: q, outlet: 1, feeds: [b]}",
    )
    with (
        VirtualPdu(4, lambda *_: None, tmp_path / "pdu"),
        VirtualPdu(4, lambda *_: None, tmp_path / "second"),
        open_supplies(rig, rig.outlets) as supplies,
    ):
        assert [str(one).split(" (")[0] for one in supplies] == [
            "outlet 3 of PDU 'q'",
            "outlet 2 of PDU 'p'",
            "outlet 1 of PDU 'q'",
        ]
        assert supplies[0].pdu is supplies[2].pdu
        assert [one.spin_up for one in supplies] == [
            SpinUp("bench", ("b",), 9.0),
            None,
            SpinUp("bench", ("b",), 9.0),
        ]
        assert supplies[0].pdu.session.is_open
    assert not supplies[0].pdu.session.is_open


def test_the_time_of_the_commands_is_that_of_the_slowest_pdu(rack: Rack) -> None:
    def took(seconds: float, command_s: float) -> Switched:
        return Switched(1, False, True, seconds, 1, command_s)

    p, q = rack.supply("p", 1), rack.supply("q", 1)
    assert command_seconds([p, p], [took(2, 1), took(4, 3)]) == 5
    assert command_seconds([p, q, p], [took(2, 1), took(9, 8), took(4, 3)]) == 8
    assert supplies_module.command_seconds([p], [took(2, 1)]) == 1
