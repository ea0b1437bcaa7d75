"""A story is told by one verdict a claim: by the words that ask for it one test is chosen."""

import re
from pathlib import Path

import pytest

from bench import fault_size, knee, queued_streams
from bench.fault_rig import Seeded, write_files
from bench.told import SLOT, Asked
from selftests.vendor import vendor

__all__ = ["vendor"]  # a fixture

STREAMS = Seeded(SLOT, queued_streams.PROFILE)
ASKED = [
    *((knee.drive(knee.DIP_AT), asked) for asked in knee.asked(knee.DIP_AT)),
    (STREAMS, queued_streams.GAINED),
    (STREAMS, queued_streams.LOST),
    (fault_size.DRIVE, fault_size.CUT),
    (fault_size.DRIVE, fault_size.WHOLE),
]


@pytest.mark.parametrize(("drive", "asked"), ASKED)
def test_one_test_settles_each_claim_of_a_story(
    vendor: pytest.Pytester, tmp_path: Path, drive: Seeded, asked: Asked
) -> None:
    rig, matrix = write_files(tmp_path, "r", [drive])
    options = ("--collect-only", "--pyargs", "leadline.suite", "-p", "no:cacheprovider")
    result = vendor.runpytest_subprocess(
        f"--rig={rig}", f"--matrix={matrix}", *options, *asked.words
    )
    chosen = [line for line in result.stdout.lines if re.match(r"  (quick|acceptance|soak) ", line)]
    assert len(chosen) == len(asked.right) == 1, chosen
