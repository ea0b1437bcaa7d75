"""Relay boards and supplies without a prompt: what they are sent, and what can be read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import RigTrouble
from leadline.inventory.pdu import FamilyName
from leadline.power.families import devantech_rly, lcus
from leadline.virtual.pdus import units
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.lcus import Board, ByteBoard, MuteBoard
from leadline.virtual.pdus.line import Unit
from leadline.virtual.pdus.scpi import NumericSupply
from selftests.pdu_line import bench

BOARDS: list[tuple[FamilyName, type[Unit]]] = [
    (family, unit) for family in ("lcus", "kmtronic", "devantech-rly") for unit in units(family)
]


# The bytes, as public code and the vendors' pages have them.


@pytest.mark.parametrize(
    ("family", "off", "on"),
    [
        ("lcus", "a00300a3", "a00301a4"),
        ("kmtronic", "ff0300", "ff0301"),
        ("devantech-rly", "71", "67"),
    ],
)
def test_frames(family: FamilyName, off: str, on: str) -> None:
    with bench(None, family) as (pdu, line):
        pdu.switch(3, False)
        assert bytes.fromhex(off) in line.written
        assert bytes.fromhex(on) not in line.written
        pdu.switch(3, True)
        assert bytes.fromhex(on) in line.written


@pytest.mark.parametrize(
    ("family", "off", "asked"),
    [
        ("quarch", b"run:power down\r\n", b"run:power?\r\n"),
        ("scpi", b":OUTP CH1,OFF\n", b":OUTP? CH2\n"),
    ],
)
def test_lines(family: FamilyName, off: bytes, asked: bytes) -> None:
    with bench(None, family) as (pdu, line):
        pdu.switch(1, False)
        assert off in line.written
        assert asked in line.written


# Which can be read back.


@pytest.mark.parametrize(("unit", "tells"), [(Board, True), (ByteBoard, True), (MuteBoard, False)])
def test_an_lcus_is_asked_whether_it_can_tell(unit: type[Unit], tells: bool) -> None:
    with bench(None, "lcus", unit) as (pdu, line):
        assert pdu.reads_back() is tells
        assert pdu.switch(8, False).verified is tells
        assert line.moves == [(8, False)]


def test_an_lcus_that_told_once_and_falls_silent_is_trouble_and_not_unverified() -> None:
    with bench(None, "lcus") as (pdu, line):
        pdu.status()
        line.dialogue.faults = Faults(silent=True)
        with pytest.raises(RigTrouble, match="finding the line: no answer when asked for states"):
            pdu.switch(1, False, deadline_s=10)
        assert line.moves == []


@pytest.mark.parametrize("family", ["kmtronic", "devantech-rly"])
def test_a_board_that_can_always_tell_and_is_silent_is_trouble(family: FamilyName) -> None:
    with bench(Faults(silent=True), family) as (pdu, line):
        with pytest.raises(RigTrouble, match="no answer when asked for states"):
            pdu.switch(1, False, deadline_s=5)
        assert line.moves == []


@pytest.mark.parametrize(
    ("family", "unit"), [("lcus", Board), ("lcus", ByteBoard), ("kmtronic", None)]
)
def test_a_board_with_fewer_relays_than_the_rig_file_says_is_noticed(
    family: FamilyName, unit: type[Unit] | None
) -> None:
    with bench(None, family, unit) as (pdu, line):
        del line.dialogue.outlets.contacts[8], line.dialogue.outlets.shown[8]
        with pytest.raises(RigTrouble):
            pdu.status(deadline_s=3)


def test_a_board_with_more_relays_than_the_rig_file_says_is_noticed() -> None:
    with bench(None, "devantech-rly", outlets=4) as (pdu, line):
        line.instead = lambda data: bytes.fromhex("0801ff0801") if b"\x5b" in data else None
        with pytest.raises(RigTrouble, match="with as many outlets as the rig file says"):
            pdu.status(deadline_s=3)


# What no answer may pass for.


@pytest.mark.parametrize(
    ("heard", "states"),
    [
        (b"CH1: OFF\r\nCH2: ON\r\n", {1: False, 2: True}),
        (b"CH1:OFF\nCH2:ON\n", {1: False, 2: True}),
        (b"\x00\x01", {1: False, 2: True}),
        (b"CH1: OFF\r\n", None),
        (b"CH1: OFF\r\nCH2: ON", None),
        (b"CH2: ON\r\nCH1: OFF\r\n", None),
        (b"CH1: OFF\r\nCH1: ON\r\n", None),
        (b"CH1: OFF\r\nCH2: ON\r\nCH3: ON\r\n", None),
        (b"xCH1: OFF\r\nCH2: ON\r\n", None),
        (b"\x00\x02", None),
        (b"\x00", None),
        (b"\x00\x00\x01", None),
        (b"", None),
    ],
)
def test_what_an_lcus_says(heard: bytes, states: dict[int, bool] | None) -> None:
    assert lcus.read_states(heard, 2) == states


@pytest.mark.parametrize(
    ("heard", "states"),
    [
        ("0801020801", {1: False, 2: True}),
        ("0801000801", {1: False, 2: False}),
        ("0801040801", None),
        ("0801010102", None),
        ("08010208", None),
        ("080102080101", None),
    ],
)
def test_what_a_devantech_says(heard: str, states: dict[int, bool] | None) -> None:
    assert devantech_rly.read_states(bytes.fromhex(heard), 2) == states


@given(st.binary(max_size=20), st.integers(1, 8))
def test_readers_take_any_bytes(heard: bytes, outlets: int) -> None:
    for read in (lcus.read_states, devantech_rly.read_states):
        states = read(heard, outlets)
        assert states is None or list(states) == list(range(1, outlets + 1))


def test_an_answer_of_another_channel_is_none() -> None:
    with bench(None, "kmtronic") as (pdu, line):
        line.instead = lambda data: b"\xff\x01\x00" if data == b"\xff\x02\x03" else None
        with pytest.raises(RigTrouble, match="status: "):
            pdu.status(deadline_s=3)


@pytest.mark.parametrize(("family", "unit"), BOARDS)
def test_what_is_said_out_of_turn_is_no_state(family: FamilyName, unit: type[Unit]) -> None:
    """A whole answer that was late by one question, after a command that has none."""
    with bench(None, family, unit) as (pdu, line):
        if not pdu.reads_back():
            return
        pdu.switch(1, False)
        late = {"lcus": b"CH1: ON\r\n" * 8, "kmtronic": b"\xff\x01\x01", "devantech-rly": b"\xff"}
        asked = line.written
        line.coming.append((line.time, late[family]))
        done = pdu.switch(1, True)
        assert done.verified
        assert line.dialogue.contacts[1] is True
        assert len(line.written) > len(asked)


# Left half sent.


@pytest.mark.parametrize(("family", "unit"), BOARDS)
def test_half_a_frame_that_was_left_switches_nothing(family: FamilyName, unit: type[Unit]) -> None:
    for place in unit.LEFT_AT:
        with bench(Faults(left_at=place), family, unit) as (pdu, line):
            pdu.reads_back()
            assert line.moves == []


def test_a_set_all_that_was_left_half_sent_sets_all_on() -> None:
    with bench(Faults(left_at="set-all"), "devantech-rly") as (pdu, line):
        line.dialogue.outlets.switch(2, on=False)
        line.moves.clear()
        pdu.reads_back()
        assert line.moves == [(2, True)]


# Bench supplies.


@pytest.mark.parametrize("late", [b"ON\n", b"ON\nRIGOL TECHNOLOGIES,DP832,0,0\n"])
def test_a_late_state_is_not_taken_for_the_answer_to_identify(late: bytes) -> None:
    with bench(None, "scpi") as (pdu, line):
        pdu.switch(1, False)
        line.coming.append((line.time, late))
        assert pdu.status() == {1: False, 2: True}


def test_a_supply_that_says_numbers() -> None:
    with bench(None, "scpi", NumericSupply) as (pdu, _):
        pdu.switch(3, False)
        assert pdu.status() == {1: True, 2: True, 3: False}


def test_an_unknown_state_of_a_quarch_module_is_told() -> None:
    with bench(None, "quarch") as (pdu, line):
        said = b"run:power?\r\nMARGINED\r\n>"
        line.instead = lambda data: said if data.startswith(b"run:power?") else None
        with pytest.raises(RigTrouble, match=r"status: no whole answer .*MARGINED"):
            pdu.status()


def test_a_quarch_module_that_refuses_is_quoted() -> None:
    with bench(None, "quarch") as (pdu, line):
        said = b"FAIL: 0x41 -Interlock\r\n>"
        line.instead = lambda data: said if data.startswith(b"run:power?") else None
        with pytest.raises(RigTrouble, match=r"status: refused: 'FAIL: 0x41 -Interlock'"):
            pdu.status()
