"""From the requests that fio logged to what one slice measured."""

import heapq
import math
from dataclasses import dataclass

from leadline.load.output import Requests
from leadline.load.slices import WARM_UP_S

LOG_TICK_S = 1e-3
"""fio's log has whole milliseconds, rounded down."""


@dataclass(frozen=True)
class Measured:
    """What the window of a slice shows; the names are those of `Slice`.

    `first` and `last` are the first issue and the last completion, `opens` is when the
    window does, on the rig's clock (Unix seconds).  Rates and latencies are 0 when nothing
    completed in the window.
    """

    rate: float
    completions: int
    window_s: float
    mean_latency_s: float
    p99_latency_s: float
    in_flight: float
    first: float
    opens: float
    last: float
    drain_s: float


def measure(
    requests: Requests, *, seconds: float, ran_s: float, offered: int, joined_s: float = 0.0
) -> Measured:
    """Measure a slice of `seconds` from its logged requests, in any order.

    `ran_s` is how long fio says that the job ran, drain included: it dates the end of
    issuing from the last completion, for opening the device may delay the first request.
    The window runs from WARM_UP_S after the first issue to that end; where several threads
    share the load, from WARM_UP_S after the last of them joined in, `joined_s` after the first;
    and where `offered` requests took longer to issue, from then on.  That is so where more is
    offered than the block layer admits (`offered_for`): fio then fills its queue at the pace
    of the drive, and a slice at depth 1 would never be full enough to count.

    A request counts for the rate with the share of its time in flight that lies in the
    window: 1 for nearly all, less for those that straddle an edge.  Whole requests would
    do for many; but a slow drive completes 35 in a window, at the same phase in every
    slice, so that counting them is off by up to 3 %, always in the same direction.
    """
    if not requests:
        return Measured(0.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    first = min(done - latency for done, latency in requests)
    last = max(done for done, _ in requests)
    opens = max(first + joined_s + WARM_UP_S, _filled(requests, offered))
    closes = min(first + seconds, last - ran_s + seconds)
    drain = max(0.0, last - closes)
    if closes - opens < LOG_TICK_S:
        return Measured(0.0, 0, 0.0, 0.0, 0.0, 0.0, first, opens, last, drain)
    window = closes - opens
    inside = [
        (min(done, closes) - max(done - latency, opens), latency)
        for done, latency in requests
        if done > opens and done - latency < closes
    ]
    latencies = sorted(latency for done, latency in requests if opens <= done < closes)
    count = len(latencies)
    return Measured(
        rate=math.fsum(part / latency for part, latency in inside) / window,
        completions=count,
        window_s=window,
        mean_latency_s=math.fsum(latencies) / count if count else 0.0,
        p99_latency_s=latencies[math.ceil(0.99 * count) - 1] if count else 0.0,
        # The time average, which is both sides of Little's law (L = lambda W; Little 1961,
        # Operations Research 9(3)) with the edges accounted for in the same way.
        in_flight=math.fsum(part for part, _ in inside) / window,
        first=first,
        opens=opens,
        last=last,
        drain_s=drain,
    )


def _filled(requests: Requests, offered: int) -> float:
    """When so many had been issued, on the rig's clock; of fewer in all, the first of them."""
    issued = heapq.nsmallest(offered, (done - latency for done, latency in requests))
    return issued[-1] if len(issued) == offered else issued[0]
