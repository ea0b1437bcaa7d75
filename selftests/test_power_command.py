"""`leadline power` on a rig that answers: leave, leases, the drives before and after, the outlet.

Before a host that does not answer it stands in `test_virtual_pdu`.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leadline import booting
from leadline.commands import power_dark as command
from leadline.commands.power_said import of_switched, sentences
from leadline.drive import guard
from leadline.drive.bind import Drive, Seen
from leadline.errors import RigTrouble
from leadline.host import journal
from leadline.host.connection import Host, HostLost, open_host
from leadline.host.lease import LeaseTaken, take
from leadline.inventory.rig import DriveSpec, HostSpec, load_rig
from leadline.power import cycle
from leadline.power.outlets import ENTRY
from leadline.power.pdu import Switched
from leadline.power.turns import CUTS, of_pdu
from leadline.power.wear import Wear, wear_of
from selftests.commanded_rig import GRACEFUL, Rig, absent, rig
from selftests.outlet_rig import OF_A, OF_B, OF_BOTH, OF_HOST, Eyes, rig_file
from selftests.power_world import drive, pdu_spec, quick, stage
from selftests.visit_world import WWN

__all__ = ["absent", "quick", "rig", "stage"]  # fixtures


def test_a_cycle_is_verified_and_said(rig: Rig) -> None:
    code, out, _ = rig.run("a", "cycle")
    assert code == 0
    assert rig.stage.world.did == GRACEFUL
    assert rig.did == ["admitted a to cut power", "released a"]
    cycled = r"outlet a \(2 of PDU p\): cycled: a off for \d\.\d s and the same as before; "
    assert re.match(cycled, out)
    assert "a ready 0." in out
    said = rig.json("a", "cycle")
    assert (said["on"], said["verified"], said["drives"]) == (True, True, ["a"])
    assert said["phases"]["off_s"] >= 0.1
    assert list((rig.stage.tmp_path / "journal").iterdir()) == []


def test_an_abrupt_cycle_tells_the_drive_nothing(rig: Rig) -> None:
    assert rig.run("a", "cycle", "--abrupt")[0] == 0
    assert rig.stage.world.did == GRACEFUL[1:]


def test_off_is_proven_and_stays(rig: Rig) -> None:
    code, out, _ = rig.run("a", "off")
    assert (code, out) == (0, "outlet a (2 of PDU p): off, by readback; a gone\n")
    assert rig.stage.world.did == GRACEFUL[:3]
    assert rig.run("a", "status")[1] == "outlet a (2 of PDU p): off, by readback\n"
    assert rig.run("a", "on")[1] == "outlet a (2 of PDU p): on, by readback\n"
    assert rig.json("a", "off", "--abrupt")["on"] is False
    assert rig.stage.world.did[4:] == ["outlet 2 off", "rescan"]


def test_a_drive_that_somebody_tests_is_not_cut_whatever_is_said(rig: Rig) -> None:
    with open_host(HostSpec(reach="local")) as other, take(other, WWN, "ann run 7"):
        for action in ("off", "cycle"):
            code, out, err = rig.run("a", action, "--yes")
            assert (code, out) == (3, "")
            assert "is in use by ann run 7" in err
    assert rig.stage.world.did == []


def test_nor_with_one_beside_it_that_is_gone(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong with one of them is no leave to cut the other."""

    def bind(_: Host, spec: DriveSpec) -> Drive:
        raise RigTrouble(f"{spec.slot} is not there")

    monkeypatch.setattr(command, "bind", bind)
    of_b = "serial:SERIAL-b"
    with open_host(HostSpec(reach="local")) as other, take(other, of_b, "ann run 7"):
        code, out, err = rig.run("both", "cycle", "--yes", outlets=[OF_BOTH])
    assert (code, out) == (3, "")
    assert "is in use by ann run 7" in err
    assert rig.stage.world.did == []


