"""What `leadline power map` says: what it is about to do, what it saw, how the file is."""

from collections.abc import Mapping, Sequence
from typing import Any

from leadline.drive.bind import Drive
from leadline.inventory.rig import Rig
from leadline.power.mapping import (
    Finding,
    Observation,
    Place,
    estimated_s,
    expected,
    off_s,
    place_of,
    shared,
)


def plan(
    rig: Rig,
    places: Sequence[Place],
    left_out: Sequence[Place],
    drives: Sequence[Drive],
    *,
    own_machine: bool,
) -> str:
    """What is about to be done, for a person to agree to."""
    names = {place_of(entry): entry.name for entry in rig.outlets}
    lines = [f"{rig.path}: these outlets will be off for {off_s(rig):g} s each, one by one:"]
    for place in places:
        feeds = " and ".join(sorted(expected(rig, [place]))) or "nothing by itself"
        by_file = f"{names[place]}, by the file {feeds}" if place in names else "not in the file"
        lines.append(f"  {place} ({by_file})")
    for group in dict.fromkeys(shared(rig).values()):
        if set(group) <= set(places):
            feeds = " and ".join(sorted(expected(rig, group)))
            lines.append(f"  {_listed(group)} together (by the file {feeds})")
    lines.append("Before each cut these drives are flushed and put in standby; all are free now:")
    for drive in drives:
        who = f"{drive.identity.model} {drive.identity.serial}"
        lines.append(f"  {drive.spec.slot}: {who} ({drive.node})")
    if left_out:
        lines.append(f"Not switched: {_listed(left_out)}")
    takes = f"It takes about {estimated_s(rig, places):.0f} s"
    if own_machine:
        lines.append("Should one of them feed this machine, it dies and stays off: be sure.")
        return "\n".join([*lines, f"{takes}."])
    lines.append(
        "An outlet that turns out to feed the host cuts it without a shutdown, its file systems "
        f"written out; it has {rig.host.boot_deadline_s:g} s to boot."
    )
    return "\n".join([*lines, f"{takes}, and a boot for each outlet that feeds the host."])


def _listed(places: Sequence[Place]) -> str:
    """`outlets 2, 3 of PDU left and outlet 1 of PDU right`."""
    by_pdu: dict[str, list[str]] = {}
    for place in places:
        by_pdu.setdefault(place.pdu, []).append(str(place.outlet))
    return " and ".join(
        f"outlet{'s' if len(numbers) > 1 else ''} {', '.join(numbers)} of PDU {pdu}"
        for pdu, numbers in by_pdu.items()
    )


def went(observation: Observation) -> str:
    """What a cut showed, in short."""
    if observation.unseen:
        return "contact with the host was lost, and is back"
    dark = ", ".join([*sorted(observation.dark), *observation.strangers])
    return f"{dark} went dark; on, and all drives are back" if dark else "nothing known went dark"


def entry(each: Finding, seen: Sequence[Observation]) -> dict[str, Any]:
    """One outlet, for programs."""
    cuts = [one for one in seen if each.place in one.places]
    return {
        "name": each.entry.name if each.entry else None,
        "pdu": each.place.pdu,
        "outlet": each.place.outlet,
        "says": None if each.says is None else sorted(each.says),
        "feeds": sorted(each.feeds),
        "verified": bool(cuts) and all(one.verified for one in cuts),
        "where": each.where,
        "problem": each.problem,
        "seconds": round(sum(one.seconds for one in cuts), 1),
    }


def sentences(done: Mapping[str, Any]) -> str:
    """The whole of it, for people, without what is wrong: that is the error's."""
    lines = []
    for each in done["outlets"]:
        name = f" ({each['name']})" if each["name"] else ""
        feeds = ", ".join(each["feeds"]) or "nothing known"
        says = each["says"] and ", ".join(each["says"])
        held = "not in the rig file" if says is None else f"the rig file says {says}"
        if says is not None and each["says"] == each["feeds"]:
            held = "as the rig file says"
        lines.append(f"outlet {each['outlet']} of PDU {each['pdu']}{name}: {feeds}; {held}")
    if done["diff"]:
        lines.append(done["diff"].rstrip("\n"))
    if done["holds"]:
        lines.append(f"{done['file']}: its outlets are right")
    return "\n".join(lines)
