"""What a drive says of itself at a visit: kept with the results, and compared between firmwares."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leadline.drive import scsi_pages, smart
from leadline.drive.identify_changes import Change, Log, identify_changes, log_changes
from leadline.drive.scsi_changes import page_changes

if TYPE_CHECKING:
    from leadline.drive.bind import Drive
    from leadline.host.connection import Host


@dataclass(frozen=True)
class Said:
    """Of a SATA drive 512 bytes of IDENTIFY DEVICE, and its log directory; of a SAS or SCSI drive
    its answers to INQUIRY and the like by name (`scsi_pages.Pages`).  The other kind's is empty.
    `earlier` says in words of which earlier run it is, and when; "" of what was said in this one.
    """

    identify: bytes = b""
    logs: tuple[Log, ...] = ()
    pages: Mapping[str, bytes] = field(default_factory=dict)
    earlier: str = ""


def says(host: "Host", drive: "Drive") -> Said:
    """Ask a drive.  Raises DriveFault or RigTrouble, as `smart.log_directory` and
    `scsi_pages.read_pages` do."""
    if drive.identify is None:
        return Said(pages=scsi_pages.read_pages(host, drive.node))
    return Said(drive.identify.data, smart.log_directory(host, drive.node))


def said_changes(before: Said, after: Said) -> tuple[Change, ...]:
    """What a drive says otherwise than before, both times as SATA or both times as SCSI drive;
    losses first."""
    if before.identify:
        return (
            *identify_changes(before.identify, after.identify),
            *log_changes(before.logs, after.logs),
        )
    return page_changes(before.pages, after.pages)
