"""What a claim's evidence says of the slices in it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from leadline.evidence import Block, Evidence, waited_in_host
from leadline.load.slices import (
    LATE_START,
    LEAST_OF_WINDOW,
    WARM_UP_S,
    SliceSetting,
    offered_for,
)
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


@pytest.mark.parametrize(
    ("depths", "said"),
    [
        ((8, 1), "127 of 128 at depth 1, 120 of 128 at depth 8 on average"),
        (range(1, 33), "127 of 128 at depth 1, and 96 of 128 at depth 32, on average"),
    ],
)
def test_what_waited_in_the_host_is_told_where_more_is_offered_than_usual(
    depths: Sequence[int], said: str
) -> None:
    drive = SliceDrive(dict.fromkeys(depths, 1000.0), counted=True)
    many = drive.measure(random_read(), [SliceSetting(depth, 128) for depth in depths])
    assert waited_in_host(many) == f"waited in the host: {said}"
    few = [SliceSetting(depth, offered_for(depth)) for depth in depths]
    assert waited_in_host(drive.measure(random_read(), few)) == ""
    drive.counted = False
    assert waited_in_host(drive.measure(random_read(), [SliceSetting(8, 128)] * 4)) == ""


def slices(seconds: float, *rates: float) -> list[Block]:
    """Slices of these rates at depth 8, ten offered: of 0.5 s they count from 100 a second on."""
    drive = SliceDrive({8: 1.0}, noise=0.0)
    blocks = []
    for rate in rates:
        drive.rates = {8: rate}
        blocks.append(tuple(drive.measure(random_read(), [SliceSetting(8, 10, seconds)])))
    return blocks


def taken(seconds: float, *rates: float) -> Evidence:
    evidence = Evidence(seconds)
    evidence.take(slices(seconds, *rates))
    return evidence


def test_slices_are_lengthened_where_as_many_are_too_short_as_would_void_them() -> None:
    evidence = taken(0.5, 90.0, 120.0, 90.0, 120.0)
    assert evidence.longest == pytest.approx(1.2 * 5 * 10 / 90)
    assert (evidence.blocks, evidence.voids()) == ([], ())


def test_one_of_four_that_stalls_is_left_out() -> None:
    evidence = taken(0.5, 1000.0, 1010.0, 20.0, 990.0)
    assert (evidence.longest, len(evidence.blocks), evidence.voids()) == (0.5, 3, ())


def test_one_of_four_that_is_the_slowest_of_its_fellows_is_not() -> None:
    """Three of four are just long enough: to leave out the fourth would raise their mean."""
    evidence = taken(0.5, 103.0, 101.0, 98.0, 106.0)
    assert evidence.longest == pytest.approx(1.2 * 5 * 10 / 102)
    assert evidence.blocks == []


def test_a_stall_is_left_out_where_the_others_are_only_just_long_enough_too() -> None:
    evidence = taken(0.5, 103.0, 101.0, 60.0, 106.0)
    assert (evidence.longest, len(evidence.blocks), evidence.voids()) == (0.5, 3, ())


def test_the_first_four_are_one_batch_also_where_one_of_them_came_before() -> None:
    """It tried their length: a stall in one of the others is one in four."""
    evidence = taken(0.5, 1000.0)
    evidence.take(slices(0.5, 1010.0, 20.0, 990.0))
    assert (evidence.longest, len(evidence.blocks), evidence.voids()) == (0.5, 3, ())
    fellow = taken(0.5, 103.0)
    fellow.take(slices(0.5, 101.0, 98.0, 106.0))
    assert fellow.longest == pytest.approx(1.2 * 5 * 10 / 102)


@pytest.mark.parametrize(
    ("rate", "seconds"),
    [(7.0, 1.2 * 5 * 10 / 7), (5.0, 10.0), (3.1, 10.0), (2.9, 0.5)],
)
def test_what_a_short_slice_tells_roughly_is_tried_with_the_longest(
    rate: float, seconds: float
) -> None:
    evidence = taken(0.5, *[rate] * 4)
    assert evidence.longest == pytest.approx(seconds)
    assert evidence.dropped == (4 if seconds == 0.5 else 0)


def test_a_drive_too_slow_for_the_longest_slice_is_void_then() -> None:
    evidence = taken(10.0, *[4.0] * 4)
    assert (evidence.longest, evidence.dropped) == (10.0, 4)
    assert evidence.voids()[0].startswith("too-short: ")


def began(seconds: float, *windows: float) -> list[Block]:
    """Slices of which so much was left when all of their load was there, clean where it is half."""
    least = LEAST_OF_WINDOW * (seconds - WARM_UP_S)
    return [
        (
            replace(
                block[0],
                window_s=window,
                rate=block[0].rate if window else 0.0,
                voids=(LATE_START,) if window < least else (),
            ),
        )
        for block, window in zip(slices(seconds, *[1000.0] * len(windows)), windows, strict=True)
    ]


@pytest.mark.parametrize(
    ("windows", "longest"),
    [
        ((0.0, 0.0, 0.0, 0.0), 0.1 + 1.2 * 0.4 / 0.5),
        ((0.1, 0.12, 0.3, 0.4), 0.1 + 1.2 * 0.3 / 0.5),
        ((0.0, 0.4, 0.4, 0.4), 0.5),
    ],
)
def test_slices_that_began_late_are_lengthened_by_that_where_more_than_one_in_four_did(
    windows: Sequence[float], longest: float
) -> None:
    """Also where nothing at all was counted, so that no rate tells how long they must be."""
    evidence = Evidence(0.5)
    evidence.take(began(0.5, *windows))
    assert evidence.longest == pytest.approx(longest)
    assert len(evidence.blocks) == (3 if longest == 0.5 else 0)


def test_slices_that_are_as_late_again_count_once_they_are_longer() -> None:
    """Later by a fifth, too, as threads of a slow rig are: nothing begins anew."""
    evidence, late_s = Evidence(0.5), (0.21, 0.25, 0.3, 0.31)
    evidence.take(began(0.5, *(0.4 - each for each in late_s)))
    longer = evidence.longest
    for more in (1.0, 1.19):
        evidence.take(began(longer, *(longer - WARM_UP_S - more * each for each in late_s)))
    assert (evidence.longest, len(evidence.blocks), evidence.dropped) == (longer, 8, 0)


def test_threads_that_never_begin_in_time_are_void_by_that_name() -> None:
    evidence = Evidence(10.0)
    evidence.take(began(10.0, *[0.0] * 4))
    assert (evidence.longest, evidence.dropped) == (10.0, 4)
    assert evidence.voids()[0].startswith("late-start: ")
    assert evidence.may_yet_count(), "the host may have been busy"


@pytest.mark.parametrize(
    ("unclean", "clean", "why", "may"),
    [
        (2, 2, "neighbour", True),
        (4, 0, "neighbour", True),
        (5, 3, "neighbour", False),
        (2, 2, "errors", False),
    ],
)
def test_a_few_that_do_not_count_may_be_made_good(
    unclean: int, clean: int, why: str, may: bool
) -> None:
    """Where what spoilt them passes: an error of the drive does not."""
    evidence = Evidence(0.5)
    good = pair(7.8, 1.0)
    spoilt = tuple(replace(each, voids=(why,)) for each in good)
    evidence.take([spoilt] * unclean + [good] * clean)
    assert evidence.may_yet_count() == may
    assert evidence.voids(), "as it stands, none of it counts"


def test_where_nobody_counted_nothing_is_said() -> None:
    evidence = Evidence(0.5)
    evidence.take([pair(None, None)])
    assert evidence.held() == ""
