"""`leadline identify`: what a drive says of itself, from the drive or from a dump."""

import argparse
import json
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from leadline.drive.identify import UnusableIdentify, decode
from leadline.drive.identify_source import read_source
from leadline.drive.text import plain
from leadline.errors import DriveFault, Misuse, RigTrouble

if TYPE_CHECKING:
    from leadline.drive.bind import Drive
    from leadline.drive.inquiry import Inquiry
    from leadline.drive.pair import Pair
    from leadline.host.connection import Host

_LARGEST_DUMP = 64 * 1024  # bytes; hex bytes with white space are 1.5 KiB

_EXAMPLES = """\
examples:
  leadline identify /dev/sda                       a drive of this machine (as root)
  leadline identify --rig rigs/bench.yaml slot1    a drive of a rig, by its slot
  leadline identify --rig rigs/bench.yaml /dev/sdb or by its node there
  leadline identify --json dump.hex                a dump: 512 bytes, or hex words
  hdparm --Istdout /dev/sda | leadline identify -  or from a program

Exit codes: 0, 1 the drive's data is not to be trusted, 2 the dump is not, 3 rig trouble.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `identify` to the command line."""
    parser = subparsers.add_parser(
        "identify",
        help="what a drive says of itself: model, queue, link, capacity",
        description="Decode a drive's IDENTIFY DEVICE data (of a SCSI drive, its INQUIRY data).",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a device node, a slot of the rig, a file with 512 bytes or hex words as "
        "`hdparm --Istdout` or `sg_sat_identify -HHH` print them, or - for such text on stdin",
    )
    parser.add_argument(
        "--rig", type=Path, metavar="FILE", help="a rig file: SOURCE is a device of that rig"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what SOURCE says; the exit code."""
    source: str = arguments.source
    as_json: bool = arguments.json
    if arguments.rig is not None:
        return _of_rig(arguments.rig, source, as_json)
    if source == "-":
        return _of_dump(sys.stdin.buffer, "stdin", as_json)
    path = Path(source)
    if _is_device(path):
        return _of_this_machine(source, as_json)
    try:
        with path.open("rb") as dump:
            return _of_dump(dump, plain(source), as_json)
    except OSError as error:
        raise Misuse(
            f"{plain(source)}: {error.strerror}; name a device node, or a file with IDENTIFY data"
        ) from error


def _is_device(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # reading it says why
    if stat.S_ISCHR(mode) and not path.resolve().is_relative_to("/dev/bsg"):
        if not path.resolve().name.startswith("sg"):
            raise Misuse(
                f"{plain(str(path))}: a character device, and no drive's; "
                "name the drive's node, as in /dev/sda or /dev/sg0"
            )
        return True
    return stat.S_ISBLK(mode) or stat.S_ISCHR(mode)


def _of_dump(dump: BinaryIO, name: str, as_json: bool) -> int:
    content = dump.read(_LARGEST_DUMP + 1)
    if len(content) > _LARGEST_DUMP:
        raise Misuse(f"{name}: more than {_LARGEST_DUMP} bytes, and IDENTIFY data is 512")
    data = read_source(content, name)
    try:
        identify = decode(data)
    except UnusableIdentify as error:
        raise Misuse(f"{name}: {error}") from error
    _print(identify.as_json(), as_json)
    if identify.checksum == "invalid":
        raise Misuse(
            f"{name}: the checksum in word 255 does not hold, so the dump is damaged or was "
            "edited and no field of it is certain; read it from the drive again"
        )
    return 0


def _of_this_machine(node: str, as_json: bool) -> int:
    from leadline.host.connection import open_host
    from leadline.inventory.rig import HostSpec

    with open_host(HostSpec(reach="local")) as host:
        return _of_device(host, node, as_json)


def _of_rig(path: Path, source: str, as_json: bool) -> int:
    from leadline.drive.bind import bind
    from leadline.host.connection import open_host
    from leadline.inventory.rig import load_rig

    rig = load_rig(path)
    slot = None if source.startswith("/") else rig.drive(source)
    with open_host(rig.host) as host:
        if slot is None:
            return _of_device(host, source, as_json)
        drive = bind(host, slot)
        return _of_device(host, drive.node, as_json, controller=_pair(host, drive).as_json())


def _pair(host: "Host", drive: "Drive") -> "Pair":
    """The drive on its controller; without the kernel's log where that may not be read."""
    from leadline.drive import pair
    from leadline.drive.kernel_watch import KernelHistory, KernelWatch

    try:
        with KernelWatch(host) as watch:
            history = watch.history()
    except RigTrouble:
        history = KernelHistory((), False, {}, {})
    return pair.find(host, drive, history)


def _of_device(host: "Host", node: str, as_json: bool, **more: object) -> int:
    """Print what the drive at `node` says, and the fields of `more` behind it."""
    from leadline.drive.bind import read_identify

    try:
        data = read_identify(host, node)
    except RigTrouble as error:
        _print({**_scsi_fields(_scsi_drive(host, node, error)), **more}, as_json)
        return 0
    try:
        identify = decode(data)
    except UnusableIdentify as error:
        raise DriveFault(f"{host.name}: {node}: {error}") from error
    _print({**identify.as_json(), **more}, as_json)
    if identify.checksum == "invalid":
        raise DriveFault(
            f"{host.name}: {node}: the checksum in word 255 does not hold, so no field is "
            "certain; power-cycle the drive, check its cable, and read it again"
        )
    return 0


def _scsi_drive(host: "Host", node: str, refusal: RigTrouble) -> "Inquiry":
    """The drive at `node`, which took no ATA command: `refusal`, unless it is a SCSI drive.

    What kept it from being asked whether it is one is raised, with `refusal` in a note, unless
    `refusal` is that the node cannot be opened: then no program could have asked it either.
    """
    from leadline.drive import inquiry
    from leadline.host.trouble import DeadlinePassed, FileTrouble, HostLost, ProgramMissing

    try:
        found = inquiry.read(host, node)
    except (ProgramMissing, HostLost, DeadlinePassed) as unasked:
        if isinstance(refusal, FileTrouble):
            raise refusal from None
        unasked.add_note(f"it is asked as a SCSI drive, for {refusal}")
        raise
    except (RigTrouble, DriveFault):
        raise refusal from None
    if found.vendor == "ATA":  # SAT-4: the translation layer's name for every SATA drive
        raise refusal
    return found


def _scsi_fields(found: "Inquiry") -> dict[str, object]:
    """The same fields for a SCSI drive; null is what its INQUIRY data does not tell."""
    size = found.capacity
    features = ("queue_depth", "priority", "unload", "send_receive", "autoactivate")
    return {
        "model": found.model,
        "serial": found.serial,
        "firmware": found.revision,
        "wwn": found.wwn,
        "class": found.class_,
        "rotation_rpm": found.rotation_rpm,
        "checksum": "absent",
        "ncq": {"supported": False, **dict.fromkeys(features)},
        "link": {"supported_gbps": None, "current_gbps": None},
        "capacity_bytes": size.bytes if size else None,
        "sector": {
            "logical": size.logical if size else None,
            "physical": size.physical if size else None,
        },
        "write_cache": None,
        "trim": None,
        "security": None,
        "power_management": None,
    }


def _print(fields: dict[str, object], as_json: bool) -> None:
    if as_json:
        print(json.dumps(fields, indent=2))
    else:
        print(_table(fields))
    sys.stdout.flush()  # before what may follow on stderr


def _table(fields: dict[str, object]) -> str:
    """Two columns; a field within a field is named as in the JSON, with a dot."""
    rows: list[tuple[str, str]] = []
    for name, value in fields.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        rows += [(f"{name}.{key}" if key else name, _words(item)) for key, item in inner]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {words}" for name, words in rows)


def _words(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
