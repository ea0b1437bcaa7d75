"""`leadline power map`: what it asks, what it refuses, what it says and writes."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from leadline.cli import main
from leadline.commands import power_map as command
from leadline.drive import bind as bind_module
from leadline.drive import guard
from leadline.drive.bind import Drive
from leadline.drive.guard import Refused
from leadline.errors import RigTrouble
from leadline.host import journal, lease
from leadline.host.connection import Host, open_host
from leadline.host.lease import take
from leadline.inventory.rig import DriveSpec, HostSpec
from leadline.power import blackout
from leadline.power.families.baytech import BaytechRpc3
from leadline.power.outlets import ENTRY
from leadline.power.pdu import open_pdu
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.outlet_rig import OF_A, OF_B, OF_HOST, SECOND, Permit, rig_file
from selftests.power_world import FakeEyes, Stage, drive, pdu_spec, quick, stage
from selftests.visit_world import WWN

__all__ = ["quick", "stage"]  # fixtures

SWAPPED_A = OF_A.replace("outlet: 2", "outlet: 3")
SWAPPED_B = OF_B.replace("outlet: 3", "outlet: 2")


@dataclass
class Rig:
    """The command before a rig whose drives are made up, and whose PDU is on a pty.

    Outlet 2 feeds drive a, outlet 3 drive b; outlets 1 and 4 nothing that is seen.
    """

    stage: Stage
    capsys: pytest.CaptureFixture[str]
    did: list[str] = field(default_factory=list)
    refusal: Refused | None = None

    @property
    def path(self) -> Path:
        return self.stage.tmp_path / "bench.yaml"

    @property
    def cuts(self) -> list[str]:
        return [did for did in self.stage.world.did if did.startswith("outlet")]

    def run(self, *words: str, outlets: Sequence[str] = (OF_A, OF_B)) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        self.path.write_text(rig_file(self.stage.tmp_path, *outlets))
        return self.again(*words)

    def again(self, *words: str) -> tuple[int, str, str]:
        """On the file as it is."""
        code = main(["power", "map", "--rig", str(self.path), *words])
        self.stage.unit.settle(5)
        return code, *self.capsys.readouterr()

    def switch_off(self, outlet: int) -> None:
        with open_pdu(pdu_spec(self.stage.tmp_path)) as pdu:
            pdu.switch(outlet, False)
        self.stage.unit.settle(5)
        self.stage.world.did.clear()

    def admit_rig(self, host: Host, drives: Sequence[Drive]) -> Permit:
        if self.refusal:
            raise self.refusal
        self.did.append(f"admitted {len(drives)}")
        return Permit("all", self.did)


@pytest.fixture
def rig(stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Rig:
    made = Rig(stage, capsys)
    del stage.world.fed[1]  # this machine plays the host, and keeps its power
    stage.world.kernel.discard("host")
    stage.pdu.close()
    monkeypatch.setattr(journal, "default_directory", lambda _: str(stage.tmp_path / "journal"))
    monkeypatch.setattr(lease, "DIRECTORY", str(stage.tmp_path / "leases"))
    monkeypatch.setattr(guard, "is_own_machine", lambda host: False)
    monkeypatch.setattr(command, "_LOOK_S", 0.01)
    for module in (guard, blackout):
        monkeypatch.setattr(module, "admit_rig", made.admit_rig)
    for module in (bind_module, blackout):
        monkeypatch.setattr(module, "bind", lambda _, spec: drive(spec.slot))
    monkeypatch.setattr(blackout, "scan", lambda host: ())
    monkeypatch.setattr(blackout, "SYNC", ("true",))
    monkeypatch.setattr(blackout, "LOOK_AGAIN_S", 0.05)
    monkeypatch.setattr(
        blackout, "Sight", lambda host, drive, disks: FakeEyes(stage.world, drive.spec.slot)
    )
    return made


@pytest.fixture
def second(rig: Rig) -> Any:
    """The rig's other PDU, whose outlets feed nothing."""
    with VirtualPdu(4, lambda outlet, on: None, rig.stage.tmp_path / "second"):
        yield


pytestmark = pytest.mark.usefixtures("second")


def test_a_file_that_is_right_is_confirmed(rig: Rig) -> None:
    code, out, err = rig.run("--yes")
    assert code == 0
    assert out.splitlines() == [
        "outlet 2 of PDU p (a): a; as the rig file says",
        "outlet 3 of PDU p (b): b; as the rig file says",
        f"{rig.path}: its outlets are right",
    ]
    assert rig.cuts == ["outlet 2 off", "outlet 2 on", "outlet 3 off", "outlet 3 on"]
    assert "[1] outlet 2 of PDU p: a went dark; on, and all drives are back" in err
    assert list((rig.stage.tmp_path / "journal").iterdir()) == []


