"""How long requests wait for each other where a drive is given one at a time, in their order; pure.

Such a drive is replayed to with one request in flight, and what the others would have waited
meanwhile follows: docs/decisions/off-is-in-order.md says why it is not measured.
"""

import numpy as np
import numpy.typing as npt

from leadline.trace.rounds import Times
from leadline.trace.trace import READ, SYNC, Trace

Seconds = npt.NDArray[np.float64]


def waited(trace: Trace, took_s: Seconds, in_flight: int) -> tuple[Times, Times]:
    """Reads and writes of `trace`, as if `in_flight` of them had been kept submitted.

    `took_s` is how long each took alone, without syncs, in the order of the trace; ValueError
    where it is of another number of requests.
    """
    asked = trace.kind != SYNC
    total_s = submitted_to_done(took_s, after_sync(~asked), in_flight)
    reads = trace.kind[asked] == READ
    return _times(total_s[reads]), _times(total_s[~reads])


def submitted_to_done(took_s: Seconds, first: npt.NDArray[np.int64], in_flight: int) -> Seconds:
    """From the submission of each request to its completion, in seconds.

    A request is submitted when the one `in_flight` before it is done, and waits for all between
    them.  Of those that nothing else has to be done before, such as after a sync, the first
    `in_flight` are submitted at once; `first` is, for each request, the place of the first one
    that was.  ValueError where the two are not of the same length.
    """
    if len(took_s) != len(first):
        raise ValueError(f"{len(took_s)} times of {len(first)} requests")
    done_s = np.concatenate(([0.0], np.cumsum(took_s)))
    place = np.arange(len(took_s))
    waits_for = np.maximum(place + 1 - in_flight, first)
    return done_s[place + 1] - done_s[waits_for]


def after_sync(syncs: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """For each request that is no sync, the first one after the sync before it, or of all.

    fio submits nothing while a sync is under way, and no drive ends one before the requests
    that it holds: whatever it takes, it adds to the time of none.
    """
    place = np.cumsum(~syncs)  # of the next request
    return np.maximum.accumulate(np.where(syncs, place, 0))[~syncs]


def _times(total_s: Seconds) -> Times:
    return Times(len(total_s), float(total_s.mean()) if len(total_s) else 0.0)
