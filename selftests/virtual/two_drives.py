"""A virtual rig with two drives of one model on one controller, and what is above them now."""

from pathlib import Path

from leadline.drive.bind import bind
from leadline.drive.in_use import parse_mounts, uses_of
from leadline.host.connection import Host
from leadline.inventory.rig import Rig
from selftests.virtual.conftest import RIGS, MakeRig

HEALTHY = RIGS / "profiles" / "vssd-1.0.yaml"
SECOND = """
  - slot: ssd2
    model: LEADLINE VSSD
    serial: VSSD0002
    firmware: "1.0"
    controller: ahci
    protocol: sata
    writes: allowed
    off_s: 1
    ready_s: 60

virtual:
"""


def two_drives(make_rig: MakeRig, name: str, folder: Path) -> Path:
    """The packaged rig with a second VSSD, in slot ssd2, beside the one in ssd1."""
    twin = folder / "twin.yaml"
    wwn = "wwn: 0x5000c5000000a001\n"
    twin.write_text(HEALTHY.read_text().replace("VSSD0001", "VSSD0002").replace(wwn, ""))
    medium = f"    - slot: ssd2\n      bus: ahci\n      profile: {twin}\n"
    slot = "    - slot: scsi1\n      bus"
    return make_rig(name, ("\nvirtual:\n", SECOND), (slot, medium + slot))


def left_above(host: Host, rig: Rig) -> list[str]:
    """Whatever is above the two drives, or on them; empty when they are free."""
    mounts = parse_mounts(host.read_file("/proc/self/mountinfo").decode())
    found = [mount.point for mount in mounts if "leadline" in mount.point]
    found += [name for name in host.list_dir("/mnt") if name] if host.exists("/mnt") else []
    for slot in ("ssd1", "ssd2"):
        uses = uses_of(host, bind(host, rig.drive(slot)).name)
        found += [str(uses)] if uses else []
        found += [f"{mark.kind} on {mark.device}" for mark in uses.signatures]
    return found
