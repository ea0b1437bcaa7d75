"""Statistics: from slices to PASS, FAIL or INCONCLUSIVE. Pure functions, no I/O."""
