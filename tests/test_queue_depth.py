"""Does a deeper queue make the drive faster?

From a depth sweep on server SSDs (70/30 random 4 KiB, device queue depth 1 to 31):
below the controller's 8 channels throughput collapses, and depth 1 gives about a
quarter of depth 8.  Recorded sweeps of other SATA SSDs put the ratio for random
reads between 3.2 and 9.5; the firmware matrix holds the limit for each class.
"""

import pytest


@pytest.mark.claim("depth_8_over_depth_1")
def test_depth_8_is_at_least_three_times_depth_1(random_read, expected):
    assert random_read.at(depth=8) >= expected.depth_8_over_depth_1 * random_read.at(depth=1)
