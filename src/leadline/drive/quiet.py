"""Wait until udev has looked at the drives that a load was on.

Whenever a program that may write closes a disk, udev reads it and asks it who it is.  While one is
held for writing, it is locked against that (`agent_files.open_device`), and is looked at when it
is let go: once for each time that fio closed it.  Beside a slice those are another disk's requests
on the path, or commands among the drive's own.

Each look is some 50 reads, and what they find is forgotten when nobody has the disk open any more.
So it is held open meanwhile: the reads of all looks but the first are answered from memory, and a
minute of them on a slow drive is a quarter of that.  Then only the commands tell that there are
looks, by which udev asks the disk who it is: two a look of a SATA disk, four of a SCSI one.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from leadline.drive.conditions import parse_counter, parse_stat
from leadline.drive.settings import setting_text
from leadline.host.connection import DeadlinePassed, FileTrouble, HostLost

if TYPE_CHECKING:
    from leadline.host.connection import Host

LOOK_S = 0.3
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
    """Wait until these disks, by the kernel's names, are sent nothing; False if that never comes.

    `say` is told once that there is something to wait for.  A disk that is gone, or of which the
    kernel keeps no counters, is quiet.
    """
    with ExitStack() as opened:
        for name in sorted(names):
            opened.enter_context(_held_open(host, f"/dev/{name}"))
        return _quiet(host, names, say, time.monotonic() + patience_s)


@contextmanager
def _held_open(host: "Host", node: str) -> Iterator[None]:
    """The disk stays open, if it is there and can be opened; that keeps nobody from it.

    While the kernel still tries to bring a drive back that has failed, it lets nobody open it.
    """
    try:
        handle = host.hold_device(node, exclusive=False)
    except (FileTrouble, DeadlinePassed):
        yield
        return
    try:
        yield
    finally:
        with suppress(HostLost, FileTrouble, DeadlinePassed):
            host.release_device(handle)


def _quiet(host: "Host", names: Collection[str], say: Callable[[str], None], limit: float) -> bool:
    before, calm, told = _commands(host, names), CALM - 1, False
    while True:
        time.sleep(LOOK_S)
        now = _commands(host, names)
        busy = [name for name in now if now[name] > before.get(name, now[name])]
        calm = 0 if busy else calm + 1
        if calm >= CALM:
            return True
        if busy and not told:
            told = True
            say(f"{host.name}: {', '.join(busy)} is being looked at, by udev as it seems: waiting")
        if time.monotonic() >= limit:
            return False
        before = now


def _commands(host: "Host", names: Collection[str]) -> Mapping[str, int]:
    """The commands that each disk has completed; its requests where the kernel counts no more."""
    asked = {
        name: (f"/sys/block/{name}/device/iodone_cnt", f"/sys/block/{name}/stat")
        for name in sorted(names)
    }
    read = host.read_files([path for paths in asked.values() for path in paths])
    found = {}
    for name, paths in asked.items():
        commands, requests = (setting_text(read.get(path) or b"") for path in paths)
        count, io = parse_counter(commands), parse_stat(requests)
        if count is not None:
            found[name] = count
        elif io is not None:
            found[name] = io.requests
    return found
