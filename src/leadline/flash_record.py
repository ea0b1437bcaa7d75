"""Flashes on record: what a run that was killed in one has left, and what is to be done.

Before the first byte of an image is sent to a drive, that is put on record in the journal of
this machine, fsynced, and again with each step.  An entry is closed when the drive has said
which firmware it runs, and nothing that was sent to it can change that any more.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from leadline.drive.bind import bind
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import Host
from leadline.host.journal import DeadEntry, Journal, close_dead_entry, dead_entries
from leadline.inventory.flash import Activation, FlashSpec
from leadline.inventory.rig import DriveSpec, Rig

ENTRY = "flash"
Step = Literal["downloading", "activating"]
_DONE: dict[Step, str] = {
    "downloading": "while the image was sent to it",
    "activating": "when the image had been sent to it, while it was activated",
}


@dataclass(frozen=True)
class FlashRecord:
    """One flash: which drive, from what, to what, how, and how far it has come.

    `revision` is the firmware's name in the matrix, `shows` what the drive says when it runs it.
    """

    rig: str
    rig_file: str
    slot: str
    model: str
    serial: str
    wwn: str | None
    before: str
    revision: str
    shows: str
    image: str
    sha256: str
    method: str
    voids_unless_whole: bool
    step: Step = "downloading"
    awaits_power: bool = False
    """Whether a power cycle activates the image; the drive may say the new revision before."""
    back: str = ""
    """The name in the matrix of what it ran before; empty where an older version kept none."""
    copy: str = ""
    """The copy of the image on the rig, to be removed; empty where there is none."""


_RECORD = TypeAdapter(FlashRecord)


def takes_up_at_once(spec: FlashSpec, activates: Activation) -> bool:
    """Whether a drive that still runs its old firmware has not got the whole new image, when the
    download has not come to its end.

    So it is where activation is the last part of the download.  What has come of the image is
    then discarded with the next command or power cycle (SPC-4, WRITE BUFFER; ACS-4, DOWNLOAD
    MICROCODE).  What a vendor's program does, nobody knows.
    """
    return spec.method != "program" and not spec.defers and activates == "at-once"


@dataclass
class OnRecord:
    """A flash under way, on record."""

    journal: Journal
    record: FlashRecord
    entry: str

    def reached(self, step: Step) -> None:
        """Put on record that it has come that far, before anything of that step is done."""
        self.record = replace(self.record, step=step)
        self.journal.amend_entry(self.entry, asdict(self.record))

    def settled(self) -> None:
        """The drive runs what it runs, and nothing is pending."""
        self.journal.close_entry(self.entry)


def begin(journal: Journal, record: FlashRecord) -> OnRecord:
    """Put it on record; on the medium when this returns."""
    return OnRecord(journal, record, journal.open_entry(ENTRY, asdict(record)))


@dataclass(frozen=True)
class Unfinished:
    """A flash that a dead run has left on record."""

    dead: DeadEntry
    record: FlashRecord

    def __str__(self) -> str:
        one = self.record
        return (
            f"slot {one.slot}: {one.model} {one.serial}: run {self.dead.run} ended "
            f"{_DONE[one.step]}, from firmware {one.before} to {one.revision}"
        )


def unfinished(here: Host, rig: Rig, *, directory: str | None = None) -> list[Unfinished]:
    """The flashes of this rig's drives that dead runs of this machine left, the last one first.

    Their slots and rig file are those of today.  Raises RigTrouble where one that may be of this
    rig cannot be read: another rig's is none of its business.
    """
    slots = {drive.serial: drive.slot for drive in rig.drives}
    found = []
    for dead in dead_entries(here, ENTRY, directory=directory):
        if _is_of_another(dead, rig):
            continue
        record = _record(dead)
        if record.serial in slots:
            now = replace(record, rig_file=str(rig.path), slot=slots[record.serial])
            found.append(Unfinished(dead, now))
    return found


def of_silent(here: Host, rig: Rig) -> list[str]:
    """What dead runs were about to flash, of a rig whose drives cannot be asked what they run."""
    return [
        f"{one}; {state_of(one.record, None, 'as said above')}" for one in unfinished(here, rig)
    ]


def _is_of_another(dead: DeadEntry, rig: Rig) -> bool:
    """Whether a record is of another rig, by what can be told though it may be unreadable.

    A drive is known by its serial, wherever it was; where the record has none, by its rig's name.
    One that tells neither stops no rig, and is said (`of_nobody`).
    """
    serial, name = _told(dead)
    return serial not in [drive.serial for drive in rig.drives] if serial else name != rig.name


def _told(dead: DeadEntry) -> tuple[str, str]:
    """The serial and the rig's name in a record that may be damaged; empty what it does not say."""
    data: object = dead.data
    given = [data.get(name) if isinstance(data, dict) else "" for name in ("serial", "rig")]
    serial, name = (each if isinstance(each, str) else "" for each in given)
    return serial, name


