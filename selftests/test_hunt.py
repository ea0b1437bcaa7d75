"""The hunt: what is recorded of which drive, when it is asked for, and what is said of it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from leadline import hunt as hunting
from leadline.claims import Claim, ClaimFailed, Settled, Unsettled
from leadline.drive.bind import Drive
from leadline.drive.layers import Layer, Layers
from leadline.drive.tracing import TracingMissing
from leadline.errors import DriveFault
from leadline.host.connection import Host, open_host
from leadline.hunt import Traced, trace_slices, where_the_time_went
from leadline.inventory.rig import HostSpec
from leadline.judge import SliceJudge
from leadline.load.slices import Slice, SliceSetting
from leadline.load.workload import random_read
from leadline.quantities import Load
from leadline.statements import Bound, Ratio
from leadline.verdict.verdict import Outcome, Verdict
from leadline.visiting import OpenVisit
from selftests.drive_specimens import LINK, scsi_drive
from selftests.kept_claims import Kept, unlike
from selftests.slice_drive import SliceDrive
from selftests.test_layers import LOG
from selftests.visit_world import Bench, bench, kept, opened, station

__all__ = ["bench", "opened", "station"]  # fixtures

# In words.

NAMES = ("block layer", "driver", "device", "completion")


def traced(*milliseconds: float, held: float = 1.0, rate: float = 100.0) -> Traced:
    names = NAMES if len(milliseconds) == 4 else ("block layer", "driver and device")
    layers = [Layer(n, ms / 1e3, ms / 1e3) for n, ms in zip(names, milliseconds, strict=False)]
    return Traced(rate, 0.5, Layers(tuple(layers), 99, 100, held))


def said(direction: Bound = ">=", *, depths: tuple[int | None, int | None] = (None, 1)) -> Ratio:
    reads = Load(random_read(), Nobody(), full_depth=32)
    left, right = (reads.at(depth=depth, threads=8) for depth in depths)
    return Ratio(left, direction, right)


class Nobody:
    def stated(self, claim: Claim) -> None:
        raise AssertionError

    def settle(self, claim: Claim) -> Settled:
        raise AssertionError


ON = traced(0.05, 0.02, 12.1, 0.3, held=7.9, rate=640)
OFF = traced(4.2, 0.02, 0.605, 0.3, held=1.0, rate=1580)


def test_the_layer_that_takes_longer_is_named_with_both_times() -> None:
    first, *sides, cost = where_the_time_went(said(), [650, 1600], [ON, OFF])
    assert first == (
        "where the time went: the device takes 20 times longer per command when queued: 12.1 ms "
        "against 0.605 ms; it holds 7.9 at once against 1, so that each costs it 1.53 ms against "
        "0.605 ms"
    )
    assert sides[0].startswith("random_read.at(threads=8): block layer 0.05 ms")
    assert sides[1].startswith("random_read.at(depth=1, threads=8): block layer 4.2 ms")
    assert "at 98% and 99% of the rates above" in cost


def test_the_slow_side_is_the_one_that_the_claim_says_is_not() -> None:
    first, *_ = where_the_time_went(said("<=", depths=(1, None)), [1600, 650], [OFF, ON])
    assert "the device takes 20 times longer per command when queued" in first


def test_other_layers_are_named_as_well_and_other_settings_by_their_words() -> None:
    late = traced(9.0, 0.02, 0.6, 0.3)
    first, *_ = where_the_time_went(said(depths=(8, 16)), [1, 1], [late, OFF])
    assert first == (
        "where the time went: the block layer takes 2.1 times longer per command in "
        "random_read.at(depth=8, threads=8): 9 ms against 4.2 ms"
    )


def test_it_is_the_layer_that_adds_most_and_not_the_slowest_or_the_most_stretched() -> None:
    slow, fast = traced(4, 0.5, 6.4, 30.0, held=4), traced(4, 0.01, 0.8, 29.9, held=2)
    first, *_ = where_the_time_went(said(), [1, 1], [slow, fast])
    assert "the device takes 8.0 times longer" in first
    assert first.endswith(
        "it holds 4 at once against 2, so that each costs it 1.6 ms against 0.4 ms"
    )


def test_two_sides_that_are_alike_blame_nobody() -> None:
    first, *_ = where_the_time_went(said(), [1, 1], [OFF, OFF])
    assert "no layer takes notably longer" in first


def test_what_hardly_matters_is_not_blamed_however_stretched() -> None:
    slow, fast = traced(10.1, 0.013, 10.3, 0.118, held=7.6), traced(42.5, 0.042, 10.5, 0.066)
    first, *_ = where_the_time_went(said(depths=(8, 1)), [1, 1], [slow, fast])
    assert "no layer takes notably longer" in first


def test_what_could_not_be_matched_is_said() -> None:
    nothing = Traced(0.0, 0.5, Layers((), 0, 3, 0.0))
    first, left, *_ = where_the_time_went(said(), [1, 1], [nothing, OFF])
    assert "cannot be told, for no request was matched" in first
    assert left == "random_read.at(threads=8): 0 of 3 requests matched"


def test_where_libata_is_not_below_driver_and_device_are_one() -> None:
    on, off = traced(0.1, 24.0, held=8), traced(20.0, 3.0)
    lines = where_the_time_went(said(), [1, 1], [on, off])
    assert "the driver and device takes 8.0 times longer" in lines[0]
    assert lines[-1] == ("libata does not drive this disk: driver and device cannot be told apart")
    assert not any("libata" in line for line in where_the_time_went(said(), [1, 1], [ON, OFF]))


# Under trace: the host is this machine, its tracing a folder.


class Tracing:
    """A tracing instance as files; a slice that runs while it is on leaves `LOG` in it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "instance"
        for event in (*(f"block/{name}" for name in BLOCK), *(f"libata/{name}" for name in ATA)):
            for name in ("filter", "enable"):
                self.file(f"events/{event}/{name}")
        for name in ("tracing_on", "buffer_size_kb", "trace_clock", "trace"):
            self.file(name)
        (folder / "dev").write_text("8:16\n")
        (folder / "queue").mkdir()
        (folder / "queue" / "logical_block_size").write_text("512\n")
        self.drive = replace(scsi_drive(), name=f"../..{folder}")
        self.ran: list[SliceSetting] = []
        self.gone = False

    def file(self, name: str) -> None:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text("")

    def read(self, name: str) -> str:
        return (self.path / name).read_text()

    @contextmanager
    def instance(self, host: Host, drive: Drive) -> Iterator[str]:
        yield str(self.path)
        self.gone = True

    def run(self, settings: Sequence[SliceSetting]) -> Sequence[Slice]:
        assert self.read("tracing_on") == "1"
        assert self.read("trace").strip() == "", "what the slice before left there"
        self.ran += settings
        (self.path / "trace").write_text(LOG)
        return SliceDrive({8: 7000, 1: 1000}).measure(random_read(), settings)


