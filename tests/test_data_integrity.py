"""Does the drive keep what it was given?  The claim that outranks speed.

A drive was seen to lose queued writes when IDENTIFY came between them; others have returned
another sector's data, or forgotten what had been flushed.  Throughput shows none of it.  Here
every sector written names its writer: which load, which LBA, which request.  Up to 32 requests
are in flight: random, sequential and overlapping writes, some with FUA, reads and flushes among
them, and IDENTIFY beside them all the while.  A moment of it is watched at the drive: where
writes come one by one to a drive that must queue, its data prove nothing of queued writes, and the
test is inconclusive.

What was flushed or written with FUA must be there whatever happens (ACS-3, FLUSH CACHE EXT, and
the FUA bit of WRITE FPDMA QUEUED; SBC-3, SYNCHRONIZE CACHE, and that of WRITE); what was not may
be lost with the power, and old or new then, sector by sector; nothing else may ever be there.  It
holds for every class of drive, and needs no limit.

Each takes 15 s of drive time, and the filling of 16 MiB before that (128 MiB on a drive with
logical blocks of 4096 bytes), which are spread over the drive and overwritten.
"""

import pytest

pytestmark = [pytest.mark.writes, pytest.mark.acceptance, pytest.mark.drive_time(20)]


def test_every_read_beside_queued_writes_returns_what_was_written(verified_writes):
    assert verified_writes.read_back_at_once()


def test_acknowledged_writes_outlast_a_graceful_power_cycle(verified_writes):
    assert verified_writes.outlast_a_power_cycle()


def test_flushed_writes_outlast_a_power_cut_in_the_middle_of_the_load(verified_writes):
    assert verified_writes.outlast_a_power_cut()
