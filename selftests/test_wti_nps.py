"""WTI's NPS and its kin: their tables, their questions, their menus."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import RigTrouble
from leadline.power.families.wti_nps import parse_status
from leadline.power.pdu import COMMANDS, Pdu
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.line import Dialogue
from leadline.virtual.pdus.outlets import Outlets
from leadline.virtual.pdus.wti_nps import MENU, PAGER, QUESTION, Nps, NpsWithPassword, RsmWithLogin
from selftests.pdu_line import OUTLETS, VirtualLine, bench

HEAD = (
    b"Plug | Name             | Status | Boot Delay | Default |\r\n"
    b"-----+------------------+--------+------------+---------+\r\n"
)


def row(plug: int, name: bytes, state: bytes) -> bytes:
    return b" %d   | %-16s | %s | 5 Secs | OFF |\r\n" % (plug, name, state)


def said(dialogue: Dialogue, typed: bytes) -> bytes:
    return b"".join(text for _, text in dialogue.hear(typed))


# What is sent.


def test_only_absolute_commands_with_their_answer_are_sent() -> None:
    with bench(None, "wti-nps") as (pdu, line):
        pdu.switch(3, False)
        pdu.switch(3, True)
        typed = re.sub(rb"[\x08\x1b]", b"", line.written)
    assert {word for word in typed.split(b"\r") if word} == {b"/s", b"/off 3,y", b"/on 3,y"}


@pytest.mark.parametrize(
    ("command", "moved", "careless"),
    [
        (b"/off 3,y", {3}, False),
        (b"/OFF 3,Y", {3}, False),
        (b"/off *,y", set(range(1, 9)), True),
        (b"/boot 3,y", set(), True),
        (b"/off 9,y", set(), False),
        (b"/off 0,y", set(), False),
        (b"/off 2-4,y", set(), False),
        (b"/off 3,n", set(), False),
        (b"/off 3", set(), False),
        (b"/off 3\r", set(), False),
        (b"/off 3\rn", set(), False),
        (b"/off 3\ry", {3}, True),
        (b"/off 3,y\x1b", set(), False),
    ],
)
def test_the_unit_obeys(command: bytes, moved: set[int], careless: bool) -> None:
    outlets = Outlets(OUTLETS, lambda *_: None)
    said(Dialogue(Nps(outlets)), command + b"\r")
    assert {plug for plug, on in outlets.contacts.items() if not on} == moved
    assert bool(outlets.careless) is careless


def test_confirmation_is_told_and_never_given() -> None:
    """A unit that asks in spite of `,y`."""
    with bench(None, "wti-nps") as (pdu, line):

        def asks(data: bytes) -> bytes | None:
            if b"/off 3" not in data:
                return None
            line.dialogue.begin()
            return data + b"\r\n" + QUESTION

        line.dialogue.faults.left_at = "confirm"
        line.instead = asks
        with pytest.raises(RigTrouble, match=r"still on .*Sure.*turn its command confirmation off"):
            pdu.switch(3, False)
        assert line.moves == []
        assert line.dialogue.outlets.careless == []


def test_a_refusal_is_quoted() -> None:
    with bench(None, "wti-nps") as (pdu, line):
        line.instead = lambda data: b"\r\nInvalid command\r\n\r\nNPS> " if b"/off" in data else None
        with pytest.raises(RigTrouble, match=rf"after {COMMANDS} commands.*refused: .*Invalid com"):
            pdu.switch(3, False)


# Where it was left.


@pytest.mark.parametrize("unit", [Nps, RsmWithLogin])
def test_a_menu_is_left_by_escape(unit: type[Nps]) -> None:
    with bench(Faults(left_at="menu", leftover=MENU), "wti-nps", unit) as (pdu, line):
        assert said(line.dialogue, b"\r").endswith(PAGER), "Enter leads nowhere"
        assert pdu.status() == line.dialogue.outlets.shown
        assert line.time < 2


def test_a_listing_in_pages_is_read_to_its_end() -> None:
    with bench(Faults(page_lines=7), "wti-nps", NpsWithPassword, outlets=16) as (pdu, line):
        assert pdu.status() == dict.fromkeys(range(1, 17), True)
        assert line.written.endswith(b"/s\r\r"), "one page, and nothing after it"


# Tables.

names = st.text(
    st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=16
) | st.sampled_from(
    ["| OFF | 5 | ON |", " 2   | x", "Plug | Status", "NPS> ", "(Y/N): ", "Enter: "]
)


@given(
    names=st.dictionaries(st.integers(1, OUTLETS), names),
    on=st.frozensets(st.integers(1, OUTLETS)),
)
def test_names_never_pass_for_states(names: dict[int, str], on: frozenset[int]) -> None:
    outlets = Outlets(OUTLETS, lambda *_: None, on=on, faults=Faults(names=names))
    states = parse_status(said(Dialogue(Nps(outlets)), b"/s\r"))
    assert states == {plug: "ON" if plug in on else "OFF" for plug in range(1, OUTLETS + 1)}


def test_the_status_is_found_by_its_heading() -> None:
    table = HEAD + row(1, b"OFF", b"  ON  ") + row(2, b"a|b", b" OFF  ")
    assert parse_status(table) == {1: "ON", 2: "OFF"}
    assert parse_status(table.replace(b"Plug |", b"PLUG |")) == {1: "ON", 2: "OFF"}
    assert parse_status(row(1, b"x", b"ON")) is None, "no heading"
    assert parse_status(table + row(1, b"x", b"ON")) is None, "two answers in one"
    assert parse_status(HEAD + row(1, b"x", b"ON")[:24]) is None, "half a row"


def shows(pdu: Pdu, line: VirtualLine, table: bytes) -> None:
    line.instead = lambda data: data + b"\r\n" + table + b"NPS> " if b"/s" in data else None
    pdu.status(deadline_s=2)


def test_a_plug_that_is_still_being_switched_has_no_state() -> None:
    with bench(None, "wti-nps", outlets=2) as (pdu, line):
        with pytest.raises(RigTrouble, match=r"/s: plug 2: the unit is still busy .*'OFF \*'"):
            shows(pdu, line, HEAD + row(1, b"x", b"ON") + row(2, b"y", b"OFF *"))
        with pytest.raises(RigTrouble, match=r"plug 1: .* does not say on or off \('\?'\)"):
            shows(pdu, line, HEAD + row(1, b"x", b"?") + row(2, b"y", b"OFF"))


def test_a_unit_with_other_plugs_than_the_rig_file_says() -> None:
    with (
        bench(None, "wti-nps", outlets=4) as (pdu, line),
        pytest.raises(RigTrouble, match=r"lists plugs 1, 2; the rig file says 1 to 4"),
    ):
        shows(pdu, line, HEAD + row(1, b"x", b"ON") + row(2, b"y", b"OFF"))
