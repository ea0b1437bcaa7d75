"""The firmware matrix: models, their firmware, and what each must reach.

``docs/reference/firmware-matrix.md`` explains every field.  A limit belongs to
a class of drive, and a model may set its own; every one names its source.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from leadline.errors import Misuse
from leadline.inventory.fields import ClaimKey, Entry, FilePath, Name, PciId, Text
from leadline.inventory.rig import Protocol

DriveClass = Literal["ssd", "hdd"]


class LimitSpec(Entry):
    """What a drive must reach in one claim, in the claim's own unit, and who says so."""

    at_least: float | None = Field(default=None, allow_inf_nan=False, description="a number")
    at_most: float | None = Field(default=None, allow_inf_nan=False, description="a number")
    source: str = Field(min_length=1, description="where the limit comes from, in words")


class KnownIssue(Entry):
    """A claim that a firmware is known to break, and where that is written down."""

    claim: ClaimKey = Field(description="a claim's name, as in depth_8_over_depth_1")
    link: Text = Field(description="a URL or a document's path where the issue is described")
    summary: str = Field(min_length=1, description="the issue in a sentence")
    excuses: bool = Field(
        default=True, description="true (the claim may fail) or false (it is only noted)"
    )


class FirmwareSpec(Entry):
    """One firmware revision of a model."""

    revision: Text = Field(description="the revision as the drive says it")
    status: Literal["candidate", "released", "retired", "blocked"] = Field(
        description="candidate, released, retired or blocked"
    )
    image: FilePath | None = Field(default=None, description="a path to the firmware's image")
    sha256: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description="64 lower-case hex digits, as sha256sum prints them",
    )
    known_issues: tuple[KnownIssue, ...] = Field(
        default=(), description="a list of known issues, each with claim, link and summary"
    )


class ModelSpec(Entry):
    """One drive model and its firmware, in the order in which it is to be tested."""

    model: Text = Field(description="the model as the drive says it")
    class_: DriveClass = Field(validation_alias="class", description="ssd or hdd")
    protocol: Protocol = Field(description="sata, sas or scsi")
    queue_depth: int = Field(ge=1, le=1024, description="the depth that it advertises, as in 32")
    limits: Mapping[ClaimKey, LimitSpec] = Field(
        default={}, description="a mapping of claims to limits"
    )
    firmware: tuple[FirmwareSpec, ...] = Field(
        min_length=1, description="a list with one entry for each revision"
    )


class ControllerModel(Entry):
    """One kind of controller that drives are tested on."""

    name: Name = Field(description="a name of letters, digits and . _ -, at most 40")
    pci_id: PciId = Field(description="a PCI id, as in 8086:a282")
    driver: Name = Field(description="the kernel driver's name, as in ahci or mpt3sas")
    description: str = Field(default="", description="text")


class Matrix(Entry):
    """One firmware matrix."""

    path: Path = Field(default=Path("firmware_matrix.yaml"), description="the matrix's file")
    limits_by_class: Mapping[DriveClass, Mapping[ClaimKey, LimitSpec]] = Field(
        validation_alias="classes", description="a mapping of ssd and hdd to their limits"
    )
    models: tuple[ModelSpec, ...] = Field(
        min_length=1, description="a list with one entry for each model"
    )
    controllers: tuple[ControllerModel, ...] = Field(
        default=(), description="a list with one entry for each kind of controller"
    )

    def known(self, model: str) -> ModelSpec | None:
        """The entry of ``model``, or None."""
        return next((entry for entry in self.models if entry.model == model), None)

    def model(self, model: str) -> ModelSpec:
        """The entry of ``model``; Misuse when the matrix does not know it."""
        entry = self.known(model)
        if entry is None:
            models = ", ".join(entry.model for entry in self.models)
            raise Misuse(f"{self.path}: models: found no {model!r}, expected one of: {models}")
        return entry

    def firmware(self, model: str, revision: str) -> FirmwareSpec:
        """The entry of a model's firmware; Misuse when the matrix does not know either."""
        entry = self.model(model)
        for firmware in entry.firmware:
            if firmware.revision == revision:
                return firmware
        revisions = ", ".join(firmware.revision for firmware in entry.firmware)
        raise Misuse(
            f"{self.path}: firmware of {model}: found no {revision!r}, expected one of: {revisions}"
        )

    def limits_for(self, model: str) -> Mapping[str, LimitSpec]:
        """Limits by claim: those of the model's class, each replaced by the model's own if any.

        A claim that is not in the result has no limit for this model and is
        not made of it.  Misuse when the matrix does not know the model.
        """
        entry = self.model(model)
        return {**self.limits_by_class.get(entry.class_, {}), **entry.limits}
