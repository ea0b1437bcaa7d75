"""`leadline virtual`: the virtual rig by hand."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.errors import Misuse

if TYPE_CHECKING:
    from leadline.inventory.rig import Rig

_EXAMPLES = """\
examples:
  leadline virtual up                                start the default rig, leave it up
  leadline virtual up --kernel arch/x86/boot/bzImage a kernel of your own, with its modules
                                                     from lib/modules/VERSION beside it
  leadline virtual up --kernel-arguments libata.force=noncq
  leadline virtual up --profile ssd1=my-drive.yaml   another drive in a slot
  leadline virtual status
  leadline virtual flash virtual ssd1 rigs/profiles/vssd-1.1.yaml
                                                     takes effect at the next power-on
  leadline virtual down
"""
_LOG_IN = "ssh -F {ssh_config} {address}"


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "virtual",
        help="the virtual rig by hand: up, down, status, flash",
        description="Start, look at and stop a rig that needs no hardware: a QEMU machine whose "
        "drives are real to Linux, and a PDU on a pseudo-terminal that cuts their power.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    starting = _action(actions, "up", "start the rig and leave it up", _up)
    starting.add_argument("--kernel", type=Path, metavar="FILE", help="a kernel image of your own")
    starting.add_argument(
        "--kernel-arguments", metavar="WORDS", help="for the guest's kernel command line"
    )
    starting.add_argument(
        "--profile",
        action="append",
        default=[],
        type=_slot_profile,
        metavar="SLOT=FILE",
        help="what the drive in a slot is like; may be given several times",
    )
    for action in (
        starting,
        _action(actions, "down", "stop the rig, with all that it started", _down),
        _action(actions, "status", "how the rig is", _status),
    ):
        action.add_argument(
            "--rig", type=Path, metavar="FILE", help="a rig file (default: the virtual rig)"
        )
    flashing = _action(
        actions, "flash", "give a drive another firmware at its next power-on", _flash
    )
    flashing.add_argument("rig", metavar="RIG", help="the rig's name")
    flashing.add_argument("slot", metavar="SLOT", help="the drive's slot")
    flashing.add_argument("profile", type=Path, metavar="PROFILE", help="a drive's profile (YAML)")


def _action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    run: object,
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)
    return parser


def _slot_profile(text: str) -> tuple[str, Path]:
    slot, equals, path = text.partition("=")
    if not (slot and equals and path):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected SLOT=FILE")
    return slot, Path(path)


def _rig(path: Path | None) -> "Rig":
    from leadline.inventory.fields import packaged
    from leadline.inventory.rig import load_rig

    rig = load_rig(path or packaged("rigs/virtual.yaml"))
    if rig.virtual is None:
        raise Misuse(f"{rig.path}: found no `virtual`, expected one: this rig is real")
    return rig


def _up(arguments: argparse.Namespace) -> int:
    from leadline.virtual.rig import Changes, up

    profiles = dict(arguments.profile)
    if len(profiles) != len(arguments.profile):
        raise Misuse("--profile: found a slot twice, expected each at most once")
    found = up(
        _rig(arguments.rig),
        Changes(arguments.kernel, arguments.kernel_arguments, profiles),
    )
    _show(found, arguments)
    return 0


def _down(arguments: argparse.Namespace) -> int:
    from leadline.virtual.rig import down

    rig = _rig(arguments.rig)
    was_up = down(rig.name)
    if arguments.json:
        print(json.dumps({"rig": rig.name, "running": False, "was_up": was_up}))
    else:
        print(f"{rig.name}: {'down' if was_up else 'was not up'}")
    return 0


def _status(arguments: argparse.Namespace) -> int:
    from leadline.virtual.rig import status

    _show(status(_rig(arguments.rig).name), arguments)
    return 0


def _flash(arguments: argparse.Namespace) -> int:
    from leadline.virtual.rig import flash

    firmware = flash(arguments.rig, arguments.slot, arguments.profile)
    if arguments.json:
        print(json.dumps({"rig": arguments.rig, "slot": arguments.slot, "staged": firmware}))
    else:
        print(f"{arguments.rig} {arguments.slot}: firmware {firmware} from the next power-on")
    return 0


def _show(found: dict[str, Any], arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(json.dumps(found, indent=2))
        return
    if not found["running"]:
        print(f"{found['rig']}: down")
        return
    print(f"{found['rig']}: host {found['host']}")
    if "drives" not in found:
        return
    print(f"  {found['accelerator']}, last boot {found['boot_s']:g} s, logs in {found['log']}")
    print(f"  {_LOG_IN.format(**found)}")
    for name, port in found["pdus"].items():
        print(f"  PDU {name}: {port}")
    for name, on in found["outlets"].items():
        print(f"  outlet {name}: {'on' if on else 'off'}")
    for slot, drive in found["drives"].items():
        staged = f", {drive['staged']} staged" if drive.get("staged") else ""
        powered = "on" if drive["powered"] else "off"
        print(f"  drive {slot}: {powered}, {drive['bus']}, firmware {drive['firmware']}{staged}")
    if found["trouble"]:
        print(f"  trouble: {found['trouble']}")
