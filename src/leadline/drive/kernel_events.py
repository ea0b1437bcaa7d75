"""The events in a kernel log: what happened to which drive, and who is to blame.

`EventParser` takes lines one at a time, as a watcher of a live log has them; `parse_log` takes a
whole text.  Both are linear in the length of the log and accept any text at all.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from leadline.drive.kernel_lines import LONGEST, Line, Time, read_line
from leadline.drive.kernel_patterns import (
    EXCEPTIONS,
    FAILURES,
    LINK_DOWN,
    LINK_SLOWER,
    MESSAGES,
    Blame,
    Pattern,
    Severity,
)

_SUBJECT = re.compile(
    r"(?:sas: )?(?P<ata>(?P<port>ata\d+)(?:\.\d+)?): (?:end_device-\S+ )?"
    r"|(?:sd|scsi|sr|ses) (?P<hctl>\d+:\d+:\d+:\d+): (?:\[(?P<disk>\w+)\] )?(?:tag#\d+ )?"
)
_NAMED = ("ata", "sd ", "scsi ", "sas: ")
# How a message starts that has no device in front, so that it is not taken for a wrapped line.
_BARE = re.compile(
    r"exception Emask|irq_stat 0x|SError: \{|failed command: |(?:cmd|res) [0-9a-f]{2}/|status: \{"
    r"|error: \{|FAILED Result|Sense Key :|Add\. Sense:|CDB: |I/O error, dev|critical \w+ error"
    r"|(?:blk_update_request|print_req_error|end_request|sas): |Buffer I/O error on |WARNING: CPU"
    r"|mpt[23]sas_cm\d+: |(?:ahci|mvsas|pm80xx) [0-9a-f]{4}:|drivers/scsi/"
)
_EXCEPTION = "exception Emask"
_EXCEPTION_PART = re.compile(
    r"irq_stat |SError: |failed command: |cmd [0-9a-f]{2}/|res [0-9a-f]{2}/|status: \{|error: \{"
)
_FAILURE_STARTS = ("FAILED Result:", "UNKNOWN", "Result:")
_FAILURE_PART = re.compile(
    r"(?:FAILED |UNKNOWN\(\w+\) )?Result: |Sense Key ?:|Add\. Sense:|CDB: |Descriptor sense data"
)
_DISK = r"sd[a-z]+|nvme\d+n\d+"  # and not a floppy, a CD or a loop device
# The block layer's lines about a request, which join the SCSI layer's lines about the same one.
_REQUEST = re.compile(
    rf"(?:(?:\w+: )?(?P<ends>[\w/ ]{{1,40}} error, dev)|Buffer I/O error on dev(?:ice)?) "
    rf"(?P<device>{_DISK})"
)
_COMMAND = re.compile(r"failed command: ([A-Z][A-Z /]*[A-Z])")
_OUTCOME = re.compile(r"Emask 0x[0-9a-f]{1,8} \(([^)]{1,60})\)")
_FLAGS = re.compile(r"(?:SError|error): \{[^}]{0,200}\}|irq_stat 0x[0-9a-f]+, [^;\n]+")

# Which controller a message is about that names no device: some have its PCI address.
_CONTROLLER = re.compile(
    r"(?P<driver>ahci|mvsas|pm80xx) (?P<pci>[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]):"
    r"|drivers/scsi/(?P<directory>mvsas|pm8001)/|(?P<libsas>sas: )"
    r"|(?P<mpt>mpt[23]sas)_cm\d+:"
)
# By what messages call them: one driver has both generations of its HBAs, and says which.
_DRIVERS = {
    "ahci": ("ahci",),
    "mvsas": ("mvsas",),
    "pm80xx": ("pm80xx",),
    "pm8001": ("pm80xx",),
    "mpt2sas": ("mpt2sas", "mpt3sas"),
    "mpt3sas": ("mpt2sas", "mpt3sas"),
}
_NOT_LIBSAS = ("ahci", "ata_piix", "mpt2sas", "mpt3sas")

_CONTINUATIONS = 6  # a mail program breaks a message into a few lines, not into a page
_LINES_KEPT = 200  # of one event
_LINES_SHOWN = 6  # in its text
_TOGETHER_S = 2.0  # the last line on a request comes this soon after the first


@dataclass(frozen=True, slots=True)
class KernelEvent:
    """One thing that happened; `kind` is a row of the table in `kernel_patterns`."""

    kind: str
    severity: Severity
    device: str | None  # "ata2.00", "ata2", "sda", or "0:0:0:0" for a device without a disk
    time: Time  # seconds since boot, or a date as the log gives it
    blame: Blame
    text: str  # one line
    commands: tuple[str, ...]  # the failed ATA commands, one entry for each
    lines: tuple[str, ...]  # the messages that it was found in

    @property
    def is_error(self) -> bool:
        """A command failed or error handling ran."""
        return self.severity == "error"

    @property
    def seconds(self) -> float:
        """Seconds since boot; infinite where the log has dates, as a live one never has."""
        return self.time if isinstance(self.time, float) else math.inf


def parse_log(text: str) -> tuple[KernelEvent, ...]:
    """The events of a whole log, in the order in which they began."""
    return parse_lines(text.split("\n"))


def parse_lines(lines: Iterable[str]) -> tuple[KernelEvent, ...]:
    """The events of a log's lines."""
    parser = EventParser()
    for line in lines:
        parser.feed(line)
    return parser.events()


