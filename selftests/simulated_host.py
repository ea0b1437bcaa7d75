"""A host in simulated time that keeps a virtual drive's queue at a depth: nothing sleeps."""

import heapq
import itertools
import random
from collections.abc import Callable, Iterator, Sequence

from leadline.virtual.profile import SECTOR_BYTES, Profile
from leadline.virtual.request_log import Request, rate_between
from leadline.virtual.scheduling import Op
from leadline.virtual.service import Admission, Service

SECOND = 1_000_000_000
_NEVER = 1 << 62

Addresses = Iterator[int]
_Open = tuple[Admission, int, int]
"""A request with its address and its slot in the queue."""


def ascending(sectors: int = 8, first: int = 0) -> Addresses:
    """One after the other."""
    return itertools.count(first, sectors)


def scattered(profile: Profile, sectors: int = 8, seed: int = 1) -> Addresses:
    """Anywhere on the drive, aligned."""
    choose = random.Random(seed)
    blocks = profile.capacity_bytes // SECTOR_BYTES // sectors
    return (choose.randrange(blocks) * sectors for _ in itertools.count())


class Host:
    """Offers a drive so many requests at a time, each `gap_ns` after an answer."""

    def __init__(self, profile: Profile, *, cycle: int = 0, gap_ns: int = 300_000) -> None:
        self.service = Service(profile, cycle=cycle, power_on_ns=0)
        self.now_ns = 0
        self.log: list[Request] = []
        self._gap_ns = gap_ns

    def offer(
        self,
        depth: int,
        seconds: float,
        *,
        op: Op = "read",
        sectors: int = 8,
        lbas: Addresses | None = None,
    ) -> float:
        """Requests answered a second, from a tenth of a second after the start.

        All slots of the queue take their addresses from one stream.
        """
        return self.streams([lbas or ascending(sectors)] * depth, seconds, op=op, sectors=sectors)

    def streams(
        self, lbas: Sequence[Addresses], seconds: float, *, op: Op = "read", sectors: int = 8
    ) -> float:
        """As `offer`, with addresses of its own for each slot of the queue."""
        begin_ns = self.now_ns
        end_ns = begin_ns + round(seconds * SECOND)
        arrivals = [(begin_ns + slot, slot) for slot in range(len(lbas))]
        open_ones: list[_Open] = []
        while arrivals or open_ones:
            answered = min(open_ones, key=_due_ns, default=None)
            moments = {
                "decision": self.service.next_decision_ns(),
                "answer": _due_ns(answered) if answered else None,
                "arrival": arrivals[0][0] if arrivals else None,
            }
            known = {what: at for what, at in moments.items() if at is not None}
            what = min(known, key=lambda what: known[what])  # what is begun may be answered first
            if what == "decision":
                self.service.decide(known[what])
            elif what == "answer" and answered:
                open_ones.remove(answered)
                self._note(op, answered, sectors)
                if self.now_ns + self._gap_ns < end_ns:
                    heapq.heappush(arrivals, (self.now_ns + self._gap_ns, answered[2]))
            else:
                now_ns, slot = heapq.heappop(arrivals)
                lba = next(lbas[slot])
                open_ones.append((self.service.admit(op, lba, sectors, now_ns), lba, slot))
        return rate_between(self.log, begin_ns + SECOND // 10, end_ns).per_second

    def megabytes_per_second(self, count: int, seconds: float, *, sectors: int = 256) -> float:
        """What so many sequential streams of reads get together, far from each other."""
        begun = len(self.log)
        rate = self.streams(
            [ascending(sectors, stream * 1_000_000) for stream in range(count)],
            seconds,
            sectors=sectors,
        )
        assert len(self.log) > begun
        return rate * sectors * SECTOR_BYTES / 1e6

    def _note(self, op: Op, answer: _Open, sectors: int) -> None:
        admission, lba, _ = answer
        self.service.complete()
        self.now_ns = admission.due_ns
        self.log.append(
            Request(
                admission.arrived_ns,
                admission.due_ns,
                op,
                lba,
                sectors,
                admission.in_flight,
                admission.error,
            )
        )


def _due_ns(request: _Open) -> int:
    """When it will be answered, as far as that is known."""
    return request[0].due_ns or _NEVER


def longest_ns(log: Sequence[Request], count: Callable[[Request], bool] = lambda _: True) -> int:
    """The longest that one of them took."""
    return max(r.end_ns - r.start_ns for r in log if count(r))
