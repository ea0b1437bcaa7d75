"""Calibration: a rig's own noise, measured on one of its drives, kept, and found again."""
