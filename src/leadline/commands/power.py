"""`leadline power`: outlets of a rig, switched together and verified."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from leadline.commands.power_said import document, of_each, of_switched, sentences
from leadline.errors import Misuse
from leadline.run_id import new_run_id

if TYPE_CHECKING:
    from leadline.inventory.rig import OutletSpec, Rig
    from leadline.power.byte_log import ByteLogs

Action = Literal["on", "off", "cycle", "status"]
_USAGE = "%(prog)s --rig FILE (OUTLET ... | --drive SLOT) {on,off,cycle,status} [options]"
_EXAMPLES = """\
examples:
  leadline power --rig rigs/virtual.yaml scsi1 status
  leadline power --rig rigs/virtual.yaml scsi1 cycle            one drive, verified
  leadline power --rig rigs/bench.yaml left right cycle         two outlets together
  leadline power --rig rigs/bench.yaml --drive slot1 cycle      all supplies of one drive
  leadline power --rig rigs/bench.yaml host cycle --abrupt      no shutdown first
  leadline power --rig rigs/bench.yaml host cycle --yes         a host that hangs
  leadline power log                  every byte to and from the PDUs (power log --help)
  leadline power map --rig FILE       which drive each outlet feeds (power map --help)

OUTLET is the name of an outlet in the rig file.  Several are switched together, those of
different PDUs side by side; disks with a spin_up_gap_s are switched on one after the other.

Before off and cycle the write guard is asked about every drive that goes dark: a drive in
use is refused, as is the machine that Leadline runs on, and nothing overrides that.  Where
it cannot be asked (the host does not answer, a drive is not there, or has another outlet that
was not named), --yes is needed, and then only the outlets themselves are verified; the other
drives are asked about all the same.

An outlet whose PDU cannot tell its state is reported as unverified, never as on or off.

Exit codes: 0 done, 1 the drive came back worse, 2 wrong usage or refused, 3 rig trouble.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "power",
        help="outlets: on, off, cycle or status, verified",
        usage=_USAGE,
        description="Switch outlets of a rig, and verify that they did what they say.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rig", required=True, type=Path, metavar="FILE", help="the rig file")
    # One list, and `rest` for what stands behind an option: argparse would end a list of
    # outlets there.
    parser.add_argument(
        "words",
        nargs="+",
        metavar="OUTLET ... ACTION",
        help="outlets by their names in the rig file; then on, off, cycle or status",
    )
    parser.add_argument(
        "--drive",
        action="append",
        default=[],
        metavar="SLOT",
        help="all outlets that feed this drive; may be given several times",
    )
    parser.add_argument(
        "--abrupt",
        action="store_true",
        help="cut the power without flushing the drives or shutting the host down",
    )
    parser.add_argument(
        "--yes",
        action="store_true",
        help="go on where not all the drives can be checked",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run, passes_rest=True)


def run(arguments: argparse.Namespace) -> int:
    """Do it and say what was done; 0, for everything else raises."""
    from leadline.inventory.rig import load_rig
    from leadline.power.byte_log import ByteLogs, folder_of_command

    names, action = _words([*arguments.words, *arguments.rest], slots=arguments.drive)
    rig = load_rig(arguments.rig)
    outlets = _outlets(rig, names, arguments.drive)
    with ByteLogs(folder_of_command(new_run_id()), _tell) as logs:
        if action == "status":
            done = _status(rig, outlets, logs)
        elif action == "on":
            done = _on(rig, outlets, logs)
        else:
            from leadline.commands.power_dark import go_dark

            options = {"abrupt": arguments.abrupt, "yes": arguments.yes}
            done = go_dark(rig, outlets, action, logs=logs, **options)
    done = {"rig": rig.name, "action": action} | done
    print(json.dumps(document(done), indent=2) if arguments.json else sentences(done))
    return 0


def _tell(sentence: str) -> None:
    print(f"leadline: {sentence}", file=sys.stderr)


def _words(words: Sequence[str], *, slots: Sequence[str]) -> tuple[list[str], Action]:
    """The outlets' names, and what is to be done with them."""
    unknown = [word for word in words if word.startswith("-")]
    if unknown:
        raise Misuse(f"unknown options: {' '.join(unknown)}; see leadline power --help")
    *names, last = words
    for action in get_args(Action):
        if action == last and (names or slots):
            return names, action
    if last in get_args(Action):
        raise Misuse(f"{last} what? Name outlets before it, or a drive with --drive SLOT")
    raise Misuse(
        f"found {last!r} at the end, expected one of: {', '.join(get_args(Action))}; "
        "as in: leadline power --rig FILE OUTLET status (or leadline power log, power map)"
    )


def _outlets(rig: "Rig", names: Sequence[str], slots: Sequence[str]) -> "list[OutletSpec]":
    """What was named, each once."""
    by_name = {outlet.name: outlet for outlet in rig.outlets}
    for name in names:
        if name not in by_name:
            known = ", ".join(by_name) or "none at all"
            raise Misuse(f"{rig.path}: found no outlet {name!r}, expected one of: {known}")
    found = [by_name[name] for name in names]
    for slot in slots:
        feeding = rig.outlets_of(rig.drive(slot))
        if not feeding:
            raise Misuse(f"{rig.path}: no outlet feeds slot {slot}")
        found += feeding
    return list(dict.fromkeys(found))


def _status(rig: "Rig", outlets: "Sequence[OutletSpec]", logs: "ByteLogs") -> dict[str, Any]:
    from leadline.power.supplies import open_supplies

    with open_supplies(rig, outlets, logs) as supplies:
        tables = {pdu: pdu.status() for pdu in {supply.pdu for supply in supplies}}
        states = [tables[supply.pdu][supply.outlet] for supply in supplies]
    return of_each(outlets, [{"on": on, "verified": True} for on in states])


def _on(rig: "Rig", outlets: "Sequence[OutletSpec]", logs: "ByteLogs") -> dict[str, Any]:
    from leadline.power.supplies import open_supplies, switch_all

    with open_supplies(rig, outlets, logs) as supplies:
        return of_switched(outlets, switch_all(supplies, on=True))
