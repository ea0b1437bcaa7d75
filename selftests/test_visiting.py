"""One visit: what is leased, bound, kept on record, and asked once only."""

import json
from collections.abc import Collection
from dataclasses import replace

import pytest

from leadline import visiting
from leadline.drive import smart
from leadline.drive.bind import Controller
from leadline.errors import NeverAsserted, RigTrouble
from leadline.host.connection import Host, open_host
from leadline.host.lease import LeaseTaken, take
from leadline.inventory.matrix import ControllerModel
from leadline.inventory.rig import HostSpec
from leadline.power.cycle import PowerCycle
from leadline.running import VERDICTS
from leadline.station import Station
from leadline.visiting import OpenVisit
from selftests.power_world import drive
from selftests.test_cycled import done
from selftests.visit_world import WWN, Bench, bench, kept, opened, refuse, station

__all__ = ["bench", "opened", "station"]  # fixtures


def is_free(resource: str) -> bool:
    """Whether another run could have the lease on it."""
    with open_host(HostSpec(reach="local")) as other:
        try:
            take(other, resource, "another run").release()
        except LeaseTaken as taken:
            assert "run run-1" in taken.holder
            return False
        return True


def test_a_drive_is_leased_by_its_wwn_for_as_long_as_the_visit_lasts(station: Station) -> None:
    with OpenVisit(station, station.run.visits[0]):
        assert not is_free(WWN)
    assert is_free(WWN)


def test_a_drive_without_a_wwn_is_leased_by_its_serial_number(station: Station) -> None:
    with OpenVisit(station, station.run.visits[1]):
        assert not is_free("serial:SERIAL-b")


def test_a_drive_in_use_by_another_run_is_not_touched(bench: Bench, station: Station) -> None:
    with (
        open_host(HostSpec(reach="local")) as other,
        take(other, WWN, "another run"),
        pytest.raises(LeaseTaken, match="another run"),
        OpenVisit(station, station.run.visits[0]),
    ):
        pytest.fail("the visit began")
    assert bench.did == []


def test_a_visit_that_cannot_begin_lets_the_drive_go(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smart, "snapshot", refuse)
    with pytest.raises(RigTrouble, match="does not answer"):
        OpenVisit(station, station.run.visits[0]).__enter__()
    assert is_free(WWN)


def test_the_drive_is_held_against_rig_file_and_matrix(bench: Bench, opened: OpenVisit) -> None:
    """An earlier run may have left any firmware of its model on it."""
    assert bench.bound_as == {
        "firmware": "1.0",
        "or_firmware": ["1.0", "1.1"],
        "any_firmware": False,
        "controller": opened.station.rig.controllers[0],
    }
    assert bench.did == ["bind a"]


