"""Outlets end on, whatever breaks a power cycle off: an error, Ctrl-C at any line, SIGKILL."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest

from leadline.errors import RigTrouble
from leadline.host.connection import Host, open_host
from leadline.host.journal import Journal, dead_entries
from leadline.inventory.pdu import PduSpec
from leadline.inventory.rig import HostSpec
from leadline.power import outlets, spin_up
from leadline.power.cycle import carry_out
from leadline.power.dark import HotPlug
from leadline.power.outlets import ENTRY, Rescan, lent, restore_outlets
from leadline.power.pdu import Pdu, open_pdu
from leadline.power.spin_up import SpinUp
from leadline.power.supplies import Supply
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.pdu_line import bench
from selftests.power_world import (
    OFF_S,
    Clock,
    FakeEyes,
    Leave,
    Stage,
    here,
    pdu_spec,
    quick,
    stage,
    toll_of,
)

__all__ = ["here", "quick", "stage"]  # fixtures


def borrowed(stage: Stage, journal: Journal, eyes: FakeEyes, *others: Supply) -> None:
    """A whole cycle, as `power_cycle` does it."""
    subject = HotPlug(eyes)
    supplies = [*stage.supplies(2), *others]
    with lent(journal, supplies, subject.put_back):
        carry_out(subject, eyes, supplies, Leave(), toll_of(eyes), off_s=OFF_S, abrupt=False)


def test_an_error_puts_power_and_drive_back(stage: Stage, here: Host) -> None:
    eyes = FakeEyes(stage.world, "a")
    stage.world.notices = False
    errors = iter([RigTrouble("the host does not answer")])

    def fail_once() -> None:
        for error in errors:
            raise error

    eyes.after_rescan = fail_once
    directory = str(stage.tmp_path / "journal")
    journal = Journal(here, "r", directory=directory)
    with journal, pytest.raises(RigTrouble, match="the host does not answer"):
        borrowed(stage, journal, eyes)
    assert stage.has_power(2)
    assert "a" in stage.world.kernel, "found by another rescan"
    assert not Path(directory).exists() or not list(Path(directory).iterdir())


def test_a_drive_that_one_of_two_supplies_feeds_is_looked_for(
    stage: Stage, here: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has power: that its other PDU is dead keeps it from nobody."""

    def one_is_dead(*_: object, **__: object) -> None:
        raise RigTrouble("PDU q is silent")

    looked: list[str] = []
    monkeypatch.setattr(outlets, "switch_all", one_is_dead)
    journal = Journal(here, "r", directory=str(stage.tmp_path / "journal"))
    supplies = stage.supplies(2)
    with (
        pytest.raises(KeyboardInterrupt) as caught,
        lent(journal, supplies, lambda: looked.append("rescan")),
    ):
        raise KeyboardInterrupt
    assert "PDU q is silent" in caught.value.__notes__[0]
    assert looked == ["rescan"]


def test_what_cannot_be_put_back_is_noted_and_stays_on_record(stage: Stage, here: Host) -> None:
    directory = str(stage.tmp_path / "journal")
    journal = Journal(here, "r", directory=directory)
    with pytest.raises(KeyboardInterrupt) as caught, lent(journal, stage.supplies(2), lambda: None):
        stage.pdu.switch(2, False)
        stage.unit.faults.stuck.add(2)
        raise KeyboardInterrupt
    assert "still off after 3 commands" in caught.value.__notes__[0]
    assert stage.unit.contacts[2] is False
    journal.give_back()
    stage.unit.faults.stuck.clear()
    stage.pdu.close()
    with open_host(HostSpec(reach="local")) as other:
        assert dead_entries(other, ENTRY, directory=directory) == [], "its run still lives"


