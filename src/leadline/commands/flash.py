"""`leadline flash`: put a firmware on one drive, or finish what a run that was killed began."""

import argparse
import json
import shlex
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.commands.options import add_results
from leadline.errors import Misuse

if TYPE_CHECKING:
    from leadline.inventory.matrix import Matrix
    from leadline.inventory.plan import Visit
    from leadline.inventory.rig import Rig
    from leadline.results.record import Record
    from leadline.station import Station

_EXAMPLES = """\
examples:
  leadline flash --rig rigs/bench.yaml slot1 1.1 --allow-flash
  leadline flash --rig rigs/bench.yaml slot1 --resume --allow-flash
                                       after a run that was killed while it flashed the drive

REVISION is a firmware of the drive's model in the firmware matrix, which has its image and the
image's hash.  Two keys are needed: `flash: allowed` on the drive in the rig file, and
--allow-flash here.  The image is checked, the drive must be of the model that the matrix has it
for, and the write guard must admit to it.  Afterwards the drive itself says what it runs.  The
rig file's `firmware` stays as it is: correct it where the drive is to stay so.

Exit codes: 0 the drive runs it, 1 the drive failed, 2 wrong usage or refused, 3 rig trouble.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `flash` to the command line."""
    parser = subparsers.add_parser(
        "flash",
        help="put a firmware on one drive",
        description="Put a firmware of the matrix on one drive, and have the drive confirm it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rig", required=True, type=Path, metavar="FILE", help="the rig file")
    parser.add_argument("slot", metavar="SLOT", help="the drive's slot in the rig file")
    parser.add_argument("revision", nargs="?", metavar="REVISION", help="as in the matrix")
    parser.add_argument("--resume", action="store_true", help="finish the flash that is on record")
    parser.add_argument("--allow-flash", action="store_true", help="the second key")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="the firmware matrix")
    add_results(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Flash the drive and say what it runs; 0, for everything else raises."""
    from leadline.inventory.matrix import load_matrix
    from leadline.inventory.rig import load_rig
    from leadline.outcomes import INTERRUPTED_CODE, ended_by, exit_code
    from leadline.results.record import Record
    from leadline.run_id import new_run_id

    if bool(arguments.revision) == arguments.resume:
        raise Misuse("name a REVISION, or give --resume to finish the flash that is on record")
    rig, matrix = load_rig(arguments.rig), load_matrix(arguments.matrix)
    rig.drive(arguments.slot)
    record = Record(arguments.results.absolute(), new_run_id())
    command = _command(arguments)
    record.start(command, version("leadline"))
    code = INTERRUPTED_CODE
    try:
        done = _flashed(arguments, rig, matrix, record, command)
        code = 0
    except Exception as error:
        code = exit_code([ended_by(error)])
        raise
    finally:
        record.end(code)
        record.close()
    print(json.dumps(done, indent=2) if arguments.json else _sentence(done))
    return code


def _command(arguments: argparse.Namespace) -> str:
    """What the record has for it: it can be run again so."""
    words = ["leadline", "flash", "--rig", str(arguments.rig)]
    if arguments.matrix is not None:
        words += ["--matrix", str(arguments.matrix)]
    words += [arguments.slot, arguments.revision or "--resume"]
    return shlex.join([*words, *(["--allow-flash"] if arguments.allow_flash else [])])


def _flashed(
    arguments: argparse.Namespace, rig: "Rig", matrix: "Matrix", record: "Record", command: str
) -> dict[str, Any]:
    """What was done, as the JSON object has it."""
    from leadline.live import Live
    from leadline.running import Run
    from leadline.station import Station
    from leadline.visiting import OpenVisit

    run_ = Run(
        id=record.run_id,
        command=command,
        version=version("leadline"),
        rigs={rig.name: rig},
        matrix=matrix,
        visits=(),
        results=record.directory,
        allow_writes=False,
        no_excuses=True,
        drive_time_s=None,
        allow_flash=arguments.allow_flash,
        keep_firmware=True,
        by_hand=True,
    )
    started = time.monotonic()
    with Station(rig, run_, record, Live(None)) as station:
        revision = arguments.revision or _on_record(station, arguments.slot)
        visit = _visit(rig, matrix, arguments.slot, revision)
        shows = matrix.firmware(visit.cell.model, revision).shows
        # Of two builds that it shows alike a drive cannot say which it runs.
        alike = len(matrix.model(visit.cell.model).showing(shows)) > 1
        again = alike or arguments.slot in station.in_doubt
        with station.latching(), OpenVisit(station, visit, again=again) as opened:
            return {
                "rig": rig.name,
                "slot": arguments.slot,
                "serial": opened.drive.identity.serial,
                "before": opened.came_with,
                "firmware": opened.drive.identity.firmware,
                "flashed": again or opened.came_with != opened.drive.identity.firmware,
                "image": visit.image and str(visit.image),
                "sha256": matrix.firmware(visit.cell.model, revision).sha256,
                "seconds": round(time.monotonic() - started, 2),
            }


def _on_record(station: "Station", slot: str) -> str:
    """The firmware that a dead run was about to put on the drive."""
    serial = station.rig.drive(slot).serial
    for one in station.unfinished:
        if one.record.serial == serial:
            return one.record.revision
    raise Misuse(
        f"slot {slot}: no flash of it is on record on this machine, so there is nothing to finish; "
        "name the REVISION that is wanted"
    )


def _visit(rig: "Rig", matrix: "Matrix", slot: str, revision: str) -> "Visit":
    """The visit to this drive with this firmware; Misuse with the reason where there is none."""
    from leadline.inventory.plan import survey

    matrix.firmware(rig.drive(slot).model, revision)
    visits, gaps = survey([rig], matrix)
    for visit in visits:
        if (visit.cell.slot, visit.cell.firmware) == (slot, revision):
            return visit
    reasons = [gap.reason for gap in gaps if (gap.cell.slot, gap.cell.firmware) == (slot, revision)]
    raise Misuse(f"{rig.path}: slot {slot} is not flashed with {revision}: {'; '.join(reasons)}")


def _sentence(done: dict[str, Any]) -> str:
    who = f"{done['rig']} {done['slot']}: {done['serial']}"
    if not done["flashed"]:
        return f"{who} runs {done['firmware']} already; nothing was done"
    return f"{who} runs {done['firmware']}, and ran {done['before']} ({done['seconds']:g} s)"
