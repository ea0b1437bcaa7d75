"""What a claim may cost, for those who plan it and those who measure it."""

CLAIM_S = 130.0
"""Seconds of drive time for one claim unless its test or `--drive-time` says otherwise: two runs
of 65 s, as usual."""
CURVE_BUDGETS = 16
"""What a curve may cost, in budgets of one claim: 32 depths, of which a claim has two."""
