"""When a virtual drive answers: channels, service times, and what spoils them.

The schedule is computed, not raced for: on arrival a request is given the moment at which
its answer is due, and the thread that carries it sleeps until then.  So the order is strictly
first come, first served, an oversleeping thread delays its own request and no other, and the
same arrivals with the same seed give the same answers.

A drive that reorders cannot tell on arrival.  It holds the request (`scheduling`), a thread of
its own (`run_decisions`) makes each decision when it falls, and what is decided follows from the
arrivals and the seed all the same.

Times are integers in nanoseconds of `time.monotonic_ns`.
"""

from __future__ import annotations

import errno
import random
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from leadline.virtual.disk import Disk
from leadline.virtual.faults import Stall
from leadline.virtual.profile import Profile
from leadline.virtual.scheduling import Channels, Command, Held, Op

# A host refills its queue a moment after each answer, so the number in flight flickers just below
# the depth that it offers.  The depth is therefore the most in flight over a short while.
DEPTH_WINDOW_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class Admission:
    """What becomes of one request.  `error` is an errno, 0 for none."""

    arrived_ns: int
    in_flight: int
    error: int
    planned_ns: int
    held: Command | None = None

    @property
    def due_ns(self) -> int:
        """When it is to be answered; of a request that is held, once it has been begun."""
        return self.planned_ns if self.held is None else self.held.due_ns

    def wait_begun(self) -> None:
        """Until `due_ns` is known."""
        if self.held is not None:
            self.held.begun.wait()


@dataclass(frozen=True, slots=True)
class _Fate:
    noise: float
    """How many times as long it takes by chance."""
    factor: float
    """And how many times as long as that for a fault."""
    error: int


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
        self._channels = Channels(1 if profile.faults.serialise else profile.channels)
        self._held = self._holding(profile)
        self._random = random.Random(f"{profile.seed}:{cycle}")
        self._bad_lbas = sorted(profile.faults.bad_lbas)
        self._in_flight = 0
        self._peak = _RecentPeak(DEPTH_WINDOW_NS)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    @property
    def holds(self) -> bool:
        """Whether it holds requests that it has not begun, and needs `decide`."""
        return self._held is not None

    def _holding(self, profile: Profile) -> Held | None:
        if profile.rotation is None:
            return None
        rotation = profile.rotation
        return Held(
            Disk(rotation, profile.capacity_bytes, write_cache=profile.write_cache),
            self._done,
            reorders=rotation.reorders,
            overtaken_at_most=rotation.overtaken_at_most,
        )

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
                return Admission(now_ns, self._in_flight, 0, due_ns)
            depth = self._peak.after(now_ns, self._in_flight)
            fate = self._fate(op, lba, sectors)
            stretch = fate.factor * self._factor_now(depth, now_ns)
            work_ns = self._work_ns(op) * fate.noise
            arrived_ns = max(now_ns, self._ready_ns) + round(self._profile.overhead_ms * 1e6)
            if self._held is None:
                due_ns = self._schedule(arrived_ns, round(work_ns * stretch))
                return Admission(now_ns, self._in_flight, fate.error, due_ns)
            command = Command(op, lba, sectors, arrived_ns, round(work_ns), stretch)
            self._held.decide(arrived_ns)
            self._held.add(command)
            self._changed.notify()
            return Admission(now_ns, self._in_flight, fate.error, 0, command)

    def decide(self, now_ns: int) -> None:
        """Begin what is to be begun by now."""
        with self._lock:
            self._decide(now_ns)

    def next_decision_ns(self) -> int | None:
        """When there is something to begin if nothing arrives; None when nothing is held."""
        with self._lock:
            return self._held.next_ns() if self._held is not None else None

    def run_decisions(self) -> None:
        """Make decisions as they fall, for ever.  For a thread of its own."""
        with self._changed:
            while True:
                next_ns = self._decide(time.monotonic_ns())
                if next_ns is None:
                    self._changed.wait()
                else:
                    self._changed.wait(max(0, next_ns - time.monotonic_ns()) / 1e9)

    def _decide(self, now_ns: int) -> int | None:
        if self._held is None:
            return None
        self._held.decide(now_ns)
        return self._held.next_ns()

    def complete(self) -> None:
        """One admitted request has been answered."""
        with self._lock:
            self._in_flight -= 1

    def _work_ns(self, op: Op) -> float:
        service_ms = self._profile.read_ms if op == "read" else self._profile.write_ms
        return service_ms * 1e6

    def _schedule(self, arrived_ns: int, work_ns: int) -> int:
        end_ns = self._done(max(arrived_ns, self._channels.free_ns), work_ns)
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
        noise = max(0.1, 1.0 + profile.jitter * normal)
        factor = 1.0
        if faults.long_tail is not None and tail * faults.long_tail.one_in < 1.0:
            factor = faults.long_tail.times
        fails = op == "read" and (
            failure < faults.read_error_rate
            or any(lba <= bad < lba + sectors for bad in self._bad_lbas)
        )
        return _Fate(noise, factor, errno.EIO if fails else 0)
