"""NCQ truth is a ladder: six rungs, and the first broken one is why a drive does not queue.

The drive advertises queueing; the controller can do it; the kernel lets it; the device
queue depth is above 1; error handling has not switched it off; and requests are seen to
overlap.  A rung holds, is broken, or cannot be known on this rig, which is said and is
never taken for "holds".

Climb before the first write to ``queue_depth``: after ``NCQ disabled due to excessive
errors`` sysfs still reads 32, and writing 1 and then 32 brings queueing back, so that a
sweep repairs the very fault that it is to find.  :func:`leadline.drive.queue_depth.set_depth`
therefore asks for the ladder.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from leadline.drive import overlap
from leadline.drive.bind import Drive
from leadline.drive.kernel_events import KernelEvent
from leadline.drive.kernel_watch import KernelHistory
from leadline.drive.overlap import Overlap
from leadline.drive.quirks import forced
from leadline.drive.text import plain
from leadline.drive.tracing import TracingMissing
from leadline.errors import Inconclusive
from leadline.host.connection import Host

_CAUSES = {
    "advertised": "the drive offers no queue",
    "controller": "the controller cannot queue",
    "kernel": "the kernel takes queueing away",
    "setting": "a setting allows no queue",
    "error handling": "error handling switched queueing off",
    "overlap": "requests do not overlap at the drive",
}

AHCI_SNCQ = 1 << 30  # AHCI 1.3.1, 3.1.1: HBA capabilities, Supports Native Command Queuing
CMDQUE = 1 << 1  # SPC-4 6.6.2: byte 7 of the standard INQUIRY data
CANNOT_QUEUE = ("advertised", "controller", "kernel")
"""The rungs that keep a drive from queueing whatever its device queue depth is set to."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One condition of queueing, and what was found."""

    name: str
    holds: bool | None  # None: cannot be known here; ``found`` says why
    found: str

    def __str__(self) -> str:
        word = {True: "holds", False: "BROKEN", None: "unknown"}[self.holds]
        return f"{self.name}: {word}: {self.found}"


