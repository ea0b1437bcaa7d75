"""Steal time (proc(5)) of this machine while slices run on a virtual rig, and which of them met it.

A hypervisor takes processors in bursts of a second or so: of a batch most slices may have had them.
"""

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leadline.drive.conditions import ProcessorTime, processors_here

if TYPE_CHECKING:
    from leadline.host.connection import Host

STEAL_SHARE = 0.1
"""Of a processor's time: on a virtual rig above two processors slices of half a second had 0.5 % of
scatter below it, 3 % up to 0.15, 8 % up to 0.3, and 12 to 16 %, at three quarters of their rate,
above."""
STEAL_FEW_TICKS = 5
"""So many hundredths of a second are nothing, of however short a look."""
EVERY_S = 0.05
NEAR_S = 0.2
"""So near to a slice is as good as in it: ticks are counted late, and clocks compared in haste."""


def taken_between(was: ProcessorTime, now: ProcessorTime) -> tuple[float, bool] | None:
    """The share of a processor's time that was stolen, and whether it is more than nothing.

    None where no time has passed.
    """
    if now.elapsed <= was.elapsed:
        return None
    stolen = now.stolen - was.stolen
    share = stolen / (now.elapsed - was.elapsed)
    return share, share > STEAL_SHARE and stolen > STEAL_FEW_TICKS


@dataclass(frozen=True)
class Watched:
    """Looks at the processors' time, in order, at these times (Unix seconds).

    The rig's clock is `ahead_s` of this machine's: a guest gets the time of its boot from a clock
    that has whole seconds.
    """

    ahead_s: float = 0.0
    at: list[float] = field(default_factory=list)
    looks: list[ProcessorTime] = field(default_factory=list)

    def look(self) -> None:
        """One more."""
        seen = processors_here()
        if seen is not None:
            self.at.append(time.time())
            self.looks.append(seen)

    def met_by(self, since: float, until: float) -> bool | None:
        """Whether what ran then, by the rig's clock, had processors kept from it.

        None where nobody looked.
        """
        since, until = since - self.ahead_s, until - self.ahead_s
        if not self.at or since < self.at[0] - NEAR_S or until > self.at[-1] + NEAR_S:
            return None
        was = max(0, bisect_right(self.at, since - NEAR_S) - 1)
        now = min(len(self.at) - 1, bisect_left(self.at, until + NEAR_S))
        taken = taken_between(self.looks[was], self.looks[now])
        return None if taken is None else taken[1]


@contextmanager
def watching(host: "Host", *, emulated: bool) -> Iterator[Watched]:
    """Looks at this machine's processors meanwhile, if it is they that the rig runs on."""
    if not emulated:
        yield Watched()
        return
    asked = time.time()
    now = host.now()
    watched, over = Watched(now - (asked + time.time()) / 2), threading.Event()

    def look_on() -> None:
        while not over.wait(EVERY_S):
            watched.look()

    watched.look()
    looking = threading.Thread(target=look_on, name="leadline-steal", daemon=True)
    looking.start()
    try:
        yield watched
    finally:
        over.set()
        looking.join()
        watched.look()
