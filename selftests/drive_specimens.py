"""A drive under test as the live part of `leadline.drive` sees one, for tests without a rig."""

from collections.abc import Mapping

from leadline.drive.ask import ata_identity
from leadline.drive.bind import Controller, Drive, Identity, Link
from leadline.drive.identify import decode
from leadline.inventory.rig import DriveSpec
from selftests.identify_images import image

SPEC = DriveSpec(
    slot="slot1",
    model="LEADLINE SPECIMEN",
    serial="SPEC0001",
    wwn="0x5000c50000000001",
    firmware="1.0",
    controller="onboard",
    protocol="sata",
)
AHCI = Controller("0000:00:1f.2", "8086:2922", "ahci", "host0")
LINK = Link("ata1", "ata1.00", "6.0 Gbps", 0, "queued")


def sata_drive(
    *,
    words: Mapping[int, int] | None = None,
    controller: Controller = AHCI,
    link: Link | None = LINK,
    queue_depth: int = 32,
) -> Drive:
    """A SATA drive; `words` replace those of its IDENTIFY data."""
    identify = decode(image(words=words))
    return Drive(
        spec=SPEC,
        node="/dev/sda",
        name="sda",
        hctl="0:0:0:0",
        sg="/dev/sg0",
        controller=controller,
        link=link,
        queue_depth=queue_depth,
        identity=ata_identity(identify),
        identify=identify,
    )


def scsi_drive() -> Drive:
    """A drive that speaks SCSI."""
    return Drive(
        spec=SPEC.model_copy(update={"protocol": "scsi", "model": "LEADLINE VSPECIMEN"}),
        node="/dev/sdb",
        name="sdb",
        hctl="1:0:3:0",
        sg=None,
        controller=Controller("0000:00:04.0", "1af4:1004", "virtio-pci", "host1"),
        link=None,
        queue_depth=64,
        identity=Identity("LEADLINE VSPECIMEN", "SPEC0001", "0x5000c50000000001", "0001", 1 << 30),
        identify=None,
    )