@dataclass(frozen=True, slots=True)
class Ladder:
    """All rungs of one drive, read in one boot, from the bottom up."""

    serial: str
    boot_id: str
    rungs: tuple[Rung, ...]
    overlap: Overlap | None = None

    @property
    def first_broken(self) -> Rung | None:
        """The lowest rung that is known to be broken: the cause, where those above are effects."""
        return next((rung for rung in self.rungs if rung.holds is False), None)

    @property
    def cause(self) -> str:
        """Why the drive does not queue, in a line; "" where no rung is known to be broken."""
        rung = self.first_broken
        return f"{_CAUSES[rung.name]}: {rung.found}" if rung else ""

    @property
    def unknown(self) -> tuple[Rung, ...]:
        """The rungs that cannot be known on this rig."""
        return tuple(rung for rung in self.rungs if rung.holds is None)

    @property
    def bars_queueing(self) -> bool:
        """Whether commands are kept from being queued, and not by a setting that may change.

        Raises Inconclusive where nobody tells.
        """
        if self.overlap and self.overlap.source == "libata" and self.overlap.queued:
            return False
        lower = [rung for rung in self.rungs if rung.name in CANNOT_QUEUE]
        barred = any(rung.holds is False for rung in lower)
        if not barred and any(rung.holds is None for rung in lower):
            raise Inconclusive(f"whether anything keeps commands from being queued:\n{self}")
        return barred

    def __str__(self) -> str:
        return "\n".join(str(rung) for rung in self.rungs)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rungs are judged from; an attribute that the rig does not have is None."""

    drive: Drive
    queue_depth: int | None
    can_queue: int | None  # commands that the host adapter's driver takes at once
    ahci_caps: int | None
    queue_type: str  # "simple" where the SCSI layer queues
    inquiry: bytes
    kernel_command_line: str
    history: KernelHistory
    overlap: Overlap | None
    no_overlap: str = ""  # why the probe could not see


def climb(host: Host, drive: Drive, history: KernelHistory) -> Ladder:
    """Read every rung; a second or so, and nothing is changed.

    ``history`` is the kernel log since boot (:meth:`KernelWatch.history`).  Raises
    DriveFault when the probe's reads never end, RigTrouble when fio is missing.
    """
    facts = gather(host, drive, history)
    return Ladder(drive.identity.serial, host.boot_id(), judge(facts), facts.overlap)


def gather(host: Host, drive: Drive, history: KernelHistory) -> Facts:
    """The facts, from sysfs, the kernel log and a short probe."""
    device, adapter = f"/sys/block/{drive.name}/device", drive.controller.scsi_host
    paths = {
        "depth": f"{device}/queue_depth",
        "type": f"{device}/queue_type",
        "inquiry": f"{device}/inquiry",
        "can_queue": f"/sys/class/scsi_host/{adapter}/can_queue",
        "caps": f"/sys/class/scsi_host/{adapter}/ahci_host_caps",
        "cmdline": "/proc/cmdline",
    }
    read = host.read_files(list(paths.values()))
    values = {key: read.get(path) or b"" for key, path in paths.items()}
    texts = {key: plain(data.decode("ascii", "replace")).strip() for key, data in values.items()}
    seen, why_not = None, ""
    try:
        seen = overlap.probe(host, drive)
    except TracingMissing as error:
        why_not = str(error)
    return Facts(
        drive=drive,
        queue_depth=_number(texts["depth"], 10),
        can_queue=_number(texts["can_queue"], 10),
        ahci_caps=_number(texts["caps"], 16),
        queue_type=texts["type"],
        inquiry=values["inquiry"],
        kernel_command_line=texts["cmdline"],
        history=history,
        overlap=seen,
        no_overlap=why_not,
    )


def judge(facts: Facts) -> tuple[Rung, ...]:
    """The rungs, from facts alone."""
    if facts.drive.identify is None:
        return tuple(_scsi_rungs(facts))
    if facts.drive.link is None:
        return tuple(_translated_rungs(facts))
    return tuple(_ata_rungs(facts))


def _ata_rungs(facts: Facts) -> Iterator[Rung]:
    """A SATA drive that libata drives: every rung can be read."""
    yield _advertised(facts)
    yield _controller(facts)
    yield _kernel(facts)
    yield _setting(facts)
    yield _error_handling(facts)
    yield _overlap(facts)


def _translated_rungs(facts: Facts) -> Iterator[Rung]:
    """A SATA drive behind a SAS HBA that does the translation in its own firmware."""
    hba = f"the HBA (driver {facts.drive.controller.driver or 'unknown'})"
    yield _advertised(facts)
    adapter = _adapter_queues(facts)
    known = adapter.holds is False
    yield (
        adapter
        if known
        else Rung(
            adapter.name,
            None,
            f"{adapter.found}; whether {hba} queues to a SATA drive is not shown",
        )
    )
    yield Rung("kernel", None, f"libata has no part in it: {hba} speaks ATA by itself")
    yield _setting(facts)
    yield Rung("error handling", None, f"{hba} does not show whether errors ended its queueing")
    top = _overlap(facts)
    if top.holds:
        top = Rung(top.name, None, f"{hba} held {facts.overlap}; what it sends on cannot be seen")
    yield top


def _scsi_rungs(facts: Facts) -> Iterator[Rung]:
    """A SCSI or SAS drive: task sets instead of NCQ, and no quirk takes them away silently."""
    says = len(facts.inquiry) > 7 and bool(facts.inquiry[7] & CMDQUE)
    if facts.inquiry:
        yield Rung("advertised", says, f"INQUIRY byte 7 bit 1 (CMDQUE) is {int(says)}")
    else:
        yield Rung("advertised", None, "sysfs holds no INQUIRY data of this drive")
    yield _adapter_queues(facts)
    queue_type = facts.queue_type or "not shown"
    holds = facts.queue_type not in ("", "none") if facts.queue_type else None
    yield Rung("kernel", holds, f"queue_type is {queue_type}")
    yield _setting(facts)
    yield Rung("error handling", True, "the SCSI layer does not switch queueing off after errors")
    yield _overlap(facts)


HIDDEN = "IDENTIFY word 76 bit 8 is 0, which behind a port without SATA link says nothing"


def hides_ncq(drive: Drive) -> bool:
    """Whether what the drive offers cannot be seen: HIDDEN says why.

    Word 76 is for SATA devices (ACS-4 7.13.6.26); an IDE port or its bridge hides it, and the
    controller, not the drive, is then the cause.
    """
    offers = drive.identify is not None and drive.identify.ncq.supported
    return not offers and drive.link is not None and not drive.link.speed


def _advertised(facts: Facts) -> Rung:
    assert facts.drive.identify is not None
    ncq = facts.drive.identify.ncq
    if hides_ncq(facts.drive):
        return Rung("advertised", None, HIDDEN)
    if not ncq.supported:
        return Rung("advertised", False, "IDENTIFY word 76 bit 8 is 0: no NCQ")
    found = f"IDENTIFY word 76 bit 8 is 1, word 75 gives a depth of {ncq.queue_depth}"
    return Rung("advertised", ncq.queue_depth > 1, found)


def _adapter_queues(facts: Facts) -> Rung:
    driver = facts.drive.controller.driver or "the host adapter's driver"
    if facts.can_queue is None:
        return Rung("controller", None, f"{driver} does not say how many commands it takes")
    return Rung("controller", facts.can_queue > 1, f"{driver} takes {facts.can_queue} at once")


def _controller(facts: Facts) -> Rung:
    place = str(facts.drive.controller)
    refused = _last(facts, "controller-cannot-queue")
    if refused:
        return Rung("controller", False, f"{place}: the kernel says {refused.text!r}")
    if facts.ahci_caps is not None:
        queues = bool(facts.ahci_caps & AHCI_SNCQ)
        return Rung("controller", queues, f"{place}: AHCI CAP.SNCQ is {int(queues)}")
    adapter = _adapter_queues(facts)
    return Rung(adapter.name, adapter.holds, f"{place}: {adapter.found}")


def _kernel(facts: Facts) -> Rung:
    assert facts.drive.link is not None
    chosen = facts.history.ncq_choice(facts.drive.link.device)
    if chosen == "NCQ (not used)":
        return Rung("kernel", False, f"the boot log says {chosen!r}: {_who_took_it(facts)}")
    if chosen is not None:
        return Rung("kernel", True, f"the boot log says {chosen!r}")
    if facts.queue_depth is not None and facts.queue_depth > 1:
        found = "the device queue depth is above 1, to which the kernel sets only what it queues to"
        return Rung("kernel", True, found)
    if _forced_off(facts):
        return Rung("kernel", False, _who_took_it(facts))
    if facts.history.complete:
        found = "the boot log has no NCQ line for this drive, so the kernel saw none to use"
        return Rung("kernel", None, found)
    return Rung("kernel", None, "the kernel log has wrapped: the drive's boot lines are gone")


def _forced_off(facts: Facts) -> str:
    """The word of the kernel's command line that takes NCQ away from this very drive, or ""."""
    assert facts.drive.link is not None
    given = forced(facts.kernel_command_line, facts.drive.link.device)
    if [value for value in given if value in ("ncq", "noncq")][-1:] != ["noncq"]:
        return ""
    words = facts.kernel_command_line.split()
    return [word for word in words if word.startswith("libata.force=")][-1]


