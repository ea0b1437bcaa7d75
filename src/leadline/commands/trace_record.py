"""`leadline trace record`: a trace of real work, from blktrace."""

import argparse
import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.drive.text import plain
from leadline.errors import Misuse

if TYPE_CHECKING:
    from leadline.trace.blkparse import Recorded

_EXAMPLES = """\
examples:
  leadline trace record traces/build.iolog.gz --what 'the kernel is built' \\
      --rig rigs/my-bench.yaml --drive one --seconds 300
  leadline trace record traces/build.iolog.gz --what 'the kernel is built' \\
      --from blkparse.txt --capacity 240057409536 --where 'my desktop'

On a rig it runs blktrace for so many seconds and changes nothing: start the work beside it.
Recorded is what the drive is sent, after merging.  --from takes what blkparse printed elsewhere.

Exit codes: 0 recorded, 2 wrong usage or nothing to record, 3 rig trouble.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `record` to `leadline trace`."""
    parser = subparsers.add_parser(
        "record",
        help="a trace of real work, by blktrace",
        description="Record what a drive is sent while it is used, as a trace.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="NAME.iolog.gz, to be written")
    parser.add_argument("--what", required=True, metavar="TEXT", help="what is recorded")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--rig", type=Path, metavar="FILE", help="a rig file; with --drive")
    source.add_argument("--from", dest="text", type=Path, metavar="TEXT", help="blkparse's output")
    parser.add_argument("--drive", metavar="SLOT", help="the drive's slot on the rig")
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="how long (60)")
    parser.add_argument("--capacity", type=int, metavar="BYTES", help="of the drive, with --from")
    parser.add_argument("--where", metavar="TEXT", help="on which drive and machine, with --from")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Record, write the trace and say what is in it; 0."""
    from leadline.trace.files import check_place, inspect, save_trace
    from leadline.trace.header import Header

    check_place(arguments.file)
    begun = datetime.now(UTC).replace(microsecond=0)
    if arguments.text is None:
        recorded, where, capacity, by = _on_rig(arguments)
    else:
        recorded, where, capacity, by = _from_text(arguments)
    header = Header(
        what=plain(arguments.what),
        where=where,
        when=begun,
        made="recorded",
        generator=by,
        capacity_bytes=capacity,
        in_flight=recorded.in_flight,
        requests=len(recorded.trace),
        seconds=recorded.trace.seconds,
    )
    save_trace(arguments.file, recorded.trace, header)
    _, problems = inspect(arguments.file)
    shown = plain(str(arguments.file))
    if problems:
        raise Misuse("\n".join(f"{shown}:{problem}" for problem in problems))
    if arguments.json:
        print(json.dumps({"file": str(arguments.file), **header.model_dump(mode="json")}, indent=2))
    else:
        count, seconds = header.requests, header.seconds
        print(f"{shown}: {count} requests in {seconds:.1f} s, at most {header.in_flight} in flight")
    return 0


def _on_rig(arguments: argparse.Namespace) -> "tuple[Recorded, str, int, str]":
    """The recording, where it was made, the drive's capacity in bytes, and by which programs."""
    from leadline.drive.bind import bind
    from leadline.host.connection import open_host
    from leadline.inventory.rig import load_rig
    from leadline.trace.recording import MOST_S, record

    if arguments.drive is None:
        raise Misuse("--rig: name the drive, too: --drive SLOT")
    if not 1 <= arguments.seconds <= MOST_S:
        raise Misuse(f"--seconds: found {arguments.seconds}, expected 1 to {MOST_S}")
    rig = load_rig(arguments.rig)
    spec = rig.drive(arguments.drive)
    with open_host(rig.host) as host:
        drive = bind(host, spec, controller=rig.controller_of(spec))
        recorded = record(host, drive.node, arguments.seconds)
        sectors = int(host.read_file(f"/sys/block/{drive.name}/size"))
        kernel = host.read_file("/proc/sys/kernel/osrelease").decode().strip()
        by = f"leadline {version('leadline')}, blktrace {host.versions['blktrace']}, Linux {kernel}"
    who = drive.identity
    where = f"{who.model} {who.serial}, firmware {who.firmware}, in slot {spec.slot} of {rig.name}"
    return recorded, plain(where), sectors * 512, plain(by)


def _from_text(arguments: argparse.Namespace) -> "tuple[Recorded, str, int, str]":
    from leadline.trace.blkparse import read_blkparse

    if arguments.capacity is None or arguments.where is None:
        raise Misuse("--from: say of which drive it is, too: --capacity BYTES and --where TEXT")
    if not 0 < arguments.capacity < 1 << 63:
        raise Misuse(f"--capacity: found {arguments.capacity}, expected the drive's size in bytes")
    shown = plain(str(arguments.text))
    try:
        with arguments.text.open("rb") as lines:
            recorded = read_blkparse(lines, shown)
    except OSError as error:
        raise Misuse(f"{shown}: {error.strerror}; name what blkparse printed") from error
    by = f"leadline {version('leadline')}, from blkparse's text"
    return recorded, plain(arguments.where), arguments.capacity, by
