"""A rig while it is in use: mended when it is opened, given back when it is left, lost once."""

import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from leadline import station as station_module
from leadline.drive import locate
from leadline.errors import DriveFault, RigTrouble
from leadline.host.connection import Host, HostLost, open_host
from leadline.host.journal import Journal
from leadline.inventory.pdu import PduSpec
from leadline.inventory.rig import HostSpec, OutletSpec, Rig
from leadline.live import Live
from leadline.mend import mend
from leadline.power.outlets import ENTRY
from leadline.results.record import Record
from leadline.results.schema import Phase
from leadline.station import Station, Stations, watched
from leadline.virtual.pdus.pty import VirtualPdu
from leadline.visiting import OpenVisit
from selftests.power_world import pdu_spec, quick
from selftests.visit_world import (
    Bench,
    bench,
    kept,
    make_run,
    opened,
    refuse,
    station,
    watch_of,
)

__all__ = ["bench", "opened", "quick", "station"]  # fixtures

LOST = HostLost("bench: the connection ended")


@pytest.fixture
def setting(tmp_path: Path) -> Path:
    """A kernel attribute of the rig."""
    path = tmp_path / "attribute"
    path.write_text("old")
    return path


def dead_run(**left: Any) -> None:
    """A run that died: a setting that it changed, or an outlet that it had switched off."""
    with open_host(HostSpec(reach="local")) as dying:
        journal = Journal(dying, "dead")
        if "setting" in left:
            journal.change(str(left["setting"]), "new")
        if "outlet_of" in left:
            pdu = left["outlet_of"].model_dump()
            journal.open_entry(ENTRY, {"outlets": [{"pdu": pdu, "outlet": 2}], "rescan": None})


def open_station(bench: Bench, **changes: Any) -> Station:
    """The bench's rig, its file changed, opened."""
    run = make_run(bench.folder)
    rig: Rig = run.rigs["bench"].model_copy(update=changes)
    return Station(rig, run, Record(run.results, run.id), cast(Live, bench.told))


def test_what_dead_runs_changed_is_given_back_first_and_said(
    bench: Bench, setting: Path, tmp_path: Path
) -> None:
    dead_run(setting=setting)
    with VirtualPdu(4, lambda *_: None, tmp_path / "pdu", on=[1]) as unit:
        spec = pdu_spec(tmp_path)
        dead_run(outlet_of=spec)
        with open_station(bench, pdus=(spec,)):
            assert setting.read_text() == "old"
            assert unit.contacts[2]
    outlet, given_back = bench.told.said
    (log,) = (bench.folder / "results" / "serial").glob("*/p.log")
    assert r"> on 2\r" in log.read_text(), "what was said to its PDU is kept with the run"
    assert "outlet 2 of PDU 'p'" in outlet
    assert given_back == f"localhost: {setting}: new -> old, as before run dead"


def test_outlets_are_mended_before_a_host_that_they_may_feed_is_asked(
    bench: Bench, tmp_path: Path
) -> None:
    with VirtualPdu(4, lambda *_: None, tmp_path / "pdu", on=[1]) as unit:
        spec = pdu_spec(tmp_path)
        dead_run(outlet_of=spec)
        away = HostSpec(reach="ssh", address="localhost.invalid")
        with pytest.raises(HostLost):
            open_station(bench, pdus=(spec,), host=away)
        assert unit.contacts[2]


