"""What is wrong between the entries of a rig file, each of them well formed or not."""

from collections.abc import Callable, Iterator

from leadline.inventory.checks import known, unique
from leadline.inventory.document import Document, Location, Problem, shown
from leadline.inventory.fields import normal_pci_address, normal_wwn
from leadline.inventory.flash import defers
from leadline.inventory.pdu import NO_PASSWORD_HERE, kind

_UNIQUE: tuple[tuple[tuple[str, ...], str, Callable[[str], str]], ...] = (
    (("drives", "*", "slot"), "slot", str),
    (("drives", "*", "serial"), "serial number", str),
    (("drives", "*", "wwn"), "WWN", normal_wwn),
    (("controllers", "*", "name"), "name", str),
    (("controllers", "*", "pci_address"), "PCI address", normal_pci_address),
    (("pdus", "*", "name"), "name", str),
    (("pdus", "*", "port"), "port", str),
    (("outlets", "*", "name"), "name", str),
    (("virtual", "drives", "*", "slot"), "slot", str),
)
_KNOWN = (
    (("drives", "*", "controller"), ("controllers", "*", "name"), "one of the controllers"),
    (("outlets", "*", "pdu"), ("pdus", "*", "name"), "one of the pdus"),
    (("outlets", "*", "feeds", "*"), ("drives", "*", "slot"), "one of the slots"),
    (("virtual", "drives", "*", "slot"), ("drives", "*", "slot"), "one of the slots"),
)


def rig_problems(document: Document) -> Iterator[Problem]:
    """Names used twice or not known, outlets that are not there, drives that nothing makes."""
    for pattern, what, normal in _UNIQUE:
        yield from unique(document, pattern, what, normal)
    for pattern, choices, what in _KNOWN:
        yield from known(document, pattern, choices, what)
    yield from _passwords(document)
    yield from _outlet_numbers(document)
    yield from _missing_outlets(document)
    yield from _missing_virtual_drives(document)


def _passwords(document: Document) -> Iterator[Problem]:
    """Passwords in the file, which are not shown here either."""
    for at in document.spread("pdus", "*", "password"):
        if document.get(at) is not None:
            yield Problem(at, "a password in the rig file", NO_PASSWORD_HERE)


def _outlet_numbers(document: Document) -> Iterator[Problem]:
    """Outlets that their PDU does not have, and outlets that are given twice."""
    pdus = {name: at[:-1] for at, name in document.texts("pdus", "*", "name")}
    first: dict[tuple[str, int], Location] = {}
    for at, number in document.texts("outlets", "*", "outlet"):
        pdu = document.get((*at[:-1], "pdu"))
        if not isinstance(pdu, str) or pdu not in pdus or not number.isdecimal():
            continue
        usual = kind(document.get((*pdus[pdu], "family"))).outlets
        size = document.get((*pdus[pdu], "outlets")) or str(usual)
        if isinstance(size, str) and size.isdecimal() and int(number) > int(size):
            line = document.line((*pdus[pdu], "outlets"))
            yield Problem(at, number, f"1 to {size}: PDU {shown(pdu)} (line {line}) has no more")
        taken = first.setdefault((pdu, int(number)), at)
        if taken != at:
            line = document.line(taken)
            found = f"{number} of PDU {shown(pdu)}"
            yield Problem(at, found, f"each outlet once; it is given already on line {line}")


def _missing_outlets(document: Document) -> Iterator[Problem]:
    """Drives whose new firmware waits for a power cycle that nothing can give them."""
    if any(feeds == "host" for _, feeds in document.texts("outlets", "*", "feeds")):
        return
    fed = {slot for _, slot in document.texts("outlets", "*", "feeds", "*")}
    said = [*document.texts("drives", "*", "flash", "activates")]
    waiting = [(at, text) for at, text in said if text == "power-cycle"]
    waiting += [
        (at, mode)
        for at, mode in document.texts("drives", "*", "flash", "mode")
        if defers(mode) and document.get((*at[:-1], "activates")) is None
    ]
    for at, text in waiting:
        if document.get((at[0], at[1], "slot")) not in fed:
            expected = "at-once" if at[-1] == "activates" else "activates: at-once with it"
            yield Problem(at, shown(text), f"{expected}, or an outlet that feeds this drive")


def _missing_virtual_drives(document: Document) -> Iterator[Problem]:
    """Drives of a virtual rig that its machine would not have."""
    if not isinstance(document.get(("virtual", "drives")), list):
        return
    made = {slot for _, slot in document.texts("virtual", "drives", "*", "slot")}
    for _, slot in document.texts("drives", "*", "slot"):
        if slot not in made:
            yield Problem(("virtual", "drives"), f"no entry for slot {shown(slot)}", "one")
