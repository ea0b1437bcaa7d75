"""What dead runs left is mended: outlets first, then settings, and each that cannot be is said."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from leadline import booting
from leadline import mend as mend_module
from leadline.errors import RigTrouble
from leadline.host import journal as journal_module
from leadline.host.connection import DeadlinePassed, Host, HostLost, open_host
from leadline.host.journal import Journal
from leadline.inventory.pdu import PduSpec
from leadline.inventory.rig import HostSpec, OutletSpec, Rig
from leadline.mend import mend, mend_power
from leadline.power.byte_log import ByteLogs
from leadline.power.outlets import ENTRY
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.power_world import pdu_spec, quick
from selftests.test_away import leave_away
from selftests.visit_world import make_run

__all__ = ["quick"]  # a fixture

AWAY = HostSpec(reach="ssh", address="localhost.invalid")


class Machines:
    """This machine as two: what steers the rig, and the rig; each with journals of its own."""

    def __init__(self, folder: Path, rig_host: HostSpec) -> None:
        self.folder = folder
        self._rig_host = rig_host

    def open_host(self, spec: HostSpec) -> Host:
        host = open_host(spec)
        if spec is self._rig_host:
            host.name = "rig"
        return host

    def directory(self, host: Host) -> str:
        return str(self.folder / f"journal of {host.name}")

    def setting(self, name: str) -> Path:
        path = self.folder / name
        path.write_text("old")
        return path


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return make_run(tmp_path).rigs["bench"]


@pytest.fixture
def machines(tmp_path: Path, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Machines:
    made = Machines(tmp_path, rig.host)
    monkeypatch.setattr(mend_module, "open_host", made.open_host)
    monkeypatch.setattr(journal_module, "default_directory", made.directory)
    return made


@pytest.fixture
def dying(machines: Machines, rig: Rig) -> Iterator[dict[str, Host]]:
    """Connections of a run that is about to die, by machine."""
    with ExitStack() as stack:
        specs = {"here": HostSpec(reach="local"), "rig": rig.host}
        yield {name: stack.enter_context(machines.open_host(spec)) for name, spec in specs.items()}


def test_the_settings_of_the_run_that_ended_and_of_dead_ones_are_given_back(
    machines: Machines, dying: dict[str, Host], rig: Rig
) -> None:
    ended, dead = machines.setting("ended"), machines.setting("dead")
    Journal(dying["rig"], "run-1").change(str(ended), "new")
    Journal(dying["rig"], "run-0").change(str(dead), "new")
    dying["rig"].close()
    said = list(mend([rig], "run-1"))
    assert (ended.read_text(), dead.read_text()) == ("old", "old")
    assert [sentence.rpartition("run ")[2] for sentence in said] == ["run-1", "run-0"]


@pytest.mark.parametrize("where", ["here", "rig"])
def test_the_agent_of_the_run_that_ended_is_given_time_to_end(
    machines: Machines, dying: dict[str, Host], rig: Rig, where: str
) -> None:
    setting = machines.setting("setting")
    Journal(dying[where], "run-1").change(str(setting), "new")
    threading.Timer(0.5, dying[where].close).start()
    list(mend([rig], "run-1"))
    assert setting.read_text() == "old"


def test_an_outlet_that_was_left_off_is_on_again_before_settings_are_given_back(
    machines: Machines, dying: dict[str, Host], rig: Rig, tmp_path: Path
) -> None:
    setting, spec = machines.setting("setting"), pdu_spec(tmp_path)
    as_outlet: list[str] = []
    leave_off(dying["here"], spec.model_dump())
    Journal(dying["rig"], "run-1").change(str(setting), "new")
    for host in dying.values():
        host.close()
    with VirtualPdu(
        4, lambda *_: as_outlet.append(setting.read_text()), tmp_path / "pdu", on=[1]
    ) as unit:
        fed = rig.model_copy(update={"pdus": (spec,)})
        with ByteLogs(tmp_path / "serial", print) as logs:
            outlet, given_back = mend([fed], "run-1", logs)
        unit.settle(5)
        assert unit.contacts[2]
    assert "is on again" in outlet
    assert "new -> old" in given_back
    assert as_outlet == ["new"], "the outlet came first"
    assert r"> on 2\r" in (tmp_path / "serial" / "p.log").read_text()


def test_a_drive_that_is_away_from_home_is_said_and_left_there(
    machines: Machines, dying: dict[str, Host], rig: Rig
) -> None:
    leave_away(Journal(dying["here"], "run-1"))
    for host in dying.values():
        host.close()
    for _ in range(2):
        (said,) = mend([rig], "run-1")
        assert "MODEL SERIAL-a came with firmware 1.0; run run-1 put 1.1 on it" in said
        assert f"leadline flash --rig {rig.path} a 1.0 --allow-flash" in said


def leave_off(host: Host, pdu: dict[str, object]) -> None:
    record = {"outlets": [{"pdu": pdu, "outlet": 2}], "rescan": None}
    Journal(host, "run-1").open_entry(ENTRY, record)


def test_what_cannot_be_mended_is_said_and_stops_nothing_else(
    machines: Machines, dying: dict[str, Host], rig: Rig, tmp_path: Path
) -> None:
    setting, spec = machines.setting("setting"), pdu_spec(tmp_path)
    leave_off(dying["here"], spec.model_dump())
    Journal(dying["rig"], "run-1").change(str(setting), "new")
    for host in dying.values():
        host.close()
    lost = rig.model_copy(update={"name": "lost", "host": AWAY})
    outlet, away, given_back = mend([lost, rig.model_copy(update={"pdus": (spec,)})], "run-1")
    assert outlet.startswith("an outlet could not be switched on again: left off by run run-1")
    assert away.startswith("rig lost: settings could not be given back: ")
    assert "new -> old" in given_back
    assert setting.read_text() == "old"


def test_a_setting_that_cannot_be_given_back_keeps_no_outlet_off(
    machines: Machines,
    dying: dict[str, Host],
    rig: Rig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the rig is this machine, one folder has both on record."""
    monkeypatch.setattr(machines, "directory", lambda _: str(tmp_path / "journal"))
    monkeypatch.setattr(journal_module, "default_directory", machines.directory)
    setting, spec = machines.setting("setting"), pdu_spec(tmp_path)
    leave_off(dying["here"], spec.model_dump())
    Journal(dying["rig"], "run-1").change(str(setting), "new")
    for host in dying.values():
        host.close()
    setting.unlink()
    setting.mkdir()
    with VirtualPdu(4, lambda *_: None, tmp_path / "pdu", on=[1]) as unit:
        said = list(mend([rig.model_copy(update={"pdus": (spec,)})], "run-1"))
        unit.settle(5)
        assert unit.contacts[2]
    assert said[0].startswith("settings could not be given back: ")
    assert "is on again" in said[1]


