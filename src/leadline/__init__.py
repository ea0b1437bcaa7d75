"""Leadline sounds the depth of a drive's command queue.

A hardware-in-the-loop test framework for SATA and SAS drives; ``docs/`` tells
how its parts fit together.
"""
