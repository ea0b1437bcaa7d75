"""APC consoles: what is theirs alone, in process on a virtual clock."""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import RigTrouble
from leadline.inventory.pdu import FamilyName
from leadline.power.families import apc, apc_menu
from leadline.power.login import LoginRefused
from leadline.power.pdu import SWITCH_S
from leadline.virtual.pdus import login
from leadline.virtual.pdus.apc import Console
from leadline.virtual.pdus.apc_menu import MAIN, Aos3, Menu
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.line import Piece, Unit
from leadline.virtual.pdus.outlets import Outlets
from selftests.pdu_line import VirtualLine, bench

FAMILIES: tuple[FamilyName, ...] = ("apc-menu", "apc-cli", "apc-cli8")
TABLE_BEGINS = {
    "apc-menu": b"\r\n-------",
    "apc-cli": b"status\r\n",
    "apc-cli8": b"olStatus all\r\n",
}
each_family = pytest.mark.parametrize("family", FAMILIES)


def place(line: VirtualLine) -> str:
    """Where the unit's session stands."""
    assert isinstance(line.dialogue.unit, Console)
    return line.dialogue.unit._place


# The session, of which there is one.


@each_family
def test_closing_logs_out(family: FamilyName) -> None:
    with bench(None, family) as (pdu, line):
        pdu.switch(3, False)
        assert place(line) not in {"closed", "username"}
    assert place(line) == "closed"


@each_family
def test_nothing_is_said_at_closing_to_a_line_that_is_out_of_order(family: FamilyName) -> None:
    with bench(None, family) as (pdu, line):
        line.dialogue.faults.silent = True
        with pytest.raises(RigTrouble):
            pdu.switch(3, False, deadline_s=20)
        line.written = b""
    assert line.written == b""


@each_family
def test_an_adapter_that_goes_at_closing_hurts_nobody(family: FamilyName) -> None:
    with bench(None, family) as (pdu, line):
        pdu.switch(3, False)
        line.unplug(100)
    assert not pdu.session.is_open


@each_family
def test_a_session_that_the_unit_has_ended_is_begun_again(family: FamilyName) -> None:
    with bench(None, family) as (pdu, line):
        pdu.switch(3, False)
        line.dialogue.begin()
        pdu.switch(3, True)
        assert line.moves == [(3, False), (3, True)]
        assert line.written.count(login.PASSWORD.encode()) == 2


def test_the_command_line_is_asked_for_after_the_password() -> None:
    with bench(None, "apc-cli") as (pdu, line):
        pdu.switch(3, False)
        assert line.written.count(login.PASSWORD.encode() + b" -c\r") == 1
        shown = b"".join(chunk.data for chunk in pdu.session.log.chunks)
    assert login.PASSWORD.encode() not in shown


class WithoutCli(Aos3):
    """A unit that takes no notice of ` -c`, and gives its menus."""

    def _log_in(self, line: bytes) -> bytes:
        return super()._log_in(line.removesuffix(b" -c"))


def test_a_unit_without_a_command_line_gets_the_password_once() -> None:
    with bench(None, "apc-cli", WithoutCli) as (pdu, line):
        with pytest.raises(LoginRefused):
            pdu.switch(3, False)
        assert line.written.count(login.PASSWORD.encode()) == 1
        assert line.moves == []


@pytest.mark.parametrize(
    ("family", "left_at"), [("apc-cli", "table"), ("apc-cli", "question"), ("apc-menu", "cli")]
)
def test_one_interface_left_logged_in_is_left_for_the_other(
    family: FamilyName, left_at: str
) -> None:
    with bench(Faults(left_at=left_at), family) as (pdu, line):
        pdu.switch(3, False)
        assert line.moves == [(3, False)]


@each_family
def test_a_unit_with_other_outlets_than_the_rig_file_says_is_told(family: FamilyName) -> None:
    with bench(None, family) as (pdu, line):
        del line.dialogue.outlets.shown[8]
        with pytest.raises(RigTrouble, match=r"lists outlets 1, .* 7; the rig file says 1 to 8"):
            pdu.status()


