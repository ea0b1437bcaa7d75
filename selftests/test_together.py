"""Several drives in one visit: which may stand beside it, what is leased, and what is measured.

What is built above drives needs drives that are real to Linux: `virtual/test_layers_live.py`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from leadline import together as together_module
from leadline.claims import Unsettled
from leadline.drive.bind import Link
from leadline.drive.ladder import Rung
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import Host
from leadline.host.journal import dead_entries
from leadline.host.lease import LeaseTaken, take
from leadline.load.aim import Aim
from leadline.load.slices import Slice, SliceSetting
from leadline.load.workload import Workload, random_mix, random_read, random_write
from leadline.running import Run
from leadline.stack.leftover import ENTRY
from leadline.together import Together, named, partners, span_for
from leadline.visiting import OpenVisit
from selftests.local_hosts import next_host
from selftests.test_visiting import is_free
from selftests.visit_world import (
    RIG,
    SYSFS,
    Bench,
    bench,
    make_run,
    open_station,
    refuse,
    watch_of,
)

__all__ = ["bench", "next_host"]  # fixtures

GIB, MIB = 1 << 30, 1 << 20
B = "serial:SERIAL-b"
OF_SECOND = "ata2.00: NCQ disabled due to excessive errors"
MORE = """\
  - {slot: other, model: ANOTHER, serial: SERIAL-o, firmware: "1.0", controller: c,
     protocol: sata, writes: allowed}
  - {slot: away, model: MODEL, serial: SERIAL-w, firmware: "1.0", controller: d, protocol: sata,
     writes: allowed}
  - {slot: c, model: MODEL, serial: SERIAL-c, firmware: "1.0", controller: c, protocol: sata,
     writes: allowed}
"""
BOTH_WRITABLE = RIG.replace("protocol: sata}", "protocol: sata, writes: allowed}")


def run_of(folder: Path, rig: str = RIG) -> Run:
    return make_run(folder, rig)


def test_drives_of_the_model_on_the_path_may_stand_beside(tmp_path: Path) -> None:
    two = "controllers: [{name: c, driver: ahci}, {name: d, driver: ahci}]"
    run = run_of(tmp_path, RIG.replace("controllers: [{name: c, driver: ahci}]", two) + MORE)
    visit = run.visits[0]
    assert [spec.slot for spec in partners(run, visit, writing=False)] == ["b", "c"]
    assert [spec.slot for spec in partners(run, visit, writing=True)] == ["c"]


@pytest.mark.parametrize(
    ("cache_bytes", "capacity", "span"),
    [
        (None, 1000 * GIB, 16 * GIB),
        (64 * MIB, 1000 * GIB, GIB),
        (128 * MIB + 1, 1000 * GIB, 2 * GIB + MIB),
        (0, 1000 * GIB, GIB),
        (None, GIB, GIB // 2),
    ],
)
def test_as_much_of_a_drive_is_used_as_makes_its_cache_not_matter(
    cache_bytes: int | None, capacity: int, span: int
) -> None:
    assert span_for(cache_bytes, capacity) == span


def test_a_load_is_named_after_what_it_goes_through() -> None:
    assert named(random_mix(), "ext4_on_lvm").name == "random_mix_on_ext4_on_lvm"


def test_the_share_of_requests_that_write() -> None:
    shares = [each.written_share for each in (random_read(), random_mix(), random_write())]
    assert shares == pytest.approx([0.0, 0.3, 1.0])


@contextmanager
def opened(bench: Bench, run: Run) -> Iterator[OpenVisit]:
    with open_station(bench, run) as station, OpenVisit(station, run.visits[0]) as visit:
        yield visit


def together_of(visit: OpenVisit, request: pytest.FixtureRequest) -> Together:
    return Together(visit, request.node)


def measured_by(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[Aim]:
    """The bench's drive measures, whatever is aimed at; what was."""
    aims: list[Aim] = []

    def run_aimed(
        host: Host,
        aim: Aim,
        workload: Workload,
        settings: Sequence[SliceSetting],
        *,
        seeds: Sequence[int],
    ) -> list[Slice]:
        assert len(set(seeds)) == len(settings), "each slice reads other places"
        aims.append(aim)
        for path in aim.depth_paths:
            host.write_value(path, "8")
        slices = bench.load.measure(random_read(), settings)
        return [replace(each, rate=each.rate * each.setting.drives) for each in slices]

    monkeypatch.setattr(together_module, "run_aimed", run_aimed)
    return aims


