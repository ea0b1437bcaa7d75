"""Cuts of power that are kept for the way home: a drive must not be left on a candidate for them.

Where a power cycle activates the firmware that a drive came with, the flash that puts it back
costs a cut, of every drive that goes dark with it.  As long as it is away, its power budget
bears one cut less: neither a flash nor a power-cycle test may spend that one.
"""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from leadline.inventory.flash import Activation
from leadline.inventory.rig import DriveSpec, Rig
from leadline.power.wear import Cut, Toll

if TYPE_CHECKING:
    from leadline.inventory.matrix import Matrix
    from leadline.visiting import OpenVisit


def kept_for_home(visit: "OpenVisit") -> Mapping[str, int]:
    """How many cuts of each drive's power are kept, by slot, while this visit is made.

    For the drives that are away, the visited one among them unless the visit is its way home.
    None where drives are to keep their firmware.
    """
    station, cell = visit.station, visit.visit.cell
    kept: Counter[str] = Counter()
    if station.run.keep_firmware:
        return kept
    away = {*station.away, *(one.record.slot for one in station.left_away)} - {cell.slot}
    if cell.firmware != station.run.home(visit.visit).cell.firmware:
        away.add(cell.slot)
    for slot in away:
        spec = station.rig.drive(slot)
        if _goes_home_by_power(station.run.matrix, spec):
            kept.update(list(gone_dark(station.rig, spec)))
    return kept


def afford_flash(visit: "OpenVisit", activates: Activation) -> None:
    """Raise RigTrouble where a budget does not bear the cut that activates an image and those
    of the ways home after it."""
    kept, out = kept_for_home(visit), int(activates == "power-cycle")
    dark = gone_dark(visit.station.rig, visit.spec)
    needed = {slot: out + kept.get(slot, 0) for slot in dark}
    cuts = [
        Cut(dark[slot], emergency_unload=False, kept=number - 1)
        for slot, number in needed.items()
        if number
    ]
    Toll(cuts, visit.station.run.id).afford()


def gone_dark(rig: Rig, spec: DriveSpec) -> dict[str, DriveSpec]:
    """All drives that lose their power with this one's, by slot."""
    return {each.slot: each for one in rig.outlets_of(spec) for each in rig.sharing(one)}


def _goes_home_by_power(matrix: "Matrix", spec: DriveSpec) -> bool:
    entry = matrix.entry(spec.model)
    if spec.flash is None or entry is None:
        return False
    return any(
        each.image is not None and (each.activation or spec.flash.activates) == "power-cycle"
        for each in entry.showing(spec.firmware, spec.firmware_sha256)
    )
