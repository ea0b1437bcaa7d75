"""What `leadline calibrate` has pytest run; it is no part of the suite, and claims nothing.

The module's name is none that pytest collects unless it is told to.
"""

from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import pytest

from leadline.calibration import store
from leadline.calibration.pairs import measure_pairs
from leadline.calibration.store import Calibration, KeptSession
from leadline.calibration.visited import conditions_of
from leadline.claims import NotPromised
from leadline.depths import admit_depth
from leadline.errors import Misuse
from leadline.load.slices import Slice
from leadline.load.workload import random_read
from leadline.results.rows import slice_row
from leadline.results.schema import Phase
from leadline.running import VERDICTS, claim_of
from leadline.selection import DRIVE_TIME_S
from leadline.verdict.calibration import rig_noise

if TYPE_CHECKING:
    from leadline.visiting import OpenVisit


def test_noise(visit: "OpenVisit", request: pytest.FixtureRequest) -> None:
    """Measure the rig's noise with this drive, and keep it for the verdicts of later runs."""
    station, cell, name = visit.station, visit.visit.cell, claim_of(request.node)
    spent, place = 0.0, count()
    conditions = conditions_of(visit)
    _admit(visit, conditions.deep)

    def keep_slice(side: str, measured: Slice) -> None:
        nonlocal spent
        spent += measured.drive_s
        station.live.slice(cell.id, f"{name}, {spent:.0f} s", side, measured)
        settling = f"calibration of {cell.id}"
        station.record.add(
            slice_row(cell.id, name, side, measured, settling=settling, place=next(place))
        )

    begun = datetime.now(UTC)
    measured = measure_pairs(
        partial(visit.measure, name=name, remarks={}),
        random_read(),
        slice_s=visit.first_slice_s(),
        seconds=station.run.drive_time_s or DRIVE_TIME_S,
        deep=conditions.deep,
        keep_slice=keep_slice,
    )
    station.live.clear()
    session = KeptSession(
        run=station.run.id,
        date=begun,
        conditions=conditions,
        block_seconds=measured.block_seconds,
        starts=tuple(measured.starts),
        blocks=tuple(measured.blocks),
    )
    found = _with(visit, session)
    store.save(found)
    station.record.add(Phase(cell=cell.id, name="drive", seconds=spent))
    noise = found.noise
    facts = {
        "estimate": f"pair sd {noise.pair_sd:.2%}, sigma_d {noise.sigma_d:.2%}",
        "drive_seconds": round(spent, 3),
    }
    request.node.stash.setdefault(VERDICTS, []).append(facts)


def _admit(visit: "OpenVisit", deep: int) -> None:
    """DriveFault where the drive does not queue, Misuse where nobody has promised that it does."""
    try:
        admit_depth(visit, deep)
    except NotPromised as none:
        raise Misuse(f"a calibration holds depth {deep} against depth 1: {none}") from none


def _with(visit: "OpenVisit", session: KeptSession) -> Calibration:
    """The drive's calibration with a session more; a file that is broken is replaced."""
    cell, who = visit.visit.cell, visit.drive.identity
    try:
        before = store.load(cell.rig, who.serial)
    except store.BrokenCalibration as broken:
        visit.station.live.say(f"replaced: {broken}")
        before = None
    sessions = (*store.comparable(before, session.conditions), session)
    noise = rig_noise([each.measured for each in sessions])
    return Calibration(cell.rig, cell.slot, who.model, who.serial, noise, sessions)