class Interruption:
    """Raises KeyboardInterrupt at the nth line of Leadline's power layer, once."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, _: object) -> "Interruption | None":
        if "leadline/power" not in frame.f_code.co_filename:
            return None
        if event == "line" and self.left > 0:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


@contextmanager
def interrupted(at: int) -> Iterator[Interruption]:
    interruption = Interruption(at)
    before = sys.gettrace()
    sys.settrace(interruption)
    try:
        yield interruption
    finally:
        sys.settrace(before)


def test_ctrl_c_at_any_line_leaves_the_outlet_on(stage: Stage, here: Host) -> None:
    """Sampled more densely at the beginning, where one line in the wrong place would tell."""
    directory = str(stage.tmp_path / "journal")
    at, broken_off = 1, 0
    while True:
        eyes = FakeEyes(stage.world, "a")
        journal = Journal(here, "r", directory=directory)
        with interrupted(at) as interruption:
            try:
                borrowed(stage, journal, eyes)
            except KeyboardInterrupt:
                broken_off += 1
        stage.unit.settle(5)
        assert stage.unit.contacts[2] is True, f"at line {at}"
        journal.give_back()
        eyes.rescan()
        if interruption.left:
            break
        at += 1 + at // 8
    assert broken_off > 20


def test_ctrl_c_at_any_line_leaves_the_outlets_of_two_pdus_on(stage: Stage, here: Host) -> None:
    """They are switched by threads of their own, which must have ended before anything is put back.

    Sampled, as above; the dialogues are in those threads.
    """
    directory = str(stage.tmp_path / "journal")
    spec = PduSpec(name="q", family="baytech-rpc3", port=str(stage.tmp_path / "q"), outlets=4)
    at, broken_off = 1, 0
    with (
        VirtualPdu(4, lambda *_: None, stage.tmp_path / "q") as second,
        open_pdu(spec) as pdu,
    ):
        while True:
            eyes = FakeEyes(stage.world, "a")
            journal = Journal(here, "r", directory=directory)
            with interrupted(at) as interruption:
                try:
                    borrowed(stage, journal, eyes, Supply(pdu, 3))
                except KeyboardInterrupt:
                    broken_off += 1
            assert not [one for one in threading.enumerate() if one.name.startswith("pdu ")]
            stage.unit.settle(5)
            second.settle(5)
            assert (stage.unit.contacts[2], second.contacts[3]) == (True, True), f"at line {at}"
            journal.give_back()
            eyes.rescan()
            if interruption.left:
                break
            at += 1 + at // 8
    assert broken_off > 15


CHILD = """
import sys
from pathlib import Path
from leadline.host.connection import open_host
from leadline.host.journal import Journal
from leadline.inventory.pdu import PduSpec
from leadline.inventory.rig import HostSpec
from leadline.power import port
from leadline.power.outlets import lent
from leadline.power.pdu import Pdu, open_pdu
from leadline.power.supplies import Supply
tmp = Path(sys.argv[1])
port.LOCK_DIRECTORY = tmp
spec = PduSpec(name="p", family="baytech-rpc3", port=str(tmp / "pdu"), outlets=4)
with open_host(HostSpec(reach="local")) as here, open_pdu(spec) as pdu:
    with lent(Journal(here, "dead", directory=str(tmp / "journal")), [Supply(pdu, 2)], print):
        pdu.switch(2, False)
        print("off", flush=True)
        sys.stdin.read()
"""


def restored(here: Host, directory: str) -> list[str]:
    """What was restored, once the dead run's agent has let its journal go."""
    let_go = threading.Event()
    for _ in range(100):
        if said := restore_outlets(here, directory=directory):
            return said
        let_go.wait(0.1)
    return []


