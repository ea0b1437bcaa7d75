"""What is a Switched CDU's alone: its outlets' own names, its two states, its pager's keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import RigTrouble
from leadline.power.families import make_family
from leadline.power.families.sentry_cdu import IS_ON, Outlet, parse_status
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.line import Dialogue, Unit
from leadline.virtual.pdus.outlets import Outlets
from leadline.virtual.pdus.sentry_cdu import SwitchedCdu, SwitchedPdu8, ThreeBanks
from selftests.pdu_line import bench

ROW = b"   .A%d      TowerA_Outlet%d             %-12s%s\r\n"


def said(dialogue: Dialogue, typed: bytes) -> bytes:
    return b"".join(text for _, text in dialogue.hear(typed))


def at_its_prompt(
    unit: type[Unit],
    outlets: int = 8,
    names: dict[int, str] | None = None,
    on: frozenset[int] = frozenset(),
) -> Dialogue:
    faults = Faults(left_at="prompt", names=names or {})
    return Dialogue(unit(Outlets(outlets, lambda *_: None, on=on, faults=faults)))


@pytest.mark.parametrize(
    ("unit", "name"), [(SwitchedCdu, ".A3"), (ThreeBanks, ".AA3"), (SwitchedPdu8, "AA3")]
)
def test_outlets_are_told_by_their_own_names(unit: type[Unit], name: str) -> None:
    with bench(None, "sentry-cdu", unit) as (pdu, line):
        assert pdu.switch(3, False).attempts == 1
        assert f"\roff {name}\r".encode() in line.written
        assert line.moves == [(3, False)]


def test_an_outlet_is_a_row_and_a_later_bank_is_on_another_page() -> None:
    with bench(None, "sentry-cdu", ThreeBanks) as (pdu, line):
        assert pdu.switch(17, False).attempts == 1
        assert b"\roff .AC1\r" in line.written
        assert line.moves == [(17, False)]
        assert b"status\ryversion\r" in line.written, "the pager's key is no line"


def test_another_unit_on_the_line_is_told_by_its_own_names() -> None:
    """Unplugged and back, it may be another: the names of the one before are forgotten."""
    with bench(None, "sentry-cdu", SwitchedCdu) as (pdu, line):
        family = make_family(pdu.session, pdu.spec)
        family.sync()
        family.status()
        line.dialogue = Dialogue(SwitchedPdu8(line.dialogue.outlets))
        line.written = b""
        family.sync()
        family.switch(3, on=False)
        assert b"off AA3\r" in line.written
        assert b"off .A3" not in line.written


def test_a_command_that_is_refused_is_told() -> None:
    with bench(None, "sentry-cdu", SwitchedCdu) as (pdu, line):
        no = b"\r\n\r\n   Access not allowed\r\n\r\nSwitched CDU: "
        line.instead = lambda data: data.strip() + no if b"off" in data else None
        with pytest.raises(RigTrouble, match=r"still on after 3 .*refused: .*Access not allowed"):
            pdu.switch(3, False)


def test_a_unit_with_other_outlets_than_the_rig_file_says() -> None:
    with bench(None, "sentry-cdu", SwitchedCdu) as (pdu, line):
        del line.dialogue.outlets.shown[8]
        with pytest.raises(RigTrouble, match=r"lists outlets \.A1, .* \.A7; the rig file says 8 "):
            pdu.status(deadline_s=2)


@pytest.mark.parametrize("key", [b"y", b"Y", b"n", b"N"])
def test_the_pager_takes_its_key_without_an_enter(key: bytes) -> None:
    dialogue = at_its_prompt(ThreeBanks, 24)
    assert said(dialogue, b"status\r").endswith(b"\r\nMore (Y/es N/o): ")
    assert said(dialogue, b"x\r").endswith(b"More (Y/es N/o): ")
    turned = said(dialogue, key)
    assert turned.startswith(key)
    assert turned.endswith(b"Switched CDU: ")
    assert (b".AC8" in turned) == (key in b"yY")
    assert said(dialogue, b"status\r" + key).endswith(turned), "typed ahead, too"


# Tables.


@pytest.mark.parametrize("state", IS_ON)
def test_the_state_is_believed_and_what_it_was_told_is_not(state: str) -> None:
    for told in (b"On", b"Off", b"Idle On", b"Idle Off", b"Wake On", b"Pend On", b"Reboot"):
        assert parse_status(ROW % (1, 1, state.encode(), told), 6) == [Outlet(".A1", state)]
        row = b"  AA1   Arm-Console3                     %-15s%-7s   Normal\r\n"
        assert parse_status(row % (told, state.encode()), 8) == [Outlet("AA1", state)]


@pytest.mark.parametrize("state", ["On/Wait", "Off/Wait", "No Comm"])
def test_an_outlet_that_is_neither_on_nor_off_is_told(state: str) -> None:
    with bench(None, "sentry-cdu", SwitchedCdu) as (pdu, line):
        pdu.status()

        def answer(data: bytes) -> bytes | None:
            if data != b"status\r":
                return None
            rows = b"".join(
                ROW % (n, n, state.encode() if n == 3 else b"On", b"On") for n in range(1, 9)
            )
            return data + b"\n" + rows + b"\r\n   Command successful\r\n\r\nSwitched CDU: "

        line.instead = answer
        with pytest.raises(RigTrouble, match=rf"outlet 3 \(\.A3\) is neither on nor off: {state}"):
            pdu.status(deadline_s=1)


def test_no_table_and_two_tables_are_none() -> None:
    row = ROW % (1, 1, b"Off", b"On")
    assert parse_status(row, 7) == [Outlet(".A1", "Off")]
    assert parse_status(b"   .A4                                 Off         On\r\n", 7) == [
        Outlet(".A4", "Off")
    ]
    assert parse_status(row + row, 7) is None
    assert parse_status(row[:-4], 7) is None
    assert parse_status(row, 8) is None
    assert parse_status(b"status\r\nSwitched CDU: ", 6) is None
    assert parse_status(b"  AA1   Capital         On        Off\r\n", 8) is None, "a column short"


outlet_names = st.text(
    st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=24
) | st.sampled_from(["On", "Off  Off", "On   On   Normal", "Switched CDU: ", "\x1b[2J", ".A2  On"])


@pytest.mark.parametrize(("unit", "firmware"), [(SwitchedCdu, 6), (SwitchedPdu8, 8)])
@given(names=st.dictionaries(st.integers(1, 8), outlet_names), on=st.frozensets(st.integers(1, 8)))
def test_names_never_pass_for_states(
    unit: type[Unit], firmware: int, names: dict[int, str], on: frozenset[int]
) -> None:
    dialogue = at_its_prompt(unit, names=names, on=on)
    rows = parse_status(said(dialogue, b"status all\r" if firmware == 8 else b"status\r"), firmware)
    assert rows is not None
    assert [IS_ON[row.state] for row in rows] == [n in on for n in range(1, 9)]
