"""Do requests reach the drive as large as promised, and are they served?  One slice shows it.

How the kernel cuts requests is no matter of chance: there is nothing to repeat and no
interval.
"""

from dataclasses import replace
from os import strerror
from typing import TYPE_CHECKING

from leadline.drive.arrivals import Arrived
from leadline.drive.finding import MERGED, OTHER_IO, PAGE_CACHE, SETTINGS_MOVED
from leadline.load.fio import DRIVE_ERRORS
from leadline.load.slices import IO_ERRORS, VOID_MEANINGS, Slice
from leadline.remedies import NO_REQUEST_SEEN
from leadline.statements import OUTSTANDING, Arrival
from leadline.verdict.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from leadline.judge import SliceJudge

STALL_S = 1.0
SLOWEST_BYTES_PER_S = 5e6
"""A request that takes longer than all in flight would at this rate, and a second more, stalls:
disks read their innermost tracks ten times as fast, and seek in a hundredth of that."""
SPOILS = (MERGED, SETTINGS_MOVED, OTHER_IO, PAGE_CACHE, IO_ERRORS)
"""What makes the sizes of a slice's requests mean nothing; other voids are of its rate."""
NOT_SEEN = f"{NO_REQUEST_SEEN}: none of the requests was seen on its way to the drive"
MEAN_SHARE, MEAN_SHARE_OF_WHOLE = 0.5, 0.75
"""What a mean must reach of the size that is promised: the last piece of each request lowers
it, to half at most; where requests are to arrive whole, two pieces of each would halve it."""
_KIB = 1024


def settle_arrival(judge: "SliceJudge", said: Arrival) -> Verdict:
    """Measure one slice, watched, and look."""
    setting = replace(said.setting, seconds=judge.slice_s)
    (measured,) = judge.run(said.load.workload, [setting])
    judge.keep_slice("arrival", measured)
    return look_at_arrival(said, measured)


def look_at_arrival(said: Arrival, measured: Slice) -> Verdict:
    """The verdict on `said` by a slice that was watched; sizes in it are in KiB.

    Requests that fail or stall settle it, whatever their size.
    """
    arrived = measured.arrived or Arrived("tracepoint", ())
    needed, least = _needed(said, arrived), arrived.least
    voids = tuple(f"{name}: {VOID_MEANINGS[name]}" for name in measured.voids if name in SPOILS)
    fault = _fault(said, measured)
    if fault:
        outcome, voids = Outcome.FAIL, ()
    elif voids or least is None:
        outcome, voids = Outcome.INCONCLUSIVE, voids or (NOT_SEEN,)
    else:
        outcome = Outcome.PASS if least >= needed else Outcome.FAIL
    return Verdict(
        outcome=outcome,
        reason="void" if voids else "settled",
        direction=">=",
        threshold=needed / _KIB,
        count=sum(times for _, times in arrived.firsts or arrived.requests),
        unit="request",
        drive_seconds=measured.drive_s,
        estimate=None if least is None else least / _KIB,
        voids=voids,
        p_against=0.0 if outcome is Outcome.FAIL else 1.0,
        notes=(*fault, str(arrived)),
    )


def served_within(said: Arrival) -> float:
    """Seconds in which each request of a healthy drive is back, however slow it is."""
    return STALL_S + OUTSTANDING * said.asked / SLOWEST_BYTES_PER_S


def _needed(said: Arrival, arrived: Arrived) -> float:
    if arrived.seen_in == "tracepoint":
        return said.at_least
    whole = said.at_least == said.asked
    return said.at_least * (MEAN_SHARE_OF_WHOLE if whole else MEAN_SHARE)


def _fault(said: Arrival, measured: Slice) -> tuple[str, ...]:
    """What the drive did wrong, whatever the size of its requests."""
    if measured.error in {strerror(number) for number in DRIVE_ERRORS}:
        return (f"requests of this size fail: {measured.error}",)
    slowest, most = max(measured.p99_latency_s, measured.drain_s), served_within(said)
    if slowest > most:
        return (
            f"requests of this size stall: one took {slowest:.3g} s or more, {most:.2g} s is long",
        )
    return ()
