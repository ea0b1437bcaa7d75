"""The tables of the results database.

One SQLite file holds every run.  History is keyed by cell and claim, never by
pytest's node id, which differs between this repository and a vendor's own.
Times are seconds since the epoch, durations seconds, rates requests a second.
"""

from typing import Any, ClassVar

from sqlalchemy import JSON, ForeignKey
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


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
    """How one test ended on one cell, and whose fault it was."""

    __tablename__ = "outcomes"
    cell: Mapped[str | None] = mapped_column(index=True)
    claim: Mapped[str]
    node: Mapped[str]
    outcome: Mapped[str]
    message: Mapped[str]
    seconds: Mapped[float]


class VerdictRow(OfRun):
    """One settled claim; `details` holds the whole of it, the columns what is searched for."""

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
    details: Mapped[dict[str, Any]]


class SliceRow(OfRun):
    """One slice of load: its settings, and what was measured."""

    __tablename__ = "slices"
    cell: Mapped[str] = mapped_column(index=True)
    claim: Mapped[str]
    side: Mapped[str]
    taken: Mapped[float]
    device_depth: Mapped[int | None]
    offered_depth: Mapped[int]
    rate: Mapped[float]
    details: Mapped[dict[str, Any]]


class KernelEventRow(OfRun):
    """One event that the rig's kernel logged for the drive while a test ran."""

    __tablename__ = "kernel_events"
    cell: Mapped[str] = mapped_column(index=True)
    node: Mapped[str]
    kind: Mapped[str]
    device: Mapped[str]
    time: Mapped[float | None]
    blame: Mapped[str]
    excused: Mapped[bool]
    text: Mapped[str]


class Phase(OfRun):
    """Where a run's wall time went: boot, ready, off, drive, ..."""

    __tablename__ = "phases"
    cell: Mapped[str | None]
    name: Mapped[str]
    seconds: Mapped[float]
