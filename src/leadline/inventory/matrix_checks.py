"""What is wrong between the entries of a firmware matrix, each of them well formed or not."""

from collections.abc import Iterator, Mapping
from itertools import combinations

from leadline.inventory.checks import known, unique
from leadline.inventory.document import Document, Location, Problem, shown, some
from leadline.inventory.fields import in_id
from leadline.inventory.globs import ANY, common, fits, is_glob, meant
from leadline.inventory.kernel_names import kernel_problems
from leadline.inventory.suite_limits import limit_problems

_ROOM = {
    "sata": (8, "IDENTIFY DEVICE words 23-26 have"),
    "sas": (4, "bytes 32-35 of the INQUIRY data have"),
    "scsi": (4, "bytes 32-35 of the INQUIRY data have"),
}
"""How long a revision can be, and why: ATA8-ACS 7.16, SPC-4 6.6.2."""

_EXCUSES_NOTHING = "as it stands it excuses nothing"

_LIMITS = (
    ("classes", "*", "*"),
    ("models", "*", "limits", "*"),
    ("models", "*", "firmware", "*", "limits", "*"),
    ("controllers", "*", "classes", "*", "*"),
)


def matrix_problems(document: Document) -> Iterator[Problem]:
    """Names used twice or not known, globs that disagree, limits and firmware that cannot be."""
    yield from unique(document, ("models", "*", "model"), "model")
    yield from _globs_that_disagree(document, [("models",)], "model")
    for model in document.spread("models", "*"):
        yield from _firmware(document, model)
    yield from unique(document, ("controllers", "*", "name"), "name")
    yield from _controllers_twice(document)
    wanted_on = ("models", "*", "controllers", "*")
    yield from known(document, wanted_on, ("controllers", "*", "name"), "one of the controllers")
    yield from _issues_of_no_cell(document)
    limits = [at for pattern in _LIMITS for at in document.spread(*pattern)]
    yield from _globs_that_disagree(document, [(*at, "kernels") for at in limits], "kernel")
    yield from kernel_problems(document, limits)
    for at in limits:
        yield from limit_problems(document, at)


def _globs_that_disagree(document: Document, lists: list[Location], key: str) -> Iterator[Problem]:
    """Entries of one list of which one name fits two, and that say different things of it."""
    for entries in lists:
        globs = [
            (at, text)
            for at, text in document.texts(*entries, "*", key)
            if key != "model" or is_glob(text)  # a model's own name goes before every glob
        ]
        for (first, one), (second, other) in combinations(globs, 2):
            example = common(one, other) if one != other or key != "model" else None
            if example is None:
                continue
            fields = _differing(document, first[:-1], second[:-1], key)
            if fields:
                yield Problem(
                    second,
                    f"{shown(other)}, which {shown(example)} fits as it fits {shown(one)} on line "
                    f"{document.line(first)}, with another {fields[0]}",
                    "globs that nothing fits both of, or entries that agree",
                )


def _differing(document: Document, one: Location, other: Location, key: str) -> list[str]:
    first, second = document.get(one), document.get(other)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    keys = {**first, **second}
    return [name for name in keys if name != key and first.get(name) != second.get(name)]


def _controllers_twice(document: Document) -> Iterator[Problem]:
    first: dict[tuple[str, str], Location] = {}
    for at, pci_id in document.texts("controllers", "*", "pci_id"):
        driver = document.get((*at[:-1], "driver"))
        taken = first.setdefault((pci_id.lower(), str(driver)), at)
        if taken != at:
            line = document.line(taken)
            expected = f"each PCI id once with one driver; it is given already on line {line}"
            yield Problem(at, shown(pci_id), expected)


def _firmware(document: Document, model: Location) -> Iterator[Problem]:
    """What is wrong between the firmware of one model."""
    firmware = (*model, "firmware")
    yield from unique(
        document,
        (*firmware, "*", "revision"),
        "revision of a model",
        in_id,
        remedy="; another build that shows it has a name of its own, and this as shows",
    )
    entries = {
        at: entry for at in document.spread(*firmware, "*") if (entry := _entry(document, at))
    }
    protocol = document.get((*model, "protocol"))
    yield from _long_revisions(entries, str(protocol))
    yield from _look_alikes(document, entries)
    yield from known(
        document,
        (*firmware, "*", "predecessor"),
        (*firmware, "*", "revision"),
        "a revision of this model",
    )
    yield from _cycles(entries)
    for at, entry in entries.items():
        yield from _issues_elsewhere(at, entry)


