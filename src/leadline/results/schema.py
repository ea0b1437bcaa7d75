"""The tables of the results database.

One SQLite file holds every run.  History is keyed by cell and claim, never by
pytest's node id, which differs between this repository and a vendor's own.
Times are seconds since the epoch (those of the kernel's events since the boot), durations
seconds, rates requests a second.  docs/reference/results.md lists the fields.
"""

from typing import Any, ClassVar

from sqlalchemy import JSON, ForeignKey
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

VERSION = 2
"""Of these tables, in the file's `user_version`: one more whenever a column changes.

Files from before they were numbered have 0.
"""


class Base(DeclarativeBase):
    """What SQLAlchemy's declarative tables hang on; JSON columns hold plain dictionaries."""

    type_annotation_map: ClassVar = {dict[str, Any]: JSON}


class OfRun(Base):
    """What belongs to one run, whose id the recorder fills in."""

    __abstract__ = True
    id: Mapped[int] = mapped_column(primary_key=True)
    run: Mapped[str] = mapped_column(ForeignKey("runs.id"), index=True)


class Run(Base):
    """One invocation: from start to its exit code, None while it goes on or was killed."""

    __tablename__ = "runs"
    id: Mapped[str] = mapped_column(primary_key=True)
    started: Mapped[float]
    ended: Mapped[float | None]
    command: Mapped[str]
    version: Mapped[str]
    exit_code: Mapped[int | None]


class Environment(OfRun):
    """One fact about a rig during a run: a program's version, the kernel, a setting."""

    __tablename__ = "environment"
    rig: Mapped[str]
    name: Mapped[str]
    value: Mapped[str]


class CellRow(OfRun):
    """One drive as it stood in a run: who it is, and what it and the kernel said of queueing."""

    __tablename__ = "cells"
    cell: Mapped[str] = mapped_column(index=True)
    rig: Mapped[str]
    slot: Mapped[str]
    model: Mapped[str]
    serial: Mapped[str]
    firmware: Mapped[str]
    controller: Mapped[str]
    details: Mapped[dict[str, Any]]


class OutcomeRow(OfRun):
    """How one test ended on one cell, and whose fault it was.

    Of tests without a drive (`cell` None) only those are here that did not pass.
    """

    __tablename__ = "outcomes"
    cell: Mapped[str | None] = mapped_column(index=True)
    claim: Mapped[str]
    node: Mapped[str]
    outcome: Mapped[str]
    message: Mapped[str]
    seconds: Mapped[float]


class VerdictRow(OfRun):
    """One settled claim; `details` holds the whole of it, the columns what is searched for.

    `settling` is shared with its slices, `basis` what it rests on besides them
    (`leadline.basis.Basis`): the verdict can be computed again from the two.
    """

    __tablename__ = "verdicts"
    cell: Mapped[str] = mapped_column(index=True)
    claim: Mapped[str] = mapped_column(index=True)
    statement: Mapped[str]
    outcome: Mapped[str]
    reason: Mapped[str]
    estimate: Mapped[float | None]
    low: Mapped[float | None]
    high: Mapped[float | None]
    threshold: Mapped[float]
    drive_seconds: Mapped[float]
    settling: Mapped[str] = mapped_column(index=True)
    basis: Mapped[dict[str, Any]]
    details: Mapped[dict[str, Any]]


class SliceRow(OfRun):
    """One slice of load: its settings, and what was measured.

    `settling` is shared with the verdict that it was measured for; a test may state several
    claims.  `place` counts that claim's slices from 0, in the order in which they ran.
    `details` is the whole `load.slices.Slice`.
    """

    __tablename__ = "slices"
    cell: Mapped[str] = mapped_column(index=True)
    claim: Mapped[str]
    settling: Mapped[str] = mapped_column(index=True)
    place: Mapped[int]
    side: Mapped[str]
    clean: Mapped[bool]
    taken: Mapped[float]
    device_depth: Mapped[int | None]
    offered_depth: Mapped[int]
    rate: Mapped[float]
    details: Mapped[dict[str, Any]]


class FindingRow(OfRun):
    """What one check around a batch of slices found; `outcome` is ok, void or unknown.

    `taken` is when the batch's first slice began, as in its own row.
    """

    __tablename__ = "findings"
    cell: Mapped[str] = mapped_column(index=True)
    claim: Mapped[str]
    taken: Mapped[float]
    name: Mapped[str]
    outcome: Mapped[str]
    meaning: Mapped[str]
    found: Mapped[str]


class KernelEventRow(OfRun):
    """One event that the rig's kernel logged for the drive while a test ran.

    `time` is in seconds since the rig's boot.
    """

    __tablename__ = "kernel_events"
    cell: Mapped[str] = mapped_column(index=True)
    node: Mapped[str]
    kind: Mapped[str]
    device: Mapped[str]
    time: Mapped[float | None]
    blame: Mapped[str]
    excused: Mapped[bool]
    text: Mapped[str]


class PowerCycleRow(OfRun):
    """One power cycle of a drive under test: how it was cut, and how long each phase took.

    The phases are those of `power.phases.Phases`; None for what did not happen, or nobody saw.
    `power_cycles` and `emergency_unloads` are how often this drive has been cut by now, over
    all runs.  `details` holds the drive and its counters before and after.
    """

    __tablename__ = "power_cycles"
    cell: Mapped[str] = mapped_column(index=True)
    serial: Mapped[str]
    outlets: Mapped[str]
    feeds: Mapped[str]
    abrupt: Mapped[bool]
    began: Mapped[float]
    outcome: Mapped[str]
    announce_s: Mapped[float | None]
    command_s: Mapped[float | None]
    readback_s: Mapped[float | None]
    gone_s: Mapped[float | None]
    off_s: Mapped[float | None]
    on_s: Mapped[float | None]
    link_up_s: Mapped[float | None]
    back_s: Mapped[float | None]
    identify_s: Mapped[float | None]
    ready_s: Mapped[float | None]
    power_cycles: Mapped[int]
    emergency_unloads: Mapped[int]
    details: Mapped[dict[str, Any]]


class Phase(OfRun):
    """Where a run's wall time went: boot, ready, off, drive, ..."""

    __tablename__ = "phases"
    cell: Mapped[str | None]
    name: Mapped[str]
    seconds: Mapped[float]
