"""The RPC3 dialogue, in process on a virtual clock: whatever goes wrong, no false on or off."""

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.errors import Misuse, RigTrouble
from leadline.power.families.baytech import parse_status
from leadline.power.pdu import COMMANDS, Switched
from leadline.virtual.pdus.baytech import BANNER, PROMPT, Rpc3Nc
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.line import Dialogue
from leadline.virtual.pdus.outlets import Outlets
from selftests.pdu_line import OUTLETS, bench

TRANSCRIPTS = Path(__file__).parents[2] / "shared/pdu/transcripts"


def test_switching_is_verified_and_leaves_the_others_alone() -> None:
    with bench() as (pdu, line):
        assert pdu.status() == dict.fromkeys(range(1, 9), True)
        off = pdu.switch(3, False)
        assert off == Switched(3, False, True, off.seconds, 1, off.command_s)
        assert pdu.status() == {n: n != 3 for n in range(1, 9)}
        pdu.switch(3, True)
        assert line.moves == [(3, False), (3, True)]


def test_only_absolute_commands_are_ever_sent() -> None:
    with bench() as (pdu, line):
        pdu.switch(1, False)
        pdu.switch(1, True)
        words = {word for word in line.written.replace(b"\x08", b"").split(b"\r") if word}
    assert words == {b"status", b"off 1", b"on 1"}


@pytest.mark.parametrize("outlet", [0, -1, 9])
def test_an_outlet_that_is_not_there_is_never_sent(outlet: int) -> None:
    with bench() as (pdu, line):
        with pytest.raises(Misuse, match=rf"port /dev/x\): found outlet {outlet}, expected 1 to 8"):
            pdu.switch(outlet, False)
        assert line.written == b""


# What is left on the line, and in the unit.

LEFT = [
    Faults(left_at="pager"),
    Faults(left_at="confirm"),
    Faults(left_at="half-typed"),
    Faults(left_at="insist"),
    Faults(leftover=BANNER + PROMPT),
    Faults(leftover=b"Turn Off Outlet 1 (Y/N)?", left_at="confirm"),
    Faults(leftover=b"Enter 'YES' to continue or <ENTER> to cancel : ", left_at="confirm"),
    Faults(leftover=b"More (Y/es N/o): ", left_at="pager"),
    Faults(leftover=b"RPC3-NC>off 1", left_at="half-typed"),
    Faults(leftover=b" 1)...Outlet  1       : Off\r\n" * 5 + PROMPT),
]


@pytest.mark.parametrize("faults", LEFT, ids=lambda faults: f"{faults.left_at}-{faults.leftover!r}")
def test_a_session_left_anywhere_is_recovered_and_nothing_else_moves(faults: Faults) -> None:
    with bench(faults) as (pdu, line):
        pdu.switch(3, False)
        assert line.moves == [(3, False)]
        assert line.time < 2.6


def test_a_pager_in_the_table_is_paged() -> None:
    with bench(Faults(page_lines=14)) as (pdu, line):
        assert pdu.switch(3, False).attempts == 1
        assert line.moves == [(3, False)]


# What goes wrong for a while, and what stays wrong.

LINE_FAULTS: list[Callable[[int | None], Faults]] = [
    lambda lines: Faults(silent=True, lines=lines),
    lambda lines: Faults(mute=True, lines=lines),
    lambda lines: Faults(garbage=True, lines=lines),
    lambda lines: Faults(half=True, lines=lines),
    lambda lines: Faults(stale=True, lines=lines),
]
NAMES = ["silent", "mute", "garbage", "half", "stale"]


@pytest.mark.parametrize("lines", [1, 2, 3, 5])
@pytest.mark.parametrize("fault", LINE_FAULTS, ids=NAMES)
def test_a_fault_that_passes_is_recovered_from(
    fault: Callable[[int | None], Faults], lines: int
) -> None:
    with bench(fault(lines)) as (pdu, line):
        assert pdu.switch(3, False).verified
        assert line.dialogue.contacts[3] is False
        assert line.moves == [(3, False)]


@pytest.mark.parametrize("fault", LINE_FAULTS, ids=NAMES)
def test_a_fault_in_mid_session_is_recovered_from(fault: Callable[[int | None], Faults]) -> None:
    with bench() as (pdu, line):
        pdu.switch(3, False)
        line.dialogue.faults = fault(2)
        assert pdu.switch(3, True).verified
        assert line.dialogue.contacts[3] is True


@pytest.mark.parametrize("fault", LINE_FAULTS, ids=NAMES)
def test_a_fault_that_stays_is_rig_trouble_in_time(fault: Callable[[int | None], Faults]) -> None:
    with bench(fault(None)) as (pdu, line):
        with pytest.raises(RigTrouble, match=r"PDU 'a' \(port /dev/x\): \w+"):
            pdu.switch(3, False, deadline_s=20)
        assert line.time < 40


