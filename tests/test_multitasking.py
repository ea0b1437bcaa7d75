"""Does NCQ serve a desktop better that does two things at once?

From a test of two 7200 rpm disks in a desktop (2005): nine loads, each a task in the foreground
beside one in the background, recorded once and replayed with NCQ on and off, at least twice.  By
mean service time both disks gained about 9 % on average, 32 % at best, and one of them was slower
in one of the nine.  So the loads are claimed to gain together, and none of them to lose much.

Its traces were never published: these are generated from its description of the programs
(docs/reference/traces.md).  The gain is (off - on) / off; off is a device queue depth of 1, on the
whole one.  Each load is replayed as fast as the drive answers.  With NCQ on as many requests are in
flight as its programs had; off, the drive is given them one by one, in their order, and what that
many would have waited is computed (docs/decisions/off-is-in-order.md).  Writes are replayed where
both keys allow them, else the reads alone.

Limits are of disks, as the story is.  That no load loses a tenth is held for every class, for a
queue lets a drive choose what it does next, and a choice may cost it little; but of whole loads
alone: without its writes an extraction is two sequential streams, of which another test tells.
"""

import pytest

pytestmark = pytest.mark.must(ncq="required")

SHORT_CUT = 300
"""Requests of each load: a quarter of a minute of a disk a round, and four are the fewest."""


@pytest.mark.acceptance
@pytest.mark.drive_time(600)
@pytest.mark.claim("multitasking_gain")
def test_two_tasks_at_once_gain_by_ncq(multitasking, expected):
    assert multitasking.first(SHORT_CUT).gains_at_least(expected.multitasking_gain)


@pytest.mark.acceptance
@pytest.mark.drive_time(600)
@pytest.mark.writes
@pytest.mark.claim("multitasking_loss")
@pytest.mark.no_limit
def test_no_two_tasks_lose_much_by_ncq(multitasking):
    assert multitasking.first(SHORT_CUT).no_load_loses_more_than(0.1)


@pytest.mark.soak
@pytest.mark.drive_time(8 * 3600)
@pytest.mark.claim("multitasking_gain")
def test_two_tasks_at_once_gain_by_ncq_from_beginning_to_end(multitasking, expected):
    assert multitasking.gains_at_least(expected.multitasking_gain)


@pytest.mark.soak
@pytest.mark.drive_time(8 * 3600)
@pytest.mark.writes
@pytest.mark.claim("multitasking_loss")
@pytest.mark.no_limit
def test_no_two_tasks_lose_much_by_ncq_from_beginning_to_end(multitasking):
    assert multitasking.no_load_loses_more_than(0.1)
