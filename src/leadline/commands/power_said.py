"""What `leadline power` says that it did: one object for programs, sentences for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.inventory.rig import OutletSpec
    from leadline.power.pdu import Switched


def of_each(outlets: "Sequence[OutletSpec]", each: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What was done with each outlet, and so with all.

    `on` is what is known, and not what an outlet was told: None where its PDU cannot tell,
    and of all where they differ.
    """
    states = {one["on"] for one in each}
    return {
        "on": states.pop() if len(states) == 1 else None,
        "verified": all(one["verified"] for one in each),
        "outlets": [_named(outlet) | one for outlet, one in zip(outlets, each, strict=True)],
    }


def of_switched(outlets: "Sequence[OutletSpec]", switched: "Sequence[Switched]") -> dict[str, Any]:
    """The same of outlets that were switched."""
    each = [
        {
            "on": one.on if one.verified else None,
            "verified": one.verified,
            "seconds": round(one.seconds, 3),
            "attempts": one.attempts,
        }
        for one in switched
    ]
    return of_each(outlets, each)


def document(done: dict[str, Any]) -> dict[str, Any]:
    """The object for programs: what is to be said of a single outlet stands at its top, too."""
    outlets = done["outlets"]
    return (outlets[0] if len(outlets) == 1 else {}) | done


def sentences(done: dict[str, Any]) -> str:
    """One line for each outlet, but only one for those with which drives went dark."""
    outlets = done["outlets"]
    if done.get("drives"):
        return f"{' and '.join(map(_where, outlets))}: {_went_dark(done)}"
    return "\n".join(f"{_where(one)}: {_stands(one, done['action'])}" for one in outlets)


def _named(outlet: "OutletSpec") -> dict[str, Any]:
    return {
        "outlet": outlet.name,
        "pdu": outlet.pdu,
        "number": outlet.outlet,
        "feeds": outlet.feeds,
    }


def _where(one: dict[str, Any]) -> str:
    return f"outlet {one['outlet']} ({one['number']} of PDU {one['pdu']})"


def _went_dark(done: dict[str, Any]) -> str:
    names = ", ".join(done["drives"])
    if done["action"] == "off":
        return f"{_stands(done, 'off')}; {names} gone"
    phases = done["phases"]
    unverified = "" if done["verified"] else f"; {_stands(done, 'on')}"
    return (
        f"cycled: {names} off for {phases['off_s']:.1f} s and the same as before; "
        f"{done['drives'][0]} ready {phases['ready_s']:.1f} s after power on{unverified}"
    )


def _stands(one: dict[str, Any], action: str) -> str:
    if action == "cycle":
        return f"cycled and {_stands(one, 'on')}; no drive was checked"
    if not one["verified"]:
        return f"told to go {action}, unverified: its PDU cannot tell"
    return f"{'on' if one['on'] else 'off'}, by readback"