def _entry(document: Document, at: Location) -> Mapping[str, object] | None:
    entry = document.get(at)
    return entry if isinstance(entry, dict) else None


def _long_revisions(
    entries: Mapping[Location, Mapping[str, object]], protocol: str
) -> Iterator[Problem]:
    most, room = _ROOM.get(protocol, (0, ""))
    for at, entry in entries.items() if most else ():
        key = "shows" if "shows" in entry else "revision"
        text = entry.get(key)
        if isinstance(text, str) and len(text) > most:
            or_name = "" if key == "shows" else ", and a longer name with shows"
            expected = f"at most {most} characters, for {room} no room for more{or_name}"
            yield Problem((*at, key), f"{shown(text)} of {len(text)} characters", expected)


def _look_alikes(
    document: Document, entries: Mapping[Location, Mapping[str, object]]
) -> Iterator[Problem]:
    """Firmware that shows what another shows, and that no image's hash tells from it."""
    alike: dict[str, list[tuple[Location, object]]] = {}
    for at, entry in entries.items():
        shows, sha256 = entry.get("shows", entry.get("revision")), entry.get("sha256")
        others = alike.setdefault(str(shows), [])
        for other, its in others:
            twice = entry.get("revision") == entries[other].get("revision")  # told of already
            if not twice and (its == sha256 or not (its and sha256)):
                line = document.line(other)
                found = f"firmware that shows {shown(shows)}, as that on line {line} does"
                yield Problem(at, found, "an image and a sha256 of its own for each of them")
                break
        others.append((at, sha256))


def _cycles(entries: Mapping[Location, Mapping[str, object]]) -> Iterator[Problem]:
    place = {str(entry.get("revision")): at for at, entry in entries.items()}
    before = {str(e.get("revision")): str(e.get("predecessor") or "") for e in entries.values()}
    seen: set[str] = set()  # whatever comes before these is right, or has been told
    for start in place:
        path = [start]
        while (older := before.get(path[-1], "")) and older not in seen and older not in path:
            path.append(older)
        seen.update(path)
        if older in path:
            ring = [*path[path.index(older) :], older]
            yield Problem(
                (*place[older], "predecessor"),
                f"firmware that comes after itself: {' after '.join(map(shown, ring))}",
                "a predecessor that came before",
            )


def _issues_of_no_cell(document: Document) -> Iterator[Problem]:
    """Known issues of a model or a firmware that is not in the matrix.

    Not of a controller: a cell may have it by the name that a rig file gives it.
    """
    models = list(document.texts("models", "*", "model"))
    names = [name for _, name in models]
    for at in document.spread("known_issues", "*") if names else ():
        issue = _entry(document, at) or {}
        model, firmware = issue.get("model", ANY), issue.get("firmware", ANY)
        if not (isinstance(model, str) and isinstance(firmware, str)) or model == firmware == ANY:
            continue
        entries = [models[n][0][:-1] for n in meant(model, names)]
        if not entries:
            expected = f"a model of this matrix, or a glob that fits one: {some(names)}"
            yield Problem((*at, "model"), shown(model), f"{expected}; {_EXCUSES_NOTHING}")
            continue
        revisions = [
            text
            for entry in entries
            for _, text in document.texts(*entry, "firmware", "*", "revision")
        ]
        if revisions and not any(fits(firmware, each) for each in revisions):
            whose = "this matrix" if model == ANY else shown(model)
            expected = f"a revision of {whose}, or a glob that fits one: {some(revisions)}"
            yield Problem((*at, "firmware"), shown(firmware), f"{expected}; {_EXCUSES_NOTHING}")


def _issues_elsewhere(at: Location, entry: Mapping[str, object]) -> Iterator[Problem]:
    """Known issues of one firmware that say which model or firmware they are of."""
    issues = entry.get("known_issues")
    for n, issue in enumerate(issues if isinstance(issues, list) else ()):
        for key in ("model", "firmware") if isinstance(issue, dict) else ():
            if key in issue:
                yield Problem(
                    (*at, "known_issues", n, key),
                    f"{shown(issue[key])} in a firmware's own list",
                    f"no {key} here: known_issues at the top of the file are for several",
                )
