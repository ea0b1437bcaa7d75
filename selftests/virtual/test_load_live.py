"""Slices on a drive that is real to Linux: the virtual rig's AHCI drive."""

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from leadline.drive.bind import bind
from leadline.drive.guard import admit
from leadline.errors import RigTrouble
from leadline.host.connection import Host, open_host
from leadline.inventory.rig import Rig
from leadline.load.fio import run_slices
from leadline.load.precondition import precondition
from leadline.load.slices import (
    DEVICE_DEPTH,
    FIO_CPU,
    LITTLES_LAW,
    Slice,
    SliceSetting,
    offered_for,
)
from leadline.load.target import sample_places, zero_samples
from leadline.load.workload import random_read, random_write

pytestmark = pytest.mark.measures


@dataclass(frozen=True)
class Ssd:
    """The AHCI drive, whichever name the kernel gave it this time."""

    host: Host
    name: str

    @property
    def depth_path(self) -> str:
        return f"/sys/block/{self.name}/device/queue_depth"

    def slices_at(self, settings: Sequence[SliceSetting]) -> list[Slice]:
        return run_slices(
            self.host,
            f"/dev/{self.name}",
            random_read(),
            settings,
            depth_path=self.depth_path,
            seeds=range(len(settings)),
        )


@pytest.fixture(scope="module")
def bound(shared_rig: Rig) -> Iterator[Ssd]:
    with open_host(shared_rig.host, deadline=60) as host:
        yield Ssd(host, bind(host, shared_rig.drive("ssd1")).name)


@pytest.fixture
def ssd(bound: Ssd) -> Iterator[Ssd]:
    """Left with the device queue depth that it had, and with the scheduler, set to none here."""
    host, scheduler = bound.host, f"/sys/block/{bound.name}/queue/scheduler"
    before = {path: host.read_file(path).decode().strip() for path in (bound.depth_path, scheduler)}
    host.write_value(scheduler, "none")
    yield bound
    host.write_value(bound.depth_path, before[bound.depth_path])
    chosen = re.search(r"\[(.+)\]", before[scheduler])
    host.write_value(scheduler, chosen[1] if chosen else "none")


def test_a_batch_of_pairs_at_depths_1_and_8(ssd: Ssd) -> None:
    depths = (1, 8, 8, 1, 1, 8)
    slices = ssd.slices_at([SliceSetting(depth, offered_for(depth)) for depth in depths])
    assert [each.device_depth for each in slices] == list(depths)
    spoilt = {name for each in slices for name in each.voids}
    assert not spoilt & {LITTLES_LAW, DEVICE_DEPTH, "overlap", "log-incomplete", "io-errors"}
    assert all(0.97 < each.little_ratio < 1.03 for each in slices)
    assert all(each.gap_s is not None and each.gap_s >= 0 for each in slices[1:])
    rates = {
        depth: statistics.median(each.rate for each in slices if each.device_depth == depth)
        for depth in (1, 8)
    }
    assert rates[8] > 2 * rates[1]


def test_the_drive_holds_no_more_than_its_depth(ssd: Ssd) -> None:
    """Offered 16 and allowed 2: what the drive completes together is 2, so each one waits for 8.

    The latency that fio sees is that of the whole queue, whoever holds it; the rates show
    which part of it the drive had.
    """
    slices = ssd.slices_at([SliceSetting(8, 16), SliceSetting(2, 16)] * 3)
    deep, shallow = slices[::2], slices[1::2]
    rates = [statistics.median(each.rate for each in side) for side in (deep, shallow)]
    assert rates[1] < 0.6 * rates[0]
    by_law = [statistics.median(each.in_flight_by_law for each in side) for side in (deep, shallow)]
    assert by_law[1] == pytest.approx(by_law[0], rel=0.2)


def test_a_depth_that_the_kernel_refuses_is_said_in_its_words(ssd: Ssd) -> None:
    with pytest.raises(RigTrouble, match=r"depth 33 could not be set.*I/O error"):
        ssd.slices_at([SliceSetting(33, 66)])
    assert 1 <= int(ssd.host.read_file(ssd.depth_path)) <= 32


def test_fio_is_not_the_limit_on_a_drive_that_is_slower(ssd: Ssd) -> None:
    (measured,) = ssd.slices_at([SliceSetting(1, 5)])
    assert FIO_CPU not in measured.voids


@pytest.mark.long
def test_a_drive_is_brought_into_its_steady_state_and_written_under_both_keys(
    ssd: Ssd, shared_rig: Rig
) -> None:
    """In a part of it, and in short rounds: the virtual drive is as quick when it is new."""
    spec, span = shared_rig.drive("ssd1"), (1 << 30, 16 << 20)
    drive = bind(ssd.host, spec)
    writes = random_write(span)
    with admit(ssd.host, spec, drive, "write", allow_writes=True):
        done = precondition(ssd.host, drive.node, writes, span, depth=32, round_s=2.0)
        (measured,) = run_slices(
            ssd.host,
            drive.node,
            writes,
            [SliceSetting(8, 16)],
            depth_path=ssd.depth_path,
            seeds=[1],
        )
    assert done.finding.outcome == "ok", done.finding
    assert done.state.steady
    assert done.fill_s > 0
    assert not {LITTLES_LAW, DEVICE_DEPTH, "io-errors"} & set(measured.voids)
    assert measured.rate == pytest.approx(done.state.mean, rel=0.5)
    handle = ssd.host.hold_device(drive.node, exclusive=False)
    try:
        read_10 = bytes((0x28, 0, *((span[0] + (8 << 20)) // 512).to_bytes(4, "big"), 0, 0, 8, 0))
        data = ssd.host.sg_io(handle, read_10, 4096, 30.0)
    finally:
        ssd.host.release_device(handle)
    assert b"Leadline virtual drive" not in data, "what it held when it was new is overwritten"


def test_the_shipped_drive_is_written_as_far_as_its_samples_tell(ssd: Ssd) -> None:
    places = sample_places((0, 8 << 30), seed=1)
    assert zero_samples(ssd.host, f"/dev/{ssd.name}", places, 512) == (0, len(places))
