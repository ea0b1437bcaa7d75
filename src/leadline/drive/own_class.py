"""Which class of drive it is, by its own word: with a medium that turns, or without.

The limits of the firmware matrix belong to a class, so a drive of another one would be held
against what it was never made for, or pass what it should not.  IDENTIFY DEVICE word 217 of a
SATA drive (ACS-4 7.13.7.82), VPD page B1h bytes 4-5 of a SAS or SCSI drive (SBC-4, Block Device
Characteristics): 0001h does not turn, 0401h to FFFEh are revolutions a minute, 0 says nothing.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.drive import inquiry, scsi_pages
from leadline.drive.identify import Class

if TYPE_CHECKING:
    from leadline.drive.bind import Drive
    from leadline.host.connection import Host

_WORD = 217
_CHARACTERISTICS = 0xB1


@dataclass(frozen=True, slots=True)
class OwnClass:
    """The class that a drive says it is of: unknown where it does not say.

    `said` is where it stands and what it says there, in words.
    """

    class_: Class
    said: str

    def against(self, model: str, class_: str, entry: str) -> str:
        """What is wrong where the firmware matrix has `model` as another class.

        `entry` is ``file:line: field`` of it.
        """
        return (
            f"{entry}: {model} is of class {class_} there, and by its own word the drive "
            f"is of class {self.class_}: {self.said}. It is held against limits of the wrong "
            "class: correct `class` there, or attach the drive that is meant"
        )


def own_class(host: "Host", drive: "Drive") -> OwnClass:
    """Of a drive that is bound.

    Raises DriveFault where a SAS or SCSI drive fails the command, and RigTrouble (see
    :mod:`leadline.host.trouble`) where it cannot be put to it.
    """
    if drive.identify is not None:
        data = drive.identify.data
        rate = int.from_bytes(data[2 * _WORD : 2 * _WORD + 2], "little")
        found, rpm = drive.identify.class_, drive.identify.rotation_rpm
        return OwnClass(found, f"IDENTIFY DEVICE word {_WORD} is {_words(rate, found, rpm)}")
    page = scsi_pages.read_page(host, drive.node, _CHARACTERISTICS)
    if page is None:
        return OwnClass("unknown", "it has no VPD page B1h (Block Device Characteristics)")
    found, rpm = inquiry.rotation(page)
    rate = int.from_bytes(page[4:6], "big")
    return OwnClass(found, f"MEDIUM ROTATION RATE of VPD page B1h is {_words(rate, found, rpm)}")


def _words(rate: int, class_: Class, rpm: int | None) -> str:
    if class_ == "unknown":
        return f"{rate:04X}h, which reports no rate" if rate == 0 else f"{rate:04X}h, no valid rate"
    return f"{rate:04X}h, {rpm} revolutions a minute" if rpm else f"{rate:04X}h, does not turn"
