"""Put a visit's firmware on its drive, by the program that the rig file names."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cycling import cycle
from leadline.drive.bind import bind
from leadline.errors import Misuse
from leadline.results.schema import Phase

if TYPE_CHECKING:
    from leadline.power.cycle import PowerCycle
    from leadline.visiting import OpenVisit

FLASH_S = 600.0
"""Some drives erase half their flash before they answer again."""


def flash(visit: "OpenVisit") -> "PowerCycle | None":
    """Flash the visit's image and activate it; the power cycle that did, if one was needed.

    Raises Misuse when the rig file has no `flash` for the drive or the matrix no image,
    RigTrouble when the program fails, DriveFault when another firmware than the flashed
    one answers afterwards.
    """
    spec, cell, image = visit.spec, visit.visit.cell, visit.visit.image
    found = visit.drive.identity.firmware
    if spec.flash is None or image is None:
        lacks = "the rig file has no `flash` for it" if image else "the matrix has no image of it"
        raise Misuse(
            f"slot {spec.slot}: the drive has firmware {found}, {cell.firmware} is to be tested, "
            f"and {lacks}"
        )
    station = visit.station
    station.live.show(f"  {cell.id}: flashing {image.name} over firmware {found}")
    argv = spec.flash.argv(
        rig=station.rig.name, slot=spec.slot, device=visit.drive.node, image=str(image)
    )
    visit.admitted("change a setting")
    if spec.flash.runs_on == "rig":
        done = station.host.run(argv, deadline=FLASH_S)
    else:
        done = station.here.run([_beside_us(argv[0]), *argv[1:]], deadline=FLASH_S)
    station.record.add(Phase(cell=cell.id, name="flash", seconds=done.seconds))
    if spec.flash.activates == "power-cycle":
        return cycle(visit, expected_firmware=cell.firmware)
    visit.rebound(bind(station.host, spec, firmware=cell.firmware))
    return None


def _beside_us(program: str) -> str:
    """A program of this machine; those of our own environment are found without being in PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return shutil.which(program, path=path) or program
