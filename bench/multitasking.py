"""What NCQ gains where a desktop does two things at once, drive by drive: the story's conclusion.

Nine loads are replayed with NCQ off and on by turns on three virtual disks, which are alike but for
what they make of a queue, and with commands that are not queued on one behind an IDE controller,
which has no NCQ: the baseline.
Each of the nine gains is held against the sign that is expected of its disk, and the baseline's
times against those that the same disk takes for the very same requests with NCQ off.

The disks are SLOWER times as slow as a desktop's in all that moves.  Without hardware
virtualisation a request is under way for about a millisecond more than it is at the drive
(`transport_ms`); with NCQ on that time is spent beside other requests, and would be taken for a
gain on any drive that is quick against it.
"""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Literal

from bench.virtual_drive import UnderTest, under_test
from leadline.drive import queue_depth
from leadline.load.slices import SliceSetting
from leadline.load.workload import random_read
from leadline.plans import alternating
from leadline.trace.fitting import Fitted, Reach, fit
from leadline.trace.gain import Estimate, gain_of, overall
from leadline.trace.loads import LOADS, generate
from leadline.trace.patterns import Drive
from leadline.trace.replay_job import Replay
from leadline.trace.replaying import replay
from leadline.trace.rounds import Replayed, Round
from leadline.trace.trace import Trace

REQUESTS = 120
ROUNDS = 3
DEPTHS = (1, 32)
SEED = 1
SLOWER = 7
ABOUT_ZERO = 0.05
"""Half of what the story's disks gained."""
EACH_ABOUT_ZERO = 0.15
"""Of a single trace, in which the order of few requests decides: up to 0.1 in simulated time."""
ABOUT_THE_SAME = 0.1
"""By how much the time for a trace's few requests may differ from controller to controller."""
Sign = Literal["positive", "about zero", "negative"]


@dataclass(frozen=True)
class Kind:
    """What a disk makes of a queue, and what it is expected to gain by one."""

    reorders: bool
    sign: Sign
    queueing_ms: float = 0.0
    bus: Literal["ahci", "ide"] = "ahci"

    @property
    def profile(self) -> str:
        """A 7200 rpm disk, but SLOWER."""
        return (
            "channels: 1\n"
            f"read_ms: {0.2 * SLOWER:g}\n"
            f"write_ms: {0.2 * SLOWER:g}\n"
            f"queueing_ms: {self.queueing_ms * SLOWER:g}\n"
            "rotation:\n"
            f"  rpm: {7200 // SLOWER}\n"
            f"  mb_per_s: {150 / SLOWER:.3g}\n"
            f"  track_to_track_ms: {0.8 * SLOWER:g}\n"
            f"  full_stroke_ms: {16 * SLOWER}\n"
            f"  reorders: {str(self.reorders).lower()}\n"
        )


KINDS = {
    "reorders": Kind(True, "positive"),
    "does not reorder": Kind(False, "about zero"),
    "queueing costs": Kind(False, "negative", queueing_ms=3.0),
}
LIKE_BASELINE = "reorders"
BASELINE = replace(KINDS[LIKE_BASELINE], sign="about zero", bus="ide")


