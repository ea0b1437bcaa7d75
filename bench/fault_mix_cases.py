"""Faults of the queue under a busy server's load: 70/30 random reads and writes, 128 offered.

A slice there lasts until 128 requests have turned over often enough, at depth 1 as well, and no
slice is longer than `leadline.evidence.LONGEST_SLICE_S`: these drives are faster than the others.
Writes need a steady state, five minutes a drive at least, and the curves are of `-m soak`.
"""

import random
from collections.abc import Mapping
from dataclasses import replace

from bench.fault_case import MIX, MIX_NO_COLLAPSE, MIX_NO_DIP, Case, sata
from bench.fault_rig import Seeded

SMALL = {"capacity_bytes": 64 << 20, "cache_bytes": 1 << 20}
"""Soon filled, and with no room in its cache for what is written."""
DEADLINE_S = 7200.0


def _drives(
    chance: random.Random, fault: Mapping[str, object]
) -> tuple[tuple[Seeded, Seeded], str]:
    """A drive that is so and a healthy one, and how fast both are, in words."""
    read_ms, write_ms = round(chance.uniform(9, 11), 1), round(chance.uniform(3, 5), 1)
    healthy = {**SMALL, "read_ms": read_ms, "write_ms": write_ms}
    faulty, beside = sata({**healthy, **fault})
    said = f"{read_ms} ms a read and {write_ms} ms a write"
    return (faulty, replace(beside, profile={**beside.profile, **healthy})), said


def serialises(chance: random.Random) -> Case:
    ways: list[dict[str, object]] = [{"channels": 1}, {"faults": {"serialise": True}}]
    how = chance.choice(ways)
    drives, speed = _drives(chance, how)
    right = {MIX: ("fail", "^FAIL: not queueing: ")}
    return Case("V1mix", f"{how}, {speed}", drives, right, deadline_s=DEADLINE_S)


def dips(chance: random.Random) -> Case:
    depth, factor = chance.randint(2, 31), round(chance.uniform(1.3, 2), 2)
    fault = {"slow_depths": [{"at": depth, "factor": factor}]}
    drives, speed = _drives(chance, {"faults": fault})
    right = {MIX_NO_DIP: ("fail", f"^FAIL: dip at depth {depth}: ")}
    seeded = f"{factor} times as slow at depth {depth}, {speed}"
    return Case("V2mix", seeded, drives, right, purpose="soak", deadline_s=DEADLINE_S)


def collapses(chance: random.Random) -> Case:
    last, factor = chance.randint(9, 30), round(chance.uniform(1.5, 3), 2)
    fault = {"slow_depths": [{"beyond": last, "factor": factor}]}
    drives, speed = _drives(chance, {"faults": fault})
    right = {MIX_NO_COLLAPSE: ("fail", f"^FAIL: collapses above depth {last}: ")}
    seeded = f"{factor} times as slow above depth {last}, {speed}"
    return Case("V3mix", seeded, drives, right, purpose="soak", deadline_s=DEADLINE_S)
