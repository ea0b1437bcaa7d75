"""A rig without hardware: a QEMU guest, drive models and a PDU on a pty."""
