"""When a virtual drive answers: channels, service times, and what spoils them.

The schedule is computed, not raced for: on arrival a request is given the moment at which
its answer is due, and the thread that carries it sleeps until then.  So the order is strictly
first come, first served, an oversleeping thread delays its own request and no other, and the
same arrivals with the same seed give the same answers.

Times are integers in nanoseconds of `time.monotonic_ns`.
"""

from __future__ import annotations

import errno
import heapq
import random
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from leadline.virtual.faults import Stall
from leadline.virtual.profile import Profile

Op = Literal["read", "write", "flush"]

# A host refills its queue a moment after each answer, so the number in flight flickers just below
# the depth that it offers.  The depth is therefore the most in flight over a short while.
DEPTH_WINDOW_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class Admission:
    """What becomes of one request.  `error` is an errno, 0 for none."""

    arrived_ns: int
    due_ns: int
    in_flight: int
    error: int


@dataclass(frozen=True, slots=True)
class _Fate:
    factor: float
    error: int


class _Channels:
    """Identical servers behind one queue, as the moments at which each falls free."""

    def __init__(self, count: int) -> None:
        self._free_ns = [0] * count

    def next_start(self, ready_ns: int) -> int:
        return max(ready_ns, self._free_ns[0])

    def occupy_until(self, end_ns: int) -> None:
        heapq.heapreplace(self._free_ns, end_ns)


class _RecentPeak:
    """The largest value seen over the last `window_ns`."""

    def __init__(self, window_ns: int) -> None:
        self._window_ns = window_ns
        self._falling: deque[tuple[int, int]] = deque()

    def after(self, now_ns: int, value: int) -> int:
        while self._falling and self._falling[-1][1] <= value:
            self._falling.pop()
        self._falling.append((now_ns, value))
        while self._falling[0][0] < now_ns - self._window_ns:
            self._falling.popleft()
        return self._falling[0][1]


def through_stalls(start_ns: int, work_ns: int, stalls: Iterable[Stall], power_on_ns: int) -> int:
    """The moment at which `work_ns` of work begun at `start_ns` is done.

    Work stands still during a stall and goes on after it.  Ends, for a profile's stalls leave
    time between them.
    """
    now, left = start_ns, work_ns
    while True:
        begin, end = min(_next_stall(stall, now, power_on_ns) for stall in stalls)
        if begin >= now + left:
            return now + left
        left -= max(0, begin - now)
        now = max(now, end)


_NEVER = 1 << 62


def _next_stall(stall: Stall, now_ns: int, power_on_ns: int) -> tuple[int, int]:
    """Begin and end of the first window of this stall that ends after `now_ns`."""
    begin = power_on_ns + round(stall.after_s * 1e9)
    length = round(stall.seconds * 1e9)
    if begin + length <= now_ns:
        if stall.every_s is None:
            return _NEVER, _NEVER
        period = round(stall.every_s * 1e9)
        begin += -(-(now_ns - begin - length + 1) // period) * period
    return begin, begin + length


class Service:
    """Admits requests and says when, and with what error, each is answered.  Thread-safe."""

    def __init__(self, profile: Profile, *, cycle: int, power_on_ns: int) -> None:
        self._profile = profile
        self._power_on_ns = power_on_ns
        self._ready_ns = power_on_ns + round(profile.ready_s * 1e9)
        self._channels = _Channels(1 if profile.faults.serialise else profile.channels)
        self._random = random.Random(f"{profile.seed}:{cycle}")
        self._bad_lbas = sorted(profile.faults.bad_lbas)
        self._in_flight = 0
        self._peak = _RecentPeak(DEPTH_WINDOW_NS)
        self._lock = threading.Lock()

    def admit(
        self, op: Op, lba: int, sectors: int, now_ns: int, *, touches_flash: bool = True
    ) -> Admission:
        """Take a request in; `complete` must be called when it has been answered.

        No channel is taken by a flush, which is no queued command, and by what does not touch
        the flash: a read of sectors that hold nothing.
        """
        with self._lock:
            self._in_flight += 1
            if op == "flush" or not touches_flash:
                beside_ms = self._profile.flush_ms if op == "flush" else self._profile.overhead_ms
                due_ns = self._done(max(now_ns, self._ready_ns), round(beside_ms * 1e6))
                return Admission(now_ns, due_ns, self._in_flight, 0)
            depth = self._peak.after(now_ns, self._in_flight)
            fate = self._fate(op, lba, sectors)
            factor = fate.factor * self._factor_now(depth, now_ns)
            due_ns = self._schedule(op, factor, now_ns)
            return Admission(now_ns, due_ns, self._in_flight, fate.error)

    def complete(self) -> None:
        """One admitted request has been answered."""
        with self._lock:
            self._in_flight -= 1

    def _schedule(self, op: Op, factor: float, now_ns: int) -> int:
        profile = self._profile
        service_ms = profile.read_ms if op == "read" else profile.write_ms
        work_ns = round(service_ms * factor * 1e6)
        arrived_ns = max(now_ns, self._ready_ns) + round(profile.overhead_ms * 1e6)
        end_ns = self._done(self._channels.next_start(arrived_ns), work_ns)
        self._channels.occupy_until(end_ns)
        return end_ns

    def _done(self, start_ns: int, work_ns: int) -> int:
        stalls = self._profile.faults.stalls
        if not stalls:
            return start_ns + work_ns
        return through_stalls(start_ns, work_ns, stalls, self._power_on_ns)

    def _factor_now(self, depth: int, now_ns: int) -> float:
        """By how much the service time is stretched at this depth, and this long after power-on."""
        faults = self._profile.faults
        factor = 1.0
        for slow in faults.slow_depths:
            if slow.covers(depth):
                factor *= slow.factor
        warm_up = faults.slow_after_power_on
        if warm_up is not None and now_ns < self._power_on_ns + round(warm_up.seconds * 1e9):
            factor *= warm_up.factor
        return factor

    def _fate(self, op: Op, lba: int, sectors: int) -> _Fate:
        """What chance has in store for this request.

        Every request draws the same three numbers, so that switching one fault on leaves the
        course of the others, and of the jitter, as it was.
        """
        normal, tail, failure = self._random.gauss(), self._random.random(), self._random.random()
        profile, faults = self._profile, self._profile.faults
        factor = max(0.1, 1.0 + profile.jitter * normal)
        if faults.long_tail is not None and tail * faults.long_tail.one_in < 1.0:
            factor *= faults.long_tail.times
        fails = op == "read" and (
            failure < faults.read_error_rate
            or any(lba <= bad < lba + sectors for bad in self._bad_lbas)
        )
        return _Fate(factor, errno.EIO if fails else 0)
