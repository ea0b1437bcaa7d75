"""What is an RPC-28's alone: the Enter before each command, the prompts, two outlets a line."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import RigTrouble
from leadline.power.families.baytech_rpc28 import BaytechRpc28, parse_status
from leadline.virtual.pdus.baytech_rpc28 import Rpc22, Rpc28
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.line import Dialogue, Unit
from leadline.virtual.pdus.outlets import Outlets
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.pdu_line import bench
from selftests.powermand import Powermand, needs_powermand
from selftests.recorded_dialogues import exchanges, needs_transcripts

OUTLETS = 20
GRAMMAR = BaytechRpc28.dialect.grammar


def unit(on: frozenset[int] = frozenset(), faults: Faults | None = None) -> Dialogue:
    made = Outlets(OUTLETS, lambda *_: None, on=on, faults=faults)
    return Dialogue(Rpc28(made))


def said(dialogue: Dialogue, typed: bytes) -> bytes:
    return b"".join(text for _, text in dialogue.hear(typed))


def test_a_command_is_dropped_unless_an_enter_came_before() -> None:
    dialogue = unit()
    said(dialogue, b"\r")
    said(dialogue, b"on 3\r")
    assert dialogue.contacts[3]
    answer = said(dialogue, b"on 4\r")
    assert re.search(rb"[\r\n]RPC-28A?>\Z", answer), "as after one that was obeyed"
    assert not dialogue.contacts[4]


def test_an_enter_goes_before_every_command() -> None:
    with bench(None, "baytech-rpc28", Rpc28) as (pdu, line):
        assert pdu.switch(12, False).attempts == 1
        assert line.written.lstrip(b"\x08") == b"\r\r\rstatus\r\roff 12\r\rstatus\r"
        assert line.moves == [(12, False)]


def test_the_prompts_take_turns() -> None:
    dialogue = unit()
    said(dialogue, b"\r")
    prompts = [said(dialogue, b"\r").strip() for _ in range(3)]
    assert prompts == [b"RPC-28A>", b"RPC-28>", b"RPC-28A>"]


def test_a_unit_with_other_outlets_than_the_rig_file_says() -> None:
    with bench(None, "baytech-rpc28", Rpc22) as (pdu, line):
        del line.dialogue.outlets.shown[12]
        with pytest.raises(RigTrouble, match=r"lists outlets 1, .* 11; the rig file says 1 to 12"):
            pdu.status(deadline_s=2)


# A foreign client: powermand, with its own descriptions of these units.


@needs_powermand
@pytest.mark.parametrize(
    ("kind", "unit", "last"), [("baytech-rpc28-nc", Rpc28, 20), ("baytech-rpc22", Rpc22, 12)]
)
def test_powermand_drives_the_virtual_unit(
    kind: str, unit: type[Unit], last: int, tmp_path: Path
) -> None:
    moves: list[tuple[int, bool]] = []
    nodes = f"outlet[1-{last}]"
    with (
        VirtualPdu(
            last,
            lambda outlet, on: moves.append((outlet, on)),
            tmp_path / "pdu",
            family="baytech-rpc28",
            unit=unit,
        ) as pdu,
        Powermand(tmp_path / "pdu", tmp_path, kind, nodes) as client,
    ):
        assert client.shows("on") == nodes
        client.powerman("-0", f"outlet{last}")
        assert client.shows("off") == f"outlet{last}"
        client.powerman("-1", f"outlet{last}")
        assert client.shows("on") == nodes
        pdu.settle(5)
    assert moves == [(last, False), (last, True)]


# Tables.

outlet_names = st.text(
    st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=15
) | st.sampled_from(["ON", "Off", ": On", "x: Off", "RPC-28>", "\x1b[2J", "(Y/N)"])
looks_like_an_outlet = re.compile(r"\d\)\.{3}")


@given(
    names=st.dictionaries(st.integers(1, OUTLETS), outlet_names),
    on=st.frozensets(st.integers(1, OUTLETS)),
)
def test_names_never_pass_for_states(names: dict[int, str], on: frozenset[int]) -> None:
    dialogue = unit(on, Faults(names=names))
    said(dialogue, b"\r")
    table = parse_status(said(dialogue, b"status\r"))
    if any(looks_like_an_outlet.search(name) for name in names.values()):
        assert table is None or list(table) != list(dialogue.contacts) or table == dialogue.contacts
    else:
        assert table == dialogue.contacts


def test_a_name_that_looks_like_an_outlet_is_no_state() -> None:
    """It says that outlet 2 is on, and 1 off; nothing is believed of a table with two of them."""
    row = b" 1)...x : Off  2)...a : On             2)...Outlet  2       : Off          \r\n"
    assert parse_status(row) is None


def test_one_or_two_outlets_stand_on_a_line_and_nothing_else() -> None:
    first = b" 1)...Outlet  1       : Off          "
    second = b" 2)...Outlet  2       : On           "
    assert parse_status(first + b"\r\n") == {1: False}
    assert parse_status(first + second + b"\r\n") == {1: False, 2: True}
    assert parse_status(first + second[:-12] + b"\r\n") is None
    assert parse_status(first + b"RPC-28>") is None
    assert parse_status((first + second + b"\r\n") * 2) is None


@needs_transcripts
def test_a_recorded_dialogue_parses_and_the_virtual_unit_says_the_same() -> None:
    dialogue = unit()
    said(dialogue, b"\r")
    tables = 0
    for sent, heard in exchanges("sim_baytech-rpc28-nc.txt")[2:]:
        assert GRAMMAR.prompt.search(heard)
        said(dialogue, b"\r")
        ours = said(dialogue, sent)
        assert GRAMMAR.prompt.search(ours)
        assert parse_status(heard) == parse_status(ours)
        tables += parse_status(heard) is not None
    assert tables == 5