BLOCK = ("block_getrq", "block_rq_insert", "block_rq_issue", "block_rq_complete")
ATA = ("ata_qc_issue", "ata_qc_complete_done")
SETTINGS = (SliceSetting(8, 16, 1.0), SliceSetting(1, 5, 1.0))


@pytest.fixture
def tracing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tracing:
    made = Tracing(tmp_path)
    monkeypatch.setattr(hunting, "instance", made.instance)
    return made


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with open_host(HostSpec(reach="local")) as local:
        yield local


def test_each_side_is_run_alone_with_this_drives_events_on(host: Host, tracing: Tracing) -> None:
    found = trace_slices(host, tracing.drive, SETTINGS, tracing.run)
    assert tuple(tracing.ran) == SETTINGS
    assert [round(each.rate, -3) for each in found] == [7000, 1000]
    assert [each.layers.matched for each in found] == [2, 2]
    assert [len(each.layers.layers) for each in found] == [2, 2], "libata does not drive it"
    for name in BLOCK:
        assert tracing.read(f"events/block/{name}/enable") == "1"
        assert tracing.read(f"events/block/{name}/filter") == f"dev == {(8 << 20) + 16}"
    assert tracing.read("events/libata/ata_qc_issue/enable") == ""
    assert tracing.read("tracing_on") == "0"
    assert tracing.read("trace_clock") == "mono"
    assert tracing.read("buffer_size_kb") == "512"
    assert tracing.gone


def test_libatas_events_are_those_of_its_port(host: Host, tracing: Tracing) -> None:
    link = replace(LINK, device="ata2.00")
    found = trace_slices(host, replace(tracing.drive, link=link), SETTINGS[:1], tracing.run)
    assert [layer.name for layer in found[0].layers.layers] == list(NAMES)
    for name in ATA:
        assert tracing.read(f"events/libata/{name}/enable") == "1"
        assert tracing.read(f"events/libata/{name}/filter") == "ata_port == 2 && ata_dev == 0"


def test_a_drive_of_large_blocks_counts_its_lbas_in_them(host: Host, tracing: Tracing) -> None:
    (tracing.path.parent / "queue" / "logical_block_size").write_text("4096\n")
    link = replace(LINK, device="ata2.00")
    found = trace_slices(host, replace(tracing.drive, link=link), SETTINGS[:1], tracing.run)
    assert found[0].layers.matched == 0, "that the sectors of LOG are of 512 bytes"


