"""What is seeded, on which drives, which tests are there for it, and what must come of them.

Parameters are drawn: a check that holds for the values of one day alone is none.  The drive beside
the faulty one is healthy, and the same tests must pass there.
"""

import random
import time
from collections.abc import Callable, Mapping

from bench import fault_mix_cases as mix
from bench.fault_case import (
    ADVERTISED,
    ALLOWED,
    BACK,
    BESIDE,
    EIGHT,
    FAULTY,
    LADDER,
    NO_DIP,
    OFF,
    READY,
    SIZE,
    Case,
    Right,
    ide,
    sata,
    scsi,
)
from bench.fault_data_cases import (
    flushes_in_part,
    ignores_flush,
    loses_unflushed,
    misreads,
    on_sata,
)
from bench.fault_rig import CAPACITY, Seeded
from leadline.drive import queue_depth
from leadline.drive.bind import Drive, bind
from leadline.drive.kernel_watch import LOG
from leadline.host.connection import Host, open_host
from leadline.inventory.rig import Rig

DISABLED = "NCQ disabled due to excessive errors"
ENOUGH_READS = 30
"""libata has given up queueing by then: it does after some ten errors."""
PATIENCE_S = 300.0


def serialises(chance: random.Random) -> Case:
    read_ms = round(chance.uniform(15, 25), 1)
    overhead_ms = round(read_ms * chance.uniform(0, 0.2), 1)
    ways: list[dict[str, object]] = [{"channels": 1}, {"faults": {"serialise": True}}]
    how = chance.choice(ways)
    profile = {"read_ms": read_ms, "overhead_ms": overhead_ms, **how}
    right = {EIGHT: ("fail", "^FAIL: not queueing: "), OFF: ("fail", "^FAIL: not queueing: ")}
    return Case("V1", f"{how}, {read_ms} ms a read", sata(profile), right)


def dips(chance: random.Random) -> Case:
    depth, factor = chance.randint(2, 31), round(chance.uniform(1.3, 3), 2)
    profile = {"faults": {"slow_depths": [{"at": depth, "factor": factor}]}}
    right = {NO_DIP: ("fail", f"^FAIL: dip at depth {depth}: ")}
    return Case("V2", f"{factor} times as slow at depth {depth}", sata(profile), right)


def collapses(chance: random.Random) -> Case:
    last, factor = chance.randint(9, 30), round(chance.uniform(1.5, 4), 2)
    profile = {"faults": {"slow_depths": [{"beyond": last, "factor": factor}]}}
    right = {"no_collapse": ("fail", f"^FAIL: collapses above depth {last}: ")}
    return Case("V3", f"{factor} times as slow above depth {last}", sata(profile), right)


UNABLE: Right = {
    ADVERTISED: ("skipped", "says nothing; the NCQ ladder names the cause"),
    LADDER: ("fail", "^the controller cannot queue: ata_piix"),
    ALLOWED: ("fail", "nothing is queued"),
    EIGHT: ("fail", "does not queue.* controller: BROKEN"),
}


def on_ide(chance: random.Random) -> Case:
    return Case("V4", "on piix3-ide", ide(), UNABLE)


def taken_away(chance: random.Random) -> Case:
    port = chance.randint(1, 2)
    drives = sata({})
    ordered = drives if port == 1 else drives[::-1]
    right = {
        ADVERTISED: ("pass", ""),
        LADDER: ("fail", f"^the kernel takes queueing away: .*libata.force={port}:noncq"),
        ALLOWED: ("fail", "nothing is queued"),
        EIGHT: ("fail", "does not queue.* kernel: BROKEN"),
    }
    force = f"libata.force={port}:noncq"
    return Case("V5", force, ordered, right, force)


def left_at_one(chance: random.Random) -> Case:
    def before(rig: Rig) -> None:
        with open_host(rig.host) as host:
            host.write_value(queue_depth.path(bind(host, rig.drive(FAULTY))), "1")

    right = {
        LADDER: ("fail", "^a setting allows no queue: device queue depth is 1"),
        ALLOWED: ("fail", "the device queue depth is 1"),
        EIGHT: ("pass", ""),
    }
    return Case("V6", "device queue depth left at 1", sata({}), right, before=before)


