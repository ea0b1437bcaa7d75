"""`leadline trace check`: is a trace file fit to be replayed?"""

import argparse
import json
from pathlib import Path

from leadline.drive.text import plain
from leadline.errors import Misuse

_EXAMPLES = """\
examples:
  leadline trace check traces/dual-copy.iolog.gz
  leadline trace check --json traces/*.iolog.gz

Looked at are the header, every line's form, the order of times, the capacity, the alignment,
and whether all requests are there that the header counts.  Each message is FILE:LINE, what was
found and what to do.

Exit codes: 0 every trace is sound, 2 one is not.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `check` to `leadline trace`."""
    parser = subparsers.add_parser(
        "check",
        help="is a trace whole, in order, and within its drive?",
        description="Check trace files.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+", help="NAME.iolog.gz")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Say what is wrong with each; 0, or 2."""
    found = [(path, *_look(path)) for path in arguments.files]
    if arguments.json:
        files = [
            {"file": str(path), "requests": requests, "problems": problems}
            for path, requests, problems in found
        ]
        print(json.dumps({"files": files}, indent=2))
    else:
        for path, requests, problems in found:
            print("\n".join(problems or [f"{plain(str(path))}: sound: {requests} requests"]))
    return 2 if any(problems for _, _, problems in found) else 0


def _look(path: Path) -> tuple[int, list[str]]:
    """How many requests its header counts, and what is wrong."""
    from leadline.trace.files import inspect

    try:
        header, problems = inspect(path)
    except Misuse as error:
        return 0, [str(error)]
    shown = plain(str(path))
    return header.requests, [f"{shown}:{problem}" for problem in problems]
