"""A rig file: one Linux host, the drives under test on it, and what feeds them.

``docs/reference/rig-file.md`` and ``rigs/example-bench.yaml`` explain every
field.  Nothing here looks at hardware.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, PlainValidator, PrivateAttr, model_validator

from leadline.errors import Misuse
from leadline.inventory.document import Document, read
from leadline.inventory.fields import (
    Entry,
    FilePath,
    Name,
    PciAddress,
    PciId,
    Seconds,
    Sha256,
    Text,
    Unfit,
    Wwn,
)
from leadline.inventory.flash import Flash
from leadline.inventory.pdu import PduSpec
from leadline.inventory.rig_checks import rig_problems
from leadline.inventory.shape import require

Protocol = Literal["sata", "sas", "scsi"]


class HostSpec(Entry):
    """How the rig's host is reached, and how it is shut down before its outlet is cut."""

    reach: Literal["local", "ssh"] = Field(description="local (this machine) or ssh")
    address: str = Field(
        default="",
        pattern=r"^([A-Za-z0-9_][A-Za-z0-9._@:%-]*)?$",
        description="a host name, user@host, or a Host alias of the ssh configuration",
    )
    ssh_config: FilePath | None = Field(default=None, description="a path to an ssh_config file")
    shutdown: tuple[Text, ...] = Field(
        default=("systemctl", "poweroff"),
        min_length=1,
        description="a list: the program and its arguments that power the host off",
    )
    shutdown_s: Seconds = Field(
        default=5, description="seconds from the loss of contact until the host is down"
    )
    boot_deadline_s: Seconds = Field(
        default=300, description="seconds from power on to a login, more than 0"
    )

    @model_validator(mode="after")
    def _address_fits_reach(self) -> Self:
        if self.reach == "ssh" and not self.address:
            raise Unfit("reach ssh without an address", "address too")
        if self.reach == "local" and (self.address or self.ssh_config):
            raise Unfit("reach local with an address or ssh_config", "reach ssh, or neither")
        return self


class ControllerSpec(Entry):
    """One HBA with drives under test."""

    name: Name = Field(description="a name of letters, digits and . _ -, at most 40")
    pci_address: PciAddress | None = Field(
        default=None, description="a PCI address, as in 0000:00:17.0"
    )
    pci_id: PciId | None = Field(default=None, description="a PCI id, as in 8086:a282")
    driver: Name = Field(description="the kernel driver's name, as in ahci or mpt3sas")


def _not_host(slot: str) -> str:
    if slot == "host":
        raise ValueError("another name: an outlet that feeds host feeds the host itself")
    return slot


Slot = Annotated[Name, AfterValidator(_not_host)]
_FEEDS = "host, or a list of slots, as in [slot1, slot2]"


def _feeds(value: object) -> object:
    if isinstance(value, list | tuple) and value and all(isinstance(slot, str) for slot in value):
        return tuple(value)
    if value == "host":
        return value
    raise ValueError(_FEEDS)


Feeds = Annotated[Literal["host"] | tuple[str, ...], PlainValidator(_feeds)]


class OutletSpec(Entry):
    """One outlet of a PDU and what goes dark with it."""

    name: Name = Field(description="a name of letters, digits and . _ -, at most 40")
    pdu: str = Field(description="the name of one of the pdus")
    outlet: int = Field(ge=1, description="the outlet's number on its PDU, from 1")
    feeds: Feeds = Field(description=_FEEDS)


class PowerBudget(Entry):
    """How often a drive's power may be cut, in all runs; None: as often as is asked for."""

    power_cycles: int | None = Field(default=None, ge=0, description="a number, 0 or more")
    emergency_unloads: int | None = Field(default=None, ge=0, description="a number, 0 or more")

    @model_validator(mode="after")
    def _bounds_something(self) -> Self:
        if self.power_cycles is None and self.emergency_unloads is None:
            raise Unfit("no budget", "power_cycles, emergency_unloads or both")
        return self


_ATA_LENGTHS = {"serial": 20, "firmware": 8, "model": 40}
"""Characters in IDENTIFY DEVICE words 10-19, 23-26 and 27-46 (ATA8-ACS table 29)."""


class DriveSpec(Entry):
    """One drive under test, known by what it says of itself and never by a device node."""

    slot: Slot = Field(description="a name of letters, digits and . _ -, at most 40; not host")
    model: Text = Field(description="the model as the drive says it")
    serial: Text = Field(description="the serial number as the drive says it")
    wwn: Wwn | None = Field(default=None, description="16 hex digits, as in 0x5000c500a1b2c3d4")
    firmware: Text = Field(description="the firmware revision as the drive says it")
    firmware_sha256: Sha256 | None = Field(
        default=None, description="64 lower-case hex digits, of the image that is on the drive"
    )
    controller: str = Field(description="the name of one of the controllers")
    protocol: Protocol = Field(description="sata, sas or scsi")
    writes: Literal["forbidden", "allowed"] = Field(
        default="forbidden", description="forbidden or allowed"
    )
    signatures: tuple[Text, ...] = Field(
        default=(), description="a list of what may be overwritten, named as by wipefs: [ext4, gpt]"
    )
    off_s: Seconds = Field(default=10, description="seconds of power off, more than 0")
    ready_s: Seconds = Field(default=30, description="seconds from power on to ready, more than 0")
    spin_up_gap_s: float = Field(
        default=0,
        ge=0,
        le=600,
        allow_inf_nan=False,
        description="seconds from power on for which no other disk is switched on, 0 to 600",
    )
    power_budget: PowerBudget | None = Field(
        default=None, description="a mapping with power_cycles, emergency_unloads or both"
    )
    flash: Flash = Field(default=None, description="forbidden, allowed, or a mapping that says how")

    @property
    def resource(self) -> str:
        """By what its lease is taken."""
        return self.wwn or f"serial:{self.serial}"

    @model_validator(mode="after")
    def _fits_identify(self) -> Self:
        for name, most in _ATA_LENGTHS.items() if self.protocol == "sata" else ():
            text: str = getattr(self, name)
            if len(text) > most:
                expected = f"at most {most}: IDENTIFY DEVICE has no room for more"
                raise Unfit(f"a {name} of {len(text)} characters", expected)
        return self

    @model_validator(mode="after")
    def _has_spun_up_when_ready(self) -> Self:
        if self.spin_up_gap_s > self.ready_s:
            found = f"spin_up_gap_s {self.spin_up_gap_s:g} with ready_s {self.ready_s:g}"
            raise Unfit(found, "no more than ready_s: a disk that is ready has spun up")
        return self


