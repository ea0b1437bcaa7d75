"""Numato's relay modules: how they count, and which answer is to which command."""

import pytest

from leadline.errors import RigTrouble
from leadline.virtual.pdus.line import Dialogue, Unit
from leadline.virtual.pdus.numato import PROMPT, Numato8, Numato32, Numato64
from leadline.virtual.pdus.outlets import Outlets
from selftests.pdu_line import bench


@pytest.mark.parametrize(
    ("unit", "outlets", "outlet", "name"),
    [
        (Numato8, 1, 1, b"0"),
        (Numato8, 8, 8, b"7"),
        (Numato8, 16, 11, b"A"),  # the usual unit is a virtual rig's, with any number of them
        (Numato8, 64, 64, b"63"),
        (Numato32, 16, 11, b"A"),
        (Numato32, 16, 16, b"F"),
        (Numato32, 32, 32, b"V"),
        (Numato64, 64, 1, b"00"),
        (Numato64, 64, 11, b"10"),
        (Numato64, 64, 64, b"63"),
    ],
)
def test_relays_are_called_as_a_module_of_that_size_does(
    unit: type[Unit], outlets: int, outlet: int, name: bytes
) -> None:
    with bench(None, "numato", unit, outlets=outlets) as (pdu, line):
        pdu.switch(outlet, False)
        assert line.moves == [(outlet, False)]
        assert b"\rrelay off " + name + b"\r" in line.written


def test_only_absolute_commands_are_sent() -> None:
    with bench(None, "numato", outlets=2) as (pdu, line):
        pdu.switch(2, False)
        pdu.switch(2, True)
        typed = {word for word in line.written.replace(b"\x08", b"").split(b"\r") if word}
    assert typed == {b"relay read 0", b"relay read 1", b"relay off 1", b"relay on 1"}


@pytest.mark.parametrize(
    "said",
    [
        b"",  # the digit of the echo is no state
        b"\n\roff\n\rrelay read 1",
        b"\n\r0",
        b"\n\roff ",
        b"\n\roff\n\ron",
        b"\n\ronoff",
        b"\n\roff" + PROMPT + b"relay read 1\n\ron",  # out of step
    ],
)
def test_what_is_no_answer_is_none(said: bytes) -> None:
    with bench(None, "numato", outlets=1) as (pdu, line):
        line.instead = lambda data: data[:-1] + said + PROMPT if b"read" in data else None
        with pytest.raises(RigTrouble, match="relay read 0: no whole answer within 3 s"):
            pdu.status(deadline_s=1)


def test_the_answer_for_another_relay_is_waited_past() -> None:
    with bench(None, "numato", outlets=2) as (pdu, line):
        line.dialogue.outlets.shown[1] = False
        late = b"relay read 1\n\ron" + PROMPT

        def late_one_first(data: bytes) -> bytes | None:
            if data == b"relay read 0\r":
                line.coming.append((line.time, late))
            return None

        line.instead = late_one_first
        assert pdu.status() == {1: False, 2: True}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (b"relay read 1\r", b"relay read 1\n\roff\n\r>"),
        (b"relay read 0\r", b"relay read 0\n\ron\n\r>"),
        (b"relay read 2\r", b"relay read 2\n\r>"),
        (b"\r", b"\n\r>"),
    ],
)
def test_the_unit_says(typed: bytes, said: bytes) -> None:
    dialogue = Dialogue(Numato8(Outlets(2, lambda *_: None, on=[1])))
    assert b"".join(text for _, text in dialogue.hear(typed)) == said
