"""Do drive and controller get on, and did the kernel set the two up as is expected?

Queueing is lost by pairs more often than by drives: one SSD family timed out on the AHCI
controllers of one vendor, so that Linux does not queue to it there and does everywhere else
(libata, ATA_QUIRK_NO_NCQ_ON_ATI); others may not be sent a queued TRIM; a port is slower than
what hangs on it.  What Linux does about it is read from what it reports, for its table grows
with every release (docs/explanation/controllers.md); what the pair must do is the firmware
matrix's to say.

The ladder of `test_ncq_support` is the other half: it must hold for every pair that must queue.
"""

import pytest

pytestmark = pytest.mark.quick

LOST = "the beginning of the kernel's log is gone, and with it what it said of quirks: boot anew"


@pytest.mark.protocol("sata")
def test_link_runs_at_full_speed(pair, must):
    """A link trained below capability halves throughput and raises no error.

    The drive's capability is in words 76 and 77 (ATA8-ACS 7.16.7), an AHCI controller's in CAP.ISS.
    """
    full_gbps = pair.full_gbps(must.link_gbps)
    if pair.link_gbps is None or full_gbps is None:
        pytest.skip("not offered: the drive does not report its link speeds")
    assert pair.link_gbps >= full_gbps, str(pair)


@pytest.mark.must("link_gbps")
def test_the_port_is_as_fast_as_its_controller_must_be(pair, must):
    if pair.port_gbps is None:
        pytest.skip("the controller does not report the speed of its ports")
    assert pair.port_gbps >= must.link_gbps, str(pair)


@pytest.mark.must(ncq="none")
def test_a_pair_that_must_not_queue_is_kept_from_it(ladder, must):
    """By the controller or the kernel: a device queue depth of 1 is a setting, and may change."""
    assert ladder.bars_queueing, f"queueing must be off here: {must.source}\n{ladder}"


@pytest.mark.must("max_queue_depth")
def test_the_queue_is_no_deeper_than_the_controller_bears(device_queue_depth, must):
    assert device_queue_depth <= must.max_queue_depth


@pytest.mark.must("quirks")
def test_the_kernel_minds_every_quirk_that_is_known(pair, must):
    """A kernel that is too old for a workaround lets the drive do what it must not."""
    missing = pair.missing(must.quirks)
    if missing and not pair.whole_log:
        pytest.skip(LOST)
    assert missing == ()


@pytest.mark.must("quirks")
def test_the_kernel_minds_no_other_quirk(pair, must):
    """A newer kernel takes away what the release before still allowed."""
    unexpected = pair.unexpected(must.quirks)
    if not unexpected and not pair.whole_log:
        pytest.skip(LOST)
    assert unexpected == ()