def of_nobody(here: Host, *, directory: str | None = None) -> list[str]:
    """A sentence for each record of a flash that is too damaged to tell its drive or its rig."""
    return [
        str(_unreadable(dead))
        for dead in dead_entries(here, ENTRY, directory=directory)
        if not any(_told(dead))
    ]


def _record(dead: DeadEntry) -> FlashRecord:
    try:
        return _RECORD.validate_python(dead.data)
    except ValidationError as error:
        raise _unreadable(dead) from error


def _unreadable(dead: DeadEntry) -> RigTrouble:
    serial, _ = _told(dead)
    of = f" of drive {serial}" if serial else ""
    return RigTrouble(
        f"{dead.journal}: run {dead.run} left a flash{of} on record that this version of Leadline "
        "cannot read; finish it with the one that wrote it, or remove the file when you know "
        "which firmware the drive runs"
    )


def settle(here: Host, serial: str, left: Sequence[Unfinished]) -> None:
    """Close what dead runs left of this drive: it has been flashed since, or has been looked at."""
    for one in left:
        if one.record.serial == serial:
            close_dead_entry(here, one.dead)


@dataclass(frozen=True)
class State:
    """What a drive is found to run after a flash that did not come to its end.

    `in_doubt`: it may yet take up another firmware, so it must not be tested before it is told
    which; `remedy` is what to do.
    """

    found: str
    in_doubt: bool
    remedy: str

    def __str__(self) -> str:
        return f"{self.found}; {self.remedy}" if self.remedy else self.found


def state_of(record: FlashRecord, firmware: str | None, trouble: str = "") -> State:
    """What it means that a drive runs `firmware` now; None: it does not say, and why not."""
    again = f"leadline flash --rig {record.rig_file} {record.slot} --resume --allow-flash"
    before = record.back or record.before
    back = f"leadline flash --rig {record.rig_file} {record.slot} {before} --allow-flash"
    if firmware is None:
        return State(
            f"it does not say which firmware it runs ({trouble})",
            in_doubt=True,
            remedy="it may hold a part of the image, or be at work on it: wait, then cycle its "
            f"power (leadline power --rig {record.rig_file} --drive {record.slot} cycle --yes), "
            f"and put the image on it again ({again})",
        )
    if record.before != record.shows:
        if firmware == record.shows and record.awaits_power and record.step == "downloading":
            return State(
                f"it says {firmware}, which waits for a power cycle, so that it may run "
                f"{record.before} still",
                in_doubt=True,
                remedy=f"finish it ({again}), or put {before} on it anew ({back})",
            )
        if firmware == record.shows:
            return State(f"it runs {firmware}: the flash took effect", in_doubt=False, remedy="")
        if firmware != record.before:
            return State(
                f"it runs {firmware}, which is neither of the two: it has been flashed since",
                in_doubt=False,
                remedy="",
            )
        # Once the download has ended well the image is whole: what became of it, nobody knows.
        if record.voids_unless_whole and record.step == "downloading":
            return State(
                f"it still runs {firmware}: the image did not reach it whole, and what did is "
                "discarded (SPC-4, WRITE BUFFER)",
                in_doubt=False,
                remedy="",
            )
    return State(
        f"it runs {firmware}, and may hold {record.revision}, to be taken up at its next power-on",
        in_doubt=True,
        remedy=f"finish it ({again}), or put {before} on it anew ({back})",
    )


def look_after(
    here: Host, host: Host, rig: Rig, left: Sequence[Unfinished]
) -> tuple[list[str], dict[str, str]]:
    """What state dead runs have left drives in: a sentence for each, and those in doubt by slot.

    What is in no doubt is settled by this, and their copies of images are removed from the rig.
    """
    said = of_nobody(here)
    doubts: dict[str, str] = {}
    for one in left:
        if one.record.copy:
            with suppress(RigTrouble):  # it is gone, or the rig is, which the drive's look tells
                host.remove_file(one.record.copy)
        spec = next(drive for drive in rig.drives if drive.serial == one.record.serial)
        state = _looked_at(host, spec, one.record)
        sentence = f"{one}; {state}"
        said.append(sentence)
        if state.in_doubt:
            doubts.setdefault(spec.slot, sentence)
        else:
            close_dead_entry(here, one.dead)
    return said, doubts


def _looked_at(host: Host, spec: DriveSpec, record: FlashRecord) -> State:
    try:
        drive = bind(host, spec, any_firmware=True)
    except (RigTrouble, DriveFault, Misuse) as trouble:
        return state_of(record, None, str(trouble).splitlines()[0])
    if record.awaits_power:
        record = replace(record, step="downloading")  # whether its power was cut, nobody knows
    return state_of(record, drive.identity.firmware)
