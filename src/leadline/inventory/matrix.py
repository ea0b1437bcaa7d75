"""The firmware matrix: models, their firmware, and what each must reach.

``docs/reference/firmware-matrix.md`` explains every field.  A limit belongs to
a class of drive; a model, a firmware and a controller may set another
(:mod:`leadline.inventory.inheritance`), and every one names its source.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from leadline.errors import Misuse
from leadline.inventory import inheritance
from leadline.inventory.document import Document, read
from leadline.inventory.fields import (
    ClaimKey,
    Entry,
    FilePath,
    Name,
    PciId,
    Sha256,
    Text,
    Unfit,
    Words,
    packaged,
)
from leadline.inventory.globs import ANY, fits, is_glob
from leadline.inventory.issues import KnownIssue, note_places
from leadline.inventory.matrix_checks import matrix_problems
from leadline.inventory.rig import Protocol
from leadline.inventory.shape import require

USUAL = "firmware_matrix.yaml"
DriveClass = Literal["ssd", "hdd"]
Status = Literal["candidate", "released", "withdrawn"]


class Bounds(Entry):
    """What a value must lie between, in the claim's own unit, and who says so."""

    at_least: float | None = Field(default=None, allow_inf_nan=False, description="a number")
    at_most: float | None = Field(default=None, allow_inf_nan=False, description="a number")
    source: Words = Field(description="where the limit comes from, in words")

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise Unfit("no limit", "at_least, at_most or both")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise Unfit("at_least above at_most", "a range that a value can lie in")
        return self


class KernelLimit(Bounds):
    """What takes a limit's place where the rig's kernel is one of these."""

    kernel: Text = Field(description="a kernel's release, or a glob as in 6.1.*")


class LimitSpec(Bounds):
    """What a drive must reach in one claim."""

    kernels: tuple[KernelLimit, ...] = Field(
        default=(), description="a list of what holds on other kernels"
    )

    def on(self, kernel: str) -> "LimitSpec":
        """The limit on a kernel, by its release as in ``uname -r``; itself where none is given."""
        for other in self.kernels:
            if fits(other.kernel, kernel):
                return LimitSpec(
                    at_least=other.at_least, at_most=other.at_most, source=other.source
                )
        return self


class FirmwareSpec(Entry):
    """One firmware of a model: a revision as built once, known by its image's hash."""

    revision: Text = Field(description="its name: the revision as the drive says it, or another")
    said: Text | None = Field(
        default=None,
        validation_alias="shows",
        description="the revision as the drive says it, where that is not its name",
    )
    status: Status = Field(description="candidate, released or withdrawn")
    image: FilePath | None = Field(default=None, description="a path to the firmware's image")
    sha256: Sha256 | None = Field(
        default=None, description="64 lower-case hex digits, as sha256sum prints them"
    )
    activation: Literal["at-once", "power-cycle"] | None = Field(
        default=None, description="at-once or power-cycle"
    )
    predecessor: str | None = Field(
        default=None, description="the revision, of this model, that it takes the place of"
    )
    downgrade: Literal["allowed", "refused"] = Field(
        default="allowed", description="allowed or refused"
    )
    limits: Mapping[ClaimKey, LimitSpec] = Field(
        default={}, description="a mapping of claims to limits"
    )
    known_issues: tuple[KnownIssue, ...] = Field(
        default=(), description="a list of known issues, each with claim, link and summary"
    )

    @property
    def shows(self) -> str:
        """The revision as a drive with this firmware says it."""
        return self.said or self.revision

    @model_validator(mode="after")
    def _image_has_its_hash(self) -> Self:
        if self.image is not None and self.sha256 is None:
            raise Unfit("an image without sha256", "its hash too, from: sha256sum IMAGE")
        return self


