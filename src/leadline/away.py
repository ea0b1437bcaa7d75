"""Drives away from home: on other firmware than they came with, put there by a run.

A session tests a candidate and puts the drive back at its end.  Where it is killed between the
two, no flash is under way, and the drive runs the candidate without a word.  So it is on record,
in the journal of this machine, before the drive is first given other firmware, until it is home
again or was told to stay.  What is put on a drive by hand (`leadline flash`) is the user's wish.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from leadline.builds import last_build
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import Host
from leadline.host.journal import DeadEntry, Journal, close_dead_entry, dead_entries
from leadline.inventory.matrix import usual_matrix
from leadline.inventory.rig import DriveSpec, Rig

if TYPE_CHECKING:
    from leadline.running import Run
    from leadline.station import Station
    from leadline.visiting import OpenVisit

ENTRY = "away"


@dataclass(frozen=True)
class AwayRecord:
    """One drive that was put on other firmware than it came with.

    `home` and `revision` are names in the matrix; `shows` is what the drive says when it runs
    `revision`, whose image has `sha256`.  `since` is UTC; `matrix` is empty for the usual one.
    """

    rig: str
    rig_file: str
    matrix: str
    slot: str
    model: str
    serial: str
    home: str
    revision: str
    shows: str
    sha256: str
    since: str


_RECORD = TypeAdapter(AwayRecord)


@dataclass
class OnRecord:
    """A drive that this run has put on other firmware."""

    journal: Journal
    record: AwayRecord
    entry: str


@dataclass(frozen=True)
class LeftAway:
    """A drive that a run which has ended left there."""

    dead: DeadEntry
    record: AwayRecord

    def __str__(self) -> str:
        one = self.record
        return (
            f"slot {one.slot}: {one.model} {one.serial} came with firmware {one.home}; run "
            f"{self.dead.run} put {one.revision} on it and ended before it was back: it is away "
            f"since {one.since}"
        )

    @property
    def remedy(self) -> str:
        """The command that puts it back."""
        one = self.record
        words = ["leadline", "flash", "--rig", one.rig_file]
        if one.matrix:
            words += ["--matrix", one.matrix]
        return f"put it back: {shlex.join([*words, one.slot, one.home, '--allow-flash'])}"


def leaving(visit: "OpenVisit", shows: str, sha256: str) -> None:
    """Put it on record where the visit's firmware is another than the drive came with.

    To be called before anything is sent; on the medium when this returns.
    """
    station, cell, run = visit.station, visit.visit.cell, visit.station.run
    home = run.home(visit.visit).cell.firmware
    if run.by_hand or cell.firmware == home:
        return
    if (own := station.away.get(cell.slot)) is not None:
        own.record = replace(own.record, revision=cell.firmware, shows=shows, sha256=sha256)
        own.journal.amend_entry(own.entry, asdict(own.record))
        return
    before = [one.record.since for one in station.left_away if one.record.slot == cell.slot]
    record = AwayRecord(
        rig=station.rig.name,
        rig_file=str(station.rig.path),
        matrix=_unusual_matrix(run),
        slot=cell.slot,
        model=visit.drive.identity.model,
        serial=visit.spec.serial,
        home=home,
        revision=cell.firmware,
        shows=shows,
        sha256=sha256,
        since=min([*before, datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")]),
    )
    entry = station.here_journal.open_entry(ENTRY, asdict(record))
    _close_left(station, cell.slot)  # one record a drive: the new one knows since when
    station.away[cell.slot] = OnRecord(station.here_journal, record, entry)


def _unusual_matrix(run: "Run") -> str:
    path = run.matrix.path
    return "" if path == usual_matrix() else str(path)


def arrived(visit: "OpenVisit") -> None:
    """Close the record of a drive that now runs what it came with, and holds nothing else."""
    station, slot = visit.station, visit.visit.cell.slot
    home = station.run.home(visit.visit).cell.firmware
    if station.put_on.get(slot) == home and slot not in station.in_doubt:
        settle(station, slot)


def settle(station: "Station", slot: str) -> None:
    """Close what is on record of a drive: it is home, or was told to stay where it is."""
    if (own := station.away.pop(slot, None)) is not None:
        own.journal.close_entry(own.entry)
    _close_left(station, slot)


def _close_left(station: "Station", slot: str) -> None:
    for one in [each for each in station.left_away if each.record.slot == slot]:
        close_dead_entry(station.here, one.dead)
        station.left_away.remove(one)


def left_away(here: Host, rig: Rig, *, directory: str | None = None) -> list[LeftAway]:
    """The drives of this rig that runs of this machine which have ended left away from home.

    Their slots and rig file are those of today; what another version wrote and this one cannot
    read is left alone.
    """
    slots = {drive.serial: drive.slot for drive in rig.drives}
    found = []
    for dead in dead_entries(here, ENTRY, directory=directory):
        try:
            record = _RECORD.validate_python(dead.data)
        except ValidationError:
            continue
        if record.serial in slots:
            now = replace(record, rig_file=str(rig.path), slot=slots[record.serial])
            found.append(LeftAway(dead, now))
    return found


def by_record(here: Host, rigs: Sequence[Rig]) -> Iterator[str]:
    """A sentence for each drive that was left away, by its record: the drive is not asked."""
    for rig in rigs:
        for one in left_away(here, rig):
            yield f"{one}; {one.remedy}"


def forget(here: Host, rig: Rig) -> None:
    """Close what is on record of this rig's drives, which are no more."""
    for one in left_away(here, rig):
        close_dead_entry(here, one.dead)


def look_after(station: "Station") -> Iterator[str]:
    """Ask the drives that were left away what they run; a sentence for each that is not home.

    Those that are home again are closed by this.  A drive that is in doubt after a flash is said
    by its own record.
    """
    # Here, because a plan asks for what is on record alone, and is to be quick.
    from leadline.drive.bind import bind

    for one in list(station.left_away):
        spec = station.rig.drive(one.record.slot)
        if spec.slot in station.in_doubt:
            continue
        try:
            runs = bind(station.host, spec, any_firmware=True).identity.firmware
            is_home = _is_home(spec, one.record, runs)
        except (RigTrouble, DriveFault, Misuse) as trouble:
            said = str(trouble).splitlines()[0]
            yield f"{one}, and what it runs now cannot be told ({said}); {one.remedy}"
            continue
        if is_home:
            _close_left(station, spec.slot)
        else:
            yield f"{one}, and runs {runs} now; {one.remedy}"


def _is_home(spec: DriveSpec, record: AwayRecord, runs: str) -> bool:
    """By the rig file as it is today: who corrects that wants the drive to stay.

    Of two builds that it says alike, what was put on it last decides.
    """
    if runs != spec.firmware or record.shows != runs or spec.firmware_sha256 is None:
        return runs == spec.firmware
    last = last_build(spec)
    return last is not None and last.sha256 == spec.firmware_sha256
