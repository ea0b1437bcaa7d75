"""What the kernel says that it does otherwise for a drive or its controller.

Which of them need what is a table of the kernel's (drivers/ata), which grows with every
release.  It is not copied: what the running kernel reports that it applied is read, under
the kernel's own name for it.  From 6.12 on libata prints those names; before, what it says
of the effect.
"""

import re
from dataclasses import dataclass

from leadline.drive.bind import Drive
from leadline.drive.kernel_events import KernelEvent
from leadline.drive.kernel_watch import KernelHistory

NAMED_SINCE = (6, 12)
"""The first kernel whose libata prints the names of the quirks that it applies."""
NOTICED = frozenset({"noncq", "noncqtrim", "bridge-limits"})
"""Those that every kernel lets see: by a line of the log, or the attribute `trim`."""

_NAMED = re.compile(r"Model '.{0,60}', rev '.{0,20}', applying quirks?:(?P<names>(?: [\w.]+)+)$")
_EFFECTS = {
    "applying bridge limits": "bridge-limits",
    "disabling queued TRIM": "noncqtrim",
    "LPM support broken": "nolpm",
    "HPA support seems broken": "brokenhpa",
}
# "modified (noncq)", "PHY spd limit set to 1.5Gbps", "link flag 0x4 forced -> 0x5"
_FORCED = re.compile(r"FORCE: (?:.*\((?P<flag>[\w.]+)\)|.* set to (?P<value>\S+)|(?P<rest>.+))$")
_OF_CONTROLLER = re.compile(r"ahci (?P<address>\S+): controller can(?P<no>'t)? do (?P<what>.+?),")
_LINK_UP = ("link-up", "link-slower")


@dataclass(frozen=True, slots=True)
class Quirk:
    """One thing that the kernel does otherwise."""

    name: str  # "noncq": the kernel's own word, where it has one
    said: str  # the message or the attribute that tells

    def __str__(self) -> str:
        return f"{self.name} ({self.said})"


def applied(drive: Drive, history: KernelHistory) -> tuple[Quirk, ...]:
    """The quirks that the kernel reports of a bound drive and its controller, in its order."""
    found: dict[str, Quirk] = {}
    set_up = _set_up_at(drive, history)
    for event in history.events:
        if _is_of_controller(event, drive) or (_is_of(event, drive) and event.seconds >= set_up):
            for name in _names(event):
                found.setdefault(name, Quirk(name, event.text))
    if drive.link and drive.link.trim == "forced_unqueued":
        found.setdefault("noncqtrim", Quirk("noncqtrim", "its `trim` reads forced_unqueued"))
    return tuple(found.values())


def forced(command_line: str, device: str) -> tuple[str, ...]:
    """What `libata.force` on a kernel's command line asks for one device, such as "ata1.00".

    Documentation/admin-guide/kernel-parameters.txt: words `[PORT[.DEVICE]:]VALUE` by commas; one
    without a place has that of the word before it, and 15 is the device on a port's own link.
    """
    given = [word for word in command_line.split() if word.startswith("libata.force=")]
    place = ""
    values: list[str] = []
    for word in given[-1].partition("=")[2].split(",") if given else ():
        before, colon, value = word.rpartition(":")
        place = before if colon else place
        if _is_at(place, device):
            values.append(value)
    return tuple(values)


def names_them(release: str) -> bool:
    """Whether a kernel of that release, such as "6.1.0-38-amd64", prints the names of quirks."""
    number = re.match(r"(\d+)\.(\d+)", release)
    return number is not None and (int(number[1]), int(number[2])) >= NAMED_SINCE


def _is_at(place: str, device: str) -> bool:
    if not place:
        return True
    port, _, number = place.partition(".")
    own_port, _, own_number = device.removeprefix("ata").partition(".")
    if port != own_port or not number:
        return port == own_port
    return number.isdecimal() and int(number) in (int(own_number), int(own_number) + 15)


def _set_up_at(drive: Drive, history: KernelHistory) -> float:
    """When the kernel began to set the drive up, seconds since boot: its link came up.

    What an earlier drive on the port was given is not held against this one.
    """
    attached = history.attached_at(drive.link.device) if drive.link else None
    ups = [
        event.seconds for event in history.events if event.kind in _LINK_UP and _is_of(event, drive)
    ]
    return max((up for up in ups if attached is not None and up <= attached), default=0.0)


def _is_of(event: KernelEvent, drive: Drive) -> bool:
    """About the drive or its port: not about another on the same cable or port multiplier."""
    return drive.link is not None and event.device in (drive.link.device, drive.link.port)


def _is_of_controller(event: KernelEvent, drive: Drive) -> bool:
    """Said once a boot, before there is a drive; as is what is forced on a port."""
    if event.kind in ("ncq-forced-off", "setting-forced"):
        return _is_of(event, drive)
    said = _OF_CONTROLLER.match(event.text) if event.kind == "controller-quirk" else None
    return said is not None and said["address"] == drive.controller.pci_address


def _names(event: KernelEvent) -> list[str]:
    match event.kind:
        case "quirk" if named := _NAMED.match(event.text):
            return named["names"].split()
        case "quirk":
            return [name for words, name in _EFFECTS.items() if event.text.startswith(words)]
        case "ncq-not-used":
            return ["noncq"]
        case "ncq-forced-off" | "setting-forced" if said := _FORCED.match(event.text):
            return [said["flag"] or said["value"] or said["rest"]]
        case "controller-quirk" if said := _OF_CONTROLLER.match(event.text):
            return [("no" if said["no"] else "") + said["what"].lower().replace(" ", "")]
    return []
