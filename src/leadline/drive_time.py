"""What a claim may cost, for those who plan it and those who measure it."""

CLAIM_S = 130.0
"""Seconds of drive time for one claim unless its test or `--drive-time` says otherwise: two runs
of 65 s, as usual."""
