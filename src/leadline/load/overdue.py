"""A program that did not end in time, or fell silent: did the drive keep it waiting?

A drive may take its time with each request and still stay below the kernel's own timeout (30 s),
so that the kernel log says nothing.  What was in flight at the drive meanwhile tells whose fault
it is: `/sys/block/<dev>/inflight`, reads and writes (Documentation/ABI/stable/sysfs-block).  A rig
that answers no more has told nothing of the drive.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leadline.errors import DriveFault
from leadline.host.trouble import DeadlinePassed, FileTrouble, last_lines

if TYPE_CHECKING:
    from leadline.host.connection import Host

SAMPLE_S = 0.02
"""How often the requests in flight at the drive are counted: some twenty times a slice."""
MOST_SAMPLES = 2000
"""Of a program that may run for hours they are sent home in one piece."""
HELD_SHARE = 2.0
"""A drive that had requests for so many times as long as was asked for is what was late: fio makes
no more of them once its time is over, however late the rig is with it."""
MOST_OF_IT = 0.5
"""Where a number of requests was asked for, and no time: the share of the deadline."""


def inflight_of(node: str) -> str:
    """Where the kernel counts the requests in flight at a device node."""
    return f"/sys/block/{node.removeprefix('/dev/')}/inflight"


def every_s(deadline: float) -> float:
    """How often they are counted, in seconds, for a program that has `deadline` seconds."""
    return max(SAMPLE_S, deadline / MOST_SAMPLES)


def sampling(host: "Host", inflight: str, every: float) -> tuple[str, float] | None:
    """`Host.run`'s `sample`; None where nobody counts the requests."""
    return (inflight, every) if inflight and host.exists(inflight) else None


def counts(samples: Sequence[tuple[float, str]]) -> list[tuple[float, int]]:
    """Requests at the drive, reads and writes together, each with its time."""
    return [(at, _count(text)) for at, text in samples]


def overdue(
    late: DeadlinePassed, what: str, *, every: float, enough_s: float
) -> DriveFault | DeadlinePassed:
    """Whose fault it is that a program did not end; `what` says which, where, and its deadline.

    The drive's, where it had requests for more than `enough_s` seconds of it, or where it has some
    yet and not even SIGKILL ends the program.  `every` is how often they were counted, in seconds.
    """
    held = [count for _, count in counts(late.samples)]
    held_s = every * sum(count > 0 for count in held)
    had = f"; the drive had requests for {held_s:.0f} s of it" if held else ""
    said = last_lines(late.stderr)
    if late.left and (not held or held[-1] > 0):
        stuck = "not even SIGKILL ended it: it waits for the drive"
        return DriveFault(f"{what}, and {stuck}{had}, and the rig answers{said}")
    if held_s > enough_s:
        return DriveFault(f"{what}, and was ended{had}, and the rig answers{said}")
    doubt = "is the rig overloaded?" if held else "does the drive still answer?"
    return DeadlinePassed(f"{what}, and was ended{had}; {doubt}{said}", late.stdout, late.stderr)


def held_now(host: "Host", inflight: str) -> int | None:
    """How many requests the drive has at this moment; None where nobody counts them.

    Raises RigTrouble where the rig does not answer.
    """
    try:
        return _count(host.read_file(inflight).decode("ascii", "replace"))
    except FileTrouble:
        return None


def _count(text: str) -> int:
    return sum(map(int, text.split()))
