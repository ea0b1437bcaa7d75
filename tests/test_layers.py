"""Is the queue worth as much to what lives above the drive: a file system, a volume, an array?

From a depth sweep of a server ("SSDs and Linux Native Command Queuing", 2015): two SSDs in an md
RAID-10, LVM on it, ext4 on that, and a file there that fio reads and writes (70/30 random 4 KiB,
128 requests in flight), with the device queue depth of both SSDs from 1 to 31.  Below about 8 it
was disastrous, depth 1 gave about a quarter of depth 8, and depth 19 dipped.  Each layer by
itself, and the server's own three, so that a layer that loses what the drive gives is told from
the drive, of which test_queue_depth.py claims the same.

The limits are those of the raw drive: no layer gives a shallow queue what the drive has not.  Of
each drive so much is used as makes its cache not matter, 16 times as much; the layers are taken
down after each test.  Drive time: the claim's, and six minutes or more until writes are steady.
"""

import pytest

pytestmark = pytest.mark.must(ncq="required")

LAYERS = [("ext4",), ("lvm",), ("raid10",), ("raid10", "lvm", "ext4")]


@pytest.mark.soak
@pytest.mark.drive_time(300)
@pytest.mark.claim("random_mix_depth_8_over_depth_1")
@pytest.mark.parametrize("layers", LAYERS, ids="-".join)
def test_a_busy_server_needs_the_queue_below_its_layers(random_mix_on, layers, expected):
    busy = random_mix_on(*layers)
    shallow, deep = (busy.at(depth=depth, offered=128) for depth in (1, 8))
    assert deep >= expected.random_mix_depth_8_over_depth_1 * shallow


@pytest.mark.soak
@pytest.mark.drive_time(300)
@pytest.mark.claim("random_mix_ncq_off_over_on")
@pytest.mark.parametrize("layers", LAYERS, ids="-".join)
def test_switching_ncq_off_costs_a_server_above_its_layers(random_mix_on, layers, expected):
    busy = random_mix_on(*layers)
    off, on = (busy.at(depth=depth, offered=128) for depth in (1, busy.full_depth))
    assert off <= expected.random_mix_ncq_off_over_on * on


@pytest.mark.soak
@pytest.mark.drive_time(600)
@pytest.mark.claim("random_mix_no_dip", limit="random_mix_depth_8_over_depth_1")
@pytest.mark.parametrize("layers", LAYERS, ids="-".join)
def test_a_busy_server_meets_no_dip_above_its_layers(random_mix_on, layers):
    assert random_mix_on(*layers).curve(offered=128).has_no_dip()


@pytest.mark.soak
@pytest.mark.drive_time(300)
@pytest.mark.claim("random_mix_no_collapse", limit="random_mix_depth_8_over_depth_1")
@pytest.mark.parametrize("layers", LAYERS, ids="-".join)
def test_a_busy_server_keeps_its_best_rate_above_its_layers(random_mix_on, layers):
    assert random_mix_on(*layers).curve(offered=128).does_not_collapse(within=0.1)
