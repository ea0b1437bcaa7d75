"""`leadline power`: one outlet of a rig, switched and verified."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from leadline.errors import Misuse, RigTrouble

if TYPE_CHECKING:
    from leadline.drive.bind import Drive
    from leadline.drive.guard import Admission, HostAdmission
    from leadline.host.connection import Host
    from leadline.inventory.rig import OutletSpec, Rig
    from leadline.power.pdu import Switched
    from leadline.power.supplies import Supply

_EXAMPLES = """\
examples:
  leadline power --rig rigs/virtual.yaml scsi1 status
  leadline power --rig rigs/virtual.yaml scsi1 cycle            one drive, verified
  leadline power --rig rigs/bench.yaml host cycle --abrupt      no shutdown first
  leadline power --rig rigs/bench.yaml host cycle --yes         a host that hangs

OUTLET is the name of an outlet in the rig file.  Before off and cycle the write guard is
asked about every drive that goes dark: a drive in use is refused, and nothing overrides
that.  Where it cannot be asked (the host does not answer, a drive is not there), --yes is
needed, and then only the outlet itself is verified.

Exit codes: 0 verified, 1 the drive came back worse, 2 wrong usage or refused, 3 rig trouble.
"""
_HOST_S = 10.0  # a host that hangs is what some come here for


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "power",
        help="an outlet: on, off, cycle or status, verified",
        description="Switch an outlet of a rig, and verify that it did what it says.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rig", required=True, type=Path, metavar="FILE", help="the rig file")
    parser.add_argument("outlet", metavar="OUTLET", help="the outlet's name in the rig file")
    parser.add_argument("action", choices=("on", "off", "cycle", "status"))
    parser.add_argument(
        "--abrupt",
        action="store_true",
        help="cut the power without flushing the drives or shutting the host down",
    )
    parser.add_argument(
        "--yes", action="store_true", help="go on where the drives on the outlet cannot be checked"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Do it and say what was done; 0, for everything else raises."""
    from leadline.inventory.rig import load_rig

    rig = load_rig(arguments.rig)
    outlet = _outlet(rig, arguments.outlet)
    done: dict[str, Any] = {
        "rig": rig.name,
        "outlet": outlet.name,
        "pdu": outlet.pdu,
        "number": outlet.outlet,
        "feeds": outlet.feeds,
        "action": arguments.action,
    }
    if arguments.action == "status":
        done |= _status(rig, outlet)
    elif arguments.action == "on":
        done |= _on(rig, outlet)
    else:
        done |= _dark(rig, outlet, arguments)
    print(json.dumps(done, indent=2) if arguments.json else _sentence(done))
    return 0


def _outlet(rig: "Rig", name: str) -> "OutletSpec":
    found = next((outlet for outlet in rig.outlets if outlet.name == name), None)
    if found is None:
        names = ", ".join(outlet.name for outlet in rig.outlets) or "none at all"
        raise Misuse(f"{rig.path}: found no outlet {name!r}, expected one of: {names}")
    return found


def _status(rig: "Rig", outlet: "OutletSpec") -> dict[str, Any]:
    from leadline.power.pdu import open_pdu

    with open_pdu(rig.pdu_of(outlet)) as pdu:
        return {"on": pdu.status()[outlet.outlet], "verified": True}


def _on(rig: "Rig", outlet: "OutletSpec") -> dict[str, Any]:
    from leadline.power.pdu import open_pdu

    with open_pdu(rig.pdu_of(outlet)) as pdu:
        return _switched(pdu.switch(outlet.outlet, True))


def _switched(switched: "Switched") -> dict[str, Any]:
    return {
        "on": switched.on,
        "verified": switched.verified,
        "seconds": round(switched.seconds, 3),
        "attempts": switched.attempts,
    }


def _dark(rig: "Rig", outlet: "OutletSpec", arguments: argparse.Namespace) -> dict[str, Any]:
    """Off or cycle: with the drives that go dark where they can be checked, else --yes."""
    from leadline.host.connection import open_host
    from leadline.host.lease import LeaseTaken
    from leadline.inventory.rig import HostSpec
    from leadline.power.outlets import restore_outlets
    from leadline.power.pdu import open_pdu
    from leadline.power.supplies import Supply

    with ExitStack() as stack:
        here = stack.enter_context(open_host(HostSpec(reach="local")))
        for sentence in restore_outlets(here):
            print(f"leadline: {sentence}", file=sys.stderr)
        pdu = stack.enter_context(open_pdu(rig.pdu_of(outlet)))
        supply = Supply(pdu, outlet.outlet)
        if arguments.action == "off" and not pdu.status()[outlet.outlet]:
            return {"on": False, "verified": True, "drives": []}
        try:
            host = stack.enter_context(open_host(rig.host, deadline=_HOST_S))
            drives = _bound(rig, outlet, host, stack)
        except LeaseTaken:
            raise  # somebody tests a drive on it: no --yes cuts their power
        except RigTrouble as trouble:
            if not arguments.yes:
                raise RigTrouble(
                    f"{trouble}\n  So the drives on outlet {outlet.name} cannot be checked, and "
                    "its power was not cut. To cut it all the same, give --yes"
                ) from trouble
            return _unchecked(rig, outlet, supply, here, arguments.action)
        return _checked(rig, supply, (here, host), drives, arguments, feeds=_feeds(outlet))