class VirtualDriveSpec(Entry):
    """How the virtual machine makes one slot's drive: from a profile, or any NBD export."""

    slot: str = Field(description="the slot of one of the drives")
    bus: Literal["ahci", "ide", "virtio-scsi"] = Field(description="ahci, ide or virtio-scsi")
    profile: FilePath | None = Field(default=None, description="a path to a drive's profile")
    medium: str | None = Field(
        default=None,
        pattern=r"^nbd(\+unix)?://\S+$",
        description="an NBD URI, as in nbd://localhost:10809/name",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.profile is None and self.medium is None:
            raise Unfit("neither a profile nor a medium", "one of them")
        if self.profile is not None and self.medium is not None:
            raise Unfit("both a profile and a medium", "one of them")
        return self


class VirtualSpec(Entry):
    """The virtual machine that plays the rig's host; only ``leadline virtual`` reads it."""

    memory_mib: int = Field(default=1024, ge=512, le=65536, description="MiB, 512 to 65536")
    cpus: int | None = Field(default=None, ge=1, le=64, description="how many processors, 1 to 64")
    kernel: FilePath | None = Field(default=None, description="a path to a kernel image")
    kernel_arguments: str = Field(default="", description="words for the kernel's command line")
    drives: tuple[VirtualDriveSpec, ...] = Field(
        min_length=1, description="a list with one entry for each drive"
    )


class Rig(Entry):
    """One rig file."""

    name: Name = Field(
        validation_alias="rig", description="a name of letters, digits and . _ -, at most 40"
    )
    path: Path
    _document: Document | None = PrivateAttr(default=None)
    description: str = Field(default="", description="text")
    host: HostSpec = Field(description="a mapping: how the host is reached")
    controllers: tuple[ControllerSpec, ...] = Field(
        min_length=1, description="a list with one entry for each controller"
    )
    pdus: tuple[PduSpec, ...] = Field(default=(), description="a list with one entry for each PDU")
    outlets: tuple[OutletSpec, ...] = Field(
        default=(), description="a list with one entry for each outlet in use"
    )
    drives: tuple[DriveSpec, ...] = Field(
        min_length=1, description="a list with one entry for each drive under test"
    )
    virtual: VirtualSpec | None = Field(
        default=None, description="a mapping: the machine that plays this rig"
    )

    def where(self, *location: str | int) -> str:
        """``file:line`` of a location in the file, as in ``where("drives", 0, "firmware")``."""
        return self._document.where(*location) if self._document else str(self.path)

    def drive(self, slot: str) -> DriveSpec:
        """The drive in ``slot``; Misuse when there is none."""
        for drive in self.drives:
            if drive.slot == slot:
                return drive
        slots = ", ".join(drive.slot for drive in self.drives)
        raise Misuse(f"{self.path}: found no slot {slot!r}, expected one of: {slots}")

    def controller_of(self, drive: DriveSpec) -> ControllerSpec:
        """The controller that ``drive`` hangs on."""
        return next(entry for entry in self.controllers if entry.name == drive.controller)

    def pdu_of(self, outlet: OutletSpec) -> PduSpec:
        """The PDU that ``outlet`` belongs to."""
        return next(entry for entry in self.pdus if entry.name == outlet.pdu)

    def host_outlets(self) -> tuple[OutletSpec, ...]:
        """The outlets that feed the host; more than one where its supplies are redundant."""
        return tuple(outlet for outlet in self.outlets if outlet.feeds == "host")

    def outlets_of(self, drive: DriveSpec) -> tuple[OutletSpec, ...]:
        """The outlets whose cutting powers ``drive`` off: all of them together.

        Those that name its slot; else those that feed the host, for a drive
        with no outlet of its own lives on the host's supply; else none.
        """
        own = tuple(
            outlet
            for outlet in self.outlets
            if outlet.feeds != "host" and drive.slot in outlet.feeds
        )
        return own or self.host_outlets()

    def sharing(self, outlet: OutletSpec) -> tuple[DriveSpec, ...]:
        """The drives that go dark with ``outlet``, in the file's order.

        An outlet of the host takes every drive with it: those that have power
        of their own lose the controller that they hang on.
        """
        if outlet.feeds == "host":
            return self.drives
        return tuple(drive for drive in self.drives if drive.slot in outlet.feeds)

    def spun_up_by(self, outlet: OutletSpec) -> tuple[DriveSpec, ...]:
        """The disks that `outlet` powers, perhaps with others: those with a `spin_up_gap_s`."""
        powered = (drive for drive in self.drives if outlet in self.outlets_of(drive))
        return tuple(drive for drive in powered if drive.spin_up_gap_s)


def load_rig(path: Path) -> Rig:
    """Read a rig file; Misuse with everything that is wrong with it, line by line.

    Paths in the file are relative to its directory.  Nothing is looked up on
    any rig.
    """
    document = read(path)
    rig = require(document, Rig, rig_problems(document), path=path)
    rig._document = document
    return rig
