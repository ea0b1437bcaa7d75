"""`leadline trace generate`: the nine multitasking loads as trace files."""

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.drive.text import plain
from leadline.errors import Misuse

if TYPE_CHECKING:
    from leadline.trace.header import Header
    from leadline.trace.loads import Load

_EXAMPLES = """\
examples:
  leadline trace generate --list                              the loads, in a sentence each
  leadline trace generate --out traces/                       all nine, for a drive of 40 GB
  leadline trace generate dual-copy --out traces/ --seed 7
  leadline trace generate --out traces/ --capacity 1073741824 files in proportion, for 1 GiB
  leadline trace generate --out traces/ --fragments 500       every large file in 500 pieces

A trace is NAME.iolog.gz, its header NAME.json.  The same names, seed, capacity and fragments
give the same requests, with the same version of numpy.

Exit codes: 0, and 2 where a name or a number is wrong, or nothing can be written there.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `generate` to `leadline trace`."""
    parser = subparsers.add_parser(
        "generate",
        help="make the multitasking loads as trace files",
        description="Make traces of the nine multitasking loads from descriptions of them.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="which loads (all nine)")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="DIR", help="where the files go")
    where.add_argument("--list", action="store_true", help="only say which loads there are")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="0 or more (1)")
    parser.add_argument(
        "--capacity",
        type=int,
        default=40_000_000_000,
        metavar="BYTES",
        help="of the drive that they are for (40000000000, as in the article); on a smaller one "
        "every file is smaller, and the trace shorter, in proportion",
    )
    parser.add_argument(
        "--fragments", type=int, default=1, metavar="N", help="pieces of each large file (1)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Generate and say what was; 0.  Raises Misuse."""
    from leadline.trace.files import save_trace
    from leadline.trace.loads import generate
    from leadline.trace.patterns import Drive

    loads = _chosen(arguments.names)
    if arguments.list:
        _list(loads, as_json=arguments.json)
        return 0
    if arguments.seed < 0:
        raise Misuse(f"--seed: found {arguments.seed}, expected 0 or more")
    drive = Drive(arguments.capacity, arguments.fragments)
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misuse(
            f"--out: {plain(str(arguments.out))}: {error.strerror}; name a directory"
        ) from error
    found = []
    for load in loads:
        trace = generate(load, drive, arguments.seed)
        header = _header(load, arguments, len(trace), trace.seconds)
        path = arguments.out / f"{load.name}.iolog.gz"
        save_trace(path, trace, header)
        found.append((path, header))
        if not arguments.json:
            print(f"{plain(str(path))}: {len(trace)} requests, {trace.seconds:.0f} s: {load.what}")
    if arguments.json:
        traces = [{"file": str(path), **header.model_dump(mode="json")} for path, header in found]
        print(json.dumps({"traces": traces}, indent=2))
    return 0


def _chosen(names: Sequence[str]) -> "list[Load]":
    from leadline.trace.loads import LOADS

    for name in names:
        if name not in LOADS:
            known = ", ".join(LOADS)
            raise Misuse(f"there is no load {name!r}; expected one of {known}")
    return [LOADS[name] for name in dict.fromkeys(names)] if names else list(LOADS.values())


def _list(loads: "Sequence[Load]", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"loads": {load.name: load.what for load in loads}}, indent=2))
        return
    width = max(len(load.name) for load in loads)
    for load in loads:
        print(f"{load.name:{width}}  {load.what}")


def _header(load: "Load", arguments: argparse.Namespace, requests: int, seconds: float) -> "Header":
    import numpy

    from leadline.trace.header import Header
    from leadline.trace.patterns import PAGE, Drive

    scale = Drive(arguments.capacity).scale
    smaller = "" if scale == 1 else f"; files at {scale:.3g} of their size"
    broken = "" if arguments.fragments == 1 else f"; large files in {arguments.fragments} pieces"
    return Header(
        what=f"{load.what}{smaller}{broken}",
        where="made up: recorded on no drive",
        when=datetime.now(UTC).replace(microsecond=0),
        made="generated",
        generator=f"leadline {version('leadline')}, numpy {numpy.__version__}",
        capacity_bytes=arguments.capacity,
        block_bytes=PAGE,
        in_flight=load.in_flight,
        requests=requests,
        seconds=seconds,
        seed=arguments.seed,
        streams=load.described(),
    )
