"""Is the drive the one that the rig file names, and does it say so consistently?

ATA8-ACS 7.16 (IDENTIFY DEVICE) for SATA; SPC-4 6.4 (INQUIRY) and 7.8 (VPD pages)
for SAS and SCSI.  The revision that INQUIRY gives for a SATA drive is not its
firmware revision: SAT-4 shows four of its eight characters.  Whether its medium turns
is in ACS-4 7.13.7.82 (word 217), and in SBC-4, VPD page B1h.
"""

import pytest

from leadline.drive.bind import disagreements

pytestmark = pytest.mark.quick


def test_identity_matches_rig_file(drive, drive_spec, drive_firmware):
    """Model, serial number and WWN of the rig file, and the revision that this firmware shows."""
    assert disagreements(drive_spec, drive.identity, drive_firmware.shows) == []


@pytest.mark.protocol("sata")
def test_identify_data_are_intact(identify):
    assert identify.checksum != "invalid", "word 255 of IDENTIFY DEVICE does not sum to zero"
    assert identify.capacity_bytes > 0


def test_drive_is_of_the_class_that_the_matrix_has(own_class, drive_model, class_entry):
    """Limits belong to a class: a disk among SSDs would be held against what no disk can do."""
    wrong = own_class.against(drive_model.model, drive_model.class_, class_entry)
    assert own_class.class_ == drive_model.class_, wrong


def test_kernel_sees_the_whole_drive(drive, kernel_capacity_bytes):
    assert kernel_capacity_bytes == drive.identity.capacity_bytes
