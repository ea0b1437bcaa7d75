"""A replay in simulated time: a trace, a host that keeps requests in flight, a virtual drive."""

import heapq
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from statistics import fmean

from leadline.trace.rounds import Replayed, ReplayedTrace, Round, Times
from leadline.trace.trace import READ, SYNC, Trace
from leadline.virtual.profile import SECTOR_BYTES, Profile
from leadline.virtual.scheduling import Op
from leadline.virtual.service import Admission, Service

_NEVER = 1 << 62


@dataclass
class _Replay:
    """`in_flight` requests are submitted at a time, and the drive is given `depth` of them."""

    service: Service
    trace: Trace
    depth: int
    gap_ns: int
    now_ns: int = 0
    submitted: int = 0
    waiting: deque[tuple[int, int]] = field(default_factory=deque)
    arriving: list[tuple[int, int, int]] = field(default_factory=list)
    open: list[tuple[Admission, int, int]] = field(default_factory=list)
    took_s: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})

    def run(self, in_flight: int) -> None:
        for _ in range(min(in_flight, len(self.trace))):
            self._submit()
        while self.arriving or self.open:
            answered = min(self.open, key=_due_ns, default=None)
            answer_ns = _due_ns(answered) if answered else _NEVER
            decision_ns = self.service.next_decision_ns()
            arrival_ns = self.arriving[0][0] if self.arriving else _NEVER
            if decision_ns is not None and decision_ns <= min(answer_ns, arrival_ns):
                self.service.decide(decision_ns)
            elif answered and answer_ns <= arrival_ns:
                self._answer(answered)
            else:
                self._arrive()

    def _submit(self) -> None:
        self.waiting.append((self.now_ns, self.submitted))
        self.submitted += 1
        self._dispatch()

    def _dispatch(self) -> None:
        while self.waiting and len(self.arriving) + len(self.open) < self.depth:
            heapq.heappush(self.arriving, (self.now_ns + self.gap_ns, *self.waiting.popleft()))

    def _arrive(self) -> None:
        self.now_ns, since_ns, place = heapq.heappop(self.arriving)
        lba, sectors = (
            int(each[place]) // SECTOR_BYTES for each in (self.trace.offset, self.trace.length)
        )
        op: Op = "read" if self.trace.kind[place] == READ else "write"
        admission = self.service.admit(op, lba, sectors, self.now_ns)
        self.open.append((admission, since_ns, place))

    def _answer(self, answered: tuple[Admission, int, int]) -> None:
        admission, since_ns, place = answered
        self.open.remove(answered)
        self.service.complete()
        self.now_ns = admission.due_ns
        took_s = (self.now_ns - since_ns) / 1e9
        self.took_s[bool(self.trace.kind[place] == READ)].append(took_s)
        if self.submitted < len(self.trace):
            self._submit()
        self._dispatch()


def _due_ns(request: tuple[Admission, int, int]) -> int:
    return request[0].due_ns or _NEVER


def replay(
    profile: Profile, trace: Trace, in_flight: int, depth: int, *, cycle: int, gap_ns: int
) -> Replayed:
    """What fio would say of it; another `cycle` is another course of chance."""
    kept = trace.take(trace.kind != SYNC)
    done = _Replay(Service(profile, cycle=cycle, power_on_ns=0), kept, depth, gap_ns)
    done.run(in_flight)
    reads, writes = done.took_s[True], done.took_s[False]
    return Replayed(
        Times(len(reads), fmean(reads) if reads else 0.0),
        Times(len(writes), fmean(writes) if writes else 0.0),
        done.now_ns / 1e9,
    )


@dataclass
class SimulatedRounds:
    """Rounds of replays on a virtual drive, each trace with NCQ off and on; nothing sleeps."""

    profile: Profile
    traces: dict[str, tuple[Trace, int]]
    """The requests, and how many are in flight."""
    gap_ns: int = 20_000
    done: dict[str, tuple[Round, ...]] = field(default_factory=dict)

    def so_far(self, first: int | None) -> tuple[ReplayedTrace, ...]:
        return tuple(
            ReplayedTrace(
                trace=name,
                requests=len(trace),
                in_flight=in_flight,
                seconds=trace.seconds,
                notes=(),
                rounds=self.done[name],
            )
            for name, (trace, in_flight) in self.traces.items()
            if name in self.done
        )

    def one_more(self, first: int | None, names: Collection[str]) -> float:
        spent = 0.0
        for name in names:
            trace, in_flight = self.traces[name]
            cut, done = trace.take(slice(first)), self.done.get(name, ())
            off, on = (
                replay(self.profile, cut, in_flight, depth, cycle=len(done), gap_ns=self.gap_ns)
                for depth in (1, 32)
            )
            self.done[name] = (*done, Round(off, on))
            spent += off.seconds + on.seconds
        return spent
