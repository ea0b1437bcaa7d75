"""Do large requests reach the drive as large ones, and is every size served as it should be?

From an investigation of a SATA SSD that was asked for 1 MiB and was sent 512 KiB, as iostat
and blktrace showed.  Raising max_sectors_kb from 512 to 1024 changed nothing: the controller
takes 128 segments, and a segment was a page of 4 KiB.  Where pages are neighbours in memory
more arrived, and from hugepages always the whole 1 MiB.  The 540 MB/s of its data sheet were
reached all the same (532, with 8 outstanding).

Holds for every class: the limits are those that the kernel found in the drive and its
controller (Documentation/ABI/stable/sysfs-block), and what they promise follows from them
(docs/explanation/request-size.md).  Drives have failed queued requests of 4 MiB, so each size
is tried with several in flight; the kernel's log is watched as in every test.
Drive time: half a second a size and kind of memory, some seconds for the bandwidth.
"""

import pytest

pytestmark = [pytest.mark.acceptance, pytest.mark.drive_time(30)]

KIB, MIB = 1024, 1024 * 1024
SIZES = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB]


def kib(size):
    return f"{size // KIB}k"


@pytest.mark.claim("request_size")
@pytest.mark.no_limit
@pytest.mark.parametrize("size", SIZES, ids=kib)
def test_requests_are_served_and_arrive_as_large_as_the_limits_promise(
    random_read, request_limits, size
):
    assert random_read.arrives_as(request_limits.promise(size))


@pytest.mark.claim("request_size")
@pytest.mark.no_limit
@pytest.mark.parametrize("size", SIZES, ids=kib)
def test_from_hugepages_they_arrive_whole_where_the_sector_limits_allow_it(
    random_read, request_limits, size
):
    """Of the largest, eight in flight take 18 hugepages of 2 MiB."""
    assert random_read.arrives_as(request_limits.promise(size, hugepages=True))


@pytest.mark.must(ncq="required")
@pytest.mark.claim("read_mb_per_s")
def test_depth_8_reaches_the_bandwidth_of_the_data_sheet(random_read, expected):
    assert random_read.at(depth=8, size=MIB).mb_per_s >= expected.read_mb_per_s
