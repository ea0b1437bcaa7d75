"""Faults of a drive's data, seeded on a SCSI drive and on a SATA drive.

The SCSI drive has an outlet of its own; that of the SATA drive feeds its host, too, so that there
the healthy one beside it goes through the same power cuts.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from bench.fault_case import CUT, READ_BACK, Case, sata, scsi

LOST = r"after an abrupt power cut, \d+ of \d+ sectors are wrong\. The first: LBA \d+ holds "


def flushes_in_part(chance: random.Random) -> Case:
    one_in = chance.randint(50, 400)
    profile = {"faults": {"partial_flush": {"one_in": one_in}}}
    seeded = f"a flush leaves out one stretch in {one_in}"
    return Case("V12", seeded, scsi(profile), {CUT: ("fail", LOST)})


def loses_unflushed(chance: random.Random) -> Case:
    cache = chance.choice([32, 64, 128]) << 20
    drives = scsi({"cache_bytes": cache})
    seeded = f"a volatile cache of {cache >> 20} MiB"
    return Case("V13", seeded, drives[:1], {CUT: ("pass", "")}, loses=True)


def misreads(chance: random.Random) -> Case:
    one_in = chance.randint(20, 150)
    profile = {"faults": {"wrong_data": {"one_in": one_in}}}
    right = {READ_BACK: ("fail", r"wrong sectors: LBA \d+ holds |The first: LBA \d+ holds ")}
    return Case("V14", f"one queued read in {one_in} has other data", scsi(profile), right)


def ignores_flush(chance: random.Random) -> Case:
    profile = {"faults": {"ignore_flush": True}}
    return Case("V21", "ignores flush", scsi(profile), {CUT: ("fail", LOST)})


def on_sata(made: Callable[[random.Random], Case]) -> Callable[[random.Random], Case]:
    """The same fault of a SATA drive, whose queue and flushes are other commands."""

    def again(chance: random.Random) -> Case:
        case = made(chance)
        return replace(case, name=f"{case.name}sata", drives=sata(case.drives[0].profile))

    return again
