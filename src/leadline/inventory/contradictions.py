"""What files say against each other, or against an image that they name."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from leadline.errors import Misuse
from leadline.inventory.document import shown
from leadline.inventory.matrix import FirmwareSpec, Matrix
from leadline.inventory.rig import Rig


def refuse(problems: Iterable[str]) -> None:
    """Raise Misuse with every problem, one a line, if there is one."""
    if found := list(problems):
        raise Misuse("\n".join(found))


def disagreements(rigs: Sequence[Rig], matrix: Matrix) -> Iterator[str]:
    """Drives of which a rig file and the matrix say different things."""
    at = {entry.model: n for n, entry in enumerate(matrix.models)}
    for rig in rigs:
        for n, drive in enumerate(rig.drives):
            entry = matrix.entry(drive.model)
            if entry is None:
                continue
            there = f"{matrix.where('models', at[entry.model])}"
            revisions = [firmware.revision for firmware in entry.firmware]
            if drive.firmware not in revisions:
                yield (
                    f"{rig.where('drives', n, 'firmware')}: drives[{drive.slot}].firmware: "
                    f"found {shown(drive.firmware)}, expected a firmware of {entry.model} in "
                    f"{there}: {', '.join(map(shown, revisions))}; add it there if it is right"
                )
            if drive.protocol != entry.protocol:
                yield (
                    f"{rig.where('drives', n, 'protocol')}: drives[{drive.slot}].protocol: "
                    f"found {shown(drive.protocol)}, expected {shown(entry.protocol)} as of "
                    f"{entry.model} in {there}"
                )


def given_twice(rigs: Sequence[Rig]) -> Iterator[str]:
    """Names, drives and outlets that two rig files claim."""
    kinds: dict[str, Callable[[Rig], Iterator[tuple[str, str]]]] = {
        "rig name": _names,
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


def _drives(rig: Rig, key: str) -> Iterator[tuple[str, str]]:
    for n, drive in enumerate(rig.drives):
        value = getattr(drive, key)
        if value is not None:
            yield value, rig.where("drives", n, key)


def _outlets(rig: Rig) -> Iterator[tuple[str, str]]:
    for n, outlet in enumerate(rig.outlets):
        yield f"{outlet.outlet} at {rig.pdu_of(outlet).port}", rig.where("outlets", n, "outlet")


def image_problems(matrix: Matrix, needed: Collection[tuple[str, str]]) -> Iterator[str]:
    """Images of ``needed`` (model, revision) that are not there, or not what the matrix says."""
    for m, entry in enumerate(matrix.models):
        for n, firmware in enumerate(entry.firmware):
            if (entry.model, firmware.revision) in needed and (wrong := _wrong(firmware)):
                where = matrix.where("models", m, "firmware", n, "image")
                yield f"{where}: image of {entry.model} {firmware.revision}: {wrong}"


def _wrong(firmware: FirmwareSpec) -> str:
    if firmware.image is None:
        return ""
    try:
        with firmware.image.open("rb") as image:
            found = hashlib.file_digest(image, "sha256").hexdigest()
    except OSError as error:
        return f"{firmware.image} cannot be read: {error.strerror}"
    if found == firmware.sha256:
        return ""
    return (
        f"found sha256 {found} of {firmware.image}, expected {firmware.sha256}; "
        "bring back the image, or correct sha256 if this one is meant"
    )
