"""Can commands be queued at all, from the drive's own word down to what is on the wire?

A published benchmark had to be retracted because queueing was silently off on one of
two "identical" machines; every flag that somebody looked at was right.  So NCQ is not a
flag here but a ladder, climbed to the top: requests that really overlap at the drive.
ATA8-ACS 7.16.7.38 (word 75) and SATA 3 13.2.1.18 (word 76).
"""

import pytest

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("promised_queue_depth")]


@pytest.mark.protocol("sata")
def test_drive_advertises_ncq(ncq, promised_queue_depth):
    assert ncq.supported, "word 76 bit 8 of IDENTIFY DEVICE is clear"
    assert ncq.queue_depth == promised_queue_depth


@pytest.mark.protocol("sata")
@pytest.mark.must(ncq="required")
def test_ncq_ladder_holds(ladder):
    assert ladder.first_broken is None, f"{ladder.cause}\n{ladder}"


@pytest.mark.must(ncq="required")
def test_kernel_allows_a_queue(device_queue_depth):
    assert device_queue_depth > 1, "the device queue depth is 1: nothing is queued"
