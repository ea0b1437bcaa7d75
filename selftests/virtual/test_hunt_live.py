"""Streams, threads and the hunt on drives that are real to Linux: eight channels, 10 ms a read."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import pytest

from leadline.drive.bind import Drive, bind
from leadline.drive.layers import Layers
from leadline.host.connection import Host, open_host
from leadline.hunt import Traced, trace_slices
from leadline.inventory.rig import Rig
from leadline.load.fio import run_slices
from leadline.load.slices import (
    DEVICE_DEPTH,
    IO_ERRORS,
    LITTLES_LAW,
    LOG_INCOMPLETE,
    OVERLAP,
    Slice,
    SliceSetting,
)
from leadline.load.workload import Workload, random_read, sequential_read

pytestmark = pytest.mark.measures

NEVER = {DEVICE_DEPTH, IO_ERRORS, LITTLES_LAW, LOG_INCOMPLETE, OVERLAP}
"""What no slice here may be void by; the machine may be busy, and the rest depends on that."""
INSTANCES = "/sys/kernel/tracing/instances"
ON, OFF = SliceSetting(32, 8, 1.5, jobs=8), SliceSetting(1, 8, 1.5, jobs=8)


@dataclass(frozen=True)
class Bound:
    """A drive of the rig; whoever uses it leaves it with its queue depth and scheduler."""

    host: Host
    drive: Drive

    @property
    def depth_path(self) -> str:
        return f"/sys/block/{self.drive.name}/device/queue_depth"

    @property
    def streams(self) -> Workload:
        sectors = int(self.host.read_file(f"/sys/block/{self.drive.name}/size"))
        return sequential_read(512 * sectors)

    def batch(self, workload: Workload, wanted: Sequence[SliceSetting]) -> list[Slice]:
        return run_slices(
            self.host,
            self.drive.node,
            workload,
            wanted,
            depth_path=self.depth_path,
            seeds=range(len(wanted)),
        )

    def traced(self, workload: Workload, *wanted: SliceSetting) -> tuple[list[Traced], list[Slice]]:
        """Both what the hunt saw, and the slices that it saw."""
        ran: list[Slice] = []

        def run(settings: Sequence[SliceSetting]) -> list[Slice]:
            ran.extend(self.batch(workload, settings))
            return ran[-1:]

        return trace_slices(self.host, self.drive, wanted, run), ran


@pytest.fixture(scope="module")
def host(shared_rig: Rig) -> Iterator[Host]:
    with open_host(shared_rig.host, deadline=60) as opened:
        yield opened


@pytest.fixture(params=["ssd1", "scsi1"])
def bound(request: pytest.FixtureRequest, host: Host, shared_rig: Rig) -> Iterator[Bound]:
    drive = bind(host, shared_rig.drive(request.param))
    before = {
        f"/sys/block/{drive.name}/{name}": value
        for name, value in (
            ("device/queue_depth", "32"),
            ("queue/scheduler", "none"),
            ("queue/nomerges", "2"),
        )
    }
    for path, value in before.items():
        before[path] = _chosen(host.read_file(path).decode())
        host.write_value(path, value)
    yield Bound(host, drive)
    for path, value in before.items():
        host.write_value(path, value)


def _chosen(text: str) -> str:
    """The value of an attribute, which is in brackets where there is a choice."""
    found = re.search(r"\[(.+)\]", text)
    return found[1] if found else text.strip()


def milliseconds(layers: Layers) -> dict[str, float]:
    return {layer.name: 1e3 * layer.mean_s for layer in layers.layers}


def test_the_layers_of_a_request_make_up_its_latency(bound: Bound) -> None:
    """With the whole queue the time goes into the device, with none into the block layer."""
    (on, off), slices = bound.traced(random_read(), ON, OFF)
    for traced, measured in zip((on, off), slices, strict=True):
        assert not NEVER & set(measured.voids), measured
        assert traced.layers.matched > 0.9 * measured.requests
        seen, waited = sum(milliseconds(traced.layers).values()), 1e3 * measured.mean_latency_s
        assert 0.6 * waited < seen, "the rest is fio's, and the host's"
        # A machine that pauses lengthens those that end after the slice: its mean has them not.
        usual = 1e3 * sum(layer.median_s for layer in traced.layers.layers)
        assert usual < 1.05 * waited + 0.5
    device = "device" if bound.drive.link else "driver and device"
    queued, alone = milliseconds(on.layers), milliseconds(off.layers)
    assert set(queued) == set(alone) >= {"block layer", device}
    assert queued[device] > 9
    assert alone[device] > 9
    assert alone["block layer"] > 4 * alone[device]
    assert queued["block layer"] < queued[device]
    assert on.layers.held > 3
    assert 0.9 < off.layers.held < 1.5
    assert bound.host.list_dir(INSTANCES) == []


def test_commands_that_are_queued_and_that_are_not_are_matched_alike(bound: Bound) -> None:
    """They have other opcodes, and their LBAs stand elsewhere."""
    if not bound.drive.link:
        pytest.skip("libata does not drive it")
    (on, off), slices = bound.traced(bound.streams, ON, OFF)
    assert on.layers.matched > 0.9 * slices[0].requests
    assert off.layers.matched > 0.9 * slices[1].requests


def test_a_healthy_drive_loses_nothing_by_ncq_and_its_threads_gain(bound: Bound) -> None:
    for workload, at_least in ((bound.streams, 0.95), (random_read(), 3.0)):
        slices = bound.batch(workload, [ON, OFF, OFF, ON])
        assert not NEVER & {name for each in slices for name in each.voids}, slices
        on = median(each.rate for each in slices if each.setting == ON)
        off = median(each.rate for each in slices if each.setting == OFF)
        assert on >= at_least * off
