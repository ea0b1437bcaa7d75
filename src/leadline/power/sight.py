"""What the rig's kernel sees of one drive while its power goes and comes.

`power.cycle` decides by these answers; this module gets them.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.drive.ask import Identity, who_is
from leadline.drive.bind import Drive, Seen, bind, scan
from leadline.drive.kernel_events import KernelEvent
from leadline.drive.kernel_watch import KernelWatch, is_about
from leadline.drive.locate import light, slot_of
from leadline.errors import RigTrouble
from leadline.host.connection import Host
from leadline.host.journal import Journal
from leadline.power.outlets import rescan

DELETE_S = 90.0  # it flushes first: 30 s by the standard (ATA8-ACS 7.10), and the kernel retries
READ_S = 30.0


@dataclass(frozen=True)
class Look:
    """One look at the rig's disks: ours, or what stands in its place; and the others.

    `others` are their names for people by a key that stays (the serial number).
    """

    drive: Seen | None
    others: Mapping[str, str]


class Sight:
    """One drive, through the rig's host; holds nothing open.

    `disks` is what the kernel has now.  `key` is what the drive is known by from look to
    look, `known` are the others that were there at the beginning, as in a `Look`; `rotates`
    says whether it is a disk, whose heads an abrupt cut unloads.  `watch` follows the rig's
    kernel log; `journal` is the rig's, for the lights of its enclosures.
    """

    def __init__(
        self,
        host: Host,
        drive: Drive,
        disks: Sequence[Seen],
        watch: KernelWatch | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.host = host
        self.drive = drive
        own = next((disk for disk in disks if disk.name == drive.name), None)
        if own is None:
            raise RigTrouble(
                f"{host.name}: {drive.node} of slot {drive.spec.slot} is gone before its power "
                "was cut; it has to be bound again"
            )
        self._own = own
        self._watch, self._journal = watch, journal
        self._mark = watch.mark() if watch else 0
        self._slot = slot_of(host, drive)  # when the drive is gone, nobody knows it any more
        self.key = _key(own)
        self.known = {_key(disk): _who(disk) for disk in disks if disk.name != drive.name}
        rotational = f"/sys/block/{drive.name}/queue/rotational"
        self.rotates = host.read_files([rotational])[rotational] != b"0\n"

    def delete(self) -> None:
        """Take the drive out of the kernel: its cache is flushed, then STANDBY IMMEDIATE.

        (SCSI: SYNCHRONIZE CACHE and START STOP UNIT.)  Nothing when it is out already.
        """
        path = f"/sys/block/{self.drive.name}/device/delete"
        if self.noticed():
            return
        self.host.run(["tee", path], input=b"1\n", deadline=DELETE_S)

    def noticed(self) -> bool:
        """Whether the kernel knows that the drive is gone: its SCSI device is no more."""
        return not self.host.exists(f"/sys/class/scsi_device/{self._own.hctl}")

    @property
    def scan_path(self) -> str:
        """Where the drive's SCSI host is told to look again."""
        return f"/sys/class/scsi_host/{self.drive.controller.scsi_host}/scan"

    def rescan(self) -> None:
        """Have the kernel look for drives where this one was, which takes up to a minute."""
        rescan(self.host, self.scan_path)

    def look(self) -> Look:
        """What the kernel has now.

        The drive is known by its serial number, else by its WWN, else by its place: there
        a drive may stand that was ours and now says otherwise, or another.
        """
        disks = scan(self.host)
        own = self._own
        ours = (
            [disk for disk in disks if _key(disk) == self.key]
            or [disk for disk in disks if own.wwn and disk.wwn == own.wwn]
            or [disk for disk in disks if disk.hctl == own.hctl and _key(disk) not in self.known]
        )
        others = {_key(disk): _who(disk) for disk in disks if disk not in ours}
        return Look(ours[0] if ours else None, others)

    def identity(self, seen: Seen) -> Identity:
        """Who the drive at that node says it is; raises RigTrouble or DriveFault when it cannot."""
        node = f"/dev/{seen.name}"
        handle = self.host.hold_device(node, exclusive=False)
        try:
            return who_is(self.host, handle, node, self.drive.spec.protocol)[0]
        finally:
            self.host.release_device(handle)

    def read(self, seen: Seen) -> None:
        """Read its first 4 KiB from the medium; raises RigTrouble when that fails."""
        source = f"if=/dev/{seen.name}"
        argv = ["dd", source, "of=/dev/null", "bs=4096", "count=1", "iflag=direct"]
        self.host.run(argv, deadline=READ_S)

    def bind(self, firmware: str) -> Drive:
        """The drive as it is now, every disagreement with the rig file refused."""
        return bind(self.host, self.drive.spec, firmware=firmware)

    def link_is_up(self) -> bool | None:
        """Whether the drive's SATA link is up; None where there is none to ask.

        A link that is up proves that the drive has power and that its cable is whole.
        """
        port = re.fullmatch(r"ata(\d+)", self.drive.ata_port or "")
        if not port:
            return None
        speed = self.host.read_files([f"/sys/class/ata_link/link{port[1]}/sata_spd"])
        value = next(iter(speed.values()))
        return None if value is None else not value.startswith(b"<")

    def said_since_attached(self, drive: Drive) -> tuple[KernelEvent, ...]:
        """What the kernel has said of the drive, as it is now, since it set it up."""
        if self._watch is None:
            return ()
        history = self._watch.history()
        attached = history.attached_at(drive.link.device) if drive.link else None
        return tuple(
            event
            for event in history.events
            if is_about(event, drive) and event.seconds >= (attached or 0.0)
        )

    def link_up_at(self, not_before: float) -> float | None:
        """When its SATA link came up, by the kernel's log and as `time.monotonic` counts.

        None where the log tells of none from `not_before` on, or nobody follows it.
        """
        if self._watch is None:
            return None
        ahead = self._watch.clock()
        said = self._watch.since(self._mark, self.drive)
        times = [e.seconds + ahead for e in said if e.kind in ("link-up", "link-slower")]
        return next((at for at in times if not_before <= at <= time.monotonic()), None)

    def point_out(self) -> str:
        """Light the drive's slot for whoever comes; where it is, to end a message with."""
        if self._slot is None:
            return ""
        lit = self._journal and light(self.host, self._journal, self._slot)
        tail = ", its locate light lit" if lit else ""
        return f". It is in {self._slot}{tail}"


def _who(disk: Seen) -> str:
    return f"{disk.model} {disk.serial or disk.hctl}"


def _key(disk: Seen) -> str:
    """The serial number, alike by udev (which writes spaces as underscores) and by sysfs."""
    return re.sub(r"[\s_]+", "_", disk.serial) or disk.hctl
