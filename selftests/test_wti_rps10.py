"""WTI's RPS-10: answers that belong to no question, a pause before each command, DTR.

`stonith` and `powermand`, which know the real unit, drive the virtual one.
"""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import RigTrouble
from leadline.inventory.pdu import PduSpec
from leadline.power import port as port_module
from leadline.power.families.wti_rps10 import parse_answers
from leadline.power.pdu import open_pdu
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.line import Dialogue
from leadline.virtual.pdus.outlets import Outlets
from leadline.virtual.pdus.pty import VirtualPdu
from leadline.virtual.pdus.wti_rps10 import PASSWORD, READY, Rps10, Rps10Pair
from selftests.pdu_line import VirtualLine, bench
from selftests.powermand import Powermand, needs_powermand

TRANSCRIPT = Path(__file__).parents[2] / "shared/pdu/transcripts/stonith_rps10_vs_vpdu.txt"
STONITH = shutil.which("stonith", path="/usr/sbin:/usr/bin:/sbin:/bin")
needs_stonith = pytest.mark.skipif(
    STONITH is None, reason="stonith is not installed (Debian: apt install cluster-glue)"
)


def test_our_driver_on_a_pty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_module, "LOCK_DIRECTORY", tmp_path)
    link = tmp_path / "rps10"
    spec = PduSpec(name="a", family="wti-rps10", port=str(link), outlets=2)
    with (
        VirtualPdu(2, lambda *_: None, link, family="wti-rps10") as unit,
        open_pdu(spec) as pdu,
    ):
        assert pdu.switch(2, False).verified
        assert unit.contacts == {1: True, 2: False}


def commands(line: VirtualLine) -> list[bytes]:
    return [part.removeprefix(PASSWORD) for part in line.written.split(b"\r") if part]


# What is sent, and when.


def test_only_absolute_commands_to_one_module_are_sent() -> None:
    with bench(None, "wti-rps10") as (pdu, line):
        pdu.switch(3, False)
        pdu.switch(3, True)
        assert commands(line) == [b"0?", b"*?", b"20", b"*?", b"*?", b"21", b"*?"]


@pytest.mark.parametrize(("baud", "pause_s"), [(9600, 0.5), (2400, 1.5)])
def test_a_command_waits_for_the_pause_that_the_unit_wants(baud: int, pause_s: float) -> None:
    with bench(None, "wti-rps10", baud=baud) as (pdu, line):
        line.byte_s = 0.001
        pdu.switch(3, False)
        chunks = list(pdu.session.log.chunks)
    pauses = [b.at - a.at for a, b in pairwise(chunks) if b.sent]
    assert len(pauses) == 3
    assert min(pauses) >= pause_s


@pytest.mark.parametrize(
    ("typed", "moved", "careless"),
    [
        (PASSWORD + b"30", {4}, []),
        (b"rubbish" + PASSWORD + b"30", {4}, []),
        (b"\x18\x18" + PASSWORD + b"30", {4}, []),
        (PASSWORD + b"10" + PASSWORD + b"30", {4}, []),
        (PASSWORD + b"*0", {1, 2, 3, 4}, [b"*0"]),
        (PASSWORD + b"3T", set(), [b"3T"]),
        (PASSWORD + b"40", set(), []),
        (PASSWORD + b"30x", set(), []),
        (b"30", set(), []),
    ],
)
def test_the_unit_obeys(typed: bytes, moved: set[int], careless: list[bytes]) -> None:
    outlets = Outlets(4, lambda *_: None)
    list(Dialogue(Rps10(outlets)).hear(typed + b"\r"))
    assert {outlet for outlet, on in outlets.contacts.items() if not on} == moved
    assert outlets.careless == careless


# Which answer is to which command.


def test_a_late_answer_is_not_taken_for_the_next() -> None:
    """The status from before the switching comes after it: it says on, and it is off by then."""
    with bench(None, "wti-rps10", Rps10Pair) as (pdu, line):
        pdu.status()
        line.dialogue.faults = Faults(slow_s=3.2, lines=1)
        pdu.switch(2, False)
        assert line.moves == [(2, False)]
        assert commands(line)[2:4] == [b"*?", b"1?"], "a module that was not asked for before"


def test_a_status_must_name_all_modules_and_no_others() -> None:
    with bench(None, "wti-rps10", outlets=3) as (pdu, line):
        del line.dialogue.outlets.shown[3]
        del line.dialogue.outlets.contacts[3]
        with pytest.raises(
            RigTrouble,
            match=r"command \*\?: answered by plug 0 on, plug 1 on; .* says plugs 0 to 2",
        ):
            pdu.status(deadline_s=1)


def test_an_answer_that_says_otherwise_is_told() -> None:
    with bench(None, "wti-rps10") as (pdu, line):
        other = b"\r\nPlug 2 On\r\nComplete\r\n"
        line.instead = lambda data: other if data == PASSWORD + b"20\r" else None
        with pytest.raises(RigTrouble, match=r"still on .*command 20: answered by plug 2 on"):
            pdu.switch(3, False)


def test_a_unit_that_starts_anew_is_asked_again_at_once() -> None:
    with bench(None, "wti-rps10") as (pdu, line):
        lost = [READY]
        line.instead = lambda _: lost.pop() if lost else None
        assert pdu.status() == line.dialogue.outlets.shown
        assert line.time < 2


def slow_then_less_slow(line: VirtualLine) -> None:
    """The next answer comes when it is no longer waited for, those after it in 1.2 s."""
    slow_s = [4.0]

    def answers_in(_: bytes) -> None:
        line.dialogue.faults = Faults(slow_s=slow_s.pop() if slow_s else 1.2)

    line.instead = answers_in


