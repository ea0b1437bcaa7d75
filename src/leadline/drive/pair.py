"""A drive on its controller, as the running kernel has set the two up.

Most of what goes wrong with queueing goes wrong with a pair: an SSD family times out on one
vendor's AHCI controllers and nowhere else, a bridge hides what the drive could do, a port is
slower than what hangs on it.  Here is what was found of both, and what the kernel did about
it; what they must do together stands in the firmware matrix.

    /sys/class/scsi_host/<host>/ahci_host_caps     as the driver goes by it, corrected by itself
    /sys/class/scsi_host/<host>/{proc_name,can_queue}
    /sys/class/ata_link/<link>/hw_sata_spd_limit   what the port is limited to, by `libata.force`
                                                   or its firmware; "<unknown>" for not at all
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from leadline.drive import quirks
from leadline.drive.bind import Controller, Drive
from leadline.drive.kernel_watch import KernelHistory
from leadline.drive.quirks import Quirk
from leadline.drive.text import plain
from leadline.errors import Inconclusive
from leadline.host.connection import Host

_AHCI_ISS, _ISS_SHIFT = 0xF << 20, 20
"""AHCI 1.3.1, 3.1.1: HBA capabilities, Interface Speed Support."""
_GBPS_BY_ISS = {1: 1.5, 2: 3.0, 3: 6.0}


@dataclass(frozen=True, slots=True)
class Pair:
    """What was found; speeds are of the SATA link, in Gb/s, None where nobody tells."""

    controller: Controller
    adapter: str  # its driver as the SCSI layer calls it: "ahci", "virtio_scsi", "mpt3sas"
    takes: int | None  # commands that the driver takes at once
    port: str  # "ata1.00"; empty where libata has no part in it
    controller_gbps: float | None
    drive_gbps: float | None
    link_gbps: float | None  # now
    limit_gbps: float | None  # what libata.force or the port's firmware allow; None: no limit
    queue_depth: int | None  # the device queue depth when the drive was bound
    ncq: str  # what the kernel said of it when it set the drive up: "NCQ (depth 32)"; or empty
    quirks: tuple[Quirk, ...]
    forced: tuple[str, ...]  # by libata.force on the kernel's command line
    kernel: str  # its release
    whole_log: bool  # it is there from the boot on, so that nothing that it said is missed

    @property
    def port_gbps(self) -> float | None:
        """What the controller's port can do, by itself and by what it is limited to."""
        known = [gbps for gbps in (self.controller_gbps, self.limit_gbps) if gbps]
        return min(known, default=None)

    def full_gbps(self, controller_gbps: float | None) -> float | None:
        """The speed of the slower end; None where the drive does not tell its own.

        `controller_gbps` is the firmware matrix's, for a controller that does not tell.
        """
        if self.drive_gbps is None:
            return None
        return min(self.drive_gbps, self.controller_gbps or controller_gbps or self.drive_gbps)

    def unexpected(self, expected: Collection[str]) -> tuple[Quirk, ...]:
        """The quirks that the kernel reports beside those expected.

        Where its log has lost its beginning, what its command line forces on the drive, too.
        """
        reported = tuple(quirk for quirk in self.quirks if quirk.name not in expected)
        return reported if self.whole_log else (*reported, *self._forced_beside(expected))

    def _forced_beside(self, expected: Collection[str]) -> Iterator[Quirk]:
        """Values of libata.force, which may be cut short: ``1.5G`` is ``1.5Gbps``."""
        known = [*expected, *(quirk.name for quirk in self.quirks)]
        for value in self.forced:
            if not any(name.lower().startswith(value.lower()) for name in known):
                yield Quirk(value, "libata.force on the kernel's command line")

    def missing(self, expected: Collection[str]) -> tuple[str, ...]:
        """The quirks that are expected and that the kernel does not report.

        Nothing is missing where libata has no part in the pair, as behind a SAS HBA.  Raises
        Inconclusive where it may apply such a quirk without a word.
        """
        if not self.port:
            return ()
        applied = {quirk.name for quirk in self.quirks}
        lacking = tuple(name for name in expected if name not in applied)
        if not self.whole_log or quirks.names_them(self.kernel):
            return lacking
        sure = tuple(name for name in lacking if name in quirks.NOTICED)
        if lacking and not sure:
            raise Inconclusive(
                f"whether the kernel applies {', '.join(lacking)} cannot be told: it is "
                f"{self.kernel}, which does not print the names of quirks, as Linux "
                f"{'.'.join(map(str, quirks.NAMED_SINCE))} does"
            )
        return sure

    def as_json(self) -> dict[str, object]:
        """What was found as plain values; docs/reference/identify.md lists the fields."""
        return {
            "pci_address": self.controller.pci_address or None,
            "pci_id": self.controller.pci_id or None,
            "driver": self.controller.driver or None,
            "adapter": self.adapter or None,
            "takes": self.takes,
            "port": self.port or None,
            "port_gbps": self.port_gbps,
            "link_gbps": self.link_gbps,
            "queue_depth": self.queue_depth,
            "ncq": self.ncq or None,
            "quirks": [quirk.name for quirk in self.quirks],
            "forced": list(self.forced),
        }

    def __str__(self) -> str:
        """A line for each thing that there is something to say of."""
        quirks_text = ", ".join(map(str, self.quirks)) or "none reported"
        facts = {
            "controller": f"{self.controller}, {self.adapter or 'unknown'} to the SCSI layer",
            "takes at once": "" if self.takes is None else str(self.takes),
            "port": self.port,
            "link": self._link_text(),
            "device queue depth": "" if self.queue_depth is None else str(self.queue_depth),
            "kernel on NCQ": self.ncq,
            "quirks": quirks_text if self.port else "",
            "libata.force": ", ".join(self.forced),
        }
        return "\n".join(f"{name}: {value}" for name, value in facts.items() if value)

    def _link_text(self) -> str:
        speeds = {
            "now": self.link_gbps,
            "drive": self.drive_gbps,
            "controller": self.controller_gbps,
            "limited to": self.limit_gbps,
        }
        return ", ".join(f"{name} {gbps:g} Gb/s" for name, gbps in speeds.items() if gbps)


