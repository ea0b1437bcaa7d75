"""What a FAIL says of the drive, in a few words; pure.

A claim whose one side is not queued (device queue depth 1) is about what queueing gains.  Its
figures tell more than that the limit was missed: whether the drive works on one request at a
time, whatever it says of itself, or is slowed down by its queue.
"""

from leadline.statements import Agreement, AsRecorded, Ratio
from leadline.verdict.verdict import Outcome, Verdict

ONE_AT_A_TIME = 2.0
"""What a deeper queue can gain when the drive works on one request at a time: the host's
part of a request then overlaps with the drive's part of another, and two stages that
overlap fully are twice as fast."""
NOW = "this drive now"
NOT_QUEUEING = "not queueing"
STREAMS_SLOWER = "streams slower with NCQ"
SLOWER = "slower when queued"


def of_ratio(said: Ratio, verdict: Verdict) -> str:
    """The cause that its figures point to; "" where they say no more than the claim does.

    "not queueing" is said of a drive of which ONE_AT_A_TIME or more is claimed, and which
    clearly does not gain as much: a disk, of which nobody claims that, is none.
    """
    bounds = _gained(said, verdict)
    if bounds is None:
        return ""
    claimed, most = bounds
    if most < 1.0:
        several = said.load.workload.sequential and said.left.threads > 1
        return STREAMS_SLOWER if several else SLOWER
    return NOT_QUEUEING if most < ONE_AT_A_TIME <= claimed else ""


def slower_of(said: Agreement | AsRecorded, verdict: Verdict) -> str:
    """Which of two that do not agree is slower, and by which share of the other, with its interval.

    "" for a verdict that is no FAIL.
    """
    ends = verdict.estimate, verdict.low, verdict.high
    if verdict.outcome is not Outcome.FAIL or not all(ends):
        return ""
    left, right = _sides(said)
    # The larger ratio is the smaller loss.
    losses = sorted(1.0 - min(end, 1.0 / end) for end in ends if end)
    least, loss, most = (f"{each:.1%}" for each in losses)
    slow, fast = (left, right) if verdict.estimate and verdict.estimate < 1.0 else (right, left)
    return f"the slower one is {slow}: by {loss} [{least}, {most}] of {fast}"


def _sides(said: Agreement | AsRecorded) -> tuple[str, str]:
    if isinstance(said, Agreement):
        return str(said.left), str(said.right)
    return NOW, said.recorded.whose if said.recorded else said.whose


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
