"""Is the drive the one that the rig file names, and does it say so consistently?

ATA8-ACS 7.16 (IDENTIFY DEVICE) for SATA; SPC-4 6.4 (INQUIRY) and 7.8 (VPD pages)
for SAS and SCSI.  The revision that INQUIRY gives for a SATA drive is not its
firmware revision: SAT-4 shows four of its eight characters.
"""

import pytest

pytestmark = pytest.mark.quick


def test_identity_matches_rig_file(drive, cell, drive_spec):
    found = drive.identity
    assert found.serial == drive_spec.serial
    assert found.model == drive_spec.model
    assert drive_spec.wwn is None or found.wwn == drive_spec.wwn
    assert found.firmware == cell.firmware


@pytest.mark.protocol("sata")
def test_identify_data_are_intact(identify):
    assert identify.checksum != "invalid", "word 255 of IDENTIFY DEVICE does not sum to zero"
    assert identify.capacity_bytes > 0


def test_kernel_sees_the_whole_drive(drive, kernel_capacity_bytes):
    assert kernel_capacity_bytes == drive.identity.capacity_bytes
