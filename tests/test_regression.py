"""Has a candidate firmware become slower than the one that is released, or lost what it said?

Firmwares have shipped that queued as before and were a few percent slower, and others that
advertised less of a queue; nobody who measures one firmware alone can see either.  Two
firmwares cannot be measured in turn slice by slice, so each rate is recorded at four stations,
released, candidate, candidate, released, with a flash between the first two and the last two,
and judged at the last (docs/explanation/regressions.md).

Held for every class with a limit; it says how much of a rate may be lost.  Drive time: as
given, of which each station takes a quarter.
"""

import pytest

MIB = 1 << 20
pytestmark = [pytest.mark.acceptance, pytest.mark.drive_time(60)]


@pytest.mark.claim("regression_depth_1", limit="regression")
def test_random_reads_one_at_a_time_are_as_fast_as_released(random_read, released, expected):
    assert random_read.at(depth=1).has_not_regressed(released, within=expected.regression)


@pytest.mark.claim("regression_depth_8", limit="regression")
@pytest.mark.must(ncq="required")
def test_random_reads_at_depth_8_are_as_fast_as_released(random_read, released, expected):
    assert random_read.at(depth=8).has_not_regressed(released, within=expected.regression)


@pytest.mark.claim("regression_whole_queue", limit="regression")
@pytest.mark.must(ncq="required")
def test_the_whole_queue_is_as_fast_as_released(random_read, released, expected):
    """However deep each of the two is: what a host gets that leaves the queue to the drive."""
    assert random_read.whole_queue.has_not_regressed(released, within=expected.regression)


@pytest.mark.claim("regression_streams", limit="regression")
def test_streams_are_as_fast_as_released(sequential_read, released, expected):
    streams = sequential_read.at(threads=4)
    assert streams.has_not_regressed(released, within=expected.regression)


@pytest.mark.claim("regression_refill", limit="regression")
def test_a_cache_is_filled_as_fast_as_released(random_read_8k, released, expected):
    refill = random_read_8k.at(offered=32)
    assert refill.has_not_regressed(released, within=expected.regression)


@pytest.mark.claim("regression_large_reads", limit="regression")
@pytest.mark.must(ncq="required")
def test_reads_of_1_mib_are_as_fast_as_released(random_read, released, expected):
    """Where the bandwidth of the link or of the medium is the limit, and no longer the queue."""
    large = random_read.at(depth=8, size=MIB)
    assert large.has_not_regressed(released, within=expected.regression)


@pytest.mark.claim("regression_mix", limit="regression")
@pytest.mark.must(ncq="required")
def test_a_busy_server_is_as_fast_as_released(random_mix, released, expected):
    mix = random_mix.at(depth=8, offered=128)
    assert mix.has_not_regressed(released, within=expected.regression)


@pytest.mark.claim("identify_changes")
@pytest.mark.no_limit
def test_the_candidate_queues_as_deep_and_holds_as_much_as_released(released):
    """ACS-4: NCQ is word 76 bit 8, the queue depth word 75, the capacity words 100 to 103.
    SPC-4: a drive that queues has CMDQUE, INQUIRY byte 7 bit 1, and SIMPSUP, VPD page 86h byte 5
    bit 0.  SBC-3: the capacity is READ CAPACITY (16) bytes 0 to 11.
    """
    lost = [str(change) for change in released.changes() if change.is_loss]
    assert not lost, "; ".join(lost)
