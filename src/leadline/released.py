"""What a candidate is held against, as a test at a regression station sees it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest

from leadline.calibration import store
from leadline.calibration.known import FEWEST_SESSIONS, stale
from leadline.calibration.visited import conditions_of
from leadline.claims import NotJudgedHere
from leadline.drive.identify_changes import Change
from leadline.drive.said import Said, said_changes
from leadline.errors import Inconclusive
from leadline.failed_stations import uncompared
from leadline.inventory.stations import Stay
from leadline.results import stations
from leadline.results.schema import Environment
from leadline.running import CHANGES
from leadline.statements import AtStation, NotRegressed, side_of

if TYPE_CHECKING:
    from leadline.inventory.plan import Cell
    from leadline.quantities import Quantity
    from leadline.visiting import OpenVisit

Recorded = Callable[[str], tuple[AtStation, ...]]
Says = Callable[["Cell"], Said | None]


@dataclass(frozen=True)
class Released:
    """The released firmware, as claims of a candidate name it.

    `recorded(quantity)` is what the other stations have recorded of a quantity by its name,
    `says(cell)` what the drive has said of itself in a cell; `tell` is told how that differs.
    `why_not()` is why nothing can be compared at the last station, "" where it can;
    `passed_over` why it is not the candidate's predecessor, "" where it is.
    """

    stay: Stay
    recorded: Recorded
    says: Says
    tell: Callable[[str], None]
    why_not: Callable[[], str] = str
    passed_over: str = ""

    def __repr__(self) -> str:
        return self.stay.released.firmware

    def statement(self, quantity: "Quantity", within: float, source: str) -> NotRegressed:
        """The claim that the candidate keeps all but `within` of a quantity, at this station.

        Raises Inconclusive at the last one where another has failed: no drive time is spent.
        """
        stay = self.stay
        self._refuse_what_failed()
        return NotRegressed(
            quantity,
            within,
            stay.released.firmware,
            stay.candidate.cell.firmware,
            stay.order,
            stay.number,
            stay.judges,
            # A baseline that may not stand in is found before any drive time is spent.
            self.recorded(str(quantity)) if stay.judges or stay.stored_baseline else (),
            stay.stored_baseline,
            source,
            self.passed_over,
        )

    def changes(self) -> tuple[Change, ...]:
        """What a drive says of itself with the candidate that it does not say with the released
        firmware, losses first: by IDENTIFY DEVICE data and its log directory; a SAS or SCSI drive
        by INQUIRY, its VPD pages, READ CAPACITY and which log pages it has.

        What an earlier run has stored of the released one is said to be of that run.

        Raises NotJudgedHere at a station before the last, Inconclusive where the two have not
        both been seen, or not in the same way.
        """
        stay = self.stay
        if not stay.judges:
            raise NotJudgedHere(f"what the drive says with {stay.visit.cell.firmware} is recorded")
        self._refuse_what_failed()
        before, after = self.says(stay.released), self.says(stay.candidate.cell)
        if before is None or after is None:
            unseen = stay.released if before is None else stay.candidate.cell
            raise Inconclusive(f"what the drive says of itself in {unseen.id} is not on record")
        if bool(before.identify) != bool(after.identify):
            raise Inconclusive(
                f"what the drive says of itself in {stay.released.id} and in "
                f"{stay.candidate.cell.id} is not comparable: once it was asked as SATA drive, and "
                "once as SCSI drive"
            )
        changes = said_changes(before, after)
        if before.earlier:
            changes = tuple(
                replace(each, before=f"{each.before} (by {before.earlier})") for each in changes
            )
            self.tell(
                f"baseline: {stay.released.firmware} was not asked again; what stood in for what "
                f"it says of itself: {before.earlier}"
            )
        for change in changes:
            self.tell(str(change))
        return changes

    def _refuse_what_failed(self) -> None:
        if self.stay.judges and (why := self.why_not()):
            raise Inconclusive(why)


def released_of(visit: "OpenVisit", stay: Stay, item: pytest.Item) -> Released:
    """What the candidate of a visit's station is held against, by the results."""
    record, serial = visit.station.record, visit.drive.identity.serial

    def recorded(quantity: str) -> tuple[AtStation, ...]:
        candidate, released = stay.candidate.cell, stay.released
        stood_in: tuple[AtStation, ...] = ()
        if stay.stored_baseline:
            stood_in = _stood_in(visit, stay, quantity)
        found = list(stood_in)
        for number, firmware in enumerate(stay.order, 1):
            if number != stay.number and number not in {each.number for each in found}:
                side = side_of(quantity, number, candidate.firmware, released.firmware)
                cell = candidate if firmware == "candidate" else released
                found += filter(None, [stations.recorded(record, cell, number, side)])
        return tuple(found)

    def says(cell: "Cell") -> Said | None:
        sha256 = visit.station.run.matrix.firmware(cell.model, cell.firmware).sha256
        return stations.said(record, cell, serial, earlier=stay.stored_baseline, sha256=sha256)

    def tell(change: str) -> None:
        item.stash.setdefault(CHANGES, []).append(change)
        name = f"{stay.candidate.cell.id} against {stay.released.firmware}"
        record.add(Environment(rig=visit.visit.cell.rig, name=name, value=change))

    candidate = visit.model.by_revision[stay.candidate.cell.firmware]
    passed_over = visit.model.passed_over(candidate, stay.released.firmware)
    return Released(stay, recorded, says, tell, partial(uncompared, item), passed_over)


def _stood_in(visit: "OpenVisit", stay: Stay, quantity: str) -> tuple[AtStation, ...]:
    """What is stored of the released firmware.  Inconclusive where it may not stand in."""
    cell, serial = stay.released, visit.drive.identity.serial
    calibration = store.load(cell.rig, serial)
    again = f"measure {cell.firmware} again, without --baseline stored"
    if (
        calibration is None
        or calibration.noise.sigma_session is None
        or len(calibration.sessions) < FEWEST_SESSIONS
    ):
        raise Inconclusive(
            f"what is stored of {cell.firmware} may not stand in for it: how far this rig differs "
            f"from session to session is not known, which takes {FEWEST_SESSIONS} sessions of "
            f"leadline calibrate; {again}"
        )
    firmware = visit.station.run.matrix.firmware(cell.model, cell.firmware)
    now_with = replace(conditions_of(visit), firmware=firmware.shows)
    if changes := stale(calibration, now_with, datetime.now(UTC)):
        raise Inconclusive(
            f"what is stored of {cell.firmware} may not stand in for it: the rig's calibration is "
            f"stale ({', '.join(changes)}); {again}"
        )
    baseline = stations.Baseline(cell, serial, firmware.sha256, calibration.date.timestamp())
    found = stations.stood_in(visit.station.record, baseline, quantity)
    if not found:
        raise Inconclusive(
            f"nothing of {quantity} with {cell.firmware} is stored that may stand in for it: of "
            "this drive on this rig and kind of controller, with this image, since the "
            f"calibration of {calibration.date:%Y-%m-%d}; {again}"
        )
    return found
