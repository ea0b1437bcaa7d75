"""Slices on a drive that is real to Linux: the virtual rig's AHCI drive."""

import re
import statistics
from collections.abc import Iterator, Sequence

import pytest

from leadline.errors import RigTrouble
from leadline.host.connection import Host, open_host
from leadline.inventory.rig import Rig
from leadline.load.fio import run_slices
from leadline.load.slices import (
    DEVICE_DEPTH,
    FIO_CPU,
    LITTLES_LAW,
    Slice,
    SliceSetting,
    offered_for,
)
from leadline.load.workload import random_read

NODE = "/dev/sda"
DEPTH_PATH = "/sys/block/sda/device/queue_depth"


@pytest.fixture(scope="module")
def host(shared_rig: Rig) -> Iterator[Host]:
    with open_host(shared_rig.host, deadline=60) as opened:
        yield opened


@pytest.fixture(autouse=True)
def given_back(host: Host) -> Iterator[None]:
    """The device queue depth as it was, and the scheduler that has no tags of its own."""
    attributes = (DEPTH_PATH, "/sys/block/sda/queue/scheduler")
    before = {path: host.read_file(path).decode().strip() for path in attributes}
    host.write_value(attributes[1], "none")
    yield
    host.write_value(attributes[0], before[attributes[0]])
    chosen = re.search(r"\[(.+)\]", before[attributes[1]])
    host.write_value(attributes[1], chosen[1] if chosen else "none")


def slices_at(host: Host, settings: Sequence[SliceSetting]) -> list[Slice]:
    return run_slices(
        host,
        NODE,
        random_read(),
        settings,
        depth_path=DEPTH_PATH,
        seeds=range(len(settings)),
    )


def test_a_batch_of_pairs_at_depths_1_and_8(host: Host) -> None:
    depths = (1, 8, 8, 1, 1, 8)
    slices = slices_at(host, [SliceSetting(depth, offered_for(depth)) for depth in depths])
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


def test_the_drive_holds_no_more_than_its_depth(host: Host) -> None:
    """Offered 16 and allowed 2: what the drive completes together is 2, so each one waits for 8.

    The latency that fio sees is that of the whole queue, whoever holds it; the rates show
    which part of it the drive had.
    """
    deep, shallow = slices_at(host, [SliceSetting(8, 16), SliceSetting(2, 16)])
    assert shallow.rate < 0.6 * deep.rate
    assert shallow.in_flight_by_law == pytest.approx(deep.in_flight_by_law, rel=0.1)


def test_a_depth_that_the_kernel_refuses_is_said_in_its_words(host: Host) -> None:
    with pytest.raises(RigTrouble, match=r"depth 33 could not be set.*I/O error"):
        slices_at(host, [SliceSetting(33, 66)])
    assert 1 <= int(host.read_file(DEPTH_PATH)) <= 32


def test_fio_is_not_the_limit_on_a_drive_that_is_slower(host: Host) -> None:
    (measured,) = slices_at(host, [SliceSetting(1, 5)])
    assert FIO_CPU not in measured.voids