def test_and_such_a_host_is_waited_for(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(station_module, "await_boot", lambda rig: iter([f"{rig.name} boots"]))
    with VirtualPdu(4, lambda *_: None, tmp_path / "pdu", on=[1]):
        spec = pdu_spec(tmp_path)
        dead_run(outlet_of=spec)
        feeds_it = OutletSpec(name="host", pdu="p", outlet=2, feeds="host")
        for _ in range(2):
            with open_station(bench, pdus=(spec,), outlets=(feeds_it,)):
                pass
    on_again, waits = bench.told.said
    assert "is on again" in on_again
    assert waits == "bench boots"


def test_another_rigs_outlet_that_cannot_be_mended_is_only_said(
    bench: Bench, tmp_path: Path
) -> None:
    dead_run(outlet_of=PduSpec(name="q", family="baytech-rpc3", port=f"{tmp_path}/gone"))
    with open_station(bench):
        pass
    assert "cannot be switched on" in bench.told.said[0]


def test_a_light_that_an_earlier_run_left_for_somebody_is_put_out(bench: Bench) -> None:
    with open_host(HostSpec(reach="local")) as dying:
        slot = {"enclosure": "0x5003", "name": "Slot 07"}
        Journal(dying, "dead").open_entry(locate.ENTRY, slot)
    list(mend([make_run(bench.folder).rigs["bench"]], "dead"))
    with open_station(bench):
        pass
    (said,) = bench.told.said
    assert said.startswith("localhost: the locate light of Slot 07 of enclosure 0x5003 is gone")
    assert "after run dead" in said, "and no sooner than now, when the next run begins"


def test_every_setting_is_given_back_and_both_connections_end(
    bench: Bench, setting: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_text("old")
    with open_station(bench) as station:
        station.journal.change(str(setting), "new")
        station.here_journal.change(str(other), "new")
    assert (setting.read_text(), other.read_text()) == ("old", "old")
    assert not station.host.alive()
    assert not station.here.alive()


def test_what_a_power_cycle_borrows_is_on_record_here_and_not_on_the_rig(
    station: Station, setting: Path
) -> None:
    station.host.close()
    station.here_journal.change(str(setting), "new")
    with pytest.raises(HostLost):
        station.journal.change(str(setting), "newer")
    station.lost = LOST


def test_a_station_that_cannot_be_opened_holds_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts: list[Host] = []

    def open_and_keep(spec: HostSpec) -> Host:
        hosts.append(open_host(spec))
        return hosts[-1]

    monkeypatch.setattr(station_module, "open_host", open_and_keep)
    monkeypatch.setattr(station_module, "KernelWatch", refuse)
    with pytest.raises(RigTrouble, match="does not answer"):
        open_station(bench)
    assert [host.alive() for host in hosts] == [False, False]


def test_what_the_rig_was_is_on_record_though_its_power_was_cycled(bench: Bench) -> None:
    with open_station(bench) as station:
        station.host.reconnect(15.0)
    facts = {row["name"]: (row["rig"], row["value"]) for row in kept(bench.folder, "environment")}
    assert facts == {"kernel": ("bench", platform.release()), "smartctl": ("bench", "7.3")}


def test_a_full_disk_at_the_end_leaves_no_setting_changed(bench: Bench, setting: Path) -> None:
    station = open_station(bench)
    station.journal.change(str(setting), "new")
    station.record.add = refuse  # type: ignore[method-assign]
    with pytest.raises(RigTrouble, match="does not answer"):
        station.__exit__(None, None, None)
    assert setting.read_text() == "old"


def test_a_host_that_is_lost_unseen_does_not_keep_this_machines_side_open(
    bench: Bench, setting: Path
) -> None:
    station = open_station(bench)
    station.here_journal.change(str(setting), "new")
    station.host.close()
    with pytest.raises(HostLost):
        station.__exit__(None, None, None)
    assert setting.read_text() == "old"
    assert not station.here.alive()


def test_a_lost_host_is_asked_for_nothing_more(bench: Bench) -> None:
    with open_station(bench) as station:
        station.host.close()
        station.lost = LOST
    assert kept(bench.folder, "environment") == []


def test_a_lost_rig_is_lost_for_the_rest_of_the_run_and_a_silent_pdu_is_not(
    station: Station,
) -> None:
    with pytest.raises(RigTrouble, match="silent"), station.latching():
        raise RigTrouble("the PDU fell silent")
    with pytest.raises(HostLost), station.latching():
        raise LOST
    again = r"rig bench was lost earlier .*: bench: the connection ended"
    with pytest.raises(RigTrouble, match=again), station.latching():
        pytest.fail("begun")


# The rigs of a run.


@pytest.fixture
def stations(bench: Bench, pytestconfig: pytest.Config) -> Iterator[Stations]:
    with Stations(make_run(bench.folder), pytestconfig) as made:
        yield made


def test_a_rig_is_opened_once(stations: Stations) -> None:
    assert stations.station("bench") is stations.station("bench")


def test_a_rig_that_cannot_be_opened_is_tried_once(
    stations: Stations, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []

    def fail(*arguments: object) -> Station:
        tried.append(arguments)
        raise RigTrouble("no route to host")

    monkeypatch.setattr(station_module, "Station", fail)
    for _ in range(3):
        with pytest.raises(RigTrouble, match="no route to host"):
            stations.station("bench")
    assert len(tried) == 1


def test_a_rig_that_is_lost_while_a_drive_is_bound_is_lost(
    bench: Bench, stations: Stations, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object, **__: object) -> None:
        raise LOST

    monkeypatch.setattr("leadline.visiting.bind", lose)
    first, second = make_run(bench.folder).visits
    with pytest.raises(HostLost), stations.visit(first):
        pytest.fail("begun")
    with pytest.raises(RigTrouble, match="was lost earlier"), stations.visit(second):
        pytest.fail("begun")


def test_at_the_end_rigs_live_line_and_results_are_let_go(
    bench: Bench, setting: Path, pytestconfig: pytest.Config
) -> None:
    with Stations(make_run(bench.folder), pytestconfig) as stations:
        station = stations.station("bench")
        station.record.add(Phase(cell=None, name="boot", seconds=1.0))
        station.journal.change(str(setting), "new")
        bench.told.show("under way")
        assert open_files(bench.folder / "results") > 0
    assert setting.read_text() == "old"
    assert bench.told.line == ""
    assert open_files(bench.folder / "results") == 0


def open_files(folder: Path) -> int:
    """How many files below it this process has open."""
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sum(link.readlink().is_relative_to(folder) for link in links)


# A test's call.


def test_a_tests_call_is_watched_and_may_lose_the_rig(
    opened: OpenVisit, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = request.node
    monkeypatch.setitem(item.funcargs, "visit", opened)
    with pytest.raises(DriveFault), watched(item):
        watch_of(opened.station).says("ata1.00: disable device")
    with pytest.raises(HostLost), watched(item):
        raise LOST
    with pytest.raises(RigTrouble, match="was lost earlier"), watched(item):
        pytest.fail("begun")
