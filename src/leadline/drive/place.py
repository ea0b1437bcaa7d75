"""Where a drive hangs, from sysfs: controller, place in libata, and the state of its link."""

import re
from dataclasses import dataclass

from leadline.drive.text import plain
from leadline.host.connection import Host

_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


@dataclass(frozen=True, slots=True)
class Controller:
    """The HBA that a drive hangs on; fields are empty where it is no PCI device."""

    pci_address: str  # "0000:00:1f.2"
    pci_id: str  # "8086:2922"
    driver: str  # "ahci"
    scsi_host: str  # "host0"

    def __str__(self) -> str:
        driver = self.driver or "no driver known"
        return f"{driver} at {self.pci_address} ({self.pci_id})" if self.pci_address else driver


@dataclass(frozen=True, slots=True)
class Link:
    """A drive's place in libata and the state of its link when it was bound."""

    port: str  # "ata1", as the kernel log has it
    device: str  # "ata1.00", as the kernel log has it
    speed: str  # "6.0 Gbps"; empty where the port has no SATA link
    speed_lowered: int  # times that error handling lowered the speed (spdn_cnt)
    trim: str  # "queued", "unqueued", "unsupported" or "forced_unqueued"; empty before 4.2
    name: str = ""  # "link1", as /sys/class/ata_link has it
    speed_limit: str = ""  # the most that error handling allows; empty where nothing limits it


@dataclass(frozen=True, slots=True)
class Place:
    """What sysfs has of a drive's place; `link` is None where libata does not drive it."""

    controller: Controller
    link: Link | None
    queue_depth: int | None


def place_of(host: Host, name: str, hctl: str) -> Place:
    """The place of the disk that the kernel calls `name`, and its device queue depth."""
    block = f"/sys/block/{name}"
    way = host.read_link(block)  # ../devices/pci0000:00/0000:00:1f.2/ata1/host0/.../block/sda
    pci = next(reversed(_PCI.findall(way)), "")
    scsi_host = next(iter(re.findall(r"/(host\d+)/", way)), "")
    ata = re.search(r"/ata(\d+)/", way)
    attributes = {
        "depth": f"{block}/device/queue_depth",
        "pci": f"/sys/bus/pci/devices/{pci}/uevent",
    }
    places = _link_places(ata[1], hctl) if ata else ()
    for link, device in places:
        attributes |= {
            f"{link} speed": f"/sys/class/ata_link/{link}/sata_spd",
            f"{link} limit": f"/sys/class/ata_link/{link}/sata_spd_limit",
            f"{device} lowered": f"/sys/class/ata_device/{device}/spdn_cnt",
            f"{device} trim": f"/sys/class/ata_device/{device}/trim",
        }
    read = host.read_files(list(attributes.values()))
    values = {key: _text(read.get(path)) for key, path in attributes.items()}
    return Place(
        controller=_controller(pci, values["pci"], scsi_host),
        link=_link(ata[1], places, values) if ata else None,
        queue_depth=int(values["depth"]) if values["depth"].isdigit() else None,
    )


def _text(data: bytes | None) -> str:
    return plain((data or b"").decode("ascii", "replace").replace("\n", "\t")).strip()


def _controller(pci: str, uevent: str, scsi_host: str) -> Controller:
    fields = dict(field.split("=", 1) for field in uevent.split() if "=" in field)
    return Controller(pci, fields.get("PCI_ID", "").lower(), fields.get("DRIVER", ""), scsi_host)


def _link_places(port: str, hctl: str) -> tuple[tuple[str, str], ...]:
    """Where libata keeps a drive's link and device, behind a port multiplier and without one.

    libata numbers SCSI devices so that the channel is the port multiplier's port and
    the id the device on its link (0 or, on an IDE cable, 1).
    """
    _, channel, device, _ = hctl.split(":")
    return (
        (f"link{port}.{channel}", f"dev{port}.{channel}.{device}"),
        (f"link{port}", f"dev{port}.{device}"),
    )


def _link(port: str, places: tuple[tuple[str, str], ...], values: dict[str, str]) -> Link:
    link, device = next((p for p in places if values[f"{p[1]} lowered"]), places[-1])
    lowered = values[f"{device} lowered"]
    speed, limit = values[f"{link} speed"], values[f"{link} limit"]
    number = int(device.split(".")[1])  # the device's, or its port multiplier's port
    return Link(
        port=f"ata{port}",
        device=f"ata{port}.{number:02d}",
        speed="" if speed.startswith("<") else speed,
        speed_lowered=int(lowered) if lowered.isdigit() else 0,
        trim=values[f"{device} trim"],
        name=link,
        speed_limit="" if limit.startswith("<") else limit,
    )