def read_errors(chance: random.Random) -> Case:
    rate = round(chance.uniform(0.008, 0.015), 4)
    right = {EIGHT: ("fail", "NCQ disabled")}
    return Case(
        "V7", f"{rate:.1%} of reads fail", sata({"faults": {"read_error_rate": rate}}), right
    )


def streams(chance: random.Random) -> Case:
    factor = round(chance.uniform(8, 25), 1)
    profile = {"faults": {"interfering_streams": {"factor": factor}}}
    said = r"(?s)^FAIL: streams slower with NCQ: .*the device takes [\d.]+ times longer per command"
    right = {"streams_ncq_on_over_off": ("fail", said)}
    return Case("V9", f"streams {factor} times as slow when queued", sata(profile), right)


def late(chance: random.Random) -> Case:
    ready_s = round(chance.uniform(12, 20), 1)
    profile = {"faults": {"changes": [{"after_cycle": 1, "ready_s": ready_s}]}}
    right = {READY: ("fail", r"power_cycle.ready_within\(10\) does not hold")}
    return Case("V10", f"ready {ready_s} s after a power cycle", scsi(profile), right)


def another(chance: random.Random) -> Case:
    what, value = chance.choice(
        [("serial", "SN-OTHER"), ("firmware", "9.9"), ("capacity_bytes", 4 << 30)]
    )
    profile = {"faults": {"changes": [{"after_cycle": 1, what: value}]}}
    right = {BACK: ("fail", what.partition("_")[0])}
    return Case("V11", f"comes back with {what} {value}", scsi(profile), right)


def large_fail(chance: random.Random) -> Case:
    over = chance.choice([128, 256, 384])
    profile = {"faults": {"large_requests": {"over_kib": over}}}
    right = {SIZE: ("fail", "requests of this size fail|the kernel logged")}
    return Case("V16", f"requests above {over} KiB fail", scsi(profile), right)


def noisy(chance: random.Random) -> Case:
    """Four channels, where the limit is 3: two slices compared are wrong now and then."""
    read_ms = round(chance.uniform(16, 28), 1)
    profile = {"channels": 4, "read_ms": read_ms, "distribution": "exponential"}
    stalls = [{"after_s": 0, "seconds": 0.06, "every_s": round(chance.uniform(0.4, 0.7), 2)}]
    drives = sata({**profile, "faults": {"stalls": stalls}})
    return Case("V22", "noisy", drives[:1], {EIGHT: ("pass", "")})


def warms_up(chance: random.Random) -> Case:
    """About a tenth above the limit, and as much is lost while some slices run.

    It is warm long after the run.  Depth 8 a minute after depth 1 would be below the limit.
    """
    factor = round(chance.uniform(3, 5), 1)
    profile = {"channels": 3, "read_ms": 10, "overhead_ms": 0.6}
    drives = sata({**profile, "warm_up": {"seconds": 300, "factor": factor}})
    return Case("V23", f"{factor} times as slow in 300 s", drives[:1], {EIGHT: ("pass", "")})


def disk(chance: random.Random) -> Case:
    rotation = {"rpm": chance.choice([5400, 7200]), "mb_per_s": 150}
    profile = {"channels": 1, "read_ms": 0.2, "write_ms": 0.2, "rotation": rotation}
    called_ssd = Seeded(FAULTY, profile, kind="DISK THAT IS CALLED SSD")
    as_disk = Seeded(BESIDE, profile, class_="hdd", kind="DISK")
    right = {EIGHT: ("fail", "^FAIL: .*does not hold")}
    return Case(
        "V24", f"a disk of {rotation['rpm']} rpm called an SSD", (called_ssd, as_disk), right
    )


