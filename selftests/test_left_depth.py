"""Rates of a depth that somebody has left lower than the drive's: what they are not said of."""

import pytest

from leadline.errors import DriveFault, Inconclusive
from leadline.load.workload import random_read
from leadline.quantities import Load
from selftests.test_claims import Ruling, must_not_be_asked


def test_a_depth_left_by_somebody_that_makes_both_sides_one_shows_nothing() -> None:
    """NCQ on is the kernel's device queue depth, which is the whole queue as a rule."""
    judge, asked = Ruling(), list[int]()
    reads = Load(random_read(), judge, full_depth=32, kernel_depth=8, admit=asked.append)
    on, off = reads.at(threads=8), reads.at(depth=8, threads=8)
    said = r"one setting, for the device queue depth was left at 8, and .*full_depth is 32"
    with pytest.raises(Inconclusive, match=said):
        assert on >= 0.95 * off
    with pytest.raises(Inconclusive, match=said):
        assert off.agrees_with(on, within=0.05)
    assert asked == [32, 32]
    assert judge.claims == []
    assert on >= 0.95 * reads.at(depth=8, threads=16), "which is another setting"


@pytest.mark.parametrize(
    ("left", "asked"),
    [(1, {"threads": 8}), (1, {"offered": 128}), (25, {"offered": 128}), (6, {"offered": 8})],
)
def test_what_a_lower_depth_keeps_in_the_host_says_nothing_of_the_drive(
    left: int, asked: dict[str, int]
) -> None:
    """128 offered, a depth of 25 of 32: no figure of it is that of a queue of 32."""
    whole = list[int]()
    reads = Load(random_read(), Ruling(), full_depth=32, kernel_depth=left, admit=whole.append)
    with pytest.raises(Inconclusive, match=rf"was left at {left}, and the drive .*write 32 back"):
        reads.at(**asked)
    assert whole == [32], "that it is only a setting is by the ladder"
    assert reads.at(depth=32, **asked).device_depth == 32


@pytest.mark.parametrize(
    ("left", "asked"), [(31, {"offered": 128}), (26, {"offered": 128}), (7, {"offered": 8})]
)
def test_a_depth_that_nearly_holds_it_is_no_hindrance(left: int, asked: dict[str, int]) -> None:
    """Older kernels leave one of 32 tags to themselves."""
    reads = Load(random_read(), Ruling(), full_depth=32, kernel_depth=left, admit=must_not_be_asked)
    assert reads.at(**asked).device_depth == left


def test_a_queue_that_was_taken_away_is_said_before_a_setting_that_shows_nothing() -> None:
    def admit(depth: int) -> None:
        raise DriveFault(f"its device queue depth is not set to {depth}: kernel: BROKEN")

    reads = Load(random_read(), Ruling(), full_depth=32, kernel_depth=1, admit=admit)
    assert reads.at(offered=128).device_depth == 1, "measured: it is the drive's, and it shows"
    with pytest.raises(DriveFault, match="32: kernel: BROKEN"):
        assert reads.at(threads=8) >= 0.95 * reads.at(depth=1, threads=8)
