"""The firmware matrix: models, their firmware, and what each must reach.

``docs/reference/firmware-matrix.md`` explains every field.  A limit belongs to
a class of drive, and a model may set its own; every one names its source.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from leadline.errors import Misuse
from leadline.inventory.checks import unique
from leadline.inventory.document import Document, Problem, read
from leadline.inventory.fields import ClaimKey, Entry, FilePath, Name, PciId, Text, Unfit, packaged
from leadline.inventory.rig import Protocol
from leadline.inventory.shape import require

USUAL = "firmware_matrix.yaml"
DriveClass = Literal["ssd", "hdd"]


class LimitSpec(Entry):
    """What a drive must reach in one claim, in the claim's own unit, and who says so."""

    at_least: float | None = Field(default=None, allow_inf_nan=False, description="a number")
    at_most: float | None = Field(default=None, allow_inf_nan=False, description="a number")
    source: str = Field(min_length=1, description="where the limit comes from, in words")

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise Unfit("no limit", "at_least, at_most or both")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise Unfit("at_least above at_most", "a range that a value can lie in")
        return self


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

    @model_validator(mode="after")
    def _image_has_its_hash(self) -> Self:
        if self.image is not None and self.sha256 is None:
            raise Unfit("an image without sha256", "its hash too, from: sha256sum IMAGE")
        return self


class ModelSpec(Entry):
    """One drive model and its firmware, in the order in which it is to be tested."""

    model: Text = Field(description="the model as the drive says it")
    class_: DriveClass = Field(validation_alias="class", description="ssd or hdd")
    protocol: Protocol = Field(description="sata, sas or scsi")
    queue_depth: int = Field(ge=1, le=1024, description="the depth that it advertises, as in 32")
    cache_bytes: int | None = Field(
        default=None, ge=0, description="bytes of its cache, as in 67108864; 0 for none"
    )
    channels: int | None = Field(
        default=None, ge=1, le=1024, description="how many requests it works on at once, as in 8"
    )
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

    path: Path = Path(USUAL)
    _document: Document | None = PrivateAttr(default=None)
    limits_by_class: Mapping[DriveClass, Mapping[ClaimKey, LimitSpec]] = Field(
        validation_alias="classes", description="a mapping of ssd and hdd to their limits"
    )
    models: tuple[ModelSpec, ...] = Field(
        min_length=1, description="a list with one entry for each model"
    )
    controllers: tuple[ControllerModel, ...] = Field(
        default=(), description="a list with one entry for each kind of controller"
    )

    def where(self, *location: str | int) -> str:
        """``file:line`` of a location in the file, as in ``where("models", 0, "firmware")``."""
        return self._document.where(*location) if self._document else str(self.path)

    def entry(self, model: str) -> ModelSpec | None:
        """The entry of ``model``, or None."""
        return next((entry for entry in self.models if entry.model == model), None)

    def model(self, model: str) -> ModelSpec:
        """The entry of ``model``; Misuse when the matrix does not know it."""
        entry = self.entry(model)
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


def load_matrix(path: Path | None = None) -> Matrix:
    """Read a firmware matrix; Misuse with everything that is wrong with it, line by line.

    Without a path: ``firmware_matrix.yaml`` of the working directory, else the
    one that comes with Leadline, which knows the drives of the virtual rig.
    Paths in the file are relative to its directory.  Images are not opened
    here: a plan that needs one checks it.
    """
    path = path or usual_matrix()
    document = read(path)
    matrix = require(document, Matrix, _checks(document), path=path)
    matrix._document = document
    return matrix


def usual_matrix() -> Path:
    """Where the matrix is when nobody names one."""
    here = Path(USUAL)
    return here if here.is_file() else packaged(USUAL)


def _checks(document: Document) -> Iterator[Problem]:
    yield from unique(document, ("models", "*", "model"), "model")
    for model in document.spread("models", "*"):
        yield from unique(document, (*model, "firmware", "*", "revision"), "revision of a model")
    yield from unique(document, ("controllers", "*", "name"), "name")
    yield from unique(document, ("controllers", "*", "pci_id"), "PCI id", str.lower)