def test_a_claim_on_two_drives_aims_at_both_and_puts_their_depths_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    aims = measured_by(bench, monkeypatch)
    with opened(bench, run_of(tmp_path)) as visit, together_of(visit, request) as together:
        assert is_free(B)
        reads = together.random_read_over(2)
        assert not is_free(B)
        assert reads.at(depth=8, drives=2) >= 1.9 * reads.at(depth=8)
        assert bench.file("device/queue_depth").read_text() == "32"
    node = bench.drive.node
    assert dict(aims[0].paths) == {1: (node,), 2: (node, node)}
    assert len(aims[0].depth_paths) == 2
    assert is_free(B), "as soon as the test has ended"


def test_streams_over_two_drives_are_shared_alike(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    aims = measured_by(bench, monkeypatch)
    with opened(bench, run_of(tmp_path)) as visit, together_of(visit, request) as together:
        reads = together.sequential_read_over(2)
        assert reads.workload.span == (0, int(SYSFS["size"]) * 512)
        both = reads.at(depth=8, threads=8, drives=2)
        assert both >= 1.9 * reads.at(depth=8, threads=4)
    assert (aims[0].striped, len(aims[0].paths[2])) == (False, 2)


def test_streams_from_an_array_use_as_much_of_one_drive_as_the_array_does(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """md keeps a part of each drive to itself."""
    aims = measured_by(bench, monkeypatch)
    (tmp_path / "array").mkdir()
    (tmp_path / "array" / "size").write_text("3600")
    built: list[str] = []

    def build(host: Host, layers: Sequence[str], *_: object) -> str:
        built.extend(layers)
        return f"/dev/../..{tmp_path}/array"

    def dismantle(*_: object) -> list[str]:
        built.clear()
        return []

    monkeypatch.setattr(together_module, "build", build)
    monkeypatch.setattr(together_module, "dismantle", dismantle)
    monkeypatch.setattr("leadline.visiting.take_down_marked", lambda host, name: [])
    run = replace(run_of(tmp_path, BOTH_WRITABLE), allow_writes=True)
    with opened(bench, run) as visit, together_of(visit, request) as together:
        reads = together.sequential_read_on_raid0(2)
        assert (reads.workload.span, built) == ((0, 7 * 128 << 10), ["raid0"])
        both = reads.at(depth=8, threads=8, drives=2)
        assert both >= 1.9 * reads.at(depth=8, threads=4)
        together.__exit__()
        assert (built, aims[0].striped) == ([], True)


@pytest.mark.parametrize("port", ["ata1", "ata2"])
def test_a_queue_that_is_switched_off_meanwhile_is_not_brought_back(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    port: str,
) -> None:
    """That of either drive: the ladder, climbed once, knows nothing of it."""
    aims = measured_by(bench, monkeypatch)
    with opened(bench, run_of(tmp_path)) as visit, together_of(visit, request) as together:
        bench.drive = replace(bench.drive, link=Link("ata2", "ata2.00", "6.0 Gbps", 0, ""))
        reads = together.random_read_over(2)
        watch_of(visit.station).says(f"{port}.00: NCQ disabled due to excessive errors")
        with pytest.raises(DriveFault, match="does not queue any more"):
            assert reads.at(depth=8, drives=2) >= 1.9 * reads.at(depth=8)
    assert aims == []


def test_what_voids_the_slices_of_one_drive_is_said_of_the_claim(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    measured_by(bench, monkeypatch)
    bench.zeros = 16
    with opened(bench, run_of(tmp_path)) as visit, together_of(visit, request) as together:
        reads = together.random_read_over(2)
        with pytest.raises(Unsettled, match="unwritten"):
            assert reads.at(depth=8, drives=2) >= 1.9 * reads.at(depth=8)


def test_without_enough_drives_the_test_is_skipped_with_the_reason(
    bench: Bench, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with opened(bench, run_of(tmp_path)) as visit, together_of(visit, request) as together:
        few, forbidden = "3 drives of model MODEL with 1.0 on the path", "that may be written to"
        with pytest.raises(pytest.skip.Exception, match=few):
            together.random_read_over(3)
        with pytest.raises(pytest.skip.Exception, match=forbidden):
            together.random_read_on_raid0(2)
        assert bench.did.count("bind b") == 1, "one that may not be written to is not looked at"


def test_a_drive_with_another_firmware_is_not_flashed_and_does_not_count(
    bench: Bench, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with opened(bench, run_of(tmp_path)) as visit, together_of(visit, request) as together:
        identity = replace(bench.drive.identity, firmware="1.1")
        bench.drive = replace(bench.drive, identity=identity)
        with pytest.raises(pytest.skip.Exception, match=r"there is 1; b has firmware 1\.1"):
            together.random_read_over(2)
    assert "flash" not in bench.did


def test_a_second_drive_that_another_run_has_is_the_rigs_trouble(
    bench: Bench, next_host: Host, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with (
        opened(bench, run_of(tmp_path)) as visit,
        together_of(visit, request) as together,
        take(next_host, B, "another run"),
        pytest.raises(LeaseTaken, match="another run"),
    ):
        together.random_read_over(2)


def test_an_event_of_the_second_drive_is_one_of_the_visit(
    bench: Bench, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with opened(bench, run_of(tmp_path)) as visit, together_of(visit, request) as together:
        second = Link("ata2", "ata2.00", "6.0 Gbps", 0, "")
        bench.drive = replace(bench.drive, link=second)
        together.random_read_over(2)
        with pytest.raises(DriveFault, match=r"ata2\.00"), visit.test(request.node):
            watch_of(visit.station).says(OF_SECOND)
        together.__exit__()
        with visit.test(request.node):
            watch_of(visit.station).says(OF_SECOND)


@pytest.mark.parametrize("layers", [(), ("zfs",), ("lvm", "raid10")])
def test_layers_that_cannot_be_are_refused_before_a_drive_is_asked_for(
    bench: Bench, request: pytest.FixtureRequest, tmp_path: Path, layers: tuple[str, ...]
) -> None:
    with opened(bench, run_of(tmp_path)) as visit, together_of(visit, request) as together:
        bench.did.clear()
        with pytest.raises(Misuse, match="expected"):
            together.random_mix_on(*layers)
        assert bench.did == []


def test_no_drive_at_all_is_refused_before_any_is_leased(
    bench: Bench, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with opened(bench, run_of(tmp_path)) as visit, together_of(visit, request) as together:
        with pytest.raises(Misuse, match=r"random_read_over\(0\): a number of drives"):
            together.random_read_over(0)
        assert is_free(B)


def test_layers_are_on_record_before_they_are_built_and_the_drives_let_go(
    bench: Bench,
    next_host: Host,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    """And where building fails they are taken down as far as they are there."""
    journal = bench.folder / "journal" / "run-1.jsonl"

    def build(host: Host, layers: object, mark: object, nodes: Sequence[str], size: int) -> str:
        assert f'"kind": "{ENTRY}"' in journal.read_text()
        assert bench.did[-2:] == ["released a", "released b"]
        bench.did.append(f"build {layers} of {len(nodes)}")
        raise RigTrouble("mdadm is not installed")

    def dismantle(host: Host, mark: object, drives: Sequence[str]) -> list[str]:
        bench.did.append(f"dismantle {len(drives)}")
        return []

    monkeypatch.setattr(together_module, "build", build)
    monkeypatch.setattr(together_module, "dismantle", dismantle)
    monkeypatch.setattr("leadline.visiting.take_down_marked", lambda host, name: [])
    run = replace(run_of(tmp_path, BOTH_WRITABLE), allow_writes=True)
    with opened(bench, run) as visit, together_of(visit, request) as together:
        with pytest.raises(RigTrouble, match="mdadm is not installed"):
            together.random_mix_on("raid10")
        assert bench.did[-2:] == ["build ('raid10',) of 2", "dismantle 2"]
    assert dead_entries(next_host, ENTRY) == []


@pytest.mark.parametrize("asked", ["mix on layers", "RAID-0"])
def test_nothing_is_built_above_a_drive_that_does_not_queue(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    asked: str,
) -> None:
    """It would be filled for minutes before the first slice found that out."""
    bench.rungs = (Rung("kernel", False, "libata.force=1:noncq takes NCQ away"),)
    bench.drive = replace(bench.drive, queue_depth=1)
    monkeypatch.setattr(together_module, "build", refuse)
    monkeypatch.setattr("leadline.visiting.take_down_marked", lambda host, name: [])
    run = replace(run_of(tmp_path, BOTH_WRITABLE), allow_writes=True)
    with (
        opened(bench, run) as visit,
        together_of(visit, request) as together,
        pytest.raises(DriveFault, match="does not queue"),
    ):
        if asked == "RAID-0":
            together.random_read_on_raid0(2)
        together.random_mix_on("raid10", "lvm")
    assert not [deed for deed in bench.did if "to write" in deed]


def test_writing_needs_both_keys(
    bench: Bench, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run = run_of(tmp_path, BOTH_WRITABLE)
    with (
        opened(bench, run) as visit,
        together_of(visit, request) as together,
        pytest.raises(Misuse, match="both are needed"),
    ):
        together.random_mix_on("raid10")
