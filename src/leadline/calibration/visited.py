"""The calibration of a rig as a visit to one of its drives finds it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from leadline.calibration import store
from leadline.calibration.known import noise_of
from leadline.drive import queue_depth
from leadline.host.programs import require
from leadline.load.fio import FIO_MINIMUM
from leadline.plans import Noise
from leadline.verdict.calibration import DEEP

if TYPE_CHECKING:
    from leadline.visiting import OpenVisit


def conditions_of(visit: "OpenVisit") -> store.Conditions:
    """What a calibration of this rig with this drive holds for, as it is now."""
    station = visit.station
    fio = require(station.host, "fio", FIO_MINIMUM)
    # Slices set the depth that they need: what it was left at is no matter.
    deep = min(DEEP, queue_depth.deepest(station.host, visit.drive))
    return store.Conditions(visit.drive.identity.firmware, station.kernel, fio, deep)


def noise_on(visit: "OpenVisit") -> Noise:
    """The noise of this rig with this drive, by its calibration if there is one."""
    found = store.load(visit.visit.cell.rig, visit.drive.identity.serial)
    return noise_of(found, conditions_of(visit), datetime.now(UTC)) if found else Noise()
