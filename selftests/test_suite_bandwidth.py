"""The suite's claim on a data sheet's bandwidth, and the figure that the virtual SSD has for it."""

from collections.abc import Callable
from typing import cast

import pytest

from leadline.expected import Expected
from leadline.inventory.matrix import load_matrix
from leadline.load.workload import random_read
from leadline.quantities import Load
from leadline.statements import Against
from leadline.suite import test_request_size
from leadline.virtual.profile import load_profile
from selftests.simulated_host import Host, scattered
from selftests.test_claims import Ruling
from selftests.vendor import MATRIX, run, vendor
from selftests.virtual_rig_file import PROFILES

__all__ = ["vendor"]  # a fixture

CLAIM, MODEL = "read_mb_per_s", "LEADLINE VSSD"
BRIDGED_SECTORS = 256
"""Of one request: libata limits those of a drive that says that a bridge is before it."""


def limits() -> Expected:
    return Expected(MODEL, load_matrix(MATRIX).limits_for(MODEL, "1.0"))


def test_it_is_made_of_the_drives_that_have_the_figure(vendor: pytest.Pytester) -> None:
    words = ("--collect-only", "-q", "-m", "acceptance", "--pyargs", "leadline.suite")
    lines = [line for line in run(vendor, *words).stdout.lines if "bandwidth_of_the_data" in line]
    assert sum("VSSD-1.0]" in line for line in lines) == 1
    assert not any("VSCSI" in line for line in lines)


def test_reads_of_1_mib_at_depth_8_are_held_against_it() -> None:
    judge = Ruling()
    states = cast(
        Callable[..., None],
        test_request_size.test_depth_8_reaches_the_bandwidth_of_the_data_sheet,
    )
    states(Load(random_read(), judge, full_depth=32), limits())
    (said,) = (each.statement for each in judge.claims)
    assert isinstance(said, Against)
    (bandwidth,) = said.quantities
    assert (bandwidth.device_depth, bandwidth.request_bytes) == (8, 1 << 20)
    assert bandwidth.in_unit(100.0) == 104.8576, "megabytes a second"
    assert (said.direction, said.threshold, said.figure) == (">=", 40.0, 40.0)
    assert said.source == limits().read_mb_per_s.source != ""


@pytest.mark.parametrize(("firmware", "reaches"), [("1.0", True), ("1.1", False)])
def test_the_profile_of_the_virtual_ssd_reaches_it_and_one_that_does_not_queue_does_not(
    firmware: str, reaches: bool
) -> None:
    profile = load_profile(PROFILES / f"vssd-{firmware}.yaml")
    places = scattered(profile, BRIDGED_SECTORS)
    rate = Host(profile).offer(8, 10.0, sectors=BRIDGED_SECTORS, lbas=places)
    found = rate * BRIDGED_SECTORS * 512 / 1e6
    assert (found > 2 * limits().read_mb_per_s) == reaches
    assert (found > limits().read_mb_per_s) == reaches
    excused = {each.claim for each in load_matrix(MATRIX).firmware(MODEL, firmware).known_issues}
    assert (CLAIM in excused) != reaches
