"""Layers above drives that are real to Linux: built, measured through, taken down, and cleaned up.

Spans and rounds of preconditioning are short here: a virtual drive is steady when it is new.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, cast

import pytest

from leadline import together as together_module
from leadline.claims import Claim, Unsettled
from leadline.drive.bind import Drive, bind
from leadline.drive.guard import Refused
from leadline.errors import RigTrouble
from leadline.host.connection import Host, open_host
from leadline.host.journal import Journal, dead_entries
from leadline.host.lease import LeaseTaken, take
from leadline.inventory.rig import Rig, load_rig
from leadline.live import Live
from leadline.load.precondition import precondition
from leadline.load.slices import DRIVE_DEPTH, FIO_CPU, LITTLES_LAW, TOO_SHORT
from leadline.results.record import Record
from leadline.stack.build import Layer, build
from leadline.stack.dismantle import dismantle
from leadline.stack.leftover import ENTRY, put_on_record, take_down_left, take_down_marked
from leadline.stack.mark import Mark
from leadline.station import Station
from leadline.together import Together
from leadline.virtual import rig as virtual
from leadline.visiting import OpenVisit
from selftests.quick_guest import shell
from selftests.virtual.conftest import RIGS, MakeRig
from selftests.virtual.test_hil import hil
from selftests.virtual.test_virtual_rig import children
from selftests.virtual.two_drives import left_above, two_drives
from selftests.visit_world import Told, kept, make_run

MIB = 1 << 20
pytestmark = [pytest.mark.measures, pytest.mark.slow]

SINGLE: list[tuple[Layer, ...]] = [("ext4",), ("lvm",), ("raid10",)]
WHOLE: tuple[Layer, ...] = ("raid10", "lvm", "ext4")
# One layer takes as long as all of them, which are the harder case.
STACKS = [*(pytest.param(each, marks=pytest.mark.long) for each in SINGLE), WHOLE]


@pytest.fixture(scope="module")
def path(make_rig: MakeRig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_drives(make_rig, "layers", tmp_path_factory.mktemp("twin"))


@pytest.fixture(scope="module")
def rig(path: Path) -> Iterator[Rig]:
    rig = load_rig(path)
    with virtual.running(rig):
        yield rig


@pytest.fixture(scope="module")
def station(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    folder = tmp_path_factory.mktemp("results")
    text = (RIGS.parent / "firmware_matrix.yaml").read_text()
    # With a cache as small as this, little of the drive has to be filled.
    text = text.replace("cache_bytes: 67108864", "cache_bytes: 4194304")
    text = text.replace("image: rigs/", f"image: {RIGS}/")
    made = make_run(folder, rig.path.read_text(), text)
    run = replace(made, rigs={rig.name: rig}, allow_writes=True, drive_time_s=60.0)
    record = Record(run.results, run.id)
    record.start("a command", "0")
    with Station(rig, run, record, cast(Live, Told())) as opened:
        yield opened
    record.close()


@pytest.fixture
def host(station: Station) -> Host:
    return station.host


@pytest.fixture
def visit(station: Station) -> Iterator[OpenVisit]:
    (first,) = (
        each
        for each in station.run.visits
        if each.cell.slot == "ssd1" and each.cell.firmware == "1.0"
    )
    with OpenVisit(station, first) as opened:
        yield opened


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together_module, "LEAST_SPAN", 64 * MIB)
    monkeypatch.setattr(together_module, "precondition", partial(precondition, round_s=1.0))


@pytest.fixture
def both(host: Host, rig: Rig) -> list[Drive]:
    return [bind(host, rig.drive(slot)) for slot in ("ssd1", "ssd2")]


LATE = {LITTLES_LAW, DRIVE_DEPTH, TOO_SHORT, FIO_CPU}
"""What a busy machine does to slices: the virtual drive is served late, which is no fault here."""


def settle(claim: Claim) -> None:
    """Have it measured; that nothing can be said on a busy machine is no fault here either."""
    with suppress(Unsettled):
        assert claim


def slices_since(station: Station, first: int) -> list[dict[str, Any]]:
    """The slices on record from that place on; each is as good as it can be here."""
    rows = kept(station.run.results.parent, "slices")[first:]
    assert rows
    for row in rows:
        details = json.loads(row["details"])
        assert set(details["voids"]) <= LATE, kept(station.run.results.parent, "findings")
        assert details["device_depth"] == row["device_depth"]
    return rows


def rate_at(rows: list[dict[str, Any]], depth: int) -> float:
    return float(median(row["rate"] for row in rows if row["device_depth"] == depth))


@pytest.mark.long
@pytest.mark.parametrize("layers", [*SINGLE, WHOLE], ids="-".join)
def test_a_load_goes_through_layers_that_are_gone_afterwards(
    visit: OpenVisit,
    rig: Rig,
    request: pytest.FixtureRequest,
    layers: tuple[Layer, ...],
    short: None,
) -> None:
    host = visit.station.host
    depths = [
        f"/sys/block/{bind(host, rig.drive(s)).name}/device/queue_depth" for s in ("ssd1", "ssd2")
    ]
    before = host.read_files(depths)
    with Together(visit, request.node) as together:
        busy = together.random_mix_on(*layers)
        assert "_on_".join(["random_mix", *reversed(layers)]) == busy.workload.name
        with pytest.raises(Refused, match=r"member of|mounted at"):
            visit.admitted("write")
        first = len(kept(visit.station.run.results.parent, "slices"))
        settle(busy.at(depth=8, offered=32) >= 2 * busy.at(depth=1, offered=32))
    rows = slices_since(visit.station, first)
    assert rate_at(rows, 8) > 2 * rate_at(rows, 1), "about 6 times, with 8 channels each"
    assert left_above(host, rig) == []
    assert host.read_files(depths) == before
    visit.admitted("write").release()


@pytest.mark.long
def test_two_drives_are_worth_two_by_themselves_and_in_raid_0(
    rig: Rig, path: Path, tmp_path: Path, host: Host
) -> None:
    """By the suite's own tests; where there are not so many drives they say so."""
    text = (RIGS.parent / "firmware_matrix.yaml").read_text()
    assert text.count("at_least: 0.8") == 2
    matrix = tmp_path / "matrix.yaml"  # two emulated drives share the processors, too
    text = text.replace("at_least: 0.8", "at_least: 0.6").replace("image: rigs/", f"image: {RIGS}/")
    matrix.write_text(text)
    words = ["-m", "acceptance", "-k", "test_scaling and ssd1 and VSSD-1.0", "--allow-writes"]
    code, summary, said = hil(path, tmp_path, *words, "--matrix", str(matrix))
    assert code in (0, 4), said
    outcomes = [row["outcome"] for row in summary["outcomes"]]
    assert outcomes.count("skipped") == 4
    assert outcomes.count("pass") + outcomes.count("inconclusive") == 2
    assert "4 drives of model LEADLINE VSSD with 1.0 on the path of ssd1" in said
    assert left_above(host, rig) == []


