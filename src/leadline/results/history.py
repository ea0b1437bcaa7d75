"""What is on record of a drive, or of others like it: the rates of an earlier session."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Exists, Select, exists, or_, select
from sqlalchemy.orm import Session, aliased

from leadline.odd_one import tells
from leadline.on_record import Beside, History, Recorded
from leadline.quantities import NCQ_OFF
from leadline.results.schema import CellRow, OutcomeRow, SliceRow, VerdictRow
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
_BEST = (True, ENOUGH_SLICES)
"""What `_worth` is of a session that no other is better than."""


def before(record: "Record", cell: "Cell", serial: str) -> History:
    """What this drive did on this rig in an earlier run, with this firmware.

    On a controller of another kind it was another cell.
    """
    return History(
        "this drive's own record",
        lambda side: own_session(record, cell, serial, side),
        known=lambda side: known_session(record, cell, serial, side),
    )


def twins(record: "Record", cell: "Cell", serial: str) -> History:
    """What other drives of this model and firmware did, in this run or before it."""

    def newest(side: str) -> Recorded | None:
        return next(iter(twins_sessions(record, cell, serial, side)), None)

    def beside(side: str) -> Beside:
        others = twins_sessions(record, cell, serial, side)[1:]
        return Beside(tuple(others), own_session(record, cell, serial, side))

    return History(
        f"another {cell.model} with {cell.firmware}",
        newest,
        beside,
        lambda side: known_session(record, cell, serial, side),
    )


def own_session(record: "Record", cell: "Cell", serial: str, side: str) -> Recorded | None:
    """The clean slices that were last kept under `side` for the drive with this serial number.

    On this rig, in another run than this one, with the same firmware.  Sessions that were found to
    disagree with what was on record are passed over; so is one that does not tell a queue from
    none, and one of fewer than ENOUGH_SLICES, where there is a better one.  None where there is
    no such session.
    """
    return _best_of_each(record, side, _own(record, cell, serial)).get(serial)


def known_session(record: "Record", cell: "Cell", serial: str, side: str) -> Recorded | None:
    """The same, in this run or another, if it is as good a yardstick as a session can be.

    What twins are held against, so that it need not be measured again for them.
    """
    sessions = _own(record, cell, serial, this_run=True)
    found = _best_of_each(record, side, sessions).get(serial)
    return found if found is not None and _worth(found) == _BEST else None


def twins_sessions(record: "Record", cell: "Cell", serial: str, side: str) -> list[Recorded]:
    """The same of every other drive of this model and firmware on any rig, this run's too.

    One that another worker of this run is measuring just now is not on record yet.

    The fullest first, and the newest of those; without those that do not tell a queue from none,
    where any does.
    """
    sessions = _sessions(record.run_id, cell, serial).where(CellRow.serial != serial)
    of_each = _best_of_each(record, side, sessions).values()
    found = sorted(
        (one for one in of_each if _is_whole(record, one, side)), key=_worth, reverse=True
    )
    return [each for each in found if tells(each)] or found


def _best_of_each(
    record: "Record", side: str, sessions: Select[str, str, str]
) -> dict[str, Recorded]:
    """The best session of each drive, by its serial number; the drive with the newest first."""
    best: dict[str, Recorded] = {}
    with record.reading() as session:
        for run, name, whose in session.execute(sessions.where(~_disagreed(side))).all():
            if whose in best and _worth(best[whose]) == _BEST:
                continue
            found = _recorded(session, run, name, whose, side)
            if found and (whose not in best or _worth(found) > _worth(best[whose])):
                best[whose] = found
    return best


def _worth(recorded: Recorded) -> tuple[bool, int]:
    """How good a yardstick a session is: one that tells before one that is full."""
    return tells(recorded), min(len(recorded.rates), ENOUGH_SLICES)


def _recorded(session: Session, run: str, name: str, whose: str, side: str) -> Recorded | None:
    """What a session has under `side`, and with NCQ off; None where that is too little."""
    rows = session.execute(_clean(run, name, side)).all()
    if len(rows) < FEWEST_SLICES:
        return None
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(rows[-1].taken))
    alone = session.execute(_clean(run, name, f"{side.removesuffix(')')}{NCQ_OFF})")).all()
    return Recorded(
        tuple(row.rate for row in rows),
        f"{side} of {whose}, {day}, run {run}",
        run,
        name,
        tuple(row.rate for row in alone),
    )


def _is_whole(record: "Record", found: Recorded, side: str) -> bool:
    """Whether a session has as many slices as a first one, or is over: its test has ended."""
    if found.run != record.run_id or len(found.rates) >= ENOUGH_SLICES:
        return True
    of_side = select(SliceRow.claim).where(
        SliceRow.run == found.run, SliceRow.cell == found.cell, SliceRow.side == side
    )
    over = select(OutcomeRow.id).where(
        OutcomeRow.run == found.run,
        OutcomeRow.cell == found.cell,
        OutcomeRow.claim.in_(of_side),
    )
    with record.reading() as session:
        return session.scalars(over.limit(1)).first() is not None


def _clean(run: str, cell: str, side: str) -> Select[float, float]:
    """(rate, taken) of the clean slices under a side, in their order."""
    query = select(SliceRow.rate, SliceRow.taken).where(
        SliceRow.run == run, SliceRow.cell == cell, SliceRow.side == side, SliceRow.clean
    )
    return query.order_by(SliceRow.id)


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


def _sessions(run_id: str, cell: "Cell", serial: str) -> Select[str, str, str]:
    """(run, cell, serial) of each session, newest first, of drives on a controller of one kind."""
    query = select(CellRow.run, CellRow.cell, CellRow.serial).where(
        CellRow.model == cell.model,
        CellRow.firmware == cell.firmware,
        same_controller(run_id, serial),
        _same_image(run_id, serial),
    )
    return query.order_by(CellRow.id.desc())


def _own(
    record: "Record", cell: "Cell", serial: str, *, this_run: bool = False
) -> Select[str, str, str]:
    """Those of the drive itself on this rig; of `this_run`, too, or of others alone."""
    query = _sessions(record.run_id, cell, serial).where(
        CellRow.serial == serial, CellRow.rig == cell.rig
    )
    return query if this_run else query.where(CellRow.run != record.run_id)
