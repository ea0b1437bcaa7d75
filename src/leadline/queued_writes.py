"""Are verified writes queued?  What reaches the drive is watched for a moment of their load.

Data that came through one request at a time say nothing of a queue.  As many requests as are in
flight on the rig may still come to the drive one by one: where error handling has switched its
queue off, say, or a quirk of the kernel has.
"""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leadline.drive import overlap
from leadline.drive.overlap import Overlap
from leadline.drive.tracing import TracingMissing
from leadline.errors import Inconclusive
from leadline.integrity.account import Account
from leadline.integrity.plan import TURN

if TYPE_CHECKING:
    from leadline.integrity.session import Load
    from leadline.visiting import OpenVisit

MOMENT_S = 0.5
"""At least; the kernel's buffer holds what the fastest load of ours makes of it."""
MOMENT_REQUESTS = 2 * TURN
"""At least: on a slow drive a flush, beside which there is nothing else, takes most of a moment."""
ENOUGH = TURN
"""A busy rig tells late what was answered: a moment may end when the drive was sent next to nothing
in it, and nothing overlaps.  With fewer commands than these another one is watched."""
MOST_MOMENTS = 4


@dataclass(frozen=True)
class AtDrive:
    """What reached the drive in a moment of the load; `seen` is None where the kernel shows none.

    `why_not` says why it does not, `translated` that an HBA sends on to a SATA drive what was
    seen, nobody knows how.  `cause` is the rung of the ladder by which the drive does not queue,
    where it was asked for that.
    """

    seen: Overlap | None
    why_not: str = ""
    translated: bool = False
    cause: str = ""

    @property
    def queued(self) -> bool | None:
        """Whether writes were queued beside other commands; None where that cannot be known."""
        if self.seen is not None and self.seen.commands:
            if not (self.seen.queued_writes and self.seen.most > 1):
                return False
            if not self.translated:
                return True
        return False if self.cause else None

    def __str__(self) -> str:
        if self.seen is None:
            return f"what reached the drive was not seen: {self.why_not}"
        where = "the HBA" if self.translated else "the drive"
        return f"watched for a moment, {where} was sent {self.seen}"


def look(visit: "OpenVisit", load: "Load") -> AtDrive:
    """Watch a moment of a load under way, once the span is filled; shorter, if it ends before.

    Another one, where too little was seen.  Where writes are not seen to be queued, the ladder is
    asked why.  Raises what `Load.until`
    and climbing the ladder do.
    """
    fills = load.account.plan.fills
    load.until(lambda account: account.acknowledged >= fills)
    for _ in range(MOST_MOMENTS):
        found = _watched(visit, load)
        seen = found.seen
        if found.queued or seen is None or seen.commands >= ENOUGH or load.account.ended:
            break
    return found if found.queued else replace(found, cause=visit.ladder.cause)


def _watched(visit: "OpenVisit", load: "Load") -> AtDrive:
    drive = visit.drive
    moment = _Moment(load.account)
    try:
        seen = overlap.during(visit.station.host, drive, lambda: load.until(moment))
    except TracingMissing as error:
        return AtDrive(None, str(error))
    return AtDrive(seen, translated=drive.identify is not None and drive.link is None)


class _Moment:
    """Whether enough of the load has passed since this was made."""

    def __init__(self, account: Account) -> None:
        self._until = time.monotonic() + MOMENT_S
        self._requests = _answered(account) + MOMENT_REQUESTS

    def __call__(self, account: Account) -> bool:
        return _answered(account) >= self._requests and time.monotonic() >= self._until


def _answered(account: Account) -> int:
    return account.acknowledged + account.reads


def refuse_unqueued(visit: "OpenVisit", who: str, at_drive: AtDrive) -> None:
    """Raise Inconclusive where writes came one by one to a drive that must queue.

    What was written has come through, and whoever wanted to know of a queue knows nothing.
    """
    must = visit.station.run.must(visit.visit)
    if at_drive.queued is not False or must.ncq == "none" or visit.model.queue_depth == 1:
        return
    why = f"; {at_drive.cause}" if at_drive.cause else ""
    raise Inconclusive(
        f"{who}: nothing is wrong with its data, but the writes were not queued, as they must be, "
        f"and so prove nothing of queued ones ({at_drive}{why}). Mend what the NCQ ladder names, "
        "and run this again"
    )
