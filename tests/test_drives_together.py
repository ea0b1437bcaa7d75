"""Do streams and threads over several drives keep what one drive gives them, with NCQ and without?

From a study of NCQ on 500 GB SATA disks ("NCQ performance analysis", 2007): random reads of many
threads on one disk and on RAID-0 of 2, 4, 16 and 32, sequential reads of many streams on a RAID-0
of 46, each with NCQ on and off.  Random reads gained by it and streams lost, which a server with
one drive may never notice.  Its figures are not in it; the limits are those of one drive.

Each drive has its part of what is offered: 4 streams of 16 requests, or 16 requests at random
places.  So many, because a drive of an array is idle whenever all of them wait for another.  NCQ on
is the whole device queue depth, off a depth of 1.  Several drives give as many times what one
gives, but for a fifth that is left to the controller and the host; where these are full before the
drives are, the controller has a limit of its own in the matrix.  How random reads at one depth
scale is in test_scaling.py, NCQ on and off on one drive in test_streams.py.  Tests are skipped
where the drive has not so many others of its kind beside it.
"""

import pytest

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.drive_time(130),
    pytest.mark.must(ncq="required"),
]

DRIVES = [2, 4, 8]
STREAMS, REQUESTS = 4, 16
"""Of each drive: its streams, and the requests ahead of each; or the requests at random places."""
NCQ = ["on", "off"]


def streams(reads, ncq, drives):
    depth = reads.full_depth if ncq == "on" else 1
    threads = STREAMS * drives
    return reads.at(depth=depth, offered=REQUESTS * threads, threads=threads, drives=drives)


def at_random(reads, ncq, drives):
    depth = reads.full_depth if ncq == "on" else 1
    return reads.at(depth=depth, offered=REQUESTS * drives, drives=drives)


@pytest.mark.claim("streams_ncq_on_over_off")
@pytest.mark.parametrize("drives", DRIVES)
def test_drives_are_not_slower_for_streams_with_ncq(sequential_read_over, drives, expected):
    reads = sequential_read_over(drives)
    on, off = (streams(reads, ncq, drives) for ncq in NCQ)
    assert on >= expected.streams_ncq_on_over_off * off


@pytest.mark.claim("streams_ncq_on_over_off")
@pytest.mark.parametrize("drives", DRIVES)
def test_raid_0_is_not_slower_for_streams_with_ncq(sequential_read_on_raid0, drives, expected):
    reads = sequential_read_on_raid0(drives)
    on, off = (streams(reads, ncq, drives) for ncq in NCQ)
    assert on >= expected.streams_ncq_on_over_off * off


@pytest.mark.claim("threads_ncq_on_over_off")
@pytest.mark.parametrize("drives", DRIVES)
def test_random_reads_over_drives_are_faster_with_ncq(random_read_over, drives, expected):
    reads = random_read_over(drives)
    on, off = (at_random(reads, ncq, drives) for ncq in NCQ)
    assert on >= expected.threads_ncq_on_over_off * off


@pytest.mark.claim("threads_ncq_on_over_off")
@pytest.mark.parametrize("drives", DRIVES)
def test_random_reads_from_raid_0_are_faster_with_ncq(random_read_on_raid0, drives, expected):
    reads = random_read_on_raid0(drives)
    on, off = (at_random(reads, ncq, drives) for ncq in NCQ)
    assert on >= expected.threads_ncq_on_over_off * off


@pytest.mark.claim("streams_over_linear")
@pytest.mark.parametrize("drives", DRIVES)
@pytest.mark.parametrize("ncq", NCQ)
def test_drives_do_not_hold_one_another_up_in_streams(sequential_read_over, drives, ncq, expected):
    reads = sequential_read_over(drives)
    linear = drives * streams(reads, ncq, 1)
    assert streams(reads, ncq, drives) >= expected.streams_over_linear * linear


@pytest.mark.claim("streams_over_linear")
@pytest.mark.parametrize("drives", DRIVES)
@pytest.mark.parametrize("ncq", NCQ)
def test_raid_0_is_worth_its_drives_in_streams(sequential_read_on_raid0, drives, ncq, expected):
    reads = sequential_read_on_raid0(drives)
    linear = drives * streams(reads, ncq, 1)
    assert streams(reads, ncq, drives) >= expected.streams_over_linear * linear


@pytest.mark.claim("drives_over_linear")
@pytest.mark.parametrize("drives", DRIVES)
def test_drives_without_ncq_do_not_hold_one_another_up(random_read_over, drives, expected):
    reads = random_read_over(drives)
    linear = drives * at_random(reads, "off", 1)
    assert at_random(reads, "off", drives) >= expected.drives_over_linear * linear
