"""What the FAIL of a ratio says of the drive, in a few words; pure.

A claim whose one side is not queued (device queue depth 1) is about what queueing gains.  Its
figures tell more than that the limit was missed: whether the drive works on one request at a
time, whatever it says of itself, or is slowed down by its queue.
"""

from leadline.statements import Ratio
from leadline.verdict.verdict import Outcome, Verdict

ONE_AT_A_TIME = 2.0
"""What a deeper queue can gain when the drive works on one request at a time: the host's
part of a request then overlaps with the drive's part of another, and two stages that
overlap fully are twice as fast."""
NOT_QUEUEING = "not queueing"
STREAMS_SLOWER = "streams slower with NCQ"
SLOWER = "slower when queued"


def of_ratio(said: Ratio, verdict: Verdict) -> str:
    """The cause that its figures point to; "" where they say no more than the claim does.

    "not queueing" is said of a drive of which more than ONE_AT_A_TIME is claimed, and which
    clearly does not gain as much: a disk, of which nobody claims that, is none.
    """
    bounds = _gained(said, verdict)
    if bounds is None:
        return ""
    claimed, most = bounds
    if most < 1.0:
        several = said.load.workload.sequential and said.left.threads > 1
        return STREAMS_SLOWER if several else SLOWER
    return NOT_QUEUEING if most < ONE_AT_A_TIME < claimed else ""


def _gained(said: Ratio, verdict: Verdict) -> tuple[float, float] | None:
    """What queueing is claimed to gain at least, and what it gains at most; as ratios.

    None for a verdict that is no FAIL, and for a claim of anything else.
    """
    if verdict.outcome is not Outcome.FAIL or not verdict.low or not verdict.high:
        return None
    depths = tuple(side.device_depth for side in said.quantities)
    match depths, said.direction:
        case (left, 1), ">=" if left > 1:
            return verdict.threshold, verdict.high
        case (1, right), "<=" if right > 1:
            return 1.0 / verdict.threshold, 1.0 / verdict.low
    return None
