"""What fails at a regression station is the fault of the firmware that is on the drive then.

The drive is a stand-in that is broken at the stations that a test names.
"""

from collections.abc import Sequence

import pytest

from selftests.vendor import kept, run, vendor

__all__ = ["vendor"]  # a fixture

RELEASED, CANDIDATE = "virtual-ssd1-LEADLINE_VSSD-1.0", "virtual-ssd1-LEADLINE_VSSD-1.1"
TESTS = """
from functools import partial
import pytest
from leadline.claims import ClaimFailed
from leadline.errors import DriveFault
from leadline.failed_stations import uncompared
from leadline.released import Released
from leadline.running import RECORDED

BROKEN = {broken}

@pytest.fixture
def released(visit, stay, request):
    nobody = lambda _: None
    return Released(stay, lambda _: (), nobody, nobody, partial(uncompared, request.node))

@pytest.mark.claim("regression_streams", limit="regression")
def test_compares(visit, stay, released, request):
    if stay.number in BROKEN:
        raise DriveFault("reads time out\\n  at LBA 7")
    if not stay.judges:
        request.node.stash[RECORDED] = True
        pytest.skip("20 slices recorded")
    released.changes()
"""


def ended(vendor: pytest.Pytester, broken: Sequence[int]) -> tuple[list[tuple[str, str]], str]:
    """Cell and outcome of each test that did not record, then the summary's text."""
    vendor.makepyfile(TESTS.format(broken=tuple(broken)))
    ends = run(vendor, "-k", "ssd1", "--no-excuses", "-rN").stdout.str()
    rows = kept(vendor, "outcomes")
    told = [(row["cell"], row["outcome"]) for row in rows if row["outcome"] != "recorded"]
    return told, ends[ends.index("Leadline, run") :] + "".join(row["message"] for row in rows)


def test_what_the_released_firmware_does_wrong_is_not_the_candidates(
    vendor: pytest.Pytester,
) -> None:
    told, said = ended(vendor, [1])
    assert told == [(RELEASED, "fail"), (CANDIDATE, "inconclusive")]
    why = "the station of LEADLINE VSSD-1.0 before it failed: reads time out"
    assert f"not compared: {why}" in said
    assert "loses what" not in said


def test_nor_is_it_where_it_judges_and_the_claim_is_told_to_be_open(
    vendor: pytest.Pytester,
) -> None:
    told, said = ended(vendor, [4])
    assert told == [(RELEASED, "fail"), (CANDIDATE, "inconclusive")]
    why = "the station of LEADLINE VSSD-1.0 after it failed: reads time out"
    assert f"not compared: {why}" in said
    assert "loses what" not in said


def test_what_the_candidate_does_wrong_at_its_station_is_lost(vendor: pytest.Pytester) -> None:
    told, said = ended(vendor, [3])
    assert told == [(CANDIDATE, "fail"), (CANDIDATE, "inconclusive")]
    assert "not compared: the station of LEADLINE VSSD-1.1 before it failed: reads time" in said
    assert f"{CANDIDATE} loses what 1.0 has:\n  regression_streams: FAIL: test_compares[" in said
    assert "station3" in said
