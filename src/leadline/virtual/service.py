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

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from leadline.virtual.disk import Disk
from leadline.virtual.fate import Fates
from leadline.virtual.faults import Stall
from leadline.virtual.profile import SECTOR_BYTES, Profile
from leadline.virtual.scheduling import Channels, Command, Held, Op
from leadline.virtual.write_behind import WriteBehind

# A host refills its queue a moment after each answer, so the number in flight flickers just below
# the depth that it offers.  The depth is therefore the most in flight over a short while.
DEPTH_WINDOW_NS = 50_000_000


class Admission(NamedTuple):
    """A request that has been taken in.

    `error` is an errno, 0 for none; `lba` is where the data is that it is answered with.
    """

    arrived_ns: int
    in_flight: int
    error: int
    lba: int
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


class _Link:
    """What all requests' data passes over, one after the other.

    Counted before the channels for reads, too: on the rate and on the time of a lone request the
    order has no influence, and so a request that hangs in its channel keeps no other from the link.
    """

    def __init__(self, megabytes_per_second: float) -> None:
        self._sector_ns = SECTOR_BYTES / megabytes_per_second * 1e3
        self._free_ns = 0

    def passed_ns(self, now_ns: int, sectors: int) -> int:
        """When so much that is there now has passed."""
        self._free_ns = max(now_ns, self._free_ns) + round(sectors * self._sector_ns)
        return self._free_ns


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
        self._fates = Fates(profile, cycle=cycle, power_on_ns=power_on_ns)
        self._link = _Link(profile.link_mb_per_s) if profile.link_mb_per_s else None
        self._in_flight = 0
        self._peak = _RecentPeak(DEPTH_WINDOW_NS)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    @property
    def holds(self) -> bool:
        """Whether it holds requests that it has not begun, and needs `decide`."""
        return self._held is not None

    def _holding(self, profile: Profile) -> Held | WriteBehind | None:
        rotation = profile.rotation
        if rotation is not None:
            held = Held(
                Disk(rotation, profile.capacity_bytes, write_cache=profile.write_cache),
                self._done,
                reorders=rotation.reorders,
                overtaken_at_most=rotation.overtaken_at_most,
            )
            if rotation.write_behind:
                return WriteBehind(held, self._done, most=rotation.write_behind)
            return held
        if profile.faults.starvation is not None:
            return Held(self._channels, self._done, reorders=False, overtaken_at_most=0)
        return None

    def admit(
        self, op: Op, lba: int, sectors: int, now_ns: int, *, touches_flash: bool = True
    ) -> Admission:
        """Take a request in; `complete` must be called when it has been answered.

        No channel is taken by a flush, which is no queued command, and by what does not touch
        the flash: a read of sectors that hold nothing.
        """
        with self._lock:
            self._in_flight += 1
            ready_ns = max(now_ns, self._ready_ns)
            if op == "flush" or not touches_flash:
                beside_ms = self._profile.flush_ms if op == "flush" else self._profile.overhead_ms
                beside_ns = round(beside_ms * 1e6)
                if op == "flush" and isinstance(self._held, WriteBehind):
                    flush = Command("flush", 0, 0, ready_ns, beside_ns)
                    self._hold(flush, self._held)
                    return Admission(now_ns, self._in_flight, 0, lba, 0, flush)
                due_ns = self._done(ready_ns, beside_ns)
                return Admission(now_ns, self._in_flight, 0, lba, due_ns)
            depth = self._peak.after(now_ns, self._in_flight)
            fate = self._fates.of(op, lba, sectors, now_ns, depth)
            work_ns = self._work_ns(op, sectors, depth) * fate.noise
            if self._link is not None:
                ready_ns = self._link.passed_ns(ready_ns, sectors)
            ready_ns += round(self._profile.overhead_ms * 1e6)
            if self._held is None:
                due_ns = self._schedule(ready_ns, round(work_ns * fate.stretch) + fate.delay_ns)
                return Admission(now_ns, self._in_flight, fate.error, fate.lba, due_ns)
            command = Command(
                op,
                lba,
                sectors,
                ready_ns,
                round(work_ns),
                stretch=fate.stretch,
                delay_ns=fate.delay_ns,
                starved_ns=fate.starved_ns,
                reads_ahead=depth == 1 or self._profile.faults.interfering_streams is None,
            )
            self._hold(command, self._held)
            return Admission(now_ns, self._in_flight, fate.error, fate.lba, 0, command)

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

    def _hold(self, command: Command, held: Held | WriteBehind) -> None:
        held.decide(command.arrived_ns)
        held.add(command)
        self._changed.notify()

    def _work_ns(self, op: Op, sectors: int, depth: int) -> float:
        """Time in a channel, before chance."""
        profile = self._profile
        if op == "read":
            service_ms, ms_per_mib = profile.read_ms, profile.read_ms_per_mib
        else:
            service_ms, ms_per_mib = profile.write_ms, profile.write_ms_per_mib
        if ms_per_mib:
            service_ms += ms_per_mib * sectors * SECTOR_BYTES / 2**20
        if depth > 1:
            service_ms += profile.queueing_ms
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
