"""The story of the depth sweep: what a busy server loses with a shallow queue, and at one depth.

On server SSDs with a controller of eight channels, 70 % reads and 30 % writes of 4 KiB with 128
offered: anything below about 8 was disastrous (depth 1 gave a quarter of depth 8), and the rate
dipped at depth 19, again and again.  Here a drive has these eight channels and such a dip.
"""

import random
import re
from typing import Any

from bench.fault_rig import Seeded
from bench.told import SLOT, Asked, Told, interval, tell

CONCLUDED = "below about 8 it is disastrous (depth 1 gives a quarter of depth 8); a dip at 19"
CHANNELS = 8
KNEES = range(CHANNELS, CHANNELS + 3)
"""Where the knee may lie.  A request is under way for about a millisecond beside its 10 in a
channel, and longer on a busy machine: to keep eight channels busy it takes a tenth more than eight
requests, or a fifth."""
DIP_AT, DIP_FACTOR = 19, 1.5
DIPS = range(KNEES.stop + 1, 31)
"""Where a dip is drawn: beside the knee it would move that, and 31 has one neighbour alone."""
QUARTER = 4.0
DISASTER, NO_DIP = "random_mix_depth_8_over_depth_1", "random_mix_no_dip"
TESTS = "test_queue_depth and busy_server"
MIB = 1 << 20


def drive(depth: int) -> Seeded:
    """Eight channels, and a dip at that depth; small, for it is filled before it is judged.

    Its times are short, so that 128 requests turn over in little more than a second at depth 1.
    """
    profile = {
        "channels": CHANNELS,
        "read_ms": 10,
        "write_ms": 4,
        "capacity_bytes": 64 * MIB,
        "cache_bytes": MIB,
        "faults": {"slow_depths": [{"at": depth, "factor": DIP_FACTOR}]},
    }
    return Seeded(SLOT, profile)


def depth_of(seed: int | None) -> int:
    """Where the dip is: as in the story, or drawn by the seed and by nothing else."""
    return DIP_AT if seed is None else random.Random(f"{seed}/knee").choice(DIPS)


def asked(depth: int) -> tuple[Asked, Asked]:
    """The tests of the story, and what must come of them with a dip at that depth.

    By themselves, for each brings the drive to a steady state, in five minutes or more, and a
    sweep takes as long again: what is void of the one is no reason to ask the other again.
    """
    words = ("--allow-writes", "--no-excuses", "-m", "acceptance or soak", "-k")
    dip = ("fail", rf"^FAIL: dip at depth {depth}: ")
    return (
        Asked((*words, f"{TESTS} and needs_the_queue"), {DISASTER: ("pass", "")}),
        Asked((*words, f"{TESTS} and meets_no_dip"), {NO_DIP: dip}),
    )


def measure(seed: int | None = None) -> dict[str, object]:
    """The story told by a drive with a dip where the seed has it."""
    depth = depth_of(seed)
    shallow, swept = tell(drive(depth), asked(depth))
    return figures_of(shallow, swept, depth)


def figures_of(shallow: Told, swept: Told, depth: int) -> dict[str, Any]:
    """Knee, dip and disaster, and what of them is not as it was seeded."""
    wrong = [*shallow.wrong(), *swept.wrong()]
    disaster, curve = shallow.verdict(DISASTER), swept.verdict(NO_DIP)
    explained = str(curve.get("explanation", ""))
    knee, dip = _depth("knee", explained), _depth("dip", str(curve.get("cause", "")))
    ratio = disaster.get("estimate") or 0.0
    if ratio < QUARTER:
        wrong.append(f"depth 8 is {ratio:.3g} times depth 1, expected {QUARTER:g} or more")
    if knee not in KNEES:
        wrong.append(f"the knee is at {knee}, expected {KNEES[0]} to {KNEES[-1]}")
    return {
        "concluded": CONCLUDED,
        "found": f"depth 8 is {interval(disaster)} times depth 1; knee at {knee}; dip at {dip}",
        "channels": CHANNELS,
        "seeded_dip": depth,
        "depth_8_over_depth_1": round(ratio, 3),
        "knee": knee,
        "dip": dip,
        "tries": shallow.tries + swept.tries,
        "wrong": wrong,
        "within_limits": not wrong,
    }


def _depth(what: str, said: str) -> int | None:
    found = re.search(rf"{what} at depth (\d+)", said)
    return int(found[1]) if found else None
