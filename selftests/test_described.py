"""Devices described in a rig file: what a description may be, and what it makes of answers."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from leadline.errors import Misuse, RigTrouble
from leadline.inventory.pdu import PduSpec
from leadline.inventory.pdu_dialogue import DialogueSpec
from leadline.inventory.pdu_templates import LONGEST_LINE, check_row, command_bytes
from leadline.inventory.rig import load_rig
from leadline.power.dialogue import Rows
from leadline.power.session import NOISE_LIMIT
from leadline.virtual.pdus.described import (
    AskedFrames,
    NamedStrip,
    SummedFrames,
    Swpdu,
    TwinSupply,
)
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.line import Unit
from selftests.pdu_line import bench

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to" / "describe-a-pdu.md"

RIG = """\
rig: r
host: {{reach: local}}
controllers: [{{name: c, driver: ahci}}]
pdus:
{pdu}
outlets: []
drives: [{{slot: a, model: M, serial: S, wwn: 0x5000c500a1b2c3d4, firmware: "1", controller: c, \
protocol: sata}}]
"""
ENTRY = """\
  - name: p
    family: described
    port: /dev/ttyS0
    dialogue:
      on: "on {{outlet}}"
      off: "off {{outlet}}"
      status: "status {{outlet}}"
      prompt: ">"
      row: "{{outlet}} {{state}}"
      on_words: [on]
      off_words: [off]
{more}
"""


def pdu_of(folder: Path, entry: str) -> PduSpec:
    (folder / "rig.yaml").write_text(RIG.format(pdu=entry))
    return load_rig(folder / "rig.yaml").pdus[0]


def dialogue(**fields: object) -> DialogueSpec:
    return DialogueSpec.model_validate(fields)


STATES = {"status": "s", "prompt": ">", "on_words": ["ON"], "off_words": ["OFF"]}


# What the how-to says.


def test_the_examples_of_the_how_to_are_those_that_the_virtual_units_prove(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", HOW_TO.read_text(), re.DOTALL)
    told = [pdu_of(tmp_path, block) for block in blocks]
    proven: list[type[Unit]] = [Swpdu, TwinSupply, SummedFrames]
    for spec, unit in zip(told, proven, strict=True):
        assert spec.dialogue == DialogueSpec.model_validate(unit.SPEC["dialogue"])
        assert spec.outlets == unit.SPEC.get("outlets", 8)


# What is refused, with its line.


@pytest.mark.parametrize(
    ("field", "line", "says"),
    [
        ('on: "on {slot}"', 9, "no placeholder but {outlet}, .*there is {slot}"),
        ('on: "on {outlet:99d}"', 9, "there is {outlet:99d}"),
        ('on: "on {outlet+1}"', 9, "there is {outlet\\+1}"),
        ('on: "on {outlet!r}"', 9, "there is {outlet!r}"),
        ('on: "on {outlet"', 9, "there is {"),
        ('on: "on {sum}"', 9, "there is {sum}"),
        ('on: "on \\a{outlet}"', 9, "printable ASCII"),
        ('row: "{outlet} is"', 13, "{state} once"),
        ('row: "{state} {state}"', 13, "{state} once"),
        ('row: "* {outlet} * {state}"', 13, r"at most one \*"),
        ('row: "{outlet}* {state}"', 13, "something between"),
        ('row: "{outlet}{state}"', 13, "something between"),
        ('row: "(a+)+ {stat}"', 13, "{state} once"),
        ('errors: ["*"]', 16, "would take every answer for an error"),
        ('errors: ["{state} failed"]', 16, "no placeholder"),
        ("on_words: [off]", 8, "found off as a word for on and for off"),
        ('prompt: ""', 12, "printable ASCII"),
        ('identify: "*IDN?"', 8, "found a prompt and identify"),
        ("encoding: hex", 10, "bytes of two hex digits"),
        ("encoding: base64", 16, "text or hex"),
        ("first: 200", 16, "the number by which"),
        ("off: on {outlet}", 8, "found the same for on and off"),
        ("frist: 0", 16, "first"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(
    tmp_path: Path, field: str, line: int, says: str
) -> None:
    key = field.partition(":")[0]
    kept = [one for one in ENTRY.format(more="").splitlines() if one.strip()]
    fields = [f"      {field}" if one.strip().startswith(f"{key}:") else one for one in kept]
    if fields == kept:
        fields.append(f"      {field}")
    entry = "\n".join(fields)
    with pytest.raises(Misuse, match=rf"rig\.yaml:{line}: pdus\[p\].*expected.*") as caught:
        pdu_of(tmp_path, entry)
    caught.match(says)


@pytest.mark.parametrize(
    "change",
    [
        {"on": "all on"},
        {"status": "list", "row": "{state}"},
        {"prompt": None},
        {"row": None},
        {"on_words": ()},
        {"status": None},
        {"encoding": "hex", "on": "01", "off": "02", "status": None},
        {
            "encoding": "hex",
            "prompt": None,
            "on": "01 {outlet}",
            "off": "02 {outlet}",
            "status": "03",
            "row": "{outlet} {state}",
        },
        {"encoding": "hex", "prompt": None, "on": "A0 {outlet:02X}", "off": "A1 {outlet}"},
        {"encoding": "hex", "prompt": None, "on": "A0 1 {outlet}", "off": "A1 {outlet}"},
    ],
    ids=str,
)
def test_a_description_that_would_switch_or_read_the_wrong_outlet(
    change: dict[str, object],
) -> None:
    given = {
        "on": "on {outlet}",
        "off": "off {outlet}",
        "row": "{outlet} {state}",
        **STATES,
        "status": "status {outlet}",
    }
    entry = {"name": "a", "family": "described", "port": "/dev/x"}
    PduSpec.model_validate({**entry, "dialogue": given})
    with pytest.raises(ValidationError):
        PduSpec.model_validate({**entry, "dialogue": {**given, **change}})


def test_a_description_survives_the_journal() -> None:
    for unit in (Swpdu, NamedStrip, TwinSupply, SummedFrames, AskedFrames):
        given = {"name": "a", "family": "described", "port": "/dev/x", **unit.SPEC}
        spec = PduSpec.model_validate(given)
        assert PduSpec.model_validate(spec.model_dump(mode="json")) == spec


def test_a_login_that_nobody_would_give_is_refused() -> None:
    given = {"name": "a", "family": "described", "port": "/dev/x", **Swpdu.SPEC}
    with pytest.raises(ValidationError, match="a login for described"):
        PduSpec.model_validate({**given, "password_env": "A"})


# What is sent.


@pytest.mark.parametrize(
    ("template", "number", "sent"),
    [
        ("A0 {outlet} 01 {sum}", 1, "a00101a2"),
        ("a0 {outlet} 00 {sum}", 255, "a0ff009f"),
        ("FF {sum} {sum}", 1, "fffffe"),
        ("{outlet}", 10, "0a"),
    ],
)
def test_bytes(template: str, number: int, sent: str) -> None:
    assert command_bytes(template, "hex", number).hex() == sent


@pytest.mark.parametrize(
    ("template", "sent"),
    [("r {outlet}", b"r 11"), ("r{outlet:02X};", b"r0B;"), ("{outlet:3d}", b" 11"), ("x", b"x")],
)
def test_text(template: str, sent: bytes) -> None:
    assert command_bytes(template, "text", 11) == sent


def test_the_first_outlet_is_called_as_the_device_calls_it() -> None:
    with bench(None, "described", NamedStrip) as (pdu, line):
        pdu.switch(12, False)
        assert b"set 0B 0\r" in line.written
        assert line.moves == [(12, False)]


# What answers mean.


@pytest.mark.parametrize(
    ("heard", "states"),
    [
        (b"1 a ON\r\n2 b OFF\r\n>", {1: True, 2: False}),
        (b"  1   ON : OFF\t ON\r\r\n2 x OFF\r\n>", {1: True, 2: False}),
        (b"1 a ON\r\n>", {}),
        (b"1 a ON\r\n2 b ON\r\n3 c ON\r\n>", {}),
        (b"1 a ON\r\n2 b OFF\r\n2 b ON\r\n>", {}),
        (b"1 a ON\r\n2 b on\r\n>", {}),
        (b"1 a ON\r\n2 b ON!\r\n>", {}),
        (b"0 a ON\r\n1 a ON\r\n>", {}),
    ],
)
def test_a_table_is_whole_or_nothing(heard: bytes, states: dict[int, bool]) -> None:
    rows = Rows(dialogue(on="{outlet}+", off="{outlet}-", row="{outlet} * {state}", **STATES))
    assert rows.states(heard, range(1, 3)) == states


def test_a_word_that_ends_in_another() -> None:
    words = {**STATES, "on_words": ["1"], "off_words": ["11", "0"]}
    rows = Rows(dialogue(on="a", off="b", row="{state}", **words))
    assert rows.states(b"11\r\n", range(1, 2)) == {1: False}


def test_an_unknown_word_is_told_and_nothing_believed() -> None:
    with bench(None, "described", TwinSupply) as (pdu, line):
        line.instead = lambda data: b"2\r\n" if data.startswith(b"OP1?") else None
        with pytest.raises(RigTrouble, match=r"status 1: no whole answer .* '2\\r\\n'"):
            pdu.status()


def test_what_the_device_refuses_is_quoted() -> None:
    with bench(None, "described", Swpdu) as (pdu, line):
        said = b"status 3\r\nerror: \x1b[2J locked\r\nswpdu> "
        line.instead = lambda data: said if data.startswith(b"status 3") else None
        with pytest.raises(RigTrouble, match=r"status 3: refused: 'error: \\x1b\[2J locked'"):
            pdu.status()


def test_an_answer_that_was_late_is_not_taken_for_the_next() -> None:
    """The supply's bare states do not say of what they are: identify does."""
    with bench(None, "described", TwinSupply) as (pdu, line):
        pdu.status()
        line.coming.append((line.time + 0.01, b"0\r\n"))
        assert pdu.status() == {1: True, 2: True}
        assert line.written.count(b"\x08" * 32) == 2, "the line was found anew"


