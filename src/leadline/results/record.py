"""Write results as they happen: a killed run loses the batch of slices under way, and no more."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, select, update
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from leadline.errors import Misuse, RigTrouble
from leadline.results.schema import (
    VERSION,
    Base,
    OfRun,
    OutcomeRow,
    Phase,
    Run,
    SliceRow,
    VerdictRow,
)

FILE_NAME = "leadline.sqlite"
WAIT_S = 30.0
"""For another process that is at work on the file."""
_REMEDIES = {
    "read": "see what else is at work on it, or name another directory with --results",
    "written": "free some space or name another directory with --results",
}
Row = TypeVar("Row", bound=OfRun)


def open_database(directory: Path) -> Engine:
    """The engine of the results file in `directory`, both made when missing.

    Raises RigTrouble when the directory cannot be written or the disk is full, and Misuse
    when the file's tables are those of another version of Leadline.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RigTrouble(
            f"{directory}: the results directory cannot be made ({error.strerror}); "
            "name another with --results"
        ) from error
    # Not as text: what follows a ? in a directory's name would be taken for options.
    url = URL.create("sqlite", database=str(directory / FILE_NAME))
    engine = create_engine(url, connect_args={"timeout": WAIT_S})

    @event.listens_for(engine, "connect")
    def _journal_mode(connection: sqlite3.Connection, _record: object) -> None:
        # Workers of one run write side by side; with a write-ahead log, a commit
        # outlives the death of the process that made it.
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous=NORMAL")

    with _plain_errors(directory), engine.connect() as connection:
        if version_of(connection) != VERSION:
            # All at once, so that no other worker of this run comes upon half the tables.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            if inspect(connection).has_table(Run.__tablename__):
                check_version(connection, directory / FILE_NAME)
            connection.exec_driver_sql(f"PRAGMA user_version = {VERSION}")
        Base.metadata.create_all(connection)
        connection.commit()
    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for its lock here, as it does elsewhere, where a file is a new one."""
    end = time.monotonic() + WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


def version_of(connection: Connection) -> int:
    """The number of the tables in the file; 0 where there are none, or from before numbers."""
    return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())


def check_version(connection: Connection, path: Path) -> None:
    """Raises Misuse unless the tables of the results file are those of this Leadline."""
    found = version_of(connection)
    if found == VERSION:
        return
    if found > VERSION:
        remedy = "update Leadline, or name another directory with --results"
    else:
        remedy = (
            "it can be read with the Leadline that wrote it; move it away or name another "
            "directory with --results"
        )
    age = "a newer" if found > VERSION else "an older"
    raise Misuse(
        f"{path}: its tables are those of {age} Leadline (version {found}, expected "
        f"{VERSION}); {remedy}"
    )


@contextmanager
def _plain_errors(directory: Path, verb: str = "written") -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        busy = getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        remedy = _REMEDIES["read" if busy else verb]
        raise RigTrouble(
            f"{directory / FILE_NAME}: the result could not be {verb} ({error.orig}); {remedy}"
        ) from error


class Record:
    """One run's part of the results file.  Every `add` is committed before it returns."""

    def __init__(self, directory: Path, run_id: str) -> None:
        self.directory = directory
        self.run_id = run_id
        self.engine = open_database(directory)

    def start(self, command: str, version: str) -> None:
        """Begin the run, unless another process of it already has."""
        with _plain_errors(self.directory), Session(self.engine) as session, session.begin():
            if session.get(Run, self.run_id) is None:
                row = Run(id=self.run_id, started=time.time(), command=command, version=version)
                session.add(row)

    def end(self, exit_code: int) -> None:
        """Write how the run ended."""
        with _plain_errors(self.directory), Session(self.engine) as session, session.begin():
            values = {"ended": time.time(), "exit_code": exit_code}
            session.execute(update(Run).where(Run.id == self.run_id).values(values))

    def add(self, *rows: OfRun) -> None:
        """Write rows of this run; RigTrouble when they cannot be written."""
        with _plain_errors(self.directory), Session(self.engine) as session, session.begin():
            for row in rows:
                row.run = self.run_id
            session.add_all(rows)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """For a query; RigTrouble when the file cannot be read."""
        with (
            _plain_errors(self.directory, "read"),
            Session(self.engine, expire_on_commit=False) as session,
        ):
            yield session

    def outcomes(self) -> Sequence[OutcomeRow]:
        """Every test of this run, in the order in which they ended."""
        return self._all(OutcomeRow)

    def verdicts(self) -> Sequence[VerdictRow]:
        """Every verdict of this run, in the order in which they were reached."""
        return self._all(VerdictRow)

    def slices(self, settling: str) -> Sequence[SliceRow]:
        """The slices of this run kept under one name, in the order in which they ran."""
        with self.reading() as session:
            query = select(SliceRow).where(
                SliceRow.run == self.run_id, SliceRow.settling == settling
            )
            return session.scalars(query.order_by(SliceRow.place)).all()

    def phases(self) -> dict[str, float]:
        """Seconds of this run by phase."""
        seconds: dict[str, float] = {}
        for phase in self._all(Phase):
            seconds[phase.name] = seconds.get(phase.name, 0.0) + phase.seconds
        return seconds

    def close(self) -> None:
        """Let go of the file."""
        self.engine.dispose()

    def _all(self, table: type[Row]) -> Sequence[Row]:
        with self.reading() as session:
            query = select(table).where(table.run == self.run_id).order_by(table.id)
            return session.scalars(query).all()
