"""Read a results file that is there: nothing is made, and nothing is changed."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from urllib.parse import quote

from sqlalchemy import URL, Engine, create_engine, func, inspect, select
from sqlalchemy.exc import DatabaseError, SQLAlchemyError
from sqlalchemy.orm import Session

from leadline.errors import Misuse
from leadline.results.record import FILE_NAME, check_version
from leadline.results.schema import Run, SliceRow, VerdictRow

SHOWN_RUNS = 10


@dataclass(frozen=True)
class StoredRun:
    """One run: its verdicts in the order in which they were reached, and by the name of their
    settling the slices, in the order in which they ran."""

    run: Run
    verdicts: Sequence[VerdictRow]
    slices: Mapping[str, Sequence[SliceRow]]

    @property
    def unsettled_slices(self) -> int:
        """How many slices are of no verdict: of a claim that was given up, or of a killed run; on
        record of a drive of which nothing was, or from a regression station but the last."""
        settled = {row.settling for row in self.verdicts}
        return sum(len(rows) for name, rows in self.slices.items() if name not in settled)


def read_run(directory: Path, run_id: str | None) -> StoredRun:
    """The run of that id, or the last one, from the results file in `directory`.

    Raises Misuse when there is no such file or run, when the run has no verdicts, and when
    the file is damaged or of another version; it names the runs that there are.
    """
    path = directory / FILE_NAME
    try:
        there = S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        there = False
    except OSError as error:
        raise Misuse(
            f"{path}: {error.strerror}; name the directory of a run's results with --results"
        ) from error
    if not there:
        raise Misuse(
            f"{path}: there is no such results file; name the directory of a run's results "
            "with --results"
        )
    file = f"file:{quote(str(path.absolute()))}"
    engine = create_engine(URL.create("sqlite", database=file, query={"mode": "ro", "uri": "true"}))
    try:
        with _readable(path), Session(engine, expire_on_commit=False) as session:
            return _read(session, engine, path, run_id)
    finally:
        engine.dispose()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        raise Misuse(
            f"{path}: it cannot be read as a results file ({error.orig}); name another "
            "directory with --results"
        ) from error
    except (SQLAlchemyError, ValueError, TypeError, LookupError) as error:
        raise Misuse(
            f"{path}: a row of it cannot be read ({error}); the file is damaged: take a copy "
            "from before that"
        ) from error


def _read(session: Session, engine: Engine, path: Path, run_id: str | None) -> StoredRun:
    if not inspect(engine).has_table(Run.__tablename__):
        raise Misuse(f"{path}: it holds no runs of Leadline; name another with --results")
    check_version(session.connection(), path)
    newest = select(Run).order_by(Run.started.desc(), Run.id.desc())
    wanted = newest if run_id is None else newest.where(Run.id == run_id)
    run = session.scalars(wanted.limit(1)).first()
    if run is None:
        found = "has no run" if run_id is None else f"has no run {run_id!r}"
        raise Misuse(f"{path}: it {found}; {_runs_there_are(session)}")
    verdicts = select(VerdictRow).where(VerdictRow.run == run.id).order_by(VerdictRow.id)
    of_run = session.scalars(verdicts).all()
    if not of_run:
        raise Misuse(f"{path}: run {run.id} has no verdicts; {_runs_there_are(session)}")
    slices: dict[str, list[SliceRow]] = defaultdict(list)
    rows = select(SliceRow).where(SliceRow.run == run.id).order_by(SliceRow.place, SliceRow.id)
    for row in session.scalars(rows):
        slices[row.settling].append(row)
    return StoredRun(run, of_run, slices)


def _runs_there_are(session: Session) -> str:
    """The last runs, newest first, with their time and the number of their verdicts."""
    counted = (
        select(Run.id, Run.started, func.count(VerdictRow.id))
        .outerjoin(VerdictRow, VerdictRow.run == Run.id)
        .group_by(Run.id)
        .order_by(Run.started.desc(), Run.id.desc())
    )
    rows = session.execute(counted).all()
    if not rows:
        return "there are no runs in it yet"
    lines = [
        f"  {name}  {time.strftime('%Y-%m-%d %H:%M', time.localtime(started))}  "
        f"{count} verdict{'' if count == 1 else 's'}"
        for name, started, count in rows[:SHOWN_RUNS]
    ]
    more = [f"  and {len(rows) - SHOWN_RUNS} older"] if len(rows) > SHOWN_RUNS else []
    return "\n".join(["it has these:", *lines, *more])