def disabled_early(chance: random.Random) -> Case:
    lba = chance.randrange(1 << 10, CAPACITY >> 12) * 8

    def before(rig: Rig) -> None:
        with open_host(rig.host) as host:
            node = bind(host, rig.drive(FAULTY)).node
            for _ in range(ENOUGH_READS):
                words = ["dd", f"if={node}", "of=/dev/null", "iflag=direct", "bs=4096", "count=1"]
                host.run([*words, f"skip={lba // 8}"], deadline=120, check=False)
                if DISABLED.encode() in host.run(["dmesg"], deadline=60).stdout:
                    return
        raise RuntimeError(f"{ENOUGH_READS} reads of a bad sector left NCQ on")

    right = {
        ADVERTISED: ("pass", ""),
        LADDER: ("fail", f"^error handling switched queueing off: .*{DISABLED}"),
        ALLOWED: ("pass", ""),
        EIGHT: ("fail", f"does not queue.*{DISABLED}"),
    }
    drives = sata({"faults": {"bad_lbas": [lba]}})
    return Case("V25", "NCQ disabled by errors before the run", drives, right, before=before)


def disabled_later(chance: random.Random) -> Case:
    def meanwhile(rig: Rig) -> None:
        with open_host(rig.host) as host:
            drive = bind(host, rig.drive(FAULTY))
            assert drive.link is not None
            _await_slices(host, drive)
            host.write_value(LOG, f"{drive.link.device}: {DISABLED}\n")

    right = {
        LADDER: ("pass", ""),
        EIGHT: ("fail", f"(?s)the kernel logged .*ncq-disabled.*{DISABLED}"),
        OFF: ("fail", f"does not queue any more.*{DISABLED}"),
    }
    return Case("V25b", "NCQ disabled in a slice", sata({}), right, meanwhile=meanwhile)


def _await_slices(host: Host, drive: Drive) -> None:
    """Until the drive is under load: slices set its queue depth, and nothing before them does."""
    before, limit = queue_depth.read(host, drive), time.monotonic() + PATIENCE_S
    while queue_depth.read(host, drive) == before:
        if time.monotonic() > limit:
            raise RuntimeError(f"no slice began within {PATIENCE_S:g} s")
        time.sleep(0.1)


def not_promised(chance: random.Random) -> Case:
    reason = r"the firmware matrix promises no queue of BENCH OLD \(queue_depth: 1\)"
    right = dict.fromkeys(UNABLE, ("skipped", reason))
    drives = ide("OLD", queue_depth=1)
    return Case("no-queue", "none, and none is promised", drives, right)


CASES: Mapping[str, Callable[[random.Random], Case]] = {
    "V1": serialises,
    "V1mix": mix.serialises,
    "V2": dips,
    "V2mix": mix.dips,
    "V3": collapses,
    "V3mix": mix.collapses,
    "V4": on_ide,
    "V5": taken_away,
    "V6": left_at_one,
    "V7": read_errors,
    "V9": streams,
    "V10": late,
    "V11": another,
    "V12": flushes_in_part,
    "V12sata": on_sata(flushes_in_part),
    "V13": loses_unflushed,
    "V14": misreads,
    "V14sata": on_sata(misreads),
    "V16": large_fail,
    "V21": ignores_flush,
    "V21sata": on_sata(ignores_flush),
    "V22": noisy,
    "V23": warms_up,
    "V24": disk,
    "V25": disabled_early,
    "V25b": disabled_later,
    "no-queue": not_promised,
}

UNTRIED: Mapping[str, str] = {
    "V8": "no claim of stalls in the suite",
    "V10b": "slow for good after a power cycle: no claim in the suite of rates before and after",
    "V15": "no claim of tails in the suite",
    "V17": "no test of the last sectors in the suite",
    "V18": "no test that reads a bad sector in the suite",
    "V19": "a candidate 5 % slower is a matter of two firmwares: rigs/three-models",
    "V20": "no claim of starvation in the suite",
}
"""Faults that can be seeded and are not here, and why."""