def test_a_late_state_is_not_taken_for_one_that_got_lost() -> None:
    with bench(None, "described", TwinSupply) as (pdu, line):
        pdu.status()
        answers = iter([b""])  # the first question gets lost, and then it is the unit's turn
        line.instead = lambda data: next(answers, None) if data.startswith(b"OP1?") else None
        line.coming.append((line.time, b"0\r\n"))
        assert pdu.status() == {1: True, 2: True}


def test_a_slow_device_is_in_step_after_one_sync() -> None:
    """Two questions are out when the first answer comes: both are waited for."""
    with bench(Faults(slow_s=0.7, lines=3), "described", TwinSupply) as (pdu, line):
        assert pdu.status() == {1: True, 2: True}
        assert line.written.count(b"\x08" * 32) == 1


def test_a_board_that_echoes_its_commands_is_obeyed_all_the_same() -> None:
    with bench(None, "described", SummedFrames) as (pdu, line):
        line.dialogue.faults = Faults(noise=4)
        assert pdu.switch(3, False).attempts == 1
        assert line.moves == [(3, False)]


# Nothing hangs.

literals = st.text("ab .:>|()+\\[]^$?{}*", max_size=6)


@given(
    st.lists(literals | st.sampled_from(["{state}", "{outlet}", "*"]), max_size=6),
    st.text("ab .:>|\n\r", max_size=300)
    | st.binary(max_size=300).map(lambda b: b.decode("latin-1")),
)
def test_any_row_that_is_taken_reads_any_answer(parts: list[str], said: str) -> None:
    template = "".join(parts).strip()
    try:
        row = check_row(template)
    except ValueError:
        return
    rows = Rows(dialogue(on="{outlet}+", off="{outlet}-", row=row, **STATES))
    rows.states(said.encode("latin-1"), range(1, 3))
    line = template.replace("{state}", "OFF").replace("*", said.translate({10: "", 13: ""}))
    numbered = re.sub(r"\{outlet\}", "1", line)
    if len(numbered) <= LONGEST_LINE:
        assert rows.states(numbered.encode("latin-1"), range(1, 2)) == {1: False}


def test_an_endless_line_is_no_row_and_takes_no_time() -> None:
    rows = Rows(dialogue(on="a", off="b", row="a a* a {state}", **STATES))
    endless = b"a " * (NOISE_LIMIT // 2)
    assert rows.states(endless + b"ON", range(1, 2)) == {}
    assert rows.states(endless[: LONGEST_LINE - 2] + b"ON", range(1, 2)) == {1: True}


def test_a_device_that_never_stops_is_given_up() -> None:
    with bench(None, "described", Swpdu) as (pdu, line):
        line.instead = lambda data: b"port1: on\r\n" * 20_000
        with pytest.raises(RigTrouble, match="never falls quiet"):
            pdu.switch(1, False, deadline_s=5)
        assert line.time < 40


def test_the_description_in_the_example_rig_file_is_one() -> None:
    text = (Path(__file__).parents[1] / "rigs" / "example-bench.yaml").read_text()
    commented = re.search(
        r"^  #   - name: \w+\n  #     family: described\n(?:  # .*\n)+", text, re.M
    )
    assert commented is not None
    [entry] = yaml.load(re.sub(r"(?m)^  # ", "", commented[0]), yaml.BaseLoader)
    assert PduSpec.model_validate(entry).dialogue is not None