def ncq_disabled(events: Iterable[KernelEvent]) -> bool:
    """Error handling switched queueing off: true from then on, whatever is written to sysfs."""
    return any(event.kind == "ncq-disabled" for event in events)


def concerns(event: KernelEvent, *, ata_port: str | None, name: str, hctl: str) -> bool:
    """Whether the event is about the drive on `ata_port` ("ata1"), named `name` ("sda") and
    addressed `hctl` ("0:0:0:0").  An event without a device may be about any drive of the host,
    but for what `may_be_of` rules out."""
    device = event.device
    if device is None or device in (name, hctl):
        return True
    return ata_port is not None and (device == ata_port or device.startswith(f"{ata_port}."))


def may_be_of(event: KernelEvent, *, driver: str, pci_address: str) -> bool:
    """Whether the event may be about a drive on this controller, whose fields are empty where
    they are not known: one without a device often names the controller that it is about."""
    named = None if event.device else _CONTROLLER.match(event.text)
    if named is None:
        return True
    if named["pci"] and pci_address:
        return named["pci"] == pci_address
    if named["libsas"]:
        return driver not in _NOT_LIBSAS
    drivers = _DRIVERS[named["driver"] or named["directory"] or named["mpt"]]
    return not driver or driver in drivers


@dataclass(slots=True)
class _Item:
    """An event while its lines come in."""

    patterns: tuple[Pattern, ...]  # the rows to choose from
    device: str | None
    time: Time
    lines: list[str]
    source: "_Item | None" = None  # the trouble before it, which it may have come from
    last: Time = None
    ended: bool = False  # the block layer has reported the request

    def add(self, text: str, time: Time) -> None:
        self.last = time
        if len(self.lines) < _LINES_KEPT:
            self.lines.append(text)

    def pattern(self) -> Pattern:
        if len(self.patterns) == 1:
            return self.patterns[0]
        whole = "\n".join(self.lines)
        # The last row of a scope matches everything.
        return next(row for row in self.patterns if row.words.search(whole))

    def blame(self) -> Blame:
        item, row = self, self.pattern()
        while row.inherits and item.source is not None:  # a source is older: this ends
            item = item.source
            row = item.pattern()
        return row.blame

    def event(self) -> KernelEvent:
        row = self.pattern()
        exception = row.scope == "exception"
        return KernelEvent(
            kind=row.kind,
            severity=row.severity,
            device=self.device,
            time=self.time,
            blame=self.blame(),
            text=_exception_text(self.lines) if exception else _text(self.lines),
            commands=tuple(_COMMAND.findall("\n".join(self.lines))) if exception else (),
            lines=tuple(self.lines),
        )