def test_a_drive_with_another_firmware_is_flashed_and_its_cycle_is_the_visits(
    bench: Bench,
    station: Station,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    identity = replace(bench.drive.identity, firmware="1.1")
    bench.drive = replace(bench.drive, identity=identity)
    activated = done(3.0)
    monkeypatch.setattr(visiting, "flash", lambda visit: (bench.flash(visit), activated)[1])
    monkeypatch.setattr(visiting, "cycle", lambda *_, **__: pytest.fail("cycled once more"))
    with OpenVisit(station, station.run.visits[0]) as visit:
        assert bench.did == ["bind a", "flash"]
        assert visit.power_cycle(request.node).last is activated


def test_power_is_cycled_once_a_visit_and_once_abruptly(
    station: Station, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    cuts: list[bool] = []

    def cycle(visit: OpenVisit, *, abrupt: bool) -> PowerCycle:
        cuts.append(abrupt)
        return done(3.0)

    monkeypatch.setattr(visiting, "cycle", cycle)
    with OpenVisit(station, station.run.visits[0]) as opened:
        first = opened.power_cycle(request.node).last
        assert opened.power_cycle(request.node).last is first
        assert opened.power_cycle(request.node, abrupt=True).last is not first
        assert opened.power_cycle(request.node, abrupt=True).abrupt
    assert cuts == [False, True]


def test_a_claim_of_a_power_cycle_that_a_test_never_asserts_fails_it(
    station: Station, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(visiting, "cycle", lambda *_, **__: done(3.0))
    with (
        OpenVisit(station, station.run.visits[0]) as opened,
        pytest.raises(NeverAsserted, match=r"power_cycle\.ready_within\(10\)"),
        opened.test(request.node),
    ):
        opened.power_cycle(request.node).ready_within(10)


def test_a_verdict_on_a_power_cycle_is_on_record_and_in_the_tests_report(
    bench: Bench, station: Station, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(visiting, "cycle", lambda *_, **__: done(3.0))
    item = request.node
    with OpenVisit(station, station.run.visits[0]) as opened, opened.test(item):
        assert opened.power_cycle(item).ready_within(10)
    assert "climb" not in bench.did, "a time needs no look at the queue"
    (row,) = kept(bench.folder, "verdicts")
    assert (row["cell"], row["outcome"], row["estimate"]) == ("bench-a-MODEL-1.0", "PASS", 3.0)
    (facts,) = item.stash[VERDICTS]
    assert (facts["verdict"], facts["estimate"], facts["unit"]) == ("PASS", "3 s", "event")
    json.dumps(facts, allow_nan=False)


def test_the_drive_as_it_stood_is_on_record(bench: Bench, opened: OpenVisit) -> None:
    (row,) = kept(bench.folder, "cells")
    assert row["cell"] == "bench-a-MODEL-1.0"
    assert (row["run"], row["serial"], row["firmware"]) == ("run-1", "SERIAL-a", "1.0")
    assert '"crc_errors": 0' in row["details"]


def test_counters_are_compared_with_those_at_the_beginning(bench: Bench, opened: OpenVisit) -> None:
    bench.crc_errors = 3
    (change,) = opened.smart_changes()
    assert (change.name, change.before, change.after) == ("crc_errors", 0, 3)


def test_sysfs_counts_a_drives_size_in_512_bytes(opened: OpenVisit) -> None:
    assert opened.kernel_capacity_bytes() == 2048 * 512


def test_the_ladder_is_climbed_once_for_each_binding_and_kept(
    bench: Bench, opened: OpenVisit
) -> None:
    first = opened.ladder
    assert opened.ladder is first
    assert bench.did.count("climb") == 1
    opened.rebound(bench.drive)
    assert opened.ladder is not first
    rows = [row for row in kept(bench.folder, "environment") if "ladder" in row["name"]]
    assert [row["name"] for row in rows] == ["NCQ ladder of bench-a-MODEL-1.0"] * 2


def test_the_pair_is_found_once_for_each_binding_and_kept(bench: Bench, opened: OpenVisit) -> None:
    first = opened.pair
    assert first.controller == bench.drive.controller
    assert opened.pair is first
    opened.rebound(bench.drive)
    assert opened.pair is not first
    rows = [row for row in kept(bench.folder, "environment") if "controller" in row["name"]]
    assert [row["name"] for row in rows] == ["controller of bench-a-MODEL-1.0"] * 2
    assert rows[0]["value"].startswith("controller: ahci, ")


def test_a_controller_that_the_plan_did_not_know_is_pointed_out(
    bench: Bench, station: Station
) -> None:
    on = Controller("0000:00:17.0", "8086:a282", "ahci", "host0")
    bench.drive = replace(bench.drive, controller=on)
    matrix = station.run.matrix.model_copy(
        update={
            "controllers": (ControllerModel(name="chipset", pci_id="8086:a282", driver="ahci"),)
        }
    )
    station.run = replace(station.run, matrix=matrix)
    with OpenVisit(station, station.run.visits[0]):
        (said,) = bench.told.said
    assert 'write `pci_id: "8086:a282"` for controller c of rig bench' in said


def test_a_drive_bound_without_a_queue_depth_holds_one_request(opened: OpenVisit) -> None:
    assert opened.kernel_queue_depth == 32
    opened.rebound(drive(queue_depth=None))
    assert opened.kernel_queue_depth == 1


def test_a_visit_begins_when_its_drive_and_those_written_to_before_are_quiet(
    bench: Bench, station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    awaited: list[frozenset[str]] = []

    def await_quiet(host: Host, names: Collection[str], say: object) -> bool:
        assert bench.did == ["bind a"], "before anything is asked of it"
        awaited.append(frozenset(names))
        return True

    monkeypatch.setattr(visiting, "await_quiet", await_quiet)
    station.written.add("sdx")
    with OpenVisit(station, station.run.visits[0]) as visit:
        assert awaited == [{visit.drive.name, "sdx"}]
