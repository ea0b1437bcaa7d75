"""What the kernel says of the drives of a visit while a test runs, and what of it is excused."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from leadline.drive.bind import Drive
from leadline.drive.kernel_events import KernelEvent
from leadline.drive.kernel_watch import OVERRUN, is_about, lost_records
from leadline.errors import DriveFault, RigTrouble, message_of
from leadline.outcomes import Ended, ended_by
from leadline.results.rows import event_row

if TYPE_CHECKING:
    from leadline.station import Station

_KERNELS_OWN = (
    "  No drive is to blame for that: see `dmesg` on the rig, and reboot it or change its kernel"
)


class KernelFaults:
    """The error events of some drives, of which some are expected; all of them are recorded.

    `drives` has a visit's drive under every name that the kernel has had for it.
    """

    def __init__(self, station: "Station", cell_id: str) -> None:
        self._station = station
        self._cell_id = cell_id
        self.drives: list[Drive] = []
        self._excused: list[tuple[int, int, frozenset[str]]] = []
        self._heard = station.watch.mark()

    @contextmanager
    def watching(self, other: Drive) -> Iterator[None]:
        """While this lasts, what the kernel says of the `other` drive counts, too."""
        self.drives.append(other)
        try:
            yield
        finally:
            self.drives.remove(other)

    @contextmanager
    def expected(self, *kinds: str) -> Iterator[None]:
        """While this lasts, events of these kinds are no fault of the drive."""
        begin = self._station.watch.mark()
        try:
            yield
        finally:
            with suppress(RigTrouble):  # a host that was lost meanwhile has no log to show
                self.excuse(begin, self._station.watch.mark(), frozenset(kinds))

    def excuse(self, first: int, last: int, kinds: frozenset[str]) -> None:
        """Events of these kinds between two marks of the watch are not the drive's fault."""
        self._excused.append((first, last, kinds))

    def new(self, node_id: str) -> list[KernelEvent]:
        """The events that are not excused, since this was last asked or since the visit began:
        a test's setup is its own, too.  Each is recorded for the test.

        Raises RigTrouble when there is none, and records of the log were lost since then: what
        happened to other drives, and what was expected, says nothing of these.
        """
        faults = []
        begin, self._heard = self._heard, self._station.watch.mark()
        events = self._station.watch.since(begin)[: self._heard - begin]
        for place, event in enumerate(events, begin):
            if not event.is_error or not self._concerns(event):
                continue
            excused = any(
                first <= place < last and event.kind in kinds
                for first, last, kinds in self._excused
            )
            row = event_row(self._cell_id, node_id, event, excused=excused)
            self._station.record.add(row)
            if not excused:
                faults.append(event)
        if lost := not faults and next((each for each in events if each.kind == OVERRUN), None):
            raise lost_records(self._station.host.name, lost)
        return faults

    def judge(self, node_id: str, drive: Drive, error: BaseException | None = None) -> None:
        """Raise what the new events make of a test, which has ended with `error` or well.

        They are the drive's fault, unless the kernel blames all of them on itself: that is the
        rig's trouble, and no more than a note on a fault that was found without them.
        """
        faults = self.new(node_id)
        if not faults:
            return
        message = told(faults, drive)
        if any(event.blame != "host" for event in faults):
            judged: DriveFault | RigTrouble = DriveFault(message)
        elif error is not None and ended_by(error) in (Ended.FAIL, Ended.ERROR):
            error.add_note(message)
            return
        else:
            judged = RigTrouble(f"{message}\n{_KERNELS_OWN}")
        if error is not None:
            judged.add_note(f"and so the test ended: {message_of(error)}")
        raise judged from error

    def _concerns(self, event: KernelEvent) -> bool:
        return any(is_about(event, drive) for drive in self.drives)


def told(events: Sequence[KernelEvent], drive: Drive) -> str:
    """The events as the message of a failed test: their kinds, then each in a line."""
    kinds = ", ".join(dict.fromkeys(event.kind for event in events))
    where = f"{drive.node} in this test or its setup: {kinds}"
    lines = [f"the kernel logged {len(events)} event(s) for {where}"]
    for event in events:
        at = f" at {event.device}" if event.device else ""
        lines.append(f"  {event.kind}{at} (blame: {event.blame}): {event.text}")
    return "\n".join(lines)
