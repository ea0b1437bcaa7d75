"""Reach a rig, run programs on it, hold its lease, and give back what was changed."""
