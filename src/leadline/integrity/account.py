"""The events of a load, a line each, held against the plan; pure.

    ========== ==================================================
    line       meaning
    ``i N``    request N is issued: it is in the drive's hands
    ``a N``    it is acknowledged (a write or a flush)
    ``r N ..`` it is acknowledged (a read), and what was found (`report`)
    ``e N E``  it failed, with errno E: it may have taken effect
    ``c``      the command beside them was answered
    ``x``      that failed, and is not sent any more
    ``end``    the load ended in order: nothing is under way
    ========== ==================================================

They come in the order in which they happened: an acknowledgement that stands before an issue
was there before it.
"""

from dataclasses import dataclass, field

from leadline.errors import DriveFault, RigTrouble
from leadline.host.trouble import printable
from leadline.integrity.check import Sectors
from leadline.integrity.history import History
from leadline.integrity.plan import FLUSH, FUA, READ, Plan
from leadline.integrity.report import found_in


@dataclass
class Account:
    """What a load has done so far, and what the drive owes for it.

    `commands` are those that were answered while requests were under way: beside none they show
    nothing.  `most_under_way` is the most requests that were issued and not answered at one time;
    `failed` are the requests that failed, with their errno; `command_failed` says so of the
    command beside them.
    """

    plan: Plan
    history: History = field(default_factory=History)
    acknowledged: int = 0
    reads: int = 0
    commands: int = 0
    most_under_way: int = 0
    failed: dict[int, int] = field(default_factory=dict)
    command_failed: bool = False
    ended: bool = False
    _heard: set[int] = field(default_factory=set, repr=False)
    _all_heard: int = 0  # every request up to this one

    def take(self, line: str) -> None:
        """One event.  DriveFault where a read returned what it must not, RigTrouble for a line
        that is no event."""
        event, _, rest = line.partition(" ")
        try:
            self._take(event, rest)
        except (ValueError, KeyError) as error:
            said = printable(line[:80])
            raise RigTrouble(f"the load on the rig said what is no event: {said!r}") from error

    def is_unheard(self, number: int) -> bool:
        """Whether nobody has heard that this request was issued."""
        return number > self._all_heard and number not in self._heard

    def _take(self, event: str, rest: str) -> None:
        if event == "end":
            self.ended = True
        elif event == "c":
            self.commands += self.history.under_way() > 0
        elif event == "x":
            self.command_failed = True
        elif event == "i":
            self._issued(int(rest))
        elif event == "a":
            self._acknowledged(int(rest))
        elif event == "r":
            number, _, found = rest.partition(" ")
            self._read(int(number), found)
        elif event == "e":
            number, _, errno = rest.partition(" ")
            self.failed[int(number)] = int(errno)
        else:
            raise ValueError(event)

    def _issued(self, number: int) -> None:
        request = self.plan.request(number)
        if request.kind == READ:
            self.history.issue_read(number, request.lbas)
        elif request.kind == FLUSH:
            self.history.issue_flush(number)
        else:
            self.history.issue_write(number, request.lbas)
        self.most_under_way = max(self.most_under_way, self.history.under_way())
        self._heard.add(number)
        while self._all_heard + 1 in self._heard:
            self._all_heard += 1
            self._heard.remove(self._all_heard)

    def _acknowledged(self, number: int) -> None:
        request = self.plan.request(number)
        if request.kind == FLUSH:
            self.history.ack_flush(number)
        else:
            self.history.ack_write(number, fua=request.kind == FUA)
            self.acknowledged += 1

    def _read(self, number: int, text: str) -> None:
        request, found = self.plan.request(number), found_in(text)
        allowed = self.history.ack_read(number)
        if len(found) != request.sectors:
            raise ValueError("another number of sectors")
        self.reads += 1

        def may_hold(lba: int) -> set[int]:
            return allowed[lba - request.lba]

        sectors = Sectors(self.plan, may_hold, may_hold)
        sectors.take(request.lba, found)
        if wrong := sectors.checked().wrong:
            raise DriveFault(
                f"a read beside queued writes (request {number}, {request.sectors} sectors from "
                f"LBA {request.lba}) returned {len(wrong)} wrong sectors: {wrong[0]}"
            )