@pytest.mark.parametrize("action", ["cycle", "off"])
def test_nothing_is_done_before_the_pdu_has_been_heard(
    rig: Rig, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a host would be shut down, or a drive taken out, for a cut that does not come."""
    monkeypatch.setattr(cycle, "switch_all", lambda *_, **__: pytest.fail("switched"))
    monkeypatch.setattr(command, "_may_be_on", lambda _: True)
    rig.stage.unit.faults.mute = True
    code, _, err = rig.run("a", action)
    assert code == 3
    assert "no answer" in err
    assert rig.stage.world.did == []


def test_a_drive_whose_outlet_does_not_go_off_is_looked_for_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck(*_: Any, **__: Any) -> None:
        raise RigTrouble("still on after 3 commands")

    monkeypatch.setattr(cycle, "switch_all", stuck)
    code, _, err = rig.run("a", "off")
    assert code == 3
    assert "still on after 3 commands" in err
    assert rig.stage.world.did == ["delete a", "rescan"]
    assert "a" in rig.stage.world.kernel


@pytest.mark.parametrize("of", ["the rig", "its PDU"])
def test_a_cut_that_a_run_is_in_the_middle_of_is_waited_for(
    rig: Rig, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is proven by who is gone: another one meanwhile would pass for bad wiring."""
    monkeypatch.setattr(command, "TURN_S", 0.2)
    resource = CUTS if of == "the rig" else of_pdu(pdu_spec(rig.stage.tmp_path).port)
    with open_host(HostSpec(reach="local")) as other, take(other, resource, "ann run 7"):
        code, _, err = rig.run("a", "cycle", "--yes")
        assert code == 3
        assert "is in use by ann run 7" in err
    assert rig.stage.world.did == []
    assert rig.run("a", "cycle")[0] == 0


def test_drives_are_leased_while_their_power_is_off(rig: Rig) -> None:
    taken: list[str] = []

    def ask(outlet: int, on: bool) -> None:
        with open_host(HostSpec(reach="local")) as other:
            try:
                take(other, WWN, "ann").release()
            except LeaseTaken as error:
                taken.append(error.holder)

    rig.stage.world.switched = ask
    assert rig.run("a", "cycle")[0] == 0
    assert len(taken) == 2
    assert "run power" in taken[0]


def test_an_outlet_that_a_dead_run_left_off_is_switched_on_and_said(rig: Rig) -> None:
    with open_host(HostSpec(reach="local")) as dying:
        pdu = pdu_spec(rig.stage.tmp_path).model_dump()
        record = {"outlets": [{"pdu": pdu, "outlet": 4}], "rescan": None}
        journal.Journal(dying, "dead").open_entry(ENTRY, record)
    _, _, err = rig.run("a", "cycle")
    assert err.startswith("leadline: outlet 4 of PDU 'p'")


def test_a_host_that_a_dead_run_left_without_power_is_waited_for(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[str] = []

    def answer(spec: HostSpec, **_: object) -> Host:
        attempts.append(spec.reach)
        if len(attempts) < 3:
            raise HostLost("it boots")
        return open_host(spec)

    monkeypatch.setattr(booting, "open_host", answer)
    monkeypatch.setattr(booting, "RETRY_S", 0.01)
    with open_host(HostSpec(reach="local")) as dying:
        pdu = pdu_spec(rig.stage.tmp_path).model_dump()
        record = {"outlets": [{"pdu": pdu, "outlet": 1}], "rescan": None}
        journal.Journal(dying, "dead").open_entry(ENTRY, record)
    code, _, err = rig.run("a", "cycle", outlets=[OF_HOST, OF_A])
    assert code == 0, err
    assert len(attempts) == 3
    assert err.endswith("leadline: rig bench: waiting for its host to boot, 300 s at most\n")


def test_another_rigs_outlet_that_cannot_be_switched_on_is_only_said(rig: Rig) -> None:
    with open_host(HostSpec(reach="local")) as dying:
        pdu = pdu_spec(rig.stage.tmp_path / "gone").model_dump()
        record = {"outlets": [{"pdu": pdu, "outlet": 4}], "rescan": None}
        journal.Journal(dying, "dead").open_entry(ENTRY, record)
    for _ in range(2):
        code, _, err = rig.run("a", "cycle")
        assert code == 0
        assert "left off by run dead, and cannot be switched on" in err


def test_a_hosts_outlet_takes_drives_with_outlets_of_their_own(rig: Rig) -> None:
    """This machine is the rig, and is not cut: the cycle itself refuses it."""
    code, _, err = rig.run("host", "cycle", outlets=[OF_HOST, OF_A])
    assert code == 2
    assert "runs on" in err
    assert rig.did == ["admitted the host of 2", "released the host"]


def test_a_killed_cycle_leaves_on_record_where_every_drive_is_to_be_looked_for(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def eyes(host: Host, drive: Drive, disks: Sequence[Seen], *_: object) -> Eyes:
        made = rig.eyes(host, drive, disks)
        made.scan_path = f"/sys/class/scsi_host/of-{made.slot}/scan"
        return made

    for module in (cycle, command):
        monkeypatch.setattr(module, "Sight", eyes)
    records: list[str] = []

    def read(outlet: int, on: bool) -> None:
        (path,) = (rig.stage.tmp_path / "journal").iterdir()
        records.append(path.read_text())
        rig.both_go(outlet, on)

    rig.stage.world.switched = read
    assert rig.run("both", "cycle", outlets=[OF_BOTH])[0] == 0
    assert len(records) == 2
    for record in records:
        assert '["/sys/class/scsi_host/of-a/scan", "/sys/class/scsi_host/of-b/scan"]' in record


def test_a_neighbour_is_looked_over_and_awaited(rig: Rig) -> None:
    rig.stage.world.fed = {2: "a"}
    rig.stage.world.switched = rig.both_go
    said = rig.json("both", "cycle", outlets=[OF_BOTH])
    assert said["drives"] == ["a", "b"]
    assert rig.did[:3] == [
        "admitted b to cut power",
        "released b",
        "admitted a to cut power",
    ]
    rig.after["b"] = "OTHER"
    code, _, err = rig.run("both", "cycle", outlets=[OF_BOTH])
    assert code == 1
    assert "slot b: " in err
    assert "serial was 'SERIAL-b' and is 'OTHER'" in err


def test_a_slot_without_outlets_and_unknown_slots_are_refused(rig: Rig) -> None:
    code, _, err = rig.run("--drive", "b", "status")
    assert code == 2
    assert "no outlet feeds slot b" in err
    assert "found no slot 'z', expected one of: a, b" in rig.run("--drive", "z", "status")[2]


@pytest.mark.parametrize(
    "words",
    [
        ("a", "--json", "status"),
        ("a", "status", "--json"),
        ("--json", "a", "status"),
        ("--drive", "a", "status", "--json"),
        ("status", "--json", "--drive", "a"),
    ],
)
def test_options_may_stand_anywhere(rig: Rig, words: Sequence[str]) -> None:
    code, out, err = rig.run(*words)
    assert code == 0, err
    assert json.loads(out)["outlet"] == "a"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a", "restart"), "found 'restart' at the end, expected one of: on, off, cycle, status"),
        (("status",), "status what? Name outlets before it, or a drive with --drive SLOT"),
        (("log",), "(or leadline power log, power map)"),
        (("a", "status", "--jsno"), "unknown options: --jsno"),
        (("a", "--color", "status"), "unknown options: --color"),
    ],
)
def test_wrong_words_are_said(rig: Rig, words: Sequence[str], message: str) -> None:
    code, out, err = rig.run(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert rig.stage.world.did == []


def test_outlets_called_log_and_map_can_be_named(rig: Rig) -> None:
    named = [OF_A.replace("name: a", "name: log"), OF_B.replace("name: b", "name: map")]
    code, out, _ = rig.run("log", "map", "status", outlets=named)
    assert code == 0
    assert out.startswith("outlet log (2 of PDU p): on, by readback\noutlet map (3 of PDU p)")


def test_a_shelf_is_off_for_as_long_as_its_slowest_drive_needs(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "bind", lambda _, spec: replace(drive(spec.slot), spec=spec))
    rig.stage.world.fed = {2: "a"}
    rig.stage.world.switched = rig.both_go
    assert rig.json("both", "cycle", outlets=[OF_BOTH])["phases"]["off_s"] >= 0.2


@pytest.mark.parametrize(
    ("action", "drives", "words"),
    [
        ("on", [], "told to go on, unverified: its PDU cannot tell"),
        ("off", [], "told to go off, unverified: its PDU cannot tell"),
        ("off", ["a"], "told to go off, unverified: its PDU cannot tell; a gone"),
        (
            "cycle",
            [],
            "cycled and told to go on, unverified: its PDU cannot tell; no drive was checked",
        ),
        (
            "cycle",
            ["a"],
            "cycled: a off for 1.0 s and the same as before; a ready 2.0 s after power on; told to "
            "go on, unverified: its PDU cannot tell",
        ),
    ],
)
def test_an_outlet_that_cannot_be_read_back_is_never_called_on_or_off(
    tmp_path: Path, action: str, drives: list[str], words: str
) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(rig_file(tmp_path, OF_A))
    told = Switched(2, action != "off", False, 0.1, 1, 0.1)
    done = of_switched(load_rig(path).outlets, [told]) | {"action": action, "drives": drives}
    assert (done["on"], done["verified"], done["outlets"][0]["on"]) == (None, False, None)
    phases = {"off_s": 1.0, "ready_s": 2.0}
    assert sentences(done | {"phases": phases}) == f"outlet a (2 of PDU p): {words}"


def test_an_unchecked_cycle_is_off_for_as_long_as_the_slowest_drive_needs(
    absent: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert absent.run("both", "cycle", outlets=[OF_BOTH])[0] == 3
    assert absent.stage.world.did == []
    sleeps: list[float] = []
    monkeypatch.setattr(command, "time", SimpleNamespace(sleep=sleeps.append))
    assert wear_of(drive("a").spec) == Wear(0, 0)
    code, out, _ = absent.run("both", "cycle", "--yes", outlets=[OF_BOTH])
    assert [wear_of(drive(slot).spec) for slot in "ab"] == [Wear(1, 1)] * 2, "they may be disks"
    assert (code, sleeps) == (0, [0.2])
    assert out == "outlet both (2 of PDU p): cycled and on, by readback; no drive was checked\n"
    assert absent.stage.world.did == ["outlet 2 off", "outlet 2 on"]


@pytest.mark.parametrize("words", [("off",), ("cycle", "--yes"), ("off", "--yes")])
def test_a_missing_drive_is_no_leave_to_cut_the_machine_that_leadline_runs_on(
    absent: Rig, words: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would be left to switch it on again."""
    monkeypatch.setattr(command, "admit_host", guard.admit_host)
    code, out, err = absent.run("host", *words, outlets=[OF_HOST])
    assert (code, out) == (2, "")
    assert "feeds the machine that Leadline itself runs on" in err
    assert "--yes" not in err
    assert absent.stage.world.did == []


@pytest.mark.parametrize("action", ["off", "cycle"])
def test_a_drive_in_use_is_not_cut_beside_one_that_is_gone(
    rig: Rig, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bind(_: Host, spec: DriveSpec) -> Drive:
        if spec.slot == "a":
            raise RigTrouble("slot a: the drive is not there")
        return drive(spec.slot)

    def admit(_: Host, spec: DriveSpec, *__: object) -> None:
        raise guard.Refused(f"{spec.slot} is mounted", ["mounted"])

    monkeypatch.setattr(command, "bind", bind)
    with monkeypatch.context() as with_b_mounted:
        with_b_mounted.setattr(command, "admit", admit)
        for words in (action,), (action, "--yes"):
            code, out, err = rig.run("both", *words, outlets=[OF_BOTH])
            assert (code, out) == (2, "")
            assert "b is mounted" in err
            assert "--yes" not in err
    assert rig.stage.world.did == []
    assert rig.run("both", action, outlets=[OF_BOTH])[0] == 3
    assert rig.run("both", action, "--yes", outlets=[OF_BOTH])[0] == 0
    assert rig.did == ["admitted b to cut power", "released b"] * 2


def test_ctrl_c_in_an_unchecked_cycle_leaves_the_outlet_on(
    absent: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ctrl_c(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "time", SimpleNamespace(sleep=ctrl_c))
    assert absent.run("a", "cycle", "--yes")[0] == 130
    assert absent.stage.world.did == ["outlet 2 off", "outlet 2 on"]
    assert absent.stage.has_power(2)