def test_the_other_drive_is_leased_as_the_visits_own_is(
    visit: OpenVisit, rig: Rig, request: pytest.FixtureRequest
) -> None:
    resource = rig.drive("ssd2").resource
    with open_host(rig.host) as other, Together(visit, request.node) as together:
        with take(other, resource, "another run"), pytest.raises(LeaseTaken, match="another run"):
            together.random_read_over(2)
        together.random_read_over(2)
        with pytest.raises(LeaseTaken, match="run run-1"):
            take(other, resource, "another run")


@pytest.mark.parametrize(
    "layers", [*STACKS, pytest.param(("raid0",), marks=pytest.mark.long)], ids="-".join
)
def test_what_a_dead_run_left_is_taken_down_by_the_next(
    host: Host, rig: Rig, both: list[Drive], layers: tuple[Layer, ...]
) -> None:
    """Its agent is gone, and its journal with the one entry is all that tells of it."""
    mark = Mark.new()
    nodes = [drive.node for drive in both][: 2 if "raid" in layers[0] else 1]
    with open_host(rig.host) as dead:
        put_on_record(Journal(dead, "dead-run"), mark, [rig.drive("ssd1"), rig.drive("ssd2")])
        build(dead, layers, mark, nodes, None if layers == ("raid0",) else 64 * MIB)
    assert left_above(host, rig) != []
    (said,) = take_down_left(host, rig, "next run")
    assert said.endswith("what run dead-run left above ssd1 and ssd2 was taken down")
    assert left_above(host, rig) == []
    assert dead_entries(host, ENTRY) == []