def measure(
    requests: int = REQUESTS, rounds: int = ROUNDS, names: Sequence[str] = tuple(LOADS)
) -> dict[str, object]:
    """The gains on each disk, by trace and overall, and whether they are as expected."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = {
            which: _gains(Path(folder), which, kind, (requests, rounds, names))
            for which, kind in KINDS.items()
        }
        baseline = _gains(Path(folder), "no NCQ", BASELINE, (requests, rounds, names))
    return {
        "requests": requests,
        "rounds": rounds,
        "slower": SLOWER,
        "drives": {which: gains.document(KINDS[which].sign) for which, gains in found.items()},
        "no_ncq": baseline_document(baseline, found[LIKE_BASELINE]),
        "seconds": round(time.monotonic() - begun),
        "within_limits": as_expected(found, baseline),
    }


def as_expected(found: "Mapping[str, Gains]", baseline: "Gains") -> bool:
    """Positive where it reorders, about zero where it does not, negative where queueing costs.

    Over the traces and in each of them; and the baseline takes as long as its like with NCQ off.
    """
    rows = [found[which].rows(kind.sign) for which, kind in KINDS.items()]
    rows.append(baseline_rows(baseline, found[LIKE_BASELINE]))
    each = all(row["within_limits"] for of_disk in rows for row in of_disk.values())
    return each and overall_as_expected(found)


def overall_as_expected(found: "Mapping[str, Gains]") -> bool:
    """The same over the traces.

    By the interval over the traces: about zero is what does not lie wholly outside.  What the way
    to the drive explains is no gain of a drive's, and every drive has it.
    """
    gains, nothing, costs = (found[which] for which in KINDS)
    low, high = gains.overall.low, costs.overall.high
    least, most = nothing.overall.low, nothing.overall.high
    if low is None or high is None or least is None or most is None:
        return False
    about_zero = least <= ABOUT_ZERO + nothing.by_transport and most >= -ABOUT_ZERO
    return low > gains.by_transport and about_zero and high < 0.0


def has_sign(gain: Estimate, sign: Sign, by_transport: float) -> bool:
    """Whether the gain on one trace has the sign that is expected of its disk.

    Of one that gains or loses, by the mean, for few rounds bound little; about zero is it where
    its interval does not lie wholly outside.
    """
    if sign == "positive":
        return gain.mean > by_transport
    if sign == "negative":
        return gain.mean < 0.0
    low, high = (gain.mean if end is None else end for end in (gain.low, gain.high))
    return low <= max(EACH_ABOUT_ZERO, by_transport) and high >= -EACH_ABOUT_ZERO


def baseline_rows(baseline: "Gains", like: "Gains") -> "dict[str, dict[str, object]]":
    """By trace: its mean service time without NCQ, over that of such a disk with NCQ off."""
    rows: dict[str, dict[str, object]] = {}
    for name, rounds in baseline.rounds.items():
        alone, off = (
            fmean(one.off.all.mean_s for one in each) for each in (rounds, like.rounds[name])
        )
        gainless = all(one.on is None for one in rounds)
        rows[name] = {
            "off_ms": round(1e3 * alone, 2),
            "over_ncq_off": round(alone / off, 3),
            "within_limits": gainless and abs(alone / off - 1.0) <= ABOUT_THE_SAME,
        }
    return rows


def baseline_document(baseline: "Gains", like: "Gains") -> dict[str, object]:
    """Plain values of the disk without NCQ; times in ms."""
    transport_ms = round(baseline.transport_ms, 2)
    return {"transport_ms": transport_ms, "traces": baseline_rows(baseline, like)}


@dataclass(frozen=True)
class Gains:
    """One disk's rounds, by trace."""

    transport_ms: float
    rounds: Mapping[str, Sequence[Round]]

    @property
    def by_transport(self) -> float:
        """What a drive would seem to gain, at most, were the way to it all that NCQ saves."""
        return fmean(each for name in self.rounds for each in self._by_transport(name))

    def _by_transport(self, name: str) -> list[float]:
        """The same of each round of one trace."""
        return [
            self.transport_ms * LOADS[name].in_flight / (1e3 * one.off.all.mean_s)
            for one in self.rounds[name]
        ]

    def rows(self, sign: Sign) -> dict[str, dict[str, object]]:
        """By trace: its gain, whether that has the sign that is expected, and times in ms."""
        rows: dict[str, dict[str, object]] = {}
        for name, rounds in self.rounds.items():
            each, by_transport = gain_of(name, rounds), fmean(self._by_transport(name))
            assert each.gain is not None and each.on_s is not None, "it has NCQ"
            rows[name] = {
                "gain": _plain(each.gain),
                "off_ms": round(1e3 * each.off_s.mean, 2),
                "on_ms": round(1e3 * each.on_s.mean, 2),
                "by_transport": round(by_transport, 4),
                "expected": sign,
                "within_limits": has_sign(each.gain, sign, by_transport),
            }
        return rows

    @property
    def overall(self) -> Estimate:
        """Over the traces; ValueError for a disk without NCQ."""
        whole = overall([gain_of(name, rounds) for name, rounds in self.rounds.items()])
        if whole is None:
            raise ValueError("a disk without NCQ gains nothing by it")
        return whole

    def document(self, sign: Sign) -> dict[str, object]:
        """Plain values; times in ms."""
        return {
            "transport_ms": round(self.transport_ms, 2),
            "by_transport": round(self.by_transport, 4),
            "gain": _plain(self.overall),
            "traces": self.rows(sign),
        }


def _plain(estimate: Estimate) -> dict[str, float]:
    return {
        name: value if name == "count" else round(value, 4)
        for name, value in asdict(estimate).items()
        if value is not None
    }


def _gains(folder: Path, which: str, kind: Kind, asked: tuple[int, int, Sequence[str]]) -> Gains:
    requests, count, names = asked
    with under_test(folder, kind.profile, bus=kind.bus) as drive:
        fits = {name: _fitted(drive, name, requests) for name in names}
        rounds: dict[str, list[Round]] = {name: [] for name in names}
        reach = Reach()  # of all of them: they read files that they have in common
        ways = []  # measured beside each round: it is longer while the machine is busy
        for number in range(count):
            turns = [DEPTHS[side] for side in alternating(number, len(DEPTHS))]
            for name, fitted in fits.items():
                parts = {depth: reach.next_of(fitted) for depth in turns}
                if kind.bus == "ide":  # so that it replays what its like does with NCQ off
                    del parts[DEPTHS[1]]
                rounds[name].append(_round(drive, name, parts))
            ways.append(_transport_ms(drive, kind.bus))
            print(f"{which}: round {number + 1} of {count}", file=sys.stderr, flush=True)
        return Gains(fmean(ways), rounds)


def _fitted(drive: UnderTest, name: str, requests: int) -> Fitted:
    sectors = int(drive.host.read_file(f"/sys/block/{drive.drive.name}/size"))
    capacity = sectors * 512
    return fit(
        generate(LOADS[name], Drive(capacity), SEED),
        capacity_bytes=capacity,
        traced_bytes=capacity,
        block_bytes=512,
        writes=True,
        most=requests,
    )


def _round(drive: UnderTest, name: str, parts: Mapping[int, Trace]) -> Round:
    """Each part at its depth, in their order."""
    done: dict[int, Replayed] = {}
    for depth, trace in parts.items():
        if queue_depth.read(drive.host, drive.drive) != depth:  # of IDE it cannot be written
            drive.host.write_value(queue_depth.path(drive.drive), str(depth))
        in_flight = LOADS[name].in_flight
        asked = Replay(trace, in_flight, queued=depth > DEPTHS[0])
        (done[depth],) = replay(drive.host, drive.drive.node, [asked], "fast", writes=True)
    return Round(off=done[DEPTHS[0]], on=done.get(DEPTHS[1]))


def _transport_ms(drive: UnderTest, bus: str) -> float:
    """What a request at depth 1 takes beside its time at the drive, by the drive's own log."""
    one = SliceSetting(device_depth=None if bus == "ide" else 1, offered_depth=1, seconds=5.0)
    (measured,) = drive.slices(random_read(), [one])
    return 1e3 * (measured.mean_latency_s - drive.mean_service_s(measured.requests))