@each_family
def test_an_answer_from_before_is_not_believed(family: FamilyName) -> None:
    """The whole table, late, in place of the first answer to the next question."""
    with bench(None, family) as (pdu, line):
        pdu.status()
        before = b"".join(chunk.data for chunk in pdu.session.log.chunks if not chunk.sent)
        late = [before[before.rindex(TABLE_BEGINS[family]) :]]
        line.instead = lambda _: late.pop() if late else None
        line.dialogue.outlets.shown[3] = False
        assert pdu.status() == line.dialogue.outlets.shown
        assert late == []


# The menus.


class OutletUser(Aos3):
    """What an outlet's user sees: its control follows the table at once."""

    PATH: ClassVar[tuple[str, ...]] = ("main", "device", "table", "control", "question")
    MENUS: ClassVar[Mapping[str, Menu]] = {
        "main": MAIN,
        "device": ("Device Manager", ("Phase", "Outlet Control"), 2),
    }


class TableFirst(Aos3):
    """powerman's `apcnew`: the device manager is the table of outlets."""

    PATH: ClassVar[tuple[str, ...]] = ("main", "table", "outlet", "control", "question")
    MENUS: ClassVar[Mapping[str, Menu]] = {"main": MAIN}
    TABLE: ClassVar[str] = "Device Manager"


class DeviceManager(Aos3):
    """What a device manager sees: a main menu of two items."""

    LOGOUT: ClassVar[int] = 2
    MENUS: ClassVar[Mapping[str, Menu]] = {
        **Aos3.MENUS,
        "main": ("Control Console", ("Device Manager", "Logout"), 1),
    }


class Locked(Aos3):
    """An account that may not switch: no menu leads to the outlets."""

    MENUS: ClassVar[Mapping[str, Menu]] = {
        "main": MAIN,
        "device": ("Device Manager", ("Phase Management", "Power Supply Status"), 0),
    }


@pytest.mark.parametrize("unit", [OutletUser, TableFirst, DeviceManager])
def test_other_ways_to_the_outlets_are_found(unit: type[Unit]) -> None:
    with bench(None, "apc-menu", unit) as (pdu, line):
        assert pdu.switch(3, False).attempts == 1
        assert pdu.switch(3, True).attempts == 1
        assert line.moves == [(3, False), (3, True)]
        assert line.dialogue.outlets.careless == []
    assert place(line) == "closed"


def test_another_main_menu_is_left_for_the_command_line() -> None:
    with bench(Faults(left_at="outlet"), "apc-cli", DeviceManager) as (pdu, line):
        pdu.switch(3, False)
        assert line.moves == [(3, False)]


def test_an_account_that_may_not_switch_is_told() -> None:
    with bench(None, "apc-menu", Locked) as (pdu, line):
        with pytest.raises(RigTrouble, match=r"going to the outlets: no .*may this user switch"):
            pdu.switch(3, False)
        assert line.moves == []


def test_pages_of_22_at_9600_baud() -> None:
    with bench(Faults(page_lines=22), "apc-menu", outlets=24) as (pdu, line):
        line.byte_s = 0.001
        assert pdu.switch(23, False).attempts == 1
        assert pdu.status() == {n: n != 23 for n in range(1, 25)}
        assert line.moves == [(23, False)]
        assert line.time < SWITCH_S


def test_many_slow_pages_are_no_hang() -> None:
    """Each is in time; all together are not."""
    with bench(None, "apc-menu") as (pdu, line):
        pdu.status()
        line.dialogue.faults = Faults(slow_s=4.0, page_lines=5)
        start = line.time
        with pytest.raises(RigTrouble, match=r"port /dev/x\): [^:]+: "):
            pdu.switch(3, False)
        assert line.time - start < 100


class Misheard(Aos3):
    """A unit that takes a choice for another one once: a digit that got lost."""

    instead: ClassVar[dict[bytes, bytes]] = {}

    def __init__(self, outlets: Outlets) -> None:
        super().__init__(outlets)
        self._misheard = dict(self.instead)

    def _obey(self, line: bytes) -> Iterator[Piece]:
        here = self._place in {"table", "control"}
        yield from super()._obey(self._misheard.pop(line, line) if here else line)


