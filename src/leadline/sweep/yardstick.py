"""What a drive is held against, by its class; and its class, when nobody says it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.inventory.matrix import LimitSpec
from leadline.load.recorded_job import RecordedRun
from leadline.sweep.evidence import of_load

SLOWEST_SSD_S = 1e-3
FASTEST_DISK_S = 3e-3


@dataclass(frozen=True)
class Yardstick:
    """The limits of a drive of class "ssd", "hdd" or "unknown", by claim.

    `class_from` says in words where the class is from, `limits_from` where the limits are;
    `preconditioned` that the user vouches for writes in steady state.
    """

    class_: str
    class_from: str
    limits: Mapping[str, LimitSpec]
    limits_from: str
    preconditioned: bool = False


def guess_class(runs: Sequence[RecordedRun]) -> tuple[str, str]:
    """The drive's class by its random reads at depth 1, and the reason in words.

    Half a turn of a platter takes 2 ms at 15,000 turns a minute, and the arm moves before;
    flash answers within a millisecond.
    """
    first = of_load(runs, "randread").get(1)
    latency = first.figures.latency if first and not first.voids else None
    if first is None or latency is None:
        return "unknown", "no random reads at depth 1 to guess it from; say --class or --model"
    # The median, where fio kept it: a single stall moves the mean.
    typical = latency.median or latency.mean
    took = f"guessed: a random read at depth 1 takes {1e3 * typical:.3g} ms ({first.file})"
    if typical > FASTEST_DISK_S:
        return "hdd", f"{took}, and above {1e3 * FASTEST_DISK_S:g} ms it is a rotating disk"
    if typical < SLOWEST_SSD_S:
        return "ssd", f"{took}, and below {1e3 * SLOWEST_SSD_S:g} ms it is no rotating disk"
    return "unknown", f"{took}, which a slow SSD or a fast disk may; say --class or --model"