class ModelSpec(Entry):
    """One drive model, or several with one name's pattern, and their firmware.

    Firmware stands in the order in which it is to be tested.
    """

    model: Text = Field(description="the model as the drive says it, or a glob")
    class_: DriveClass = Field(validation_alias="class", description="ssd or hdd")
    protocol: Protocol = Field(description="sata, sas or scsi")
    queue_depth: int = Field(ge=1, le=1024, description="the depth that it advertises, as in 32")
    cache_bytes: int | None = Field(
        default=None, ge=0, description="bytes of its cache, as in 67108864; 0 for none"
    )
    controllers: tuple[str, ...] | None = Field(
        default=None, description="a list of the controllers that it is to be tested on"
    )
    quirks: tuple[Text, ...] | None = Field(
        default=None, description="a list of what the kernel does otherwise for it: [noncqtrim]"
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

    @cached_property
    def by_revision(self) -> Mapping[str, FirmwareSpec]:
        """Its firmware by name."""
        return {each.revision: each for each in self.firmware}

    def showing(self, revision: str, sha256: str | None = None) -> tuple[FirmwareSpec, ...]:
        """The firmware that a drive says this revision of; of this image, where one is given."""
        return tuple(
            each
            for each in self.firmware
            if each.shows == revision and sha256 in (None, each.sha256)
        )

    def older(self, firmware: FirmwareSpec) -> Iterator[str]:
        """The names of a firmware's predecessors, the youngest first."""
        while firmware.predecessor is not None:
            yield firmware.predecessor
            firmware = self.by_revision[firmware.predecessor]

    def passed_over(self, firmware: FirmwareSpec, against: str) -> str:
        """Why a candidate is held `against` another than its predecessor; "" where it is not."""
        said = []
        for name in self.older(firmware):
            if name == against:
                break
            status = self.by_revision[name].status
            said.append(f"{name} {'was withdrawn' if status == 'withdrawn' else f'is a {status}'}")
        return f"of those before {firmware.revision}, {', '.join(said)}" if said else ""

    def takes(self, on_it: FirmwareSpec, other: FirmwareSpec) -> bool:
        """Whether a drive with one firmware takes another.

        One that refuses downgrades takes those only that come after it.
        """
        allowed = on_it.downgrade == "allowed" or other is on_it
        return allowed or on_it.revision in self.older(other)


class UnqueuedPair(Entry):
    """Drives whose commands are not to be queued on a controller, and who says so."""

    model: Text = Field(description="a model, or a glob")
    firmware: Text = Field(default=ANY, description="a revision as the drive says it, or a glob")
    source: Words = Field(description="where that comes from, in words")


class ControllerModel(Entry):
    """One kind of controller that drives are tested on, and what it must support."""

    name: Name = Field(description="a name of letters, digits and . _ -, at most 40")
    pci_id: PciId = Field(description="a PCI id, as in 8086:a282")
    driver: Name = Field(description="the kernel driver's name, as in ahci or mpt3sas")
    description: str = Field(default="", description="text")
    ncq: Literal["required", "none"] | None = Field(
        default=None, description="required (it must queue) or none (it cannot)"
    )
    max_queue_depth: int | None = Field(
        default=None, ge=1, le=1024, description="the deepest queue of one drive, as in 32"
    )
    link_gbps: float | None = Field(
        default=None, gt=0, le=100, description="Gb/s of its links, as in 6"
    )
    quirks: tuple[Text, ...] | None = Field(
        default=None, description="a list of what the kernel does otherwise on it: [nopmp]"
    )
    must_not_queue: tuple[UnqueuedPair, ...] = Field(
        default=(), description="a list of drives, each with model, firmware and source"
    )
    limits_by_class: Mapping[DriveClass, Mapping[ClaimKey, LimitSpec]] = Field(
        default={},
        validation_alias="classes",
        description="a mapping of ssd and hdd to their limits on it",
    )

    @model_validator(mode="after")
    def _depth_fits_ncq(self) -> Self:
        if self.ncq == "none" and (self.max_queue_depth or 1) > 1:
            found = f"ncq none with max_queue_depth {self.max_queue_depth}"
            raise Unfit(found, "max_queue_depth 1, or ncq required")
        return self

    def unqueued(self, model: str, shows: str) -> UnqueuedPair | None:
        """Why a drive's commands are not to be queued here; None when they may be."""
        return next(
            (
                pair
                for pair in self.must_not_queue
                if fits(pair.model, model) and fits(pair.firmware, shows)
            ),
            None,
        )


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
    known_issues: tuple[KnownIssue, ...] = Field(
        default=(), description="a list of known issues of several models or firmware"
    )

    def where(self, *location: str | int) -> str:
        """``file:line`` of a location in the file, as in ``where("models", 0, "firmware")``."""
        return self._document.where(*location) if self._document else str(self.path)

    def field(self, *location: str | int) -> str:
        """``file:line: field`` of a location, as a message begins."""
        name = self._document.field_name(location) if self._document else ""
        return f"{self.where(*location)}: {name}"

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Where in ``models`` each entry stands, by its model or glob."""
        return {entry.model: n for n, entry in enumerate(self.models)}

    @cached_property
    def _globs(self) -> tuple[ModelSpec, ...]:
        return tuple(entry for entry in self.models if is_glob(entry.model))

    def entry(self, model: str) -> ModelSpec | None:
        """The entry of ``model``: the one that names it, else one whose glob it fits; or None."""
        if model not in self._entries:
            named = self.place.get(model)
            globs = (entry for entry in self._globs if fits(entry.model, model))
            self._entries[model] = next(globs, None) if named is None else self.models[named]
        return self._entries[model]

    @cached_property
    def _entries(self) -> dict[str, ModelSpec | None]:
        """What was found before: a plan asks for each cell, and there are thousands."""
        return {}

    def model(self, model: str) -> ModelSpec:
        """The entry of ``model``; Misuse when the matrix does not know it."""
        entry = self.entry(model)
        if entry is None:
            models = ", ".join(entry.model for entry in self.models)
            raise Misuse(f"{self.path}: models: found no {model!r}, expected one of: {models}")
        return entry

    def firmware(self, model: str, revision: str) -> FirmwareSpec:
        """The entry of a model's firmware, by its name; Misuse when the matrix lacks either."""
        entry = self.model(model)
        if revision in entry.by_revision:
            return entry.by_revision[revision]
        revisions = ", ".join(firmware.revision for firmware in entry.firmware)
        raise Misuse(
            f"{self.path}: firmware of {model}: found no {revision!r}, expected one of: {revisions}"
        )

    def controller(self, name: str) -> ControllerModel | None:
        """The controller of that name, or None."""
        return next((each for each in self.controllers if each.name == name), None)

    def controller_with(self, pci_id: str, driver: str) -> ControllerModel | None:
        """The controller with that PCI id and kernel driver, or None."""
        same = (e for e in self.controllers if (e.pci_id, e.driver) == (pci_id, driver))
        return next(same, None)

    def limits_for(
        self, model: str, firmware: str = "", controller: str = "", kernel: str = ""
    ) -> Mapping[str, LimitSpec]:
        """Limits by claim: of the model's class, each replaced by the nearest that there is.

        Nearest of all is the controller's, then the firmware's, then the model's
        own; what is not given has none.  A claim that is not in the result has no
        limit and is not made.  Misuse when the matrix does not know the model.
        """
        entry = self.model(model)
        spec = entry.by_revision.get(firmware)
        # Most firmware have no limits of their own, and so the same as the others of their model.
        own = firmware if spec is not None and spec.limits else ""
        key = (entry.model, own, controller, kernel)
        if key not in self._limits:
            chains = inheritance.chains(self, model, own, controller)
            held = {claim: chain[-1].limit for claim, chain in chains.items()}
            self._limits[key] = {claim: limit.on(kernel) for claim, limit in held.items()}
        return self._limits[key]

    @cached_property
    def _limits(self) -> dict[tuple[str, ...], Mapping[str, LimitSpec]]:
        """The same of these."""
        return {}

    def issues_of(self, model: str, firmware: str, controller: str) -> tuple[KnownIssue, ...]:
        """The known issues of a cell: of its firmware, and those of several; on any kernel."""
        own = self.firmware(model, firmware).known_issues
        if model not in self._issues:
            of_model = (issue for issue in self.known_issues if fits(issue.model, model))
            self._issues[model] = tuple(of_model)
        return tuple(
            issue
            for issue in (*own, *self._issues[model])
            if fits(issue.firmware, firmware) and fits(issue.controller, controller)
        )

    @cached_property
    def _issues(self) -> dict[str, tuple[KnownIssue, ...]]:
        """Those of several firmware that are of a model, as far as was asked."""
        return {}


def load_matrix(path: Path | None = None) -> Matrix:
    """Read a firmware matrix; Misuse with everything that is wrong with it, line by line.

    Without a path: ``firmware_matrix.yaml`` of the working directory, else the
    one that comes with Leadline, which knows the drives of the virtual rig.
    Paths in the file are relative to its directory.  Images are not opened
    here: a plan that needs one checks it.
    """
    path = path or usual_matrix()
    document = read(path)
    matrix = require(document, Matrix, matrix_problems(document), path=path)
    matrix._document = document
    note_places(matrix)
    return matrix


def usual_matrix() -> Path:
    """Where the matrix is when nobody names one."""
    here = Path(USUAL)
    return here if here.is_file() else packaged(USUAL)