def _who_took_it(facts: Facts) -> str:
    if word := _forced_off(facts):
        return f"{word} on the kernel's command line takes NCQ away"
    # libata says so before it sets the drive up, hence not only since then.
    if _last(facts, "ncq-forced-off", since_attached=False):
        return "the force option of the libata module takes NCQ away"
    return "a quirk of the kernel for this drive or controller takes NCQ away"


def _setting(facts: Facts) -> Rung:
    if facts.queue_depth is None:
        return Rung("setting", None, "sysfs shows no device queue depth")
    return Rung("setting", facts.queue_depth > 1, f"device queue depth is {facts.queue_depth}")


def _error_handling(facts: Facts) -> Rung:
    event = switched_off(facts.drive, facts.history)
    if event:
        when = f" {event.seconds:.3f} s after boot"
        depth = f"; sysfs still reads {facts.queue_depth}" if facts.queue_depth else ""
        return Rung("error handling", False, f"the kernel log says {event.text!r}{when}{depth}")
    if facts.history.complete:
        return Rung("error handling", True, "the kernel log since boot has no 'NCQ disabled'")
    found = "no 'NCQ disabled' in the kernel log, but it has wrapped: its beginning is gone"
    return Rung("error handling", None, found)


def _overlap(facts: Facts) -> Rung:
    if facts.overlap is None:
        return Rung("overlap", None, facts.no_overlap)
    if not facts.overlap.commands:
        return Rung("overlap", None, "reads were made, and the trace shows no command to the drive")
    return Rung("overlap", facts.overlap.queued > 0 and facts.overlap.most > 1, str(facts.overlap))


def _last(facts: Facts, kind: str, *, since_attached: bool = True) -> KernelEvent | None:
    """The latest event of that kind about this drive, of this boot or since it was attached."""
    return _latest(facts.drive, facts.history, kind, since_attached=since_attached)


def switched_off(drive: Drive, history: KernelHistory) -> KernelEvent | None:
    """The event by which error handling ended queueing to the drive since it was last set up."""
    return _latest(drive, history, "ncq-disabled", since_attached=True)


def _latest(
    drive: Drive, history: KernelHistory, kind: str, *, since_attached: bool
) -> KernelEvent | None:
    attached = history.attached_at(drive.link.device) if drive.link else None
    since = attached if since_attached and attached is not None else 0.0
    # Not what is said of another drive on the port: behind a port multiplier each has its own NCQ.
    own = (drive.link.device, drive.link.port) if drive.link else (drive.name, drive.hctl)
    for event in reversed(history.events):
        if event.kind == kind and event.device in (None, *own) and event.seconds >= since:
            return event
    return None


def _number(text: str, base: int) -> int | None:
    try:
        return int(text, base)
    except ValueError:
        return None