def test_power_alone_is_mended_before_a_rig_is_asked_for_anything(
    machines: Machines, dying: dict[str, Host], rig: Rig, tmp_path: Path
) -> None:
    spec = pdu_spec(tmp_path)
    leave_off(dying["here"], spec.model_dump())
    dying["here"].close()
    fed = rig.model_copy(update={"pdus": (spec,), "host": AWAY})
    assert list(mend_power([rig])) == [], "which has no PDU"
    (trouble,) = mend_power([rig, fed])
    assert trouble.startswith("an outlet could not be switched on again: left off by run run-1")
    with VirtualPdu(4, lambda *_: None, tmp_path / "pdu", on=[1]) as unit:
        with ByteLogs(tmp_path / "serial", print) as logs:
            (said,) = mend_power([rig, fed], logs)
        assert unit.contacts[2]
    assert "is on again" in said
    assert r"> on 2\r" in (tmp_path / "serial" / "p.log").read_text()


@pytest.fixture
def boots(monkeypatch: pytest.MonkeyPatch) -> list[RigTrouble]:
    """What the host does at each attempt to reach it; it is up when that is all."""
    troubles: list[RigTrouble] = [HostLost("it does not answer"), DeadlinePassed("nor now")]

    def answer(*_: object, **__: object) -> Host:
        if troubles:
            raise troubles.pop(0)
        return open_host(HostSpec(reach="local"))

    monkeypatch.setattr(booting, "open_host", answer)
    monkeypatch.setattr(booting, "RETRY_S", 0.01)
    return troubles