def test_noise_before_every_answer_is_read_through() -> None:
    with bench(Faults(noise=6)) as (pdu, line):
        assert pdu.switch(3, False).verified
        assert line.dialogue.contacts[3] is False


def test_a_prompt_in_a_name_is_no_prompt_however_the_answer_is_cut() -> None:
    with bench(Faults(names={3: "RPC3-NC>", 4: "> RPC-4>"})) as (pdu, line):
        line.byte_s = 0.001
        assert pdu.switch(3, False).attempts == 1
        assert line.written.count(b"status") == 2


def test_a_prompt_too_many_is_not_the_end_of_a_table() -> None:
    with bench() as (pdu, line):
        pdu.status()
        line.byte_s = 0.001
        line.written = b""

        def two_prompts(data: bytes) -> bytes | None:
            if data != b"\r":
                return None
            line.coming.append((line.time, PROMPT))
            line.coming.append((line.time + 0.01, PROMPT))
            return b""

        line.instead = two_prompts
        assert pdu.status() == line.dialogue.contacts
        assert line.written == b"\rstatus\r", "asked once"


def test_after_ctrl_c_the_line_is_set_right_before_it_is_used() -> None:
    with bench() as (pdu, line):
        pdu.status()
        line.interrupt_at = b"off 3"
        with pytest.raises(KeyboardInterrupt):
            pdu.switch(3, False)
        line.written = b""
        assert pdu.switch(3, True).verified
        assert line.written.startswith(b"\x08"), "by a sync"
        assert line.dialogue.contacts[3] is True


def test_a_slow_unit_is_waited_for() -> None:
    with bench(Faults(slow_s=2.0)) as (pdu, line):
        assert pdu.switch(3, False, deadline_s=60).verified
        assert line.moves == [(3, False)]


def test_a_stuck_outlet_is_told_again_then_reported() -> None:
    with bench(Faults(stuck={3})) as (pdu, line):
        with pytest.raises(RigTrouble, match=r"outlet 3: still on after 3 commands .* stuck"):
            pdu.switch(3, False)
        assert line.written.count(b"off 3") == COMMANDS
        assert pdu.switch(3, True).verified, "the PDU itself is well"


def test_another_outlet_that_moves_is_named_and_put_back() -> None:
    with bench(Faults(rewired={3: 5})) as (pdu, line):
        with pytest.raises(RigTrouble, match="outlet 3: when it was switched, outlet 5 went off"):
            pdu.switch(3, False)
        assert all(line.dialogue.contacts.values())


def test_an_outlet_that_went_on_beside_another_stays_on() -> None:
    """As when a unit that lost its power brings its outlets up in turn: nothing moved instead."""
    with bench() as (pdu, line):
        for outlet in (3, 5):
            pdu.switch(outlet, False)
        tell = pdu._tell

        def and_5_as_well(outlet: int, on: bool, end: float) -> object:
            line.dialogue.outlets.contacts[5] = line.dialogue.outlets.shown[5] = True
            return tell(outlet, on, end)

        pdu._tell = and_5_as_well  # type: ignore[method-assign, assignment]
        with pytest.raises(RigTrouble, match="outlet 3: when it was switched, outlet 5 went on"):
            pdu.switch(3, True)
        assert all(line.dialogue.contacts.values())


def test_on_is_sent_even_where_the_status_says_on() -> None:
    with bench() as (pdu, line):
        pdu.switch(3, True)
        assert b"on 3\r" in line.written
        assert line.moves == []


@pytest.mark.parametrize("on", [True, False])
def test_without_a_status_an_outlet_is_told_to_go_on_and_never_off(on: bool) -> None:
    with bench() as (pdu, line):
        pdu.switch(3, not on)
        line.instead = lambda data: b"\r\nRPC3-NC>" if b"status" in data else None
        with pytest.raises(RigTrouble, match=r": status: ") as caught:
            pdu.switch(3, on)
        assert line.dialogue.contacts[3] is True
        notes = getattr(caught.value, "__notes__", [])
        told = "outlet 3 was told to go on all the same; whether it did is not known"
        assert notes == ([told] if on else [])


@pytest.mark.parametrize("seconds", [1.0, 4.0, 12.0])
def test_an_unplugged_adapter_is_waited_for(seconds: float) -> None:
    with bench() as (pdu, line):
        pdu.status()
        start = line.time
        line.unplug(seconds)
        assert pdu.switch(3, False).verified
        assert line.time - start < seconds + 5


def test_a_unit_with_other_outlets_than_the_rig_file_says() -> None:
    with bench() as (pdu, line):
        del line.dialogue.outlets.shown[8]
        with pytest.raises(RigTrouble, match=r"lists outlets 1, .* 7; the rig file says 1 to 8"):
            pdu.status(deadline_s=2)


