"""What is on record of a drive, or of others like it: the rates of an earlier session."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Exists, Select, exists, or_, select
from sqlalchemy.orm import aliased

from leadline.results.schema import CellRow, SliceRow, VerdictRow
from leadline.statements import History, Recorded
from leadline.verdict.verdict import Outcome

if TYPE_CHECKING:
    from leadline.inventory.plan import Cell
    from leadline.results.record import Record

Fact = Callable[[type[CellRow]], ColumnElement[str]]

FEWEST_SLICES = 4
"""A session with fewer tells little of the drive."""
ENOUGH_SLICES = 16
"""As many as a first session records.  One that soon agreed with its own record has fewer, and the
next could be held against no more than those."""


def before(record: "Record", cell: "Cell", serial: str) -> History:
    """What this drive did on this rig in an earlier run, with this firmware.

    On a controller of another kind it was another cell.
    """
    return History(
        "this drive's own record", lambda side: latest_session(record, cell, serial, side, own=True)
    )


def twins(record: "Record", cell: "Cell", serial: str) -> History:
    """What other drives of this model and firmware did, in this run or before it."""
    return History(
        f"another {cell.model} with {cell.firmware}",
        lambda side: latest_session(record, cell, serial, side, own=False),
    )


def latest_session(
    record: "Record", cell: "Cell", serial: str, side: str, *, own: bool
) -> Recorded | None:
    """The clean slices that were last kept under `side` for a drive of this model and firmware.

    With `own`, of the drive with this serial number on this rig, in another run than this
    one; else of a drive with another, on any rig.  Sessions that were found to disagree with
    what was on record are passed over, and those of fewer than ENOUGH_SLICES are where an older
    one has more.  None where there is no such session.
    """
    fullest: Recorded | None = None
    with record.reading() as session:
        sessions = _sessions(record.run_id, cell, serial, own).where(~_disagreed(side))
        for run, name, other in session.execute(sessions):
            query = select(SliceRow.rate, SliceRow.taken).where(
                SliceRow.run == run, SliceRow.cell == name, SliceRow.side == side, SliceRow.clean
            )
            rows = session.execute(query.order_by(SliceRow.id)).all()
            if len(rows) >= max(FEWEST_SLICES, 1 + len(fullest.rates) if fullest else 0):
                rates = tuple(rate for rate, _ in rows)
                day = time.strftime("%Y-%m-%d %H:%M", time.localtime(rows[-1].taken))
                fullest = Recorded(rates, f"{side} of {other}, {day}, run {run}", run, name)
            if fullest and len(fullest.rates) >= ENOUGH_SLICES:
                break
    return fullest


def _disagreed(side: str) -> Exists:
    """Whether a session was found to differ from what was on record then.

    It is no record for the next to be held against: a drive that has become slower would agree
    with itself, when the test is repeated.
    """
    return exists().where(
        VerdictRow.run == CellRow.run,
        VerdictRow.cell == CellRow.cell,
        VerdictRow.outcome == Outcome.FAIL,
        VerdictRow.statement.startswith(f"{side} agrees with ", autoescape=True),
    )


def same_controller(run_id: str, serial: str) -> ColumnElement[bool]:
    """That a row of `cells` is of a drive on a controller of one kind with that on which this run
    found the drive with this serial number."""
    return _as_now(run_id, serial, lambda row: row.details["controller"]["pci_id"].as_string())


def _same_image(run_id: str, serial: str) -> ColumnElement[bool]:
    """And of a firmware with the same image, by its hash: a name may be given to another one."""
    return _as_now(run_id, serial, lambda row: row.details["image_sha256"].as_string())


def _as_now(run_id: str, serial: str, fact: Fact) -> ColumnElement[bool]:
    """That a fact of a row of `cells` is as in the last row that this run has of a drive.

    Where that does not tell it, nobody knows, and whatever there is will do.
    """
    mine = aliased(CellRow)
    found = select(fact(mine)).where(mine.run == run_id, mine.serial == serial)
    here = found.order_by(mine.id.desc()).limit(1).scalar_subquery()
    return or_(here.is_(None), fact(CellRow) == here)


def _sessions(run_id: str, cell: "Cell", serial: str, own: bool) -> Select[str, str, str]:
    """(run, cell, serial) of each session, newest first, of drives on a controller of one kind."""
    query = select(CellRow.run, CellRow.cell, CellRow.serial).where(
        CellRow.model == cell.model,
        CellRow.firmware == cell.firmware,
        same_controller(run_id, serial),
        _same_image(run_id, serial),
    )
    if own:
        query = query.where(
            CellRow.serial == serial, CellRow.rig == cell.rig, CellRow.run != run_id
        )
    else:
        query = query.where(CellRow.serial != serial)
    return query.order_by(CellRow.id.desc())
