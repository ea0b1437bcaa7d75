"""What the suite claims of streams and threads over several drives."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from leadline.expected import Limit
from leadline.load.workload import Workload, random_read, sequential_read
from leadline.quantities import Load
from leadline.suite import test_drives_together
from selftests.test_claims import Ruling, ratio

STREAMS, PLACES = sequential_read(1 << 30), random_read()

Side = tuple[int, int, int, int]
"""Device depth, offered, streams, drives."""


def stated(name: str, workload: Workload, **more: object) -> tuple[list[Side], float]:
    """Both sides of what a test states of four drives, and the threshold."""
    limit = Limit(0.8, "a_claim", "a study")
    names = "streams_ncq_on_over_off", "threads_ncq_on_over_off", "streams_over_linear"
    expected = SimpleNamespace(**dict.fromkeys((*names, "drives_over_linear"), limit))
    judge = Ruling()
    load = Load(workload, judge, full_depth=32, kernel_depth=1, most_drives=4)
    test = cast(Callable[..., None], getattr(test_drives_together, f"test_{name}"))
    test(lambda drives: load, drives=4, expected=expected, **more)
    said = ratio(judge.claims[0])
    sides = [
        (each.device_depth, each.offered_depth, each.threads, each.drives)
        for each in said.quantities
    ]
    return sides, said.threshold


@pytest.mark.parametrize(
    ("those", "where"), [("drives_are", "over_drives"), ("raid_0_is", "from_raid_0")]
)
def test_ncq_on_is_held_against_off_with_the_same_load(those: str, where: str) -> None:
    streams = stated(f"{those}_not_slower_for_streams_with_ncq", STREAMS)
    assert streams == ([(32, 256, 16, 4), (1, 256, 16, 4)], 0.8)
    places = stated(f"random_reads_{where}_are_faster_with_ncq", PLACES)
    assert places == ([(32, 64, 4, 4), (1, 64, 4, 4)], 0.8)


@pytest.mark.parametrize(("ncq", "depth"), [("on", 32), ("off", 1)])
@pytest.mark.parametrize(
    "name",
    ["drives_do_not_hold_one_another_up_in_streams", "raid_0_is_worth_its_drives_in_streams"],
)
def test_four_drives_are_held_against_four_times_one_that_has_a_quarter_of_the_load(
    name: str, ncq: str, depth: int
) -> None:
    sides, threshold = stated(name, STREAMS, ncq=ncq)
    assert sides == [(depth, 256, 16, 4), (depth, 64, 4, 1)]
    assert threshold == pytest.approx(3.2)


def test_random_reads_without_ncq_scale_too() -> None:
    sides, threshold = stated("drives_without_ncq_do_not_hold_one_another_up", PLACES)
    assert sides == [(1, 64, 4, 4), (1, 16, 1, 1)]
    assert threshold == pytest.approx(3.2)