def find(host: Host, drive: Drive, history: KernelHistory) -> Pair:
    """The pair of a bound drive; `history` is what the kernel's log says since boot.

    One round trip; nothing is changed.
    """
    adapter = f"/sys/class/scsi_host/{drive.controller.scsi_host}"
    paths = {
        "name": f"{adapter}/proc_name",
        "takes": f"{adapter}/can_queue",
        "caps": f"{adapter}/ahci_host_caps",
        "command line": "/proc/cmdline",
        "kernel": "/proc/sys/kernel/osrelease",
    }
    if drive.link:
        paths["limit"] = f"/sys/class/ata_link/{drive.link.name}/hw_sata_spd_limit"
    read = host.read_files(list(paths.values()))
    texts = {name: _text(read.get(path)) for name, path in paths.items()}
    return judge(drive, history, texts)


def judge(drive: Drive, history: KernelHistory, texts: dict[str, str]) -> Pair:
    """The pair, from what was read: texts by the names in `find`, empty where there is none."""
    device = drive.link.device if drive.link else ""
    ends = drive.identify.link if drive.identify else None
    by_drive = ends.current_gbps if ends else None
    return Pair(
        controller=drive.controller,
        adapter=texts["name"],
        takes=int(texts["takes"]) if texts["takes"].isdecimal() else None,
        port=device,
        controller_gbps=_ahci_gbps(texts["caps"]),
        drive_gbps=ends.supported_gbps if ends else None,
        link_gbps=_gbps(drive.link.speed if drive.link else "") or by_drive,
        limit_gbps=_gbps(texts.get("limit", "")),
        queue_depth=drive.queue_depth,
        ncq=history.ncq_choice(device) or "",
        quirks=quirks.applied(drive, history),
        forced=quirks.forced(texts["command line"], device) if device else (),
        kernel=texts["kernel"],
        whole_log=history.complete,
    )


def _ahci_gbps(caps: str) -> float | None:
    """The speed that an AHCI controller's ports can do, by its capabilities in hexadecimal."""
    iss = (int(caps, 16) & _AHCI_ISS) >> _ISS_SHIFT if re.fullmatch(r"[0-9a-f]+", caps) else 0
    return _GBPS_BY_ISS.get(iss)


def _gbps(speed: str) -> float | None:
    """Of sysfs' "6.0 Gbps"; None where there is none."""
    found = re.fullmatch(r"(\d+\.\d+) Gbps", speed)
    return float(found[1]) if found else None


def _text(data: bytes | None) -> str:
    return plain((data or b"").decode("ascii", "replace")).strip()
