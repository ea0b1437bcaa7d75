"""What NCQ gains where a desktop does two things at once, drive by drive: the story's conclusion.

Nine loads are replayed with NCQ off and on by turns on three virtual disks, which are alike but for
what they make of a queue, and with commands that are not queued on one without NCQ, the baseline.

The disks are SLOWER times as slow as a desktop's in all that moves.  Without hardware
virtualisation a request is under way for about a millisecond more than it is at the drive
(`transport_ms`); with NCQ on that time is spent beside other requests, and would be taken for a
gain on any drive that is quick against it.
"""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from bench.virtual_drive import UnderTest, under_test
from leadline.drive import queue_depth
from leadline.load.slices import SliceSetting
from leadline.load.workload import random_read
from leadline.plans import alternating
from leadline.trace.fitting import Fitted, Reach, fit
from leadline.trace.gain import FEWEST_ROUNDS, Estimate, gain_of, overall
from leadline.trace.loads import LOADS, generate
from leadline.trace.patterns import Drive
from leadline.trace.replaying import replay
from leadline.trace.rounds import Replayed, Round

REQUESTS = 120
ROUNDS = 3
DEPTHS = (1, 32)
SEED = 1
SLOWER = 7
ABOUT_ZERO = 0.05
"""Half of what the story's disks gained."""
NO_NCQ = "libata.force=noncq"


@dataclass(frozen=True)
class Kind:
    """What a disk makes of a queue, and what it is expected to gain by one."""

    reorders: bool
    queueing_ms: float = 0.0
    kernel_arguments: str | None = None

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
    "reorders": Kind(reorders=True),
    "does not reorder": Kind(reorders=False),
    "queueing costs": Kind(reorders=False, queueing_ms=2.0),
}
BASELINE = Kind(reorders=True, kernel_arguments=NO_NCQ)


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
        baseline = _gains(Path(folder), "no NCQ", BASELINE, (requests, FEWEST_ROUNDS, names))
    return {
        "requests": requests,
        "rounds": rounds,
        "slower": SLOWER,
        "drives": {which: gains.document() for which, gains in found.items()},
        "no_ncq": baseline.document(),
        "seconds": round(time.monotonic() - begun),
        "within_limits": as_expected(found),
    }


def as_expected(found: "Mapping[str, Gains]") -> bool:
    """Positive where it reorders, about zero where it does not, negative where queueing costs.

    By the interval over the traces, and by the mean where nothing is expected.  What the way to
    the drive explains is no gain of a drive's: on a busy machine that is more than ABOUT_ZERO.
    """
    gains, nothing, costs = (found[which] for which in KINDS)
    low, high = gains.overall.low, costs.overall.high
    return (
        low is not None
        and low > gains.by_transport
        and -ABOUT_ZERO <= nothing.overall.mean <= max(ABOUT_ZERO, nothing.by_transport)
        and high is not None
        and high < 0.0
    )


@dataclass(frozen=True)
class Gains:
    """One disk's rounds, by trace."""

    transport_ms: float
    rounds: Mapping[str, Sequence[Round]]

    @property
    def by_transport(self) -> float:
        """What a drive would seem to gain, at most, were the way to it all that NCQ saves."""
        return fmean(
            self.transport_ms * LOADS[name].in_flight / (1e3 * one.off.all.mean_s)
            for name, rounds in self.rounds.items()
            for one in rounds
        )

    @property
    def overall(self) -> Estimate:
        """Over the traces; ValueError for a disk without NCQ."""
        whole = overall([gain_of(name, rounds) for name, rounds in self.rounds.items()])
        if whole is None:
            raise ValueError("a disk without NCQ gains nothing by it")
        return whole

    def document(self) -> dict[str, object]:
        """Plain values; times in ms."""
        gains = [gain_of(name, rounds) for name, rounds in self.rounds.items()]
        whole = overall(gains)
        return {
            "transport_ms": round(self.transport_ms, 2),
            "by_transport": round(self.by_transport, 4),
            "gain": whole and _plain(whole),
            "traces": {
                each.trace: {
                    "gain": each.gain and _plain(each.gain),
                    "off_ms": round(1e3 * each.off_s.mean, 2),
                    "on_ms": each.on_s and round(1e3 * each.on_s.mean, 2),
                }
                for each in gains
            },
        }


def _plain(estimate: Estimate) -> dict[str, float]:
    return {
        name: value if name == "count" else round(value, 4)
        for name, value in asdict(estimate).items()
        if value is not None
    }


def _gains(folder: Path, which: str, kind: Kind, asked: tuple[int, int, Sequence[str]]) -> Gains:
    requests, count, names = asked
    with under_test(folder, kind.profile, kernel_arguments=kind.kernel_arguments) as drive:
        fits = {name: _fitted(drive, name, requests) for name in names}
        rounds: dict[str, list[Round]] = {name: [] for name in names}
        reach = Reach()  # of all of them: they read files that they have in common
        depths = DEPTHS[:1] if kind.kernel_arguments else DEPTHS
        for number in range(count):
            turns = [depths[side] for side in alternating(number, len(depths))]
            for name, fitted in fits.items():
                rounds[name].append(_round(drive, name, fitted, turns, reach))
            print(f"{which}: round {number + 1} of {count}", file=sys.stderr, flush=True)
        return Gains(_transport_ms(drive), rounds)


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


def _round(
    drive: UnderTest, name: str, fitted: Fitted, turns: Sequence[int], reach: Reach
) -> Round:
    done: dict[int, Replayed] = {}
    for depth in turns:
        drive.host.write_value(queue_depth.path(drive.drive), str(depth))
        trace, in_flight = reach.next_of(fitted), LOADS[name].in_flight
        done[depth] = replay(drive.host, drive.drive.node, trace, in_flight, "fast", writes=True)
    return Round(off=done[DEPTHS[0]], on=done.get(DEPTHS[1]))


def _transport_ms(drive: UnderTest) -> float:
    """What a request at depth 1 takes beside its time at the drive, by the drive's own log."""
    one = SliceSetting(device_depth=1, offered_depth=1, seconds=5.0)
    (measured,) = drive.slices(random_read(), [one])
    return 1e3 * (measured.mean_latency_s - drive.mean_service_s(measured.requests))