def test_a_kernel_without_the_tracepoints_says_so(host: Host, tracing: Tracing) -> None:
    for path in sorted((tracing.path / "events" / "block").glob("*_issue/*")):
        path.unlink()
    (tracing.path / "events" / "block" / "block_rq_issue").rmdir()
    with pytest.raises(TracingMissing, match="no tracepoint block:block_rq_issue"):
        trace_slices(host, tracing.drive, SETTINGS, tracing.run)
    assert tracing.ran == []


# When a claim fails.


Asked = list[tuple[str, float]]


def hunted(folder: Path, drive: SliceDrive, asked: Asked) -> Load:
    """A load whose failed claims are hunted by somebody who notes what he was asked."""

    def hunt(said: Ratio, failed: Verdict, slice_s: float) -> Sequence[str]:
        assert failed.outcome is Outcome.FAIL
        asked.append((str(said), slice_s))
        return ("where the time went: somewhere",)

    reads = Kept(folder, drive).reads
    assert isinstance(reads.judge, SliceJudge)
    reads.judge.hunt = hunt
    return reads


def test_a_ratio_that_fails_is_hunted_and_the_explanation_says_what_was_found(
    tmp_path: Path,
) -> None:
    asked: Asked = []
    reads = hunted(tmp_path, SliceDrive({8: 1400, 1: 1000}), asked)
    with pytest.raises(ClaimFailed, match="note: where the time went: somewhere"):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert asked == [("random_read.at(depth=8) >= 3 * random_read.at(depth=1)", 0.5)]
    assert unlike(tmp_path) == [], "computed again, by one who has no drive to look at"


def test_slices_that_had_to_be_longer_are_as_long_in_the_hunt(tmp_path: Path) -> None:
    asked: Asked = []
    reads = hunted(tmp_path, SliceDrive({8: 100, 1: 80}), asked)
    with pytest.raises(ClaimFailed):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    ((_, slice_s),) = asked
    assert slice_s > 0.9


def test_nothing_is_hunted_where_nothing_failed(tmp_path: Path) -> None:
    asked: Asked = []
    reads = hunted(tmp_path, SliceDrive({8: 7000, 1: 1000}, spoil="merged", spoilt_depth=1), asked)
    with pytest.raises(Unsettled):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    reads = hunted(tmp_path, SliceDrive({8: 7000, 1: 1000}), asked)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    with pytest.raises(ClaimFailed):
        assert reads.at(depth=8) >= 9000
    assert asked == []


def put(path: Path, text: str) -> None:
    path.write_text(text)


def failing(opened: OpenVisit, request: pytest.FixtureRequest) -> str:
    reads = opened.load(random_read(), request.node)
    with pytest.raises(ClaimFailed) as error:
        assert reads.at(depth=8) >= 9 * reads.at(depth=1)
    return str(error.value)


def test_a_visit_hunts_under_trace_and_puts_the_depth_back(
    bench: Bench,
    opened: OpenVisit,
    request: pytest.FixtureRequest,
    tracing: Tracing,
) -> None:
    bench.file("dev").write_text("8:16")
    bench.under_load = partial(put, tracing.path / "trace", LOG.replace("ata_port=2", "ata_port=1"))
    text = failing(opened, request)
    assert "where the time went" in text
    assert "random_read.at(depth=8): " in text
    assert "2 of 2 requests matched" in text
    assert bench.file("device/queue_depth").read_text() == "32"
    drive = [row["seconds"] for row in kept(bench.folder, "phases") if row["name"] == "drive"]
    assert len(drive) == 2, "of the verdict, and of the hunt"
    assert min(drive) == pytest.approx(2 * 0.5)
    assert len(kept(bench.folder, "slices")) % 2 == 0
    assert bench.load.batches[-2:] == [1, 1]


def test_a_drive_that_stalls_in_the_hunt_does_not_take_the_verdict_away(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest, tracing: Tracing
) -> None:
    def stall() -> None:
        if "hunting" in bench.told.line:
            raise DriveFault("the drive had requests for 46 s")

    bench.file("dev").write_text("8:16")
    bench.under_load = stall
    said = "where the time went could not be seen: the drive had requests for 46 s"
    assert said in failing(opened, request)


def test_a_rig_that_cannot_show_it_does_not_take_the_verdict_away(
    bench: Bench, opened: OpenVisit, request: pytest.FixtureRequest
) -> None:
    assert "where the time went could not be seen: " in failing(opened, request)
    assert bench.file("device/queue_depth").read_text() == "32"