def fed_by(rig: Rig, spec: PduSpec) -> Rig:
    """The rig, its host on outlet 2 of that PDU."""
    outlet = OutletSpec(name="host", pdu=spec.name, outlet=2, feeds="host")
    return rig.model_copy(update={"pdus": (spec,), "outlets": (outlet,)})


WAITS = "rig bench: waiting for its host to boot, 300 s at most"


def test_a_host_that_has_power_again_is_waited_for(
    machines: Machines,
    dying: dict[str, Host],
    rig: Rig,
    tmp_path: Path,
    boots: list[RigTrouble],
) -> None:
    """Else the first run after one that died fails, and only the second works."""
    spec = pdu_spec(tmp_path)
    leave_off(dying["here"], spec.model_dump())
    dying["here"].close()
    with VirtualPdu(4, lambda *_: None, tmp_path / "pdu", on=[1]):
        on_again, waits = mend_power([fed_by(rig, spec)])
    assert "is on again" in on_again
    assert waits == WAITS
    assert boots == []
    assert list(mend_power([fed_by(rig, spec)])) == [], "it was, once"


def test_and_so_it_is_by_what_mends_a_run_that_has_just_ended(
    machines: Machines,
    dying: dict[str, Host],
    rig: Rig,
    tmp_path: Path,
    boots: list[RigTrouble],
) -> None:
    setting, spec = machines.setting("setting"), pdu_spec(tmp_path)
    leave_off(dying["here"], spec.model_dump())
    Journal(dying["rig"], "run-1").change(str(setting), "new")
    for host in dying.values():
        host.close()
    with VirtualPdu(4, lambda *_: None, tmp_path / "pdu", on=[1]):
        _, waits, _ = mend([fed_by(rig, spec)], "run-1")
    assert waits == WAITS
    assert setting.read_text() == "old"


def test_an_outlet_that_does_not_feed_the_host_is_no_reason_to_wait(
    machines: Machines,
    dying: dict[str, Host],
    rig: Rig,
    tmp_path: Path,
    boots: list[RigTrouble],
) -> None:
    spec = pdu_spec(tmp_path)
    leave_off(dying["here"], spec.model_dump())
    dying["here"].close()
    fed = fed_by(rig, spec)
    host_on_3 = fed.outlets[0].model_copy(update={"outlet": 3})
    with VirtualPdu(4, lambda *_: None, tmp_path / "pdu", on=[1, 3]):
        (said,) = mend_power([fed.model_copy(update={"outlets": (host_on_3,)})])
    assert "is on again" in said
    assert len(boots) == 2


def test_a_host_that_does_not_boot_is_not_waited_for_longer_than_its_rig_file_says(
    rig: Rig, tmp_path: Path, boots: list[RigTrouble]
) -> None:
    boots += [HostLost("it does not answer") for _ in range(1000)]
    slow = fed_by(rig, pdu_spec(tmp_path))
    soon = slow.host.model_copy(update={"boot_deadline_s": 0.1})
    with pytest.raises(RigTrouble, match=r"does not answer 0.1 s after .* host cycle --yes"):
        list(booting.await_boot(slow.model_copy(update={"host": soon})))
    boots[:] = [HostLost("its host key has changed", "host-key-changed")]
    with pytest.raises(HostLost, match="host key"):
        list(booting.await_boot(slow))


def test_an_outlet_of_another_rig_that_is_gone_is_only_said(
    machines: Machines, dying: dict[str, Host], rig: Rig, tmp_path: Path
) -> None:
    leave_off(dying["here"], pdu_spec(tmp_path).model_dump())
    dying["here"].close()
    (said,) = mend([rig], "run-1")
    assert said.startswith("left off by run run-1, and cannot be switched on")
