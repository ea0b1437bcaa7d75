"""What a claim's evidence says of the slices in it."""

from dataclasses import replace

from leadline.evidence import Block, Evidence
from leadline.load.slices import SliceSetting
from leadline.load.workload import random_read
from selftests.slice_drive import SliceDrive


def pair(deep: float | None, shallow: float | None) -> Block:
    wanted = [SliceSetting(8, 10, 0.5), SliceSetting(1, 2, 0.5)]
    slices = SliceDrive({8: 8000.0, 1: 1000.0}).measure(random_read(), wanted)
    held = (deep, shallow)
    return tuple(replace(each, drive_depth=depth) for each, depth in zip(slices, held, strict=True))


def test_what_the_drive_held_is_averaged_by_depth() -> None:
    evidence = Evidence(0.5)
    evidence.take([pair(7.8, 1.0), pair(7.9, 0.98)])
    assert evidence.held() == "the drive held 0.99 at depth 1, 7.85 at depth 8 on average"


def test_where_nobody_counted_nothing_is_said() -> None:
    evidence = Evidence(0.5)
    evidence.take([pair(None, None)])
    assert evidence.held() == ""
