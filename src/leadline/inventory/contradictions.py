"""What files say against each other, or against an image that they name."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from leadline.errors import Misuse
from leadline.inventory.document import shown
from leadline.inventory.matrix import FirmwareSpec, Matrix, ModelSpec
from leadline.inventory.rig import DriveSpec, Rig


def refuse(problems: Iterable[str]) -> None:
    """Raise Misuse with every problem, one a line, if there is one."""
    if found := list(problems):
        raise Misuse("\n".join(found))


def disagreements(rigs: Sequence[Rig], matrix: Matrix) -> Iterator[str]:
    """Drives of which a rig file and the matrix say different things."""
    for rig in rigs:
        for n, drive in enumerate(rig.drives):
            entry = matrix.entry(drive.model)
            if entry is None:
                continue
            there = matrix.where("models", matrix.place[entry.model])
            if problem := _unknown_firmware(drive, entry, there):
                key, found = problem
                yield f"{rig.where('drives', n, key)}: drives[{drive.slot}].{key}: {found}"
            if drive.protocol != entry.protocol:
                yield (
                    f"{rig.where('drives', n, 'protocol')}: drives[{drive.slot}].protocol: "
                    f"found {shown(drive.protocol)}, expected {shown(entry.protocol)} as of "
                    f"{entry.model} in {there}"
                )


def misnamed(rigs: Sequence[Rig], matrix: Matrix) -> Iterator[str]:
    """Controllers of rig files that go by the name that the matrix has for another kind."""
    place = {kind.name: n for n, kind in enumerate(matrix.controllers)}
    for rig in rigs:
        for n, spec in enumerate(rig.controllers):
            kind = matrix.controller(spec.name)
            if kind is None or (spec.pci_id is None and spec.driver == kind.driver):
                continue
            if spec.pci_id is not None and matrix.controller_with(spec.pci_id, spec.driver):
                continue
            yield (
                f"{rig.where('controllers', n, 'name')}: controllers[{spec.name}].name: found "
                f"{shown(spec.name)}, which is {kind.pci_id} with driver {kind.driver} in "
                f"{matrix.where('controllers', place[kind.name])}, expected another name, for "
                "that one's limits and known issues are not this one's"
            )


def _unknown_firmware(drive: DriveSpec, entry: ModelSpec, there: str) -> tuple[str, str] | None:
    """The field of a drive from which it is not known which firmware it has, and why."""
    alike = entry.showing(drive.firmware)
    if not alike:
        revisions = ", ".join(shown(each) for each in {each.shows: None for each in entry.firmware})
        return "firmware", (
            f"found {shown(drive.firmware)}, expected a firmware of {entry.model} in {there}: "
            f"{revisions}; add it there if it is right"
        )
    hashes = ", ".join(f"{each.sha256} ({each.revision})" for each in alike if each.sha256)
    if drive.firmware_sha256 is None and len(alike) > 1:
        return "firmware", (
            f"found {shown(drive.firmware)}, which {len(alike)} firmware of {entry.model} in "
            f"{there} show, expected firmware_sha256 beside it, with that of the image that is "
            f"on the drive: {hashes}"
        )
    if drive.firmware_sha256 is not None and not entry.showing(
        drive.firmware, drive.firmware_sha256
    ):
        expected = f"that of an image that shows {shown(drive.firmware)} in {there}: {hashes}"
        if not hashes:
            name = shown(alike[0].revision)
            expected = f"a sha256 of firmware {name} in {there}, too, which has none; or none here"
        return "firmware_sha256", f"found {drive.firmware_sha256}, expected {expected}"
    return None


def given_twice(rigs: Sequence[Rig]) -> Iterator[str]:
    """Names, drives and outlets that two rig files claim."""
    kinds: dict[str, Callable[[Rig], Iterator[tuple[str, str]]]] = {
        "rig name": _names,
        "rig and slot": _slots,
        "serial number": lambda rig: _drives(rig, "serial"),
        "WWN": lambda rig: _drives(rig, "wwn"),
        "outlet": _outlets,
    }
    for what, found_in in kinds.items():
        first: dict[str, str] = {}
        for rig in rigs:
            for value, where in found_in(rig):
                if value in first:
                    yield (
                        f"{where}: found {what} {shown(value)}, "
                        f"expected each {what} once; it is given already in {first[value]}"
                    )
                first.setdefault(value, where)


def _names(rig: Rig) -> Iterator[tuple[str, str]]:
    yield rig.name, rig.where("rig")


def _slots(rig: Rig) -> Iterator[tuple[str, str]]:
    """As test ids begin: rig a-b's slot c and rig a's slot b-c would have one id."""
    for n, drive in enumerate(rig.drives):
        yield f"{rig.name}-{drive.slot}", rig.where("drives", n, "slot")


def _drives(rig: Rig, key: str) -> Iterator[tuple[str, str]]:
    for n, drive in enumerate(rig.drives):
        value = getattr(drive, key)
        if value is not None:
            yield value, rig.where("drives", n, key)


def _outlets(rig: Rig) -> Iterator[tuple[str, str]]:
    for n, outlet in enumerate(rig.outlets):
        yield f"{outlet.outlet} at {rig.pdu_of(outlet).port}", rig.where("outlets", n, "outlet")


def image_problems(matrix: Matrix, needed: Collection[tuple[str, str]]) -> Iterator[str]:
    """Images of ``needed`` (model's entry, firmware) that are not there, or not what is meant."""
    found: dict[Path, str] = {}  # several models may share an image, which is read once
    for m, entry in enumerate(matrix.models):
        for n, firmware in enumerate(entry.firmware):
            asked = (entry.model, firmware.revision) in needed
            if asked and (wrong := _wrong(firmware, found)):
                yield f"{matrix.field('models', m, 'firmware', n, 'image')}: {wrong}"


_EMPTY = hashlib.sha256(b"").hexdigest()


def _wrong(firmware: FirmwareSpec, known: dict[Path, str]) -> str:
    path = firmware.image
    if path is None:
        return ""
    try:
        if path not in known:
            with path.open("rb") as image:
                known[path] = hashlib.file_digest(image, "sha256").hexdigest()
    except OSError as error:
        return (
            f"found {path}, which cannot be read ({error.strerror}), expected the firmware's "
            "image; bring it back, or correct the path"
        )
    found = known[path]
    if found == _EMPTY:
        return f"found an empty file, {path}, expected the firmware's image; copy it again"
    if found == firmware.sha256:
        return ""
    return (
        f"found sha256 {found} of {path}, expected {firmware.sha256}; "
        "bring back the image, or correct sha256 if this one is meant"
    )