def _feeds(outlet: "OutletSpec") -> 'Literal["drive", "host"]':
    return "host" if outlet.feeds == "host" else "drive"


def _bound(rig: "Rig", outlet: "OutletSpec", host: "Host", stack: ExitStack) -> "list[Drive]":
    """Every drive that goes dark, leased and bound."""
    from leadline.drive.bind import bind
    from leadline.host.lease import holder_text, take

    specs = rig.sharing(outlet)
    host_outlets = rig.host_outlets()
    for spec in specs:
        together = host_outlets if outlet.feeds == "host" else rig.outlets_of(spec)
        if together != (outlet,):
            names = ", ".join(each.name for each in together if each != outlet)
            raise RigTrouble(
                f"{rig.path}: outlet {names} feeds the same as outlet {outlet.name}, so nothing "
                "goes dark with one of them"
            )
    drives = []
    for spec in specs:
        stack.enter_context(take(host, spec.wwn or f"serial:{spec.serial}", holder_text("power")))
        drives.append(bind(host, spec))
    return drives


def _checked(
    rig: "Rig",
    supply: "Supply",
    hosts: "tuple[Host, Host]",
    drives: "Sequence[Drive]",
    arguments: argparse.Namespace,
    *,
    feeds: 'Literal["drive", "host"]',
) -> dict[str, Any]:
    from leadline.drive.bind import scan
    from leadline.host.journal import Journal
    from leadline.power.cycle import (
        Bench,
        await_ready,
        power_cycle,
        power_off,
        unchanged_but_for,
    )
    from leadline.power.sight import Sight

    here, host = hosts
    first, *sharing = drives
    disks = scan(host)
    others = [Sight(host, drive, disks) for drive in sharing]
    with ExitStack() as stack:
        leave = _leave(host, drives, feeds, stack)
        journal = stack.enter_context(Journal(here, "power"))
        bench = Bench(host, rig.host, journal)
        if arguments.action == "cycle":
            cycle = power_cycle(
                bench, first, [supply], leave, feeds=feeds, abrupt=arguments.abrupt, sharing=sharing
            )
            for other in others:
                *_, identity = await_ready(other, time.monotonic())
                unchanged_but_for(other.drive, identity, None)
            phases = {name: round(seconds, 3) for name, seconds in asdict(cycle.phases).items()}
            done = {"on": True, "verified": cycle.verified, "phases": phases}
        else:
            dark = power_off(
                bench, first, [supply], leave, feeds=feeds, abrupt=arguments.abrupt, sharing=sharing
            )
            done = {"on": False, "verified": True, "gone_s": round(dark.gone_s, 3)}
    return done | {"drives": [drive.spec.slot for drive in drives]}


def _leave(
    host: "Host", drives: "Sequence[Drive]", feeds: str, stack: ExitStack
) -> "Admission | HostAdmission":
    from leadline.drive.guard import admit, admit_host

    if feeds == "host":
        return stack.enter_context(admit_host(host, drives))
    for other in drives[1:]:
        admit(host, other.spec, other, "cut power").release()  # looked over; the first is held
    return stack.enter_context(admit(host, drives[0].spec, drives[0], "cut power"))


def _unchecked(
    rig: "Rig", outlet: "OutletSpec", supply: "Supply", here: "Host", action: str
) -> dict[str, Any]:
    """The outlet alone, verified by its readback; no drive is asked before or after."""
    from leadline.host.journal import Journal
    from leadline.power.outlets import lent

    if action == "off":
        return _switched(supply.switch(False)) | {"drives": []}
    off_s = max(drive.off_s for drive in rig.sharing(outlet))
    with Journal(here, "power") as journal, lent(journal, [supply], lambda: None):
        supply.switch(False)
        time.sleep(off_s)
        switched = supply.switch(True)
    return _switched(switched) | {"drives": []}


def _sentence(done: dict[str, Any]) -> str:
    where = f"outlet {done['outlet']} ({done['number']} of PDU {done['pdu']})"
    state = "on" if done["on"] else "off"
    if done["action"] == "cycle" and done["drives"]:
        drives, phases = done["drives"], done["phases"]
        return (
            f"{where}: cycled: {', '.join(drives)} off for {phases['off_s']:.1f} s and the same "
            f"as before; {drives[0]} ready {phases['ready_s']:.1f} s after power on"
        )
    if done["action"] == "cycle":
        return f"{where}: cycled and on, by readback; no drive was checked"
    if done["action"] == "off":
        drives = ", ".join(done["drives"])
        return f"{where}: off, by readback" + (f"; {drives} gone" if drives else "")
    return f"{where}: {state}, by readback"