@pytest.mark.parametrize("word", [b"Enter password>", b"username>"])
def test_a_login_is_told_and_never_answered(word: bytes) -> None:
    with bench() as (pdu, line):
        line.instead = lambda data: word if b"\r" in data else b""
        with pytest.raises(RigTrouble, match="turn its access control off"):
            pdu.status(deadline_s=1)


def test_confirmation_is_told_and_never_given() -> None:
    question = b"Turn Off Outlet 3 (Y/N)?"
    with bench() as (pdu, line):

        def asks_first(data: bytes) -> bytes | None:
            if b"off 3" not in data:
                return None
            line.dialogue.begin()
            return data + question

        line.dialogue.faults.left_at = "confirm"
        line.instead = asks_first
        with pytest.raises(RigTrouble, match=r"still on .*turn its confirmation off"):
            pdu.switch(3, False)
        assert line.moves == []


# Tables.

outlet_names = st.text(
    st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=15
) | st.sampled_from(["ON", "Off", ": On", "x: Off", "RPC3-NC>", "2)...b : On", "\x1b[2J", "(Y/N)"])


@given(
    names=st.dictionaries(st.integers(1, OUTLETS), outlet_names),
    on=st.frozensets(st.integers(1, OUTLETS)),
)
def test_names_never_pass_for_states(names: dict[int, str], on: frozenset[int]) -> None:
    outlets = Outlets(OUTLETS, lambda *_: None, on=on, faults=Faults(names=names))
    dialogue = Dialogue(Rpc3Nc(outlets))
    text = b"".join(text for _, text in dialogue.hear(b"status\r"))
    assert parse_status(text) == {n: n in on for n in range(1, OUTLETS + 1)}


def test_no_table_and_two_tables_are_none() -> None:
    row = b" 1)...Outlet  1       : Off  \r\n"
    assert parse_status(row) == {1: False}
    assert parse_status(row + row) is None
    assert parse_status(b"status\r\nRPC3-NC>") is None
    assert parse_status(b" 1)...Outlet  1       : Of") is None


@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="the recorded dialogues are not here")
@pytest.mark.parametrize("name", ["sim_baytech-rpc3-nc.txt", "sim_baytech-rpc3-de.txt"])
def test_recorded_tables_parse(name: str) -> None:
    said: list[bytes] = [b""]
    for line in (TRANSCRIPTS / name).read_text().splitlines():
        if found := re.match(r" *[\d.]+ ([TR])X (b'.*')$", line):
            if found[1] == "T":
                said.append(b"")
            else:
                said[-1] += ast.literal_eval(found[2])
    tables = [table for text in said if (table := parse_status(text)) is not None]
    every = range(1, 9)
    assert tables == [
        dict.fromkeys(every, False),
        {n: n == 3 for n in every},
        dict.fromkeys(every, False),
        dict.fromkeys(every, True),
        {n: n == 2 for n in every},
    ]


# Whatever goes wrong, in whatever order.

fault_sets = st.builds(
    Faults,
    silent=st.booleans(),
    mute=st.booleans(),
    garbage=st.booleans(),
    half=st.booleans(),
    stale=st.booleans(),
    noise=st.integers(0, 40),
    slow_s=st.sampled_from([0.0, 0.2, 1.0, 4.0, 11.0]),
    lines=st.none() | st.integers(0, 9),
    stuck=st.sets(st.integers(1, 3), max_size=1),
    rewired=st.dictionaries(st.integers(1, 3), st.integers(1, 3), max_size=1),
    left_at=st.sampled_from([*Rpc3Nc.LEFT_AT]),
    page_lines=st.sampled_from([0, 0, 5, 14]),
    leftover=st.binary(max_size=20) | st.sampled_from([BANNER, PROMPT, PROMPT * 2]),
)
steps = st.lists(
    st.tuples(fault_sets | st.none(), st.booleans(), st.integers(1, 3), st.booleans()), max_size=5
)


@settings(max_examples=200, deadline=None)
@given(steps)
def test_no_sequence_of_faults_gives_a_false_on_or_off(
    sequence: list[tuple[Faults | None, bool, int, bool]],
) -> None:
    with bench() as (pdu, line):
        for faults, unplugged, outlet, on in sequence:
            if faults is not None:
                line.dialogue.faults = faults
            if unplugged:
                line.close()
                pdu.session.close()
                line.dialogue.begin()
            start = line.time
            try:
                pdu.switch(outlet, on)
                assert line.dialogue.contacts[outlet] is on
                assert pdu.status() == line.dialogue.contacts
            except RigTrouble as error:
                assert "PDU 'a' (port /dev/x): " in str(error)
            assert line.time - start < 120, "and nothing hangs"
