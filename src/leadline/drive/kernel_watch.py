"""The rig's kernel log, followed from the start of the boot for as long as a run lasts.

``/dev/kmsg`` is read rather than ``dmesg --follow``: its records are numbered, so that it
is known whether the log still begins at the boot and whether anything was lost since.
A mark is a line of our own, written into the log and awaited: whatever happened before it
has then arrived, and nothing needs to be waited for by the clock.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self
from uuid import uuid4

from leadline.drive.bind import Drive
from leadline.drive.kernel_events import EventParser, KernelEvent, concerns, may_be_of
from leadline.errors import RigTrouble
from leadline.host.connection import Host, Running

LOG = "/dev/kmsg"
OVERRUN = "log-overrun"  # the kind of the event that stands for lost messages
BARRIER_S = 20.0  # a slow rig under load, printing over a serial console

_OWN = "leadline: "
_RECORD = re.compile(r"\d+,(?P<number>\d+),(?P<microseconds>\d+),[^;]*;(?P<text>.*)")
# libata's two lines about a drive that it has just set up.
_ATTACHED = re.compile(r"(ata\d+\.\d+): (?:ATA|CFA)[^:]*: ")
_CHOICE = re.compile(r"(ata\d+\.\d+): \d+ sectors.*?(NCQ \([^)]*\))")


@dataclass(frozen=True, slots=True)
class KernelHistory:
    """What the kernel log of this boot says so far; names are libata's, such as ``ata1.00``."""

    events: tuple[KernelEvent, ...]
    complete: bool  # from the first message of the boot, with none lost
    attached: Mapping[str, float]  # when libata last set this device up, seconds since boot
    choices: Mapping[str, str]  # what it then said of NCQ: "NCQ (depth 32)", "NCQ (not used)"

    def attached_at(self, device: str) -> float | None:
        """When ``device`` was last set up, in seconds since boot; None where the log lacks it."""
        return self.attached.get(device)

    def ncq_choice(self, device: str) -> str | None:
        """What the kernel said of NCQ when it set ``device`` up; None where it said nothing."""
        return self.choices.get(device)


def kernel_seconds(line: str) -> float:
    """When a record of ``/dev/kmsg`` was written, in seconds since boot; ValueError for none."""
    record = _RECORD.match(line)
    if not record:
        raise ValueError(f"{line!r} is no record of {LOG}")
    return int(record["microseconds"]) / 1e6


class KernelLog:
    """The records of ``/dev/kmsg``, one boot after another, and the events in them."""

    def __init__(self) -> None:
        self._before: tuple[KernelEvent, ...] = ()  # what earlier parsers found
        self._parser = EventParser()
        self.begin_boot()

    def begin_boot(self) -> None:
        """What follows is of a new boot, from its beginning."""
        self._before = self.events()
        self._parser = EventParser()
        self._boot_begins = len(self._before)
        self._attached: dict[str, float] = {}
        self._choices: dict[str, str] = {}
        self._last: int | None = None  # the number of the last record taken
        self._complete = False

    def take(self, line: str) -> str | None:
        """One line of ``/dev/kmsg``; the message when it is a new record's, else None."""
        record = _RECORD.match(line)
        if not record:
            return None  # a record's properties, such as " SUBSYSTEM=scsi"
        number, text = int(record["number"]), record["text"]
        if self._last is not None and number <= self._last:
            return None  # seen on an earlier connection
        if self._last is None:
            self._complete = number == 0
        elif number > self._last + 1:
            self._note_loss(number - self._last - 1)
        self._last = number
        if not text.startswith(_OWN):
            # A message of several lines is one record, its line ends escaped.
            for part in line.split("\\x0a"):
                self._parser.feed(part)
            self._remember(text, kernel_seconds(line))
        return text

    def events(self) -> tuple[KernelEvent, ...]:
        """All events of all boots so far."""
        return self._before + self._parser.events()

    def mark(self) -> int:
        """How many events there are; what comes after joins none of them."""
        return len(self._before) + self._parser.mark()

    def history(self) -> KernelHistory:
        """What was taken of this boot."""
        return KernelHistory(
            self.events()[self._boot_begins :],
            self._complete,
            dict(self._attached),
            dict(self._choices),
        )

    def _note_loss(self, count: int) -> None:
        """A gap is an event too, so that marks before and after it differ."""
        self._complete = False
        text = f"the kernel log overran and {count} messages were lost"
        gap = KernelEvent(OVERRUN, "warning", None, None, "host", text, (), ())
        self._before = (*self.events(), gap)
        self._parser = self._parser.after_gap()

    def _remember(self, text: str, seconds: float) -> None:
        if attached := _ATTACHED.match(text):
            self._attached[attached[1]] = seconds
            self._choices.pop(attached[1], None)
        elif choice := _CHOICE.match(text):
            self._choices[choice[1]] = choice[2]


