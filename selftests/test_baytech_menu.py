"""What is the old RPC-3's alone: its password, its menus, and a table after every command."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import RigTrouble
from leadline.power.families.baytech_menu import MAIN_MENU, BaytechMenu, parse_status
from leadline.virtual.pdus import login
from leadline.virtual.pdus.baytech_menu import Rpc3Menu, Rpc3MenuWithoutPassword
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.line import Dialogue
from leadline.virtual.pdus.outlets import Outlets
from selftests.pdu_line import OUTLETS, bench
from selftests.recorded_dialogues import exchanges, needs_transcripts

GRAMMAR = BaytechMenu.dialect.grammar


def said(dialogue: Dialogue, typed: bytes) -> bytes:
    return b"".join(text for _, text in dialogue.hear(typed))


def test_it_logs_in_and_takes_the_way_through_the_menu_once() -> None:
    with bench(None, "baytech-rpc3-menu", Rpc3Menu) as (pdu, line):
        pdu.switch(3, False)
        pdu.switch(3, True)
        lines = line.written.replace(b"\x08", b"").split(b"\r")
    assert [text for text in lines if text] == [
        login.PASSWORD.encode(),
        b"1",
        b"status",
        b"off 3",
        b"status",
        b"status",
        b"on 3",
        b"status",
    ]


@pytest.mark.parametrize("place", ["menu", "elsewhere"])
def test_only_the_main_menu_is_given_a_number(place: str) -> None:
    """In another, 1 may be the unit's own settings."""
    with bench(Faults(left_at=place), "baytech-rpc3-menu", Rpc3MenuWithoutPassword) as (pdu, line):
        pdu.status()
        assert line.dialogue.outlets.careless == []
        assert line.written.replace(b"\x08", b"").split(b"\r").count(b"1") == 1


def test_a_menu_that_is_not_known_is_told_and_gets_no_number() -> None:
    other = b"\r\n  RPC-3 Setup:\r\n\r\n    1)...Reset to defaults\r\n\r\n  Enter Selection>"
    with bench(None, "baytech-rpc3-menu", Rpc3MenuWithoutPassword) as (pdu, line):
        line.instead = lambda _: other
        with pytest.raises(RigTrouble, match=r"no prompt, but .*Enter Selection>"):
            pdu.status(deadline_s=1)
        assert set(line.written) <= set(b"\x08\r")


# Tables.

outlet_names = st.text(
    st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=11
) | st.sampled_from(["ON", "2       On", "1  Off", "RPC-3>", "Circuit", "\x1b[2J", "(Y/N)"])


@given(
    names=st.dictionaries(st.integers(1, OUTLETS), outlet_names),
    on=st.frozensets(st.integers(1, OUTLETS)),
)
def test_names_never_pass_for_states(names: dict[int, str], on: frozenset[int]) -> None:
    outlets = Outlets(OUTLETS, lambda *_: None, on=on, faults=Faults(names=names))
    dialogue = Dialogue(Rpc3MenuWithoutPassword(outlets))
    said(dialogue, b"1\r")
    assert parse_status(said(dialogue, b"status\r")) == dialogue.contacts


def test_a_selection_that_is_another_outlet_is_no_row() -> None:
    """`on 3` would be its selection's: nothing shows that the two are one."""
    row = b"      3       Outlet 3    3       On  \r\n"
    assert parse_status(row) == {3: True}
    assert parse_status(row.replace(b"   3       On", b"   4       On")) is None
    assert parse_status(row.replace(b"   3       On", b"  13       On")) is None
    assert parse_status(row * 2) is None


@needs_transcripts
def test_a_recorded_dialogue_parses_and_the_virtual_unit_says_the_same() -> None:
    outlets = Outlets(OUTLETS, lambda *_: None, on=())
    dialogue = Dialogue(Rpc3Menu(outlets))
    words = GRAMMAR.login
    assert words is not None
    (_, hello), (_, refused), (_, menu), *rest = exchanges("sim_baytech-rpc3-login.txt")
    assert words.asks(hello)
    assert words.asks(refused)
    assert words.refuses(refused)
    assert MAIN_MENU.search(menu)
    assert refused.split() == said(dialogue, b"wrong\r").split()
    assert MAIN_MENU.search(said(dialogue, login.PASSWORD.encode() + b"\r"))
    tables = 0
    for sent, heard in rest[:-1]:
        ours = said(dialogue, sent)
        assert parse_status(heard) == parse_status(ours)
        tables += parse_status(heard) is not None
        assert bool(GRAMMAR.prompt.search(heard)) == bool(GRAMMAR.prompt.search(ours))
        assert bool(MAIN_MENU.search(heard)) == bool(MAIN_MENU.search(ours))
        assert last_line(heard) == last_line(ours)
    assert tables == 5


def last_line(text: bytes) -> bytes:
    return re.split(rb"[\r\n]", text)[-1]