def test_what_a_killed_run_left_off_the_next_one_switches_on(stage: Stage, here: Host) -> None:
    stage.pdu.close()
    directory = str(stage.tmp_path / "journal")
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(stage.tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == b"off\n"
        assert not stage.has_power(2)
        assert restore_outlets(here, directory=directory) == [], "while its run lives"
        child.send_signal(signal.SIGKILL)
    (sentence,) = restored(here, directory)
    assert "outlet 2 of PDU 'p'" in sentence
    assert "is on again, after run dead" in sentence
    assert stage.has_power(2)
    assert restore_outlets(here, directory=directory) == []


def test_an_outlet_that_cannot_be_restored_stays_on_record(stage: Stage, here: Host) -> None:
    directory = str(stage.tmp_path / "journal")
    with open_host(HostSpec(reach="local")) as dying:
        journal = Journal(dying, "dead", directory=directory)
        journal.open_entry(
            ENTRY,
            {
                "outlets": [{"pdu": pdu_spec(stage.tmp_path).model_dump(), "outlet": 2}],
                "rescan": None,
            },
        )
    stage.pdu.close()
    stage.unit.unplug()
    for _ in range(2):
        with pytest.raises(RigTrouble, match=r"left off by run dead.*no such port.*remove /"):
            restore_outlets(here, directory=directory)
    (sentence,) = restore_outlets(here, ports={"/dev/another-rigs"}, directory=directory)
    assert "cannot be switched on" in sentence, "said, and no error on another rig"
    with pytest.raises(RigTrouble, match="no such port"):
        restore_outlets(here, ports={str(stage.tmp_path / "pdu")}, directory=directory)
    stage.unit.plug_in()
    (sentence,) = restore_outlets(here, directory=directory)
    assert "was on already" in sentence


def left_off(directory: str, *names: str) -> None:
    """Outlet 2 of each of these PDUs, on record by a run that is dead."""
    with open_host(HostSpec(reach="local")) as dying:
        journal = Journal(dying, "dead", directory=directory)
        specs = [{"name": name, "family": "baytech-rpc3", "port": "/dev/x"} for name in names]
        off = [{"pdu": spec, "outlet": 2} for spec in specs]
        journal.open_entry(ENTRY, {"outlets": off, "rescan": None})


def test_another_rigs_password_that_is_not_set_here_is_only_said(
    tmp_path: Path, here: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OF_ANOTHER_RIG", raising=False)
    spec = {"name": "p", "family": "apc-cli", "port": "/dev/x", "username": "u"}
    with open_host(HostSpec(reach="local")) as dying:
        off = [{"pdu": {**spec, "password_env": "OF_ANOTHER_RIG"}, "outlet": 2}]
        journal = Journal(dying, "dead", directory=str(tmp_path))
        journal.open_entry(ENTRY, {"outlets": off, "rescan": None})
    (sentence,) = restore_outlets(here, ports={"/dev/ours"}, directory=str(tmp_path))
    assert "cannot be switched on" in sentence
    with pytest.raises(RigTrouble, match="cannot be switched on"):
        restore_outlets(here, ports={"/dev/x"}, directory=str(tmp_path))


def test_an_outlet_whose_status_cannot_be_had_is_told_to_go_on(
    tmp_path: Path, here: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_off(str(tmp_path), "a")
    with bench() as (pdu, line):
        pdu.switch(2, False)
        line.instead = lambda data: b"\r\nRPC3-NC>" if b"status" in data else None
        monkeypatch.setattr(outlets, "open_pdu", lambda spec, log=None: nullcontext(pdu))
        with pytest.raises(RigTrouble, match=r"left off by run dead, and cannot .*: status: "):
            restore_outlets(here, directory=str(tmp_path))
        assert line.dialogue.contacts[2] is True
        line.instead = lambda _: None
        (sentence,) = restore_outlets(here, directory=str(tmp_path))
        assert "was on already" in sentence


def test_one_pdu_that_is_gone_keeps_no_other_outlet_off(
    tmp_path: Path, here: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_off(str(tmp_path), "gone", "a")
    with bench() as (pdu, line):
        pdu.switch(2, False)

        def open_pdu(spec: PduSpec, log: object = None) -> AbstractContextManager[Pdu]:
            if spec.name == "gone":
                raise RigTrouble("PDU 'gone': there is no such port")
            return nullcontext(pdu)

        monkeypatch.setattr(outlets, "open_pdu", open_pdu)
        with pytest.raises(RigTrouble, match=r"cannot be .* 'gone': there is no.*is on again, aft"):
            restore_outlets(here, directory=str(tmp_path))
        assert line.dialogue.contacts[2] is True


def test_disks_that_a_dead_run_left_off_are_started_in_turn(
    stage: Stage, here: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(spin_up, "time", clock)
    folder = stage.tmp_path / "journal"
    disk = SpinUp("bench", ("a",), 5.0)
    supplies = [Supply(stage.pdu, 2, disk), Supply(stage.pdu, 3, replace(disk, slots=("b",)))]
    with (
        Journal(here, "living", directory=str(folder)) as journal,
        lent(journal, supplies, lambda: None),
    ):
        (stage.tmp_path / "dead.jsonl").write_bytes((folder / "living.jsonl").read_bytes())
    (stage.tmp_path / "dead.jsonl").rename(folder / "dead.jsonl")
    stage.pdu.close()
    assert len(restore_outlets(here, directory=str(folder))) == 2
    assert clock.sleeps == [5.0]


def test_all_drives_that_were_taken_out_are_looked_for_again(stage: Stage, here: Host) -> None:
    directory = str(stage.tmp_path / "journal")
    scans = [stage.tmp_path / name for name in ("scan1", "scan2")]
    rescan = Rescan(HostSpec(reach="local"), tuple(map(str, scans)))
    with (
        pytest.raises(RigTrouble, match="the connection was closed"),
        open_host(HostSpec(reach="local")) as dying,
        lent(Journal(dying, "dead", directory=directory), stage.supplies(2), print, rescan),
    ):
        dying.close()  # as a killed run's does: nothing can be put on record any more
    stage.pdu.close()
    restore_outlets(here, directory=directory)
    assert [scan.read_text() for scan in scans] == ["- - -\n"] * 2
