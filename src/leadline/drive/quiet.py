"""Wait until udev has looked at the drives that a load was on.

Whenever a program that may write closes a disk, udev reads it and asks it who it is.  While one is
held for writing, it is locked against that (`agent_files.open_device`), and is looked at when it
is let go: once for each time that fio closed it, which on a slow drive takes a minute.  Beside a
slice those are another disk's requests on the path, or commands among the drive's own.
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from leadline.drive.conditions import parse_stat

if TYPE_CHECKING:
    from leadline.host.connection import Host

LOOK_S = 0.3
FEW = 4
"""Requests that a disk may do in LOOK_S and be quiet."""
CALM = 3
"""So many looks in a row have to find it quiet, once one has not: udev takes breath between two."""
PATIENCE_S = 120.0


def await_quiet(
    host: "Host",
    names: Collection[str],
    say: Callable[[str], None],
    *,
    patience_s: float = PATIENCE_S,
) -> bool:
    """Wait until these disks, by the kernel's names, do next to nothing; False if they never do.

    `say` is told once that there is something to wait for.  A disk that is gone, or of which the
    kernel keeps no counters, is quiet.
    """
    limit = time.monotonic() + patience_s
    before, calm, told = _requests(host, names), CALM - 1, False
    while True:
        time.sleep(LOOK_S)
        now = _requests(host, names)
        busy = [name for name in now if now[name] - before.get(name, now[name]) > FEW]
        calm = 0 if busy else calm + 1
        if calm >= CALM:
            return True
        if busy and not told:
            told = True
            say(f"{host.name}: {', '.join(busy)} is being read, by udev as it seems: waiting")
        if time.monotonic() >= limit:
            return False
        before = now


def _requests(host: "Host", names: Collection[str]) -> Mapping[str, int]:
    paths = {name: f"/sys/block/{name}/stat" for name in sorted(names)}
    read = host.read_files(list(paths.values()))
    counts = {
        name: parse_stat((read.get(path) or b"").decode("ascii", "replace"))
        for name, path in paths.items()
    }
    return {name: count.requests for name, count in counts.items() if count is not None}
