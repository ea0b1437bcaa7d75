"""Did the drive's own error counters move while it was under test?

A damaged cable shows as interface CRC errors (Phy Event Counters, log 11h; attribute 199)
long before a program sees an error; a dying medium as reallocated and pending sectors.  They
are read when the drive has done everything else but power cycles, which count their own.
"""

import pytest

pytestmark = pytest.mark.quick


def test_no_error_counter_rose(smart_changes):
    indicting = [change for change in smart_changes if change.indicts]
    assert not indicting, "; ".join(str(change) for change in indicting)
