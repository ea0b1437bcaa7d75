"""The locate light of a drive's slot, where it is in an enclosure (SES-3, RQST IDENT).

The kernel's `ses` driver knows which slot a drive is in (sysfs, drivers/misc/enclosure.c):

    /sys/block/sda/device/enclosure_device:Slot 07 -> .../enclosure/6:0:24:0/Slot 07
    /sys/class/enclosure/6:0:24:0/{id,device/scsi_generic/sg25,Slot 07/{slot,locate}}

The light is lit for a person, who comes after the run has ended; so it stays lit until the
next run on the rig, for which the journal keeps it on record.  It is set by `sg_ses`, by the
slot's number, and read back where the kernel has the slot of this very drive.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from leadline.drive.text import plain
from leadline.errors import RigTrouble
from leadline.host.connection import FileTrouble, Host
from leadline.host.journal import Journal, close_dead_entry, dead_entries
from leadline.host.programs import require

if TYPE_CHECKING:
    from leadline.drive.bind import Drive

ENTRY = "locate light"
ENCLOSURES = "/sys/class/enclosure"
SG_SES_S = 30.0  # an enclosure's processor is slow, and sg_ses reads several pages of it
_LINK = "enclosure_device:"


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot of an enclosure, by what stays over a reboot of the host."""

    enclosure: str  # its logical identifier: "0x500304801f0ad0bf"
    name: str  # the slot's descriptor, as the enclosure gives it: "Slot 07"

    def __str__(self) -> str:
        return f"{plain(self.name)} of enclosure {plain(self.enclosure)}"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a slot is on the rig in this boot."""

    sg: str  # "/dev/sg25"
    number: str  # the slot's number, for sg_ses
    locate: str  # the kernel's attribute


def slot_of(host: Host, drive: "Drive") -> Slot | None:
    """The slot that a drive is in now; None where the kernel knows of no enclosure."""
    device = f"/sys/block/{drive.name}/device"
    link = next((name for name in _names(host, device) if name.startswith(_LINK)), None)
    if link is None:
        return None
    try:
        target = host.read_link(f"{device}/{link}")
    except FileTrouble:
        return None
    found = re.search(r"/enclosure/([^/]+)/([^/]+)$", target)
    if not found:
        return None
    identifier = _text(host, f"{ENCLOSURES}/{found[1]}/id")
    return Slot(identifier, found[2]) if identifier else None


def light(host: Host, journal: Journal, slot: Slot) -> bool:
    """Light a slot, and have it on record until the next run; False where that is not to be had.

    Raises nothing: it is done on the way to saying something more important.
    """
    try:
        place = _place(host, slot)
        if place is None:
            return False
        if _is_lit(host, place):
            return True  # by somebody else, whose it stays
        require(host, "sg_ses")
        record = journal.open_entry(ENTRY, {"enclosure": slot.enclosure, "name": slot.name})
        _ses(host, place, "set")
        if _is_lit(host, place):
            return True
        # Another slot than the drive's may have that number: nobody is sent there.
        _ses(host, place, "clear")
        journal.close_entry(record)
    except RigTrouble:
        return False
    return False


def put_out(host: Host, *, directory: str | None = None) -> list[str]:
    """Put out the lights that earlier runs left lit; one sentence for each."""
    said: list[str] = []
    for dead in dead_entries(host, ENTRY, directory=directory):
        slot = Slot(str(dead.data["enclosure"]), str(dead.data["name"]))
        try:
            place = _place(host, slot)
            if place is not None:
                _ses(host, place, "clear")
                if _is_lit(host, place):
                    raise RigTrouble(f"it is still lit (`sg_ses --join {place.sg}` shows it)")
        except RigTrouble as trouble:
            said.append(f"{host.name}: the locate light of {slot} cannot be put out: {trouble}")
            continue
        close_dead_entry(host, dead)
        what = "is out again" if place else "is gone with its enclosure"
        said.append(f"{host.name}: the locate light of {slot} {what}, after run {dead.run}")
    return said


def _place(host: Host, slot: Slot) -> _Place | None:
    for address in _names(host, ENCLOSURES):
        enclosure = f"{ENCLOSURES}/{address}"
        if _text(host, f"{enclosure}/id") != slot.enclosure:
            continue
        sg = next(iter(_names(host, f"{enclosure}/device/scsi_generic")), "")
        number = _text(host, f"{enclosure}/{slot.name}/slot")
        if sg and number.isdecimal():
            return _Place(f"/dev/{sg}", number, f"{enclosure}/{slot.name}/locate")
    return None


def _ses(host: Host, place: _Place, how: Literal["set", "clear"]) -> None:
    argv = ["sg_ses", f"--dev-slot-num={place.number}", f"--{how}=locate", place.sg]
    host.run(argv, deadline=SG_SES_S)


def _is_lit(host: Host, place: _Place) -> bool:
    return _text(host, place.locate) == "1"


def _names(host: Host, directory: str) -> list[str]:
    try:
        return host.list_dir(directory)
    except FileTrouble:
        return []


def _text(host: Host, path: str) -> str:
    data = host.read_files([path])[path]
    return "" if data is None else data.decode("ascii", "replace").strip()
