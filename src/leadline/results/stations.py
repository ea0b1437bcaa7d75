"""What regression stations have recorded: in this run, and what of earlier ones may stand in."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from pydantic import TypeAdapter
from sqlalchemy import and_, or_, select

from leadline.drive.identify_changes import Log
from leadline.drive.said import Said
from leadline.judge_regression import FEWEST_SLICES, station_of
from leadline.load.slices import Slice
from leadline.results.history import same_controller
from leadline.results.schema import CellRow, Run, SliceRow
from leadline.statements import AtStation
from leadline.verdict.regression import STATIONS

if TYPE_CHECKING:
    from leadline.inventory.plan import Cell
    from leadline.results.record import Record

_SLICE = TypeAdapter(Slice)


@dataclass(frozen=True)
class Baseline:
    """Which earlier run's slices of a released firmware may stand in for measuring it again.

    `sha256` is that of the firmware's image: with another it is another firmware.  Slices from
    before `since` (Unix seconds) are of another calibration of the rig, or of none.  Those from a
    controller of another kind than this run found the drive on are of another cell.
    """

    cell: "Cell"
    serial: str
    sha256: str | None
    since: float


def recorded(record: "Record", cell: "Cell", number: int, side: str) -> AtStation | None:
    """What a station of this run has recorded in `cell` under `side`; None where nothing was.

    Where a test was run there twice, the second time counts.
    """
    with record.reading() as session:
        of_side = select(SliceRow).where(
            SliceRow.run == record.run_id, SliceRow.cell == cell.id, SliceRow.side == side
        )
        rows = session.scalars(of_side.order_by(SliceRow.id)).all()
        last = [row for row in rows if row.settling == rows[-1].settling]
        return station_of(number, _slices(last), "this run") if last else None


def stood_in(record: "Record", baseline: Baseline, quantity: str) -> tuple[AtStation, ...]:
    """Two stations of the last earlier run that recorded `quantity` with the released firmware
    at two or more, as the first and the last of four; empty where there is no such run."""
    with record.reading() as session:
        cells = select(CellRow).where(
            CellRow.run != record.run_id,
            CellRow.cell == baseline.cell.id,
            CellRow.serial == baseline.serial,
            same_controller(record.run_id, baseline.serial),
        )
        for cell in session.scalars(cells.order_by(CellRow.id.desc())):
            if cell.details.get("image_sha256") != baseline.sha256:
                continue
            of_run = select(SliceRow).where(
                SliceRow.run == cell.run,
                SliceRow.cell == cell.cell,
                SliceRow.taken >= baseline.since,
                SliceRow.side.startswith(f"{quantity}, station ", autoescape=True),
            )
            rows = session.scalars(of_run.order_by(SliceRow.id)).all()
            groups = [list(group) for _, group in groupby(rows, key=lambda row: row.settling)]
            found = [_of_run(number, group, cell.run) for number, group in enumerate(groups)]
            whole = [each for each in found if len(each.rates) >= FEWEST_SLICES and not each.voids]
            if len(whole) >= 2:
                return _renumbered(1, whole[0]), _renumbered(STATIONS, whole[-1])
    return ()


def said(
    record: "Record", cell: "Cell", serial: str, *, earlier: bool, sha256: str | None
) -> Said | None:
    """What the drive said of itself when it was last visited in `cell`, in this run; with
    `earlier`, before it too, with the image of that hash, on a controller of the same kind.  None
    if it was not, or if that was not kept, as once of SAS and SCSI drives."""
    of_cell = select(CellRow).where(CellRow.cell == cell.id, CellRow.serial == serial)
    in_this = CellRow.run == record.run_id
    image = CellRow.details["image_sha256"].as_string() == sha256
    same = and_(image, same_controller(record.run_id, serial))
    of_cell = of_cell.where(or_(in_this, same) if earlier else in_this)
    with record.reading() as session:
        row = session.scalars(of_cell.order_by(CellRow.id.desc()).limit(1)).first()
        details = row.details if row is not None else {}
        identify = bytes.fromhex(details.get("identify") or "")
        logs = tuple(Log(**each) for each in details.get("logs", ()))
        pages = {name: bytes.fromhex(text) for name, text in details.get("pages", {}).items()}
        whose = ""
        if row is not None and row.run != record.run_id:
            began = session.scalars(select(Run.started).where(Run.id == row.run)).first()
            whose = f"run {row.run}, {_day(began)}" if began else f"run {row.run}"
        return Said(identify, logs, pages, whose) if identify or pages else None


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _of_run(number: int, rows: Sequence[SliceRow], run: str) -> AtStation:
    return station_of(number, _slices(rows), f"run {run}, {_day(rows[0].taken)}")


def _renumbered(number: int, station: AtStation) -> AtStation:
    return replace(station, number=number, spent_s=0.0)


def _slices(rows: Sequence[SliceRow]) -> list[Slice]:
    return [_SLICE.validate_python(row.details) for row in rows]
