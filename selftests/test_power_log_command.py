"""`leadline power log`: what was said to the PDUs and by them, shown so that nothing can happen."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from leadline.cli import main
from leadline.inventory.pdu import PduSpec
from leadline.power.byte_log import ByteLogs, folder_of_run
from leadline.power.session import Chunk
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.outlet_rig import OF_A, SECOND, rig_file
from selftests.power_world import quick

__all__ = ["quick"]  # a fixture

RUN = "20260131-235959-1a2b"
HOSTILE = b"\x1b]0;owned\x07\x1b[2J\xe2\x80\xae\x7f\\r"


def pdu(name: str) -> PduSpec:
    return PduSpec(name=name, family="baytech-rpc3", port=f"/dev/{name}")


Shown = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shown:
    """Run `leadline power log`: exit code, lines of stdout, stderr."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*words: str) -> tuple[int, list[str], str]:
        code = main(["power", "log", "--results", str(tmp_path), *words])
        out, err = capsys.readouterr()
        return code, out.splitlines(), err

    return run


def keep(results: Path, *chunks: tuple[str, float, bool, bytes], run: str = RUN) -> Path:
    """The logs of a run in which this was said; its folder."""
    folder = folder_of_run(results, run)
    with ByteLogs(folder, print) as logs:
        of = {name: logs.of(pdu(name)) for name in dict.fromkeys(name for name, *_ in chunks)}
        for name, at, sent, data in chunks:
            of[name].add(Chunk(at, sent, data))
    return folder


def rows(lines: Sequence[str]) -> list[str]:
    """Lines without their times."""
    return [line[25:] for line in lines[1:]]


def test_both_ways_in_the_order_of_time_with_the_pdus_names(tmp_path: Path, shown: Shown) -> None:
    keep(
        tmp_path,
        ("left", 0.0, True, b"on 1\r"),
        ("right-hand", 0.0, True, b"\r"),
        ("left", 1.0, False, b"on 1\r\nRPC3>"),
        ("right-hand", 2.0, False, b"\r\r\n\n>"),
    )
    code, lines, err = shown()
    assert (code, err) == (0, "")
    assert lines[0] == f"run {RUN}: {tmp_path}/serial/{RUN}"
    assert all(line[:10].count("-") == 2 or not line[:25].strip() for line in lines[1:])
    found = rows(lines)
    assert [row for row in found if " = " not in row] == [
        r"left       > on 1\r",
        r"right-hand > \r",
        r"left       < on 1\r\n",
        r"           < RPC3>",
        r"right-hand < \r",
        r"           < \r\n",
        r"           < \n",
        r"           < >",
    ]
    opened = [row for row in found if " = " in row]
    assert opened[0].startswith("left       = port /dev/left, family baytech-rpc3, baud 9600, pid ")


def test_only_one_pdu(tmp_path: Path, shown: Shown) -> None:
    keep(tmp_path, ("left", 0.0, True, b"l"), ("right", 0.0, True, b"r"))
    assert [row[:8] for row in rows(shown("--pdu", "right")[1])] == ["right = ", "right > "]
    assert len(shown("--pdu", "right", "--pdu", "left")[1]) == 5
    code, lines, err = shown("--pdu", "middle")
    assert (code, lines) == (2, [])
    assert "found no PDU 'middle', expected one of: left, right" in err


def test_one_object_for_programs(tmp_path: Path, shown: Shown) -> None:
    folder = keep(tmp_path, ("left", 0.0, True, b"on 1\r"), ("left", 0.5, False, HOSTILE))
    code, lines, _ = shown("--json", RUN)
    assert code == 0
    document: dict[str, Any] = json.loads("\n".join(lines))
    opened, sent, heard = document.pop("entries")
    assert document == {"run": RUN, "source": str(folder), "pdus": ["left"], "unreadable": 0}
    assert (opened["kind"], opened["port"]) == ("opened", "/dev/left")
    assert (sent["kind"], sent["pdu"], sent["text"]) == ("sent", "left", r"on 1\r")
    assert (heard["kind"], bytes.fromhex(heard["hex"])) == ("heard", HOSTILE)
    assert sent["time"].endswith("+00:00")
    assert sent["time"] < heard["time"]


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_nothing_that_a_pdu_or_a_file_says_reaches_the_terminal(
    tmp_path: Path, shown: Shown, words: Sequence[str]
) -> None:
    folder = keep(tmp_path, ("left", 0.0, False, HOSTILE))
    stamp = "2026-01-31T23:59:59.123456Z"
    names = json.dumps({"pdu": HOSTILE.decode("latin-1"), "port": "\x1b[31m", "\x07": "\x1b"})
    with (folder / "left.log").open("ab") as file:
        file.write(f"{stamp} = {names}\n{stamp} < x\n".encode() + HOSTILE + b"\n\x1b\n")
    code, lines, err = shown(*words)
    assert (code, err) == (0, "")
    assert all(line.isprintable() for line in lines)
    assert ("2 lines are none of a byte log" in lines[-1]) == (not words)


def test_wrong_names_are_told_which_runs_there_are(tmp_path: Path, shown: Shown) -> None:
    assert "there is no byte log yet" in shown()[2]
    for day in range(10, 25):
        keep(tmp_path, ("left", 0.0, True, b"x"), run=f"202601{day}-000000-abcd")
    code, lines, err = shown("20260110")
    assert (code, lines) == (2, [])
    assert "found no run or file '20260110'; there are: 20260124-000000-abcd, 20260123-" in err
    assert err.endswith("20260115-000000-abcd, and 5 older ones\n")
    assert shown("20260110-000000-abcd")[0] == 0


def test_a_name_that_no_file_can_have_is_usage(tmp_path: Path, shown: Shown) -> None:
    keep(tmp_path, ("left", 0.0, True, b"x"))
    code, lines, err = shown("x" * 300)
    assert (code, lines) == (2, [])
    assert "found no run or file 'xxx" in err
    assert RUN in err
    code, lines, err = shown("--results", str(tmp_path / ("x" * 300)))
    assert (code, lines) == (2, [])
    assert "it cannot be read: File name too long" in err


def test_what_leadline_power_said_to_two_pdus(
    tmp_path: Path, shown: Shown, quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also with a name on the PDU that would clear the screen."""
    rig = tmp_path / "rig.yaml"
    rig.write_text(rig_file(tmp_path, OF_A, SECOND))
    faults = Faults(names={1: "\x1b[2J"})
    with (
        VirtualPdu(4, lambda *_: None, tmp_path / "pdu", faults=faults),
        VirtualPdu(4, lambda *_: None, tmp_path / "second"),
    ):
        assert main(["power", "--rig", str(rig), "a", "second", "on"]) == 0
        assert main(["power", "--rig", str(rig), "second", "status"]) == 0
    capsys.readouterr()
    code, lines, _ = shown()
    assert code == 0
    assert {row[:1] for row in rows(lines)} <= {"q", " "}, "the last command spoke to one alone"
    assert r"q > status\r" in rows(lines)
    state = tmp_path / "state" / "leadline" / "serial"
    last = lines[0].split()[1].rstrip(":")
    (first,) = {path.name for path in state.iterdir()} - {last}
    found = rows(shown(first)[1])
    assert r"p > on 2\r" in found
    assert r"q > on 3\r" in found
    assert any(r"1)...\x1b[2J" in row for row in found)
    assert any(row.endswith(r"< RPC3-NC>") for row in found)
