"""What the quick tests of a drive may cost together: "under 3 minutes of drive time a drive"."""

import re
from collections import defaultdict

import pytest

from leadline.selection import DRIVE_TIME_S
from selftests.vendor import PACKAGE, run, vendor

__all__ = ["vendor"]  # a fixture

QUICK_S = 180.0
LINE = re.compile(r"  quick +(?:(?P<seconds>[\d.]+) s|-)  test_\w+\[(?P<cell>[^\]]+)\]")
WORDS = ("--collect-only", "-m", "quick", "--allow-writes", "--allow-flash")
RIGS = (f"--rig={PACKAGE / 'rigs' / 'example-bench.yaml'}",)
SUITE = ("--pyargs", "leadline.suite")
ONE_MORE = """
import pytest

@pytest.mark.quick
def test_one_more(visit, random_read): pass
"""


def spent(vendor: pytest.Pytester, *words: str) -> dict[str, float]:
    """Seconds of drive time by drive, with all its firmware, as `--collect-only` says them."""
    lines = run(vendor, *WORDS, *RIGS, *words, *SUITE).stdout.lines
    seconds: dict[str, float] = defaultdict(float)
    for found in filter(None, map(LINE.match, lines)):
        seconds[found["cell"].rpartition("-")[0]] += float(found["seconds"] or 0)
    return seconds


def test_the_quick_tests_of_a_drive_fit_in_three_minutes(vendor: pytest.Pytester) -> None:
    of_drives = spent(vendor)
    assert {drive.split("-LEADLINE")[0].split("-EXAMPLE")[0] for drive in of_drives} >= {
        "virtual-ssd1",
        "virtual-scsi1",
        "bench-a-slot2",
    }
    assert min(of_drives.values()) > 0, "each is loaded for the claim of depth 8 over depth 1"
    over = {drive: seconds for drive, seconds in of_drives.items() if seconds >= QUICK_S}
    assert over == {}


def test_one_quick_test_too_many_is_seen(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(ONE_MORE)
    more = spent(vendor, f"{vendor.path}")
    before = spent(vendor)
    ssd = next(drive for drive in before if drive.startswith("virtual-ssd1"))
    assert more[ssd] == before[ssd] + 2 * DRIVE_TIME_S, "with each of its two firmware"
    assert more[ssd] >= QUICK_S