def _text(lines: list[str]) -> str:
    shown = "; ".join(lines[:_LINES_SHOWN])
    more = len(lines) - _LINES_SHOWN
    return f"{shown}; and {more} more lines" if more > 0 else shown


def _exception_text(lines: list[str]) -> str:
    """One line for a block: its head, the commands that failed and how, and the flags."""
    whole = "\n".join(lines)
    parts = [lines[0]] if lines[0].startswith(_EXCEPTION) else []
    counts = Counter(_COMMAND.findall(whole))
    if counts:
        commands = ", ".join(f"{name} x{n}" if n > 1 else name for name, n in counts.items())
        outcomes = ", ".join(dict.fromkeys(_OUTCOME.findall(whole)))
        parts.append(f"failed command: {commands}" + (f" ({outcomes})" if outcomes else ""))
    parts += dict.fromkeys(_FLAGS.findall(whole))
    return "; ".join(parts) or lines[0]


class EventParser:
    """Events from a log that comes line by line.

    Lines that follow on the same failure join its event, until `mark` is called: what comes
    after a mark is a new event.
    """

    def __init__(self) -> None:
        self.messages = 0  # how many messages of a kernel were seen, of any kind
        self._items: list[_Item] = []
        self._pending: Line | None = None  # a message that may go on in the next line
        self._continued = 0
        self._block: _Item | None = None  # the exception block that spoke last
        self._blocks: dict[str | None, _Item] = {}  # open exception blocks, by port
        self._failures: dict[str | None, _Item] = {}  # failed requests under way, by disk
        self._trouble: dict[str | None, _Item] = {}  # what went wrong last, by port
        self._recovering: dict[str | None, _Item] = {}  # what is being recovered from, by port
        self._dark: dict[str | None, _Item] = {}  # ports without a link, until recovery ends
        self._last_port: str | None = None
        self._alive: set[str] = set()  # ports that have had a drive
        self._speed: dict[str, float] = {}  # Gb/s of the last link up, by device

    def after_gap(self) -> "EventParser":
        """A parser for what comes after lost lines: it knows the ports as they were, no more."""
        following = EventParser()
        following._alive, following._speed = self._alive, self._speed
        return following

    def feed(self, line: str) -> None:
        """Take one line, with or without its line end; any text at all."""
        read = read_line(line)
        body = read.text.lstrip()
        if not body:
            self._flush()
            return
        about_disks = _SUBJECT.match(body) or _BARE.match(body)
        indented = len(body) < len(read.text)
        starts = about_disks and (body.startswith(_NAMED) or not indented)
        if read.stamped or starts:
            self._flush()
            self.messages += 1
            self._pending = Line(body, read.time, read.stamped) if about_disks else None
            self._continued = 0
        elif self._pending and self._continued < _CONTINUATIONS:
            joined = f"{self._pending.text} {body}"[:LONGEST]
            self._pending = self._pending._replace(text=joined)
            self._continued += 1

    def events(self) -> tuple[KernelEvent, ...]:
        """All events so far."""
        return self.events_since(0)

    def events_since(self, mark: int) -> tuple[KernelEvent, ...]:
        """The events that began after `mark` was taken."""
        self._flush()
        return tuple(item.event() for item in self._items[mark:])

    def mark(self) -> int:
        """A place in the sequence of events, for `events_since`."""
        self._flush()
        self._block = None
        self._blocks.clear()
        self._failures.clear()
        return len(self._items)

    def _flush(self) -> None:
        if self._pending is not None:
            line, self._pending = self._pending, None
            self._message(line.text, line.time)

    def _message(self, text: str, time: Time) -> None:
        subject = _SUBJECT.match(text)
        rest = text[subject.end() :] if subject else text
        port = subject["port"] if subject else None
        disk = (subject["disk"] or subject["hctl"]) if subject else None
        if request := _REQUEST.match(rest):
            self._request(request["device"], rest, time, starts=self._has_ended(request))
        elif rest.startswith(_EXCEPTION) or _EXCEPTION_PART.match(rest):
            self._exception(subject["ata"] if subject else None, port, rest, time)
        elif _FAILURE_PART.match(rest):
            starts = rest.startswith(_FAILURE_STARTS)
            self._request(disk, rest, time, starts=starts)
        else:
            self._single(subject["ata"] or disk if subject else None, port, rest, time)

    def _exception(self, device: str | None, port: str | None, rest: str, time: Time) -> None:
        if rest.startswith(_EXCEPTION):
            block = None
        else:
            # A line without a device belongs to the block above it.
            block = self._blocks.get(port) if port else self._block
        if block is None:
            if not rest.startswith((_EXCEPTION, "failed command")):
                return
            block = _Item(EXCEPTIONS, device, time, [], self._dark.get(port))
            self._items.append(block)
            self._blocks[port] = self._trouble[port] = self._recovering[port] = block
            if port is not None:
                self._alive.add(port)
        block.add(rest, time)
        self._block = block
        self._last_port = port or self._last_port

    def _has_ended(self, request: re.Match[str]) -> bool:
        """The block layer reports a request once, so a second report is about another one."""
        failure = self._failures.get(request["device"])
        return request["ends"] is not None and failure is not None and failure.ended

    def _request(self, disk: str | None, rest: str, time: Time, *, starts: bool) -> None:
        """One line about a request that failed: a new failure, or more of the last one."""
        failure = None if starts else self._failures.get(disk)
        if failure is None or not _together(failure.last, time):
            if not starts and not _REQUEST.match(rest):
                return
            failure = _Item(FAILURES, disk, time, [], self._recovering.get(self._last_port))
            self._items.append(failure)
            self._failures[disk] = failure
        failure.add(rest, time)
        failure.ended = failure.ended or " error, dev " in rest

    def _single(self, device: str | None, port: str | None, rest: str, time: Time) -> None:
        if port is not None:
            self._last_port = port
            self._blocks.pop(port, None)
            self._block = None
        if rest == "EH complete":
            self._recovering.pop(port, None)
            self._dark.pop(port, None)
            self._failures.clear()
        row = next((row for row in MESSAGES if row.words.match(rest)), None)
        if port is not None and device is not None:
            row = self._linked(row, device, port, rest)
        if row is None:
            return
        item = _Item((row,), device, time, [rest])
        self._items.append(item)
        if port is None:
            return
        item.source = self._dark.get(port) or self._trouble.get(port)
        if row.kind == "link-registers-unreadable":
            self._dark[port] = item
        if row.severity == "error" and not row.inherits:
            self._trouble[port] = item

    def _linked(self, row: Pattern | None, device: str, port: str, rest: str) -> Pattern | None:
        """`row`, or another in its place by what was said of the port before."""
        if row is not None and row.kind == "port-empty":
            return LINK_DOWN if port in self._alive else row
        if row is None or row.kind != "link-up":
            if device != port:
                self._alive.add(port)
            return row
        self._alive.add(port)
        up = row.words.match(rest)
        before, now = self._speed.get(device), float(up["gbps"]) if up else 0.0
        self._speed[device] = now
        return LINK_SLOWER if before is not None and now < before else row


def _together(before: Time, now: Time) -> bool:
    """Whether two lines may be about one request: times too coarse to tell say yes."""
    if isinstance(before, float) and isinstance(now, float):
        return abs(now - before) <= _TOGETHER_S
    return before is None or now is None or before == now