def lost_records(host_name: str, event: KernelEvent) -> RigTrouble:
    """What it means that the kernel's log was overrun, and what to do."""
    return RigTrouble(
        f"{host_name}: {event.text}, so that nobody knows what it said; enlarge it "
        "(log_buf_len=4M on the kernel's command line) or quieten what fills it"
    )


class KernelWatch:
    """Follows one rig's kernel log; survives the host's reboots.  For one thread at a time.

    A context manager: started on entry, stopped on exit.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._running: Running | None = None
        self._boot_id = ""
        self._log = KernelLog()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Read the log from its beginning, and follow it; again by itself after a reconnection.

        Raises RigTrouble when the log may not be read or written to.
        """
        self._follow()
        self._barrier()
        self._host.after_reconnect.append(self.restart)

    def stop(self) -> None:
        """Stop following."""
        if self.restart in self._host.after_reconnect:
            self._host.after_reconnect.remove(self.restart)
        if self._running:
            self._running.stop()

    def restart(self) -> None:
        """Follow anew on a new connection; a new boot's log is added to what was seen before."""
        if self._host.boot_id() != self._boot_id:
            self._log.begin_boot()
        self._follow()
        self._barrier()

    def mark(self) -> int:
        """A place in the sequence of events: all that has happened by now lies before it."""
        self._barrier()
        return self._log.mark()

    def since(self, mark: int, drive: Drive | None = None) -> tuple[KernelEvent, ...]:
        """The events after ``mark`` until now; with ``drive`` only those that concern it.

        Raises RigTrouble when there is no error to show and records were lost since then, for
        then nobody knows.
        """
        self._barrier()
        events = self._log.events()[mark:]
        if drive:
            events = tuple(event for event in events if is_about(event, drive))
        lost = next((event for event in events if event.kind == OVERRUN), None)
        if lost and not any(event.is_error for event in events):
            raise lost_records(self._host.name, lost)
        return events

    def clock(self) -> float:
        """What to add to a time in the log, seconds since boot, to have it as `time.monotonic`.

        A line of our own tells it: wrong by at most half of what writing that one takes.
        """
        return self._barrier()

    def history(self) -> KernelHistory:
        """Everything that the log of this boot says so far."""
        self._barrier()
        return self._log.history()

    def _follow(self) -> None:
        """One record a read(2), and cat writes each at once."""
        if self._running:
            self._running.stop()
        self._boot_id = self._host.boot_id()
        self._running = self._host.start(["cat", LOG])

    def _barrier(self) -> float:
        """Take every record up to a line of our own; this clock less the kernel's, in seconds."""
        word = f"{_OWN}mark {uuid4().hex}"
        before = time.monotonic()
        # Without a line end the kernel waits for the rest of the line, and shows nothing yet.
        self._host.write_value(LOG, f"{word}\n")
        written = (before + time.monotonic()) / 2
        limit = time.monotonic() + BARRIER_S
        while time.monotonic() < limit:
            assert self._running is not None, "started before it is asked"
            # All that has come is taken, even behind the mark: the log is in order.
            taken = {self._log.take(line): line for line in self._running.lines(timeout=1.0)}
            if word in taken:
                return written - kernel_seconds(taken[word])
            if self._running.ended:
                self._revive()
        raise RigTrouble(
            f"{self._host.name}: a line written to {LOG} did not come back within "
            f"{BARRIER_S:.0f} s: kernel.printk_devkmsg is off (see sysctl), the log is flooded, or "
            "the rig is stuck"
        )

    def _revive(self) -> None:
        """cat ends with EPIPE when the log has overtaken it; record numbers show what is lost."""
        assert self._running is not None
        complaint = self._running.stderr.decode("utf-8", "replace").strip()
        if "Broken pipe" not in complaint:
            raise RigTrouble(
                f"{self._host.name}: cannot follow the kernel log: {complaint or 'cat ended'}; "
                "is the rig reached as root?"
            )
        self._follow()


def is_about(event: KernelEvent, drive: Drive) -> bool:
    """Whether the event may be about the drive, as it was bound."""
    on = drive.controller
    if not may_be_of(event, driver=on.driver, pci_address=on.pci_address):
        return False
    return concerns(event, ata_port=drive.ata_port, name=drive.name, hctl=drive.hctl)
