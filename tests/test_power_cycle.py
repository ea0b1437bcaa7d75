"""Does the drive come back from a power cycle as itself, in time, and none the slower?

The power is cut by a PDU and proven to be off, by readback and by the drive's absence;
a drive that returns with another serial number, firmware, capacity or a slower link has
failed, whatever it says of itself.  Who it is is read as in `test_identity` (ATA8-ACS 7.16,
SPC-4 6.4 and 7.8); how long it may take is what Linux waits for a drive before it resets it
(ata_eh_reset_timeouts in drivers/ata/libata-eh.c), by the limit of its class.
"""

import pytest

pytestmark = pytest.mark.quick


def test_drive_comes_back_as_itself(power_cycle):
    assert power_cycle.verified
    assert power_cycle.differences == ()


@pytest.mark.claim("ready_s")
def test_drive_is_ready_in_time(power_cycle, expected):
    assert power_cycle.ready_within(expected.ready_s)
