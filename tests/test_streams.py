"""Does the queue help many threads, and does it leave many streams alone?

From a study of NCQ on 500 GB SATA disks under Solaris (2007), on and off, with 1 to 16 threads:
random reads by more than one thread gained, sequential reads by several streams lost.  Layer by
layer the time was traced to the start of a command, which took about 20 times as long when
queued: the driver, or more likely the drive's firmware.  A claim that fails here says which
(docs/explanation/where-the-time-goes.md).

NCQ on is the drive's whole device queue depth, whatever the kernel has left of it, off a device
queue depth of 1: that on both sides would agree, and say nothing.  The threads, each with one
request in flight, are the same on both sides.
"""

import pytest

pytestmark = pytest.mark.must(ncq="required")


@pytest.mark.acceptance
@pytest.mark.drive_time(130)
@pytest.mark.claim("streams_ncq_on_over_off")
@pytest.mark.parametrize("threads", [4, 16])
def test_streams_are_not_slower_with_ncq(sequential_read, expected, threads):
    """A queue lets a drive choose what it does next, and a choice may cost it nothing."""
    whole_queue = sequential_read.full_depth
    on, off = (sequential_read.at(depth=depth, threads=threads) for depth in (whole_queue, 1))
    assert on >= expected.streams_ncq_on_over_off * off


@pytest.mark.acceptance
@pytest.mark.drive_time(60)
@pytest.mark.claim("threads_ncq_on_over_off")
@pytest.mark.parametrize("threads", [8, 16])
def test_threads_that_read_at_random_are_faster_with_ncq(random_read, expected, threads):
    whole_queue = random_read.full_depth
    on, off = (random_read.at(depth=depth, threads=threads) for depth in (whole_queue, 1))
    assert on >= expected.threads_ncq_on_over_off * off


@pytest.mark.acceptance
@pytest.mark.drive_time(60)
@pytest.mark.claim("few_threads_ncq_on_over_off")
@pytest.mark.parametrize("threads", [2, 4, 8])
def test_few_threads_are_faster_with_ncq(random_read, expected, threads):
    """More than one is enough: one that gains only by a full queue is slow for most users."""
    whole_queue = random_read.full_depth
    on, off = (random_read.at(depth=depth, threads=threads) for depth in (whole_queue, 1))
    assert on >= expected.few_threads_ncq_on_over_off * off