@pytest.mark.long
def test_half_a_stack_is_taken_down_too(host: Host, rig: Rig, both: list[Drive]) -> None:
    """Killed between two steps, or stopped by a reboot: the array is there, or only its marks."""
    for spoil in ("true", "mdadm --quiet --stop --scan"):
        mark = Mark.new()
        build(host, ["raid10", "lvm"], mark, [drive.node for drive in both], 64 * MIB)
        shell(host, f"dmsetup remove {mark.volume}; {spoil}")
        assert dismantle(host, mark, [drive.name for drive in both]) == []
        assert left_above(host, rig) == []


def test_without_a_journal_the_mark_alone_tells(
    host: Host, rig: Rig, both: list[Drive], visit: OpenVisit
) -> None:
    build(host, ["raid10"], Mark.new(), [drive.node for drive in both], 64 * MIB)
    for drive in both:
        said = take_down_marked(host, drive.name)
        assert "taken down, by its mark" in said[0]
    assert left_above(host, rig) == []


def test_what_is_not_ours_is_left_and_its_reason_told(
    host: Host, rig: Rig, both: list[Drive], visit: OpenVisit, request: pytest.FixtureRequest
) -> None:
    """An array that somebody made since, on a drive that a dead run's entry names."""
    theirs = both[1]
    with open_host(rig.host) as dead:
        put_on_record(Journal(dead, "dead-run"), Mark.new(), [rig.drive("ssd2")])
    shell(host, "mdadm -q --create /dev/md7 --level=1 -n2 --run --force $dev missing", theirs)
    try:
        done, left = take_down_left(host, rig, "next run")
        assert "above ssd2 was taken down" in done
        assert f"/dev/{theirs.name} holds linux_raid_member" in left
        assert "not ours: it is left alone" in left
        assert take_down_marked(host, theirs.name) == []
        assert host.exists("/sys/block/md7")
        with (
            Together(visit, request.node) as together,
            pytest.raises(Refused, match="a member of md7, an md array"),
        ):
            together.random_read_over(2)
    finally:
        shell(host, "mdadm -q --stop /dev/md7; udevadm settle; wipefs -aq $dev", theirs)
    assert left_above(host, rig) == []


def test_a_missing_program_is_named_with_its_package_before_anything_is_written(
    host: Host, rig: Rig, both: list[Drive]
) -> None:
    for program in ("mdadm", "lvcreate", "mkfs.ext4"):
        host.versions.pop(program, None)
    shell(host, "mv /usr/sbin/mkfs.ext4 /usr/sbin/mkfs.ext4.gone")
    try:
        with pytest.raises(RigTrouble, match=r"mkfs\.ext4 is not installed.*apt install e2fsprogs"):
            build(host, ["raid10", "ext4"], Mark.new(), [drive.node for drive in both], 64 * MIB)
    finally:
        shell(host, "mv /usr/sbin/mkfs.ext4.gone /usr/sbin/mkfs.ext4")
    assert left_above(host, rig) == []


def wait_for_mount(host: Host, child: "subprocess.Popen[str]") -> None:
    """Until the file system of a stack is there."""
    deadline = time.monotonic() + 240
    while b"/mnt/leadline_" not in host.read_file("/proc/self/mountinfo"):
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda each: each.name)
def test_a_run_that_is_stopped_with_its_layers_up_leaves_none(
    rig: Rig, path: Path, tmp_path: Path, host: Host, number: signal.Signals
) -> None:
    """SIGKILL to it and to its pytest: the next run takes them down.  SIGINT: it does so itself."""
    words = [sys.executable, "-m", "leadline.cli", "hil", "--rig", str(path)]
    words += ["--results", str(tmp_path), "--allow-writes", "-m", "soak"]
    words += ["-k", "layers and ssd1 and VSSD-1.0-raid10-lvm-ext4"]
    child = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_for_mount(host, child)
    finally:
        for process in (child.pid, *children(child.pid))[: None if number == signal.SIGKILL else 1]:
            os.kill(process, number)
        said, _ = child.communicate(timeout=120)
    if number == signal.SIGKILL:
        assert left_above(host, rig) != []
        code, _, said = hil(path, tmp_path, "-k", "ssd1 and VSSD-1.0 and matches_rig_file")
        assert code == 0, said
        assert "left above ssd1 and ssd2 was taken down" in said
    else:
        assert child.returncode == 130, said
    assert left_above(host, rig) == []