def test_two_outlets_swapped_are_found_and_said(rig: Rig) -> None:
    code, out, err = rig.run("--yes", outlets=(SWAPPED_A, SWAPPED_B))
    assert code == 2
    assert "outlet 3 of PDU p (a): b; the rig file says a" in out
    for name, said, found, number in (("a", "a", "b", 3), ("b", "b", "a", 2)):
        assert (
            f"{rig.path}:7: outlets[{name}].feeds: found [{said}], expected [{found}]: "
            f"while outlet {number} of PDU p was off, {found} went dark; {said} had power"
        ) in err
    before = rig.path.read_text()
    assert rig.again("--yes")[0] == 2
    assert rig.path.read_text() == before, "only --write writes"


def test_what_was_learned_is_written_shown_and_then_confirmed(rig: Rig) -> None:
    code, out, _ = rig.run("--yes", "--write", outlets=(SWAPPED_A, SWAPPED_B))
    assert code == 0
    assert f"+outlets: [{OF_A}, {OF_B}]\n" in out
    assert rig.path.read_text() == rig_file(rig.stage.tmp_path, OF_A, OF_B)
    code, out, _ = rig.again("--yes", "--write")
    assert (code, out.splitlines()[-1]) == (0, f"{rig.path}: its outlets are right")
    assert "---" not in out


def test_programs_get_one_object(rig: Rig) -> None:
    code, out, err = rig.run("--yes", "--json", outlets=(SWAPPED_A,))
    assert code == 2
    said = json.loads(out)
    (outlet,) = said["outlets"]
    assert outlet.pop("seconds") > 0
    assert outlet.pop("problem") in said["problems"][0]
    assert outlet == {
        "name": "a",
        "pdu": "p",
        "outlet": 3,
        "says": ["a"],
        "feeds": ["b"],
        "verified": True,
        "where": f"{rig.path}:7",
    }
    assert (said["rig"], said["holds"], said["written"]) == ("bench", False, False)
    assert {"pdu": "p", "outlet": 2} in said["not_switched"]
    assert said["problems"][0] in err
    code, out, _ = rig.again("--yes", "--json", "--write")
    said = json.loads(out)
    assert (code, said["holds"], said["written"]) == (0, True, True)
    assert "feeds: [b]" in said["diff"]


def test_nothing_is_written_where_an_outlet_feeds_nothing_known(rig: Rig) -> None:
    of_none = OF_A.replace("outlet: 2", "outlet: 4")
    code, _, err = rig.run("--yes", "--write", outlets=(of_none, OF_B))
    assert code == 2
    assert "while outlet 4 of PDU p was off, nothing known went dark; a had power" in err
    assert "Nothing was written" in err
    assert rig.path.read_text() == rig_file(rig.stage.tmp_path, of_none, OF_B)
    code, out, _ = rig.again("--yes", "--write", "--all-outlets")
    assert code == 0
    assert f"+outlets: [{OF_A}, {OF_B}]\n" in out


def test_a_rig_without_outlets_gets_them(rig: Rig) -> None:
    code, _, err = rig.run("--yes", outlets=())
    assert code == 2
    assert f"{rig.path}:7: outlets: found none to switch" in err
    code, out, _ = rig.again("--yes", "--write", "--all-outlets")
    assert code == 0
    assert f"+outlets: [{OF_A}, {OF_B}]\n" in out
    assert rig.cuts.count("outlet 4 off") == 1