class OtherOutlet(Misheard):
    instead: ClassVar[dict[bytes, bytes]] = {b"3": b"4"}


class OtherAction(Misheard):
    instead: ClassVar[dict[bytes, bytes]] = {b"2": b"3"}


@pytest.mark.parametrize("unit", [OtherOutlet, OtherAction])
def test_a_question_about_something_else_gets_no_yes(unit: type[Unit]) -> None:
    with bench(None, "apc-menu", unit) as (pdu, line):
        assert pdu.switch(3, False).attempts == 2
        assert line.written.count(b"YES") == 1
        assert line.moves == [(3, False)]
        assert line.dialogue.outlets.careless == []


@pytest.mark.parametrize("left_at", ["question", "half-typed"])
def test_a_question_that_was_left_gets_no_yes(left_at: str) -> None:
    with bench(Faults(left_at=left_at), "apc-menu") as (pdu, line):
        assert all(pdu.status().values())
        assert b"YES" not in line.written
        assert line.moves == []


# The command lines.


@pytest.mark.parametrize(
    ("family", "said"),
    [("apc-cli", "E104"), ("apc-cli8", "E104: User Level Error"), ("apc-cli8", "E100: Failed")],
)
def test_a_refusal_is_quoted(family: FamilyName, said: str) -> None:
    with bench(None, family) as (pdu, line):
        pdu.status()
        prompt = apc_prompt(family)

        def refuses(data: bytes) -> bytes | None:
            return data + f"\r\n{said}\r\n".encode() + prompt if b"ff 3" in data else None

        line.instead = refuses
        with pytest.raises(RigTrouble, match=rf"outlet 3: still on .*refused: .*{said}"):
            pdu.switch(3, False)


def test_a_result_below_100_is_success() -> None:
    assert apc.answer_of("olOff 3", b"olOff 3\r\nE001: Issued\r\n") is not None
    with bench(None, "apc-cli8") as (pdu, line):
        pdu.status()
        line.instead = lambda data: (
            data + b"\r\nE001: Issued\r\napc>" if b"olOn 3" in data else None
        )
        pdu._family.switch(3, on=True)


def apc_prompt(family: FamilyName) -> bytes:
    return b"apc>" if family == "apc-cli8" else b"APC>"


def test_the_answer_to_another_command_is_none() -> None:
    assert apc.answer_of("olStatus all", b"olOff 3\r\nE000: Success\r\napc>") is None
    assert apc.answer_of("olStatus all", b"olStatus all\r\n") is None


# Tables, whatever the outlets are called.

names = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)
tables = st.lists(st.tuples(names, st.booleans()), min_size=1, max_size=24)


@given(tables)
def test_names_are_no_states(rows: list[tuple[str, bool]]) -> None:
    expected = {number: on for number, (_, on) in enumerate(rows, 1)}
    menu = "\n".join(
        f"{n:6d}- {name:<24} {'ON' if on else 'OFF'}" for n, (name, on) in enumerate(rows, 1)
    )
    assert apc_menu.parse_table(f"\n{menu}\n    25- Master Control\n> ") == expected
    listed = "\n".join(
        f" {n}: {name}: {'On' if on else 'Off'}" for n, (name, on) in enumerate(rows, 1)
    )
    assert apc.parse_status(f"\nE000: Success\n{listed}\napc>") == expected


def test_a_pending_command_is_marked_and_an_outlet_twice_is_none() -> None:
    assert apc_menu.parse_table("  1- a   ON*\n  2- b   OFF \n") == {1: True, 2: False}
    assert apc_menu.parse_table("  1- a   ON\n  1- b   OFF\n") == {}
    assert apc.parse_status(" 1: a: On\n 1: a: Off\n") == {}
    assert not re.search(apc_menu.ROW, "  9- Master Control/Configuration\n")