def test_a_late_answer_is_read_past() -> None:
    with bench(None, "wti-rps10") as (pdu, line):
        pdu.status()
        line.written = b""
        slow_then_less_slow(line)
        assert pdu.switch(2, False).verified
        assert commands(line) == [b"*?", b"1?", b"*?", b"10", b"*?"], "in step at once"


def test_a_master_without_modules() -> None:
    """There is no other module to ask for: a late answer is waited for, until it has come."""
    with bench(None, "wti-rps10", outlets=1) as (pdu, line):
        pdu.status()
        line.written = b""
        slow_then_less_slow(line)
        start = line.time
        assert pdu.switch(1, False).verified
        assert line.moves == [(1, False)]
        chunks = [chunk for chunk in pdu.session.log.chunks if chunk.at > start]
        assert [sent for sent, _ in groupby(chunks, lambda chunk: chunk.sent)] == [True, False] * 5
        assert commands(line) == [b"*?", b"0?", b"*?", b"00", b"*?"], "one after the other"


# Answers.

lines = st.sampled_from(
    ["Plug 1 On", "Plug 1 Off", "Plug 2 On", "Complete", "RPS-10 Ready", "Plug 1", "Plug 11 On", ""]
)


@given(st.lists(lines), st.sampled_from(["\r\n", "\n\r", "\r"]))
def test_an_answer_ends_in_complete_and_names_no_module_twice(said: list[str], end: str) -> None:
    answers = parse_answers("".join(line + end for line in said).encode())
    assert len(answers) == said.count("Complete")
    whole = "\n".join(said).split("Complete")[:-1]
    for answer, text in zip(answers, whole, strict=True):
        named = re.findall(r"^Plug (\d) (On|Off)$", text, re.MULTILINE)
        once = len({plug for plug, _ in named}) == len(named)
        assert answer == ({int(plug): state == "On" for plug, state in named} if once else {})


def test_half_an_answer_is_none() -> None:
    assert parse_answers(b"\r\nPlug 1 Off\r\nComplete") == [], "its line has not ended"
    assert parse_answers(b"\r\nPlug 1 Of") == []
    assert parse_answers(b"Plug 1 On\r\nComplete\r\nPlug 1 Off\r\nComplete\r\n") == [
        {1: True},
        {1: False},
    ]


@pytest.mark.skipif(not TRANSCRIPT.is_file(), reason="the recorded dialogue is not here")
def test_the_recorded_dialogue_parses() -> None:
    """What stonith and a simulated unit said: on, off, and a toggle that says off, then on."""
    asked: list[bytes] = []
    answers: list[list[dict[int, bool]]] = []
    heard = b""
    for line in TRANSCRIPT.read_text().splitlines():
        if found := re.match(r" *[\d.]+ (PDU> |<CLI )(b'.*')$", line):
            data = ast.literal_eval(found[2])
            if found[1] == "PDU> ":
                heard += data
            else:
                asked.append(data)
                heard = b""
            if b"Complete" in data:
                answers.append(parse_answers(heard))
    assert asked == [PASSWORD + command + b"\r" for command in (b"11", b"10", b"1T")]
    assert answers[:2] == [[{1: True}], [{1: False}]]
    assert answers[2] == [{}], "off and on again: no state"
    said = Outlets(2, lambda *_: None, reboot_s=0)
    ours = [
        b"".join(text for _, text in Dialogue(Rps10(said)).hear(command)) for command in asked[:2]
    ]
    assert [parse_answers(text) for text in ours] == answers[:2], "and the virtual unit says so too"


# Others' programs before the virtual unit.


@pytest.fixture
def switched() -> list[tuple[int, bool]]:
    return []


@pytest.fixture
def unit(tmp_path: Path, switched: list[tuple[int, bool]]) -> Iterator[VirtualPdu]:
    with VirtualPdu(
        10,
        lambda outlet, on: switched.append((outlet, on)),
        tmp_path / "rps10",
        family="wti-rps10",
        reboot_s=1,
    ) as pdu:
        yield pdu


def stonith(unit: VirtualPdu, *arguments: str) -> str:
    """Run it for a drive on the module at address 3; it drops DTR and waits for the unit."""
    assert STONITH is not None
    done = subprocess.run(
        [STONITH, "-t", "rps10", "-p", f"{unit.link} drive1 3", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_stonith
def test_stonith_switches_the_virtual_unit(
    unit: VirtualPdu, switched: list[tuple[int, bool]]
) -> None:
    stonith(unit, "-S")
    assert "drive1" in stonith(unit, "-l")
    assert switched == []
    stonith(unit, "-T", "off", "drive1")
    unit.settle(5)
    assert switched == [(4, False)]
    stonith(unit, "-T", "on", "drive1")
    stonith(unit, "-T", "reset", "drive1")
    unit.settle(5)
    assert switched == [(4, False), (4, True), (4, False), (4, True)]


@needs_powermand
def test_powermand_switches_the_virtual_unit(
    unit: VirtualPdu, switched: list[tuple[int, bool]], tmp_path: Path
) -> None:
    with Powermand(unit.link, tmp_path, "wti-rps10", "outlet[0-9]") as client:
        assert client.shows("on") == "outlet[0-9]"
        assert "completed successfully" in client.powerman("-0", "outlet3")
        assert client.shows("off") == "outlet3"
        client.powerman("-1", "outlet3")
        assert client.shows("on") == "outlet[0-9]"
        client.powerman("-c", "outlet5")
        assert client.shows("on") == "outlet[0-9]"
    unit.settle(5)
    assert switched == [(4, False), (4, True), (6, False), (6, True)]