def test_without_a_terminal_yes_is_needed_and_what_would_be_done_is_said(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    code, out, err = rig.run()
    assert (code, out) == (2, "")
    assert "nothing was switched: there is no terminal to ask on; give --yes" in err
    for line in (
        f"{rig.path}: these outlets will be off for 0.2 s each, one by one:",
        "  outlet 2 of PDU p (a, by the file a)",
        "  a: MODEL SERIAL-a (/dev/sda)",
        "Not switched: outlets 1, 4 of PDU p and outlets 1, 2, 3, 4 of PDU q",
        "It takes about 10 s, and a boot for each outlet that feeds the host.",
    ):
        assert line in err.splitlines()
    assert rig.cuts == []
    assert rig.did == ["admitted 2", "released all"], "the guard is asked before anybody is"


def test_outlets_that_feed_the_same_are_announced_together(rig: Rig) -> None:
    code, out, err = rig.run("--yes", outlets=(OF_A, SECOND))
    assert "  outlet 2 of PDU p (a, by the file nothing by itself)" in err.splitlines()
    assert "  outlet 2 of PDU p and outlet 3 of PDU q together (by the file a)" in err.splitlines()
    assert "It takes about 16 s" in err
    assert code == 2
    assert "outlet 3 of PDU q (second): nothing known; the rig file says a" in out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "code"), [("y\n", 0), ("YES\n", 0), ("\n", 2), ("n\n", 2), ("", 2), ("yep\n", 2)]
)
def test_a_person_is_asked(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    assert rig.run(outlets=(OF_A,))[0] == code
    assert "Go on? [y/N] " in shown.getvalue()
    assert rig.cuts == (["outlet 2 off", "outlet 2 on"] if code == 0 else [])


def test_a_drive_that_the_guard_refuses_stops_it_before_anything_is_switched(rig: Rig) -> None:
    rig.refusal = Refused("slot b: its power is not cut: it is swap", ["it is swap"])
    code, out, err = rig.run("--yes")
    assert (code, out, rig.cuts) == (2, "", [])
    assert "it is swap" in err


def test_a_drive_that_somebody_tests_is_left_alone(rig: Rig) -> None:
    with open_host(HostSpec(reach="local")) as other, take(other, WWN, "ann run 7"):
        code, _, err = rig.run("--yes")
    assert (code, rig.cuts) == (3, [])
    assert "is in use by ann run 7" in err


def test_an_outlet_that_is_off_is_somebody_elses_wish(rig: Rig) -> None:
    rig.switch_off(4)
    assert rig.run("--yes", "--all-outlets")[0] == 0
    assert "outlet 1 off" in rig.cuts
    assert "outlet 4 on" not in rig.cuts
    code, _, err = rig.run("--yes", outlets=(OF_A.replace("outlet: 2", "outlet: 4"),))
    assert code == 3
    assert "outlet a: outlet 4 of PDU p is off, so what it feeds cannot be seen" in err
    assert f"`leadline power --rig {rig.path} a on` switches it on" in err


def test_a_pdu_that_cannot_tell_is_believed_by_the_drives_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BaytechRpc3, "reads_back", False)
    code, out, _ = rig.run("--yes", "--json", "--all-outlets")
    said = json.loads(out)
    assert code == 0
    assert [(each["feeds"], each["verified"]) for each in said["outlets"]] == [
        (["a"], False),
        (["b"], False),
    ]
    assert rig.cuts == ["outlet 2 off", "outlet 2 on", "outlet 3 off", "outlet 3 on"]
    assert said["not_switched"] == [], "who knows which others are on?"
    code, _, err = rig.run("--yes", outlets=(OF_A.replace("outlet: 2", "outlet: 4"),))
    assert code == 2
    assert "while outlet 4 of PDU p was off (unverified: its PDU cannot tell), nothing known" in err


def test_the_machine_that_we_run_on_is_not_cut(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "is_own_machine", lambda host: True)
    code, _, err = rig.run("--yes", outlets=(OF_HOST, OF_A))
    assert code == 2
    assert f"{rig.path}:7: outlets[host].feeds: found host, expected the host of another" in err
    assert rig.cuts == ["outlet 2 off", "outlet 2 on"]
    code, _, err = rig.again("--yes", "--all-outlets")
    assert code == 2
    assert "--all-outlets: any outlet that is not in the file may feed this machine" in err
    assert len(rig.cuts) == 2
    assert "Should one of them feed this machine, it dies" in rig.again("--yes")[2]


def test_what_a_killed_map_left_off_is_switched_on_and_its_drive_waited_for(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_host(HostSpec(reach="local")) as dying:
        spec = pdu_spec(rig.stage.tmp_path).model_dump()
        record = {"outlets": [{"pdu": spec, "outlet": 2}], "rescan": None}
        journal.Journal(dying, "dead").open_entry(ENTRY, record)
    rig.switch_off(2)
    looks = [0]

    def coming(host: Host, spec: DriveSpec) -> Drive:
        looks[0] += 1
        if looks[0] < 4:
            raise RigTrouble("is not there")
        return drive(spec.slot)

    monkeypatch.setattr(bind_module, "bind", coming)
    code, _, err = rig.run("--yes")
    assert code == 0
    assert "is on again, after run dead" in err
    looks[0] = -9
    code, _, err = rig.again("--yes")
    assert code == 3, "without such a reason nobody waits"
    assert looks[0] == -8


def test_a_rig_without_a_pdu_has_nothing_to_map(rig: Rig) -> None:
    text = rig_file(rig.stage.tmp_path)
    rig.path.write_text(
        "".join(line for line in text.splitlines(True) if "baytech" not in line).replace(
            "pdus:\n", ""
        )
    )
    code, _, err = rig.again("--yes")
    assert code == 2
    assert "pdus: found none, expected one whose outlets to map" in err
