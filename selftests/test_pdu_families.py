"""Every family before its virtual units, each fault by itself: no false on or off, no hang.

Of a family that cannot tell the state of its outlets, nothing is asked but that it says so.
Faults in any order are tried in test_pdu_sequences.py.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.inventory.pdu import FAMILY_NAMES
from leadline.power.families import FAMILIES
from leadline.power.login import LoginRefused
from leadline.power.pdu import COMMANDS, OVERTIME_S, SWITCH_S, Pdu
from leadline.power.session import LineTrouble
from leadline.virtual.pdus import UNITS, login, units
from leadline.virtual.pdus.faults import Faults
from selftests.pdu_line import VirtualLine, bench
from selftests.pdu_specimens import HOSTILE, SPECIMENS, Specimen

each_unit = pytest.mark.parametrize("specimen", SPECIMENS, ids=str)
each_login = pytest.mark.parametrize("specimen", [s for s in SPECIMENS if s.has_login], ids=str)

LINE_FAULTS: dict[str, Callable[[int | None], Faults]] = {
    "silent": lambda lines: Faults(silent=True, lines=lines),
    "mute": lambda lines: Faults(mute=True, lines=lines),
    "garbage": lambda lines: Faults(garbage=True, lines=lines),
    "half": lambda lines: Faults(half=True, lines=lines),
    "stale": lambda lines: Faults(stale=True, lines=lines),
    "noise": lambda lines: Faults(noise=6, lines=lines),
    "slow": lambda lines: Faults(slow_s=1.5, lines=lines),
}
STEP = re.compile(r"^PDU 'a' \(port /dev/x\): [^:]+: .")
each_fault = pytest.mark.parametrize("fault", LINE_FAULTS.values(), ids=LINE_FAULTS)


def test_every_family_that_a_rig_file_may_name_has_a_driver_and_a_unit() -> None:
    assert set(FAMILIES) == set(UNITS) == set(FAMILY_NAMES)
    assert all(units(family) for family in FAMILY_NAMES)


# What every test asks of a PDU.


def outlet_of(line: VirtualLine) -> int:
    """One in the middle, if there is such."""
    return min(3, len(line.dialogue.outlets))


def switched(pdu: Pdu, line: VirtualLine, on: bool, *, deadline_s: float = SWITCH_S) -> None:
    """Switch one outlet; what is said of it is what the unit shows."""
    outlet = outlet_of(line)
    done = pdu.switch(outlet, on, deadline_s=deadline_s)
    assert (done.outlet, done.on) == (outlet, on)
    assert done.verified == pdu.reads_back()
    if done.verified:
        assert line.dialogue.outlets.shown[outlet] is on
        assert pdu.status() == line.dialogue.outlets.shown


def only_moved(line: VirtualLine, *moves: bool) -> None:
    """Nothing moved but our outlet, and nothing careless was sent."""
    assert line.moves == [(outlet_of(line), on) for on in moves]
    assert line.dialogue.outlets.careless == []


def lost(pdu: Pdu) -> bool:
    """Whether a command may get lost unnoticed: nothing reads it back."""
    return not pdu.reads_back()


@each_unit
def test_switching_is_read_back_and_leaves_the_others_alone(specimen: Specimen) -> None:
    with bench(None, specimen.family, specimen.unit) as (pdu, line):
        switched(pdu, line, False)
        switched(pdu, line, True)
        only_moved(line, False, True)


@each_unit
def test_status_is_whole_or_said_to_be_unverified(specimen: Specimen) -> None:
    with bench(None, specimen.family, specimen.unit) as (pdu, _):
        if pdu.reads_back():
            assert pdu.status() == dict.fromkeys(range(1, pdu.spec.outlets + 1), True)
        else:
            with pytest.raises(RigTrouble, match=r"cannot tell .* unverified"):
                pdu.status()


@each_unit
def test_on_is_sent_even_where_the_status_says_on(specimen: Specimen) -> None:
    """An outlet whose unit shows it on, and whose contacts are off."""
    with bench(None, specimen.family, specimen.unit) as (pdu, line):
        outlet = outlet_of(line)
        line.dialogue.outlets.contacts[outlet] = False
        switched(pdu, line, True)
        only_moved(line, True)


# What was left there.

LEFT = [
    pytest.param(one, Faults(left_at=place, leftover=said), id=f"{one}-{place}-{said!r}")
    for one in SPECIMENS
    for place, last in one.unit.LEFT_AT.items()
    for said in dict.fromkeys((b"", last))
]


@pytest.mark.parametrize(("specimen", "faults"), LEFT)
def test_a_session_left_anywhere_is_recovered_and_nothing_else_moves(
    specimen: Specimen, faults: Faults
) -> None:
    with bench(replace(faults), specimen.family, specimen.unit) as (pdu, line):
        switched(pdu, line, False)
        only_moved(line, False)
        assert line.time < SWITCH_S


@each_unit
@pytest.mark.parametrize("lines", [1, 5, 14])
def test_pagers_are_paged(specimen: Specimen, lines: int) -> None:
    with bench(Faults(page_lines=lines), specimen.family, specimen.unit) as (pdu, line):
        switched(pdu, line, False)
        only_moved(line, False)


@each_unit
@pytest.mark.parametrize("byte_s", [0.0, pytest.param(0.001, marks=pytest.mark.long)])
def test_names_pass_for_nothing_else(specimen: Specimen, byte_s: float) -> None:
    own = [said.decode("latin-1").strip()[:15] for said in specimen.unit.LEFT_AT.values()]
    for name in (*HOSTILE, *own):
        with bench(None, specimen.family, specimen.unit) as (pdu, line):
            line.dialogue.faults.names = dict.fromkeys(line.dialogue.contacts, name)
            line.byte_s = byte_s
            switched(pdu, line, False)
            only_moved(line, False)


# What goes wrong for a while, and what stays wrong.


@each_unit
@each_fault
@pytest.mark.parametrize("lines", [1, 2, 3, 5])
def test_a_fault_that_passes_is_recovered_from(
    specimen: Specimen, fault: Callable[[int | None], Faults], lines: int
) -> None:
    with bench(fault(lines), specimen.family, specimen.unit) as (pdu, line):
        switched(pdu, line, False)
        if not lost(pdu):
            only_moved(line, False)


@each_unit
@each_fault
def test_a_fault_in_mid_session_is_recovered_from(
    specimen: Specimen, fault: Callable[[int | None], Faults]
) -> None:
    with bench(None, specimen.family, specimen.unit) as (pdu, line):
        switched(pdu, line, False)
        line.dialogue.faults = fault(2)
        switched(pdu, line, True)
        if not lost(pdu):
            only_moved(line, False, True)


@each_unit
@pytest.mark.parametrize("name", ["silent", "mute", "garbage", "half", "stale"])
def test_a_fault_that_stays_is_rig_trouble_in_time(specimen: Specimen, name: str) -> None:
    with bench(LINE_FAULTS[name](None), specimen.family, specimen.unit) as (pdu, line):
        try:
            done = pdu.switch(outlet_of(line), False, deadline_s=20)
        except RigTrouble as trouble:
            assert STEP.match(str(trouble))
        else:
            assert not done.verified, "nothing was read back, so nothing may be believed"
        assert line.time < 40


@each_unit
def test_a_unit_that_is_slow_for_good_is_given_up_in_time(specimen: Specimen) -> None:
    """Each answer comes in the time that it has; all that are needed do not, of 64 relays."""
    with bench(Faults(slow_s=1.0), specimen.family, specimen.unit) as (pdu, line):
        try:
            switched(pdu, line, False, deadline_s=4)
        except RigTrouble as trouble:
            assert STEP.match(str(trouble))
        assert line.time < 2 * (4 + OVERTIME_S)


@each_unit
@pytest.mark.parametrize("fault", ["stuck", "blind"])
def test_an_outlet_that_does_not_move_or_does_not_show_it(specimen: Specimen, fault: str) -> None:
    with bench(None, specimen.family, specimen.unit) as (pdu, line):
        outlet = outlet_of(line)
        setattr(line.dialogue.faults, fault, {outlet})
        if lost(pdu):
            assert not pdu.switch(outlet, False).verified
            return
        with pytest.raises(RigTrouble, match=rf"outlet {outlet}: still on after {COMMANDS} comm"):
            pdu.switch(outlet, False)
        line.dialogue.faults = Faults()
        switched(pdu, line, False)


@each_unit
def test_a_status_that_lies_is_believed_for_only_the_drive_can_tell(specimen: Specimen) -> None:
    with bench(None, specimen.family, specimen.unit) as (pdu, line):
        outlet = outlet_of(line)
        line.dialogue.faults = Faults(welded={outlet})
        switched(pdu, line, False)
        assert line.dialogue.contacts[outlet] is True


@each_unit
def test_another_outlet_that_moves_is_named_and_put_back(specimen: Specimen) -> None:
    with bench(None, specimen.family, specimen.unit) as (pdu, line):
        if len(line.dialogue.outlets) == 1 or lost(pdu):
            return
        outlet = outlet_of(line)
        other = outlet - 1
        line.dialogue.faults = Faults(rewired={outlet: other})
        with pytest.raises(RigTrouble, match=rf"outlet {outlet}: .* outlet {other} went off"):
            pdu.switch(outlet, False)
        assert all(line.dialogue.contacts.values())


@each_unit
@pytest.mark.parametrize("seconds", [1.0, 4.0, 12.0])
@pytest.mark.parametrize("anew", [False, True], ids=["same session", "new session"])
def test_an_unplugged_adapter_is_waited_for(specimen: Specimen, seconds: float, anew: bool) -> None:
    with bench(None, specimen.family, specimen.unit) as (pdu, line):
        switched(pdu, line, False)
        start = line.time
        line.unplug(seconds)
        if anew:
            line.dialogue.begin()
        switched(pdu, line, True)
        assert line.time - start < seconds + 5
        only_moved(line, False, True)


# Logins.


def passwords(line: VirtualLine) -> int:
    return line.written.count(login.PASSWORD.encode())


@each_login
@pytest.mark.parametrize("fault", ["password_refused", "locked_out"])
def test_a_login_that_is_refused_is_not_tried_again(specimen: Specimen, fault: str) -> None:
    faults = Faults()
    setattr(faults, fault, True)
    with bench(faults, specimen.family, specimen.unit) as (pdu, line):
        for _ in range(2):
            with pytest.raises(LoginRefused, match=r"port /dev/x\): login: ") as caught:
                pdu.switch(1, False)
            assert login.PASSWORD not in str(caught.value)
            assert not isinstance(caught.value, LineTrouble), "which would be tried again"
        assert passwords(line) == 1
        assert line.moves == []


@each_login
def test_a_password_that_is_echoed_stands_nowhere(specimen: Specimen, tmp_path: Path) -> None:
    with bench(Faults(password_echoed=True), specimen.family, specimen.unit) as (pdu, line):
        line.byte_s = 0.001
        pdu.reads_back()  # for which it logs in
        assert passwords(line) >= 1
        chunks = pdu.session.log.chunks
    for sent in (True, False):
        said = b"".join(chunk.data for chunk in chunks if chunk.sent is sent)
        assert login.PASSWORD.encode() not in said
        assert b"<password>" in said


@each_login
@each_fault
def test_no_fault_makes_a_password_go_out_often(
    specimen: Specimen, fault: Callable[[int | None], Faults]
) -> None:
    for lines in (1, 2, 3, 5, None):
        with bench(fault(lines), specimen.family, specimen.unit) as (pdu, line):
            line.dialogue.faults.password_refused = True
            with pytest.raises(RigTrouble):
                pdu.switch(1, False)
            assert passwords(line) <= 2
