"""Do several drives give several times as much?

From a study of NCQ on 500 GB SATA disks ("NCQ performance analysis", 2007), one disk and RAID-0 of
2, 4, 16 and 32: random reads of many threads, with NCQ on and off.  What one drive gains by its
queue is worth something to a server only if its other drives gain it at the same time.

Each drive has a queue of 8 and its part of what is offered, on one drive and on several.  As
independent drives, then in an md RAID-0, where the host's share of the work shows.  Held for every
class: drives of a kind have nothing in common but the controller and the host, and a fifth is left
to these.  Tests are skipped where the drive has not so many others of its kind beside it.
"""

import pytest

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.drive_time(130),
    pytest.mark.must(ncq="required"),
]

DRIVES = [2, 4, 8]


@pytest.mark.claim("drives_over_linear")
@pytest.mark.parametrize("drives", DRIVES)
def test_independent_drives_do_not_hold_one_another_up(random_read_over, drives, expected):
    reads = random_read_over(drives)
    linear = drives * reads.at(depth=8)
    assert reads.at(depth=8, drives=drives) >= expected.drives_over_linear * linear


@pytest.mark.claim("drives_over_linear")
@pytest.mark.parametrize("drives", DRIVES)
def test_raid_0_of_drives_is_worth_its_drives(random_read_on_raid0, drives, expected):
    reads = random_read_on_raid0(drives)
    linear = drives * reads.at(depth=8)
    assert reads.at(depth=8, drives=drives) >= expected.drives_over_linear * linear
