"""`leadline power map`: which drive each outlet feeds, found by switching them in turn."""

import argparse
from pathlib import Path

from leadline.errors import Misuse


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `power map` to the command line."""
    parser = subparsers.add_parser(
        "power map",
        help="which drive each outlet feeds",
        description="Switch each outlet in turn and learn which drive it feeds.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rig", required=True, type=Path, metavar="FILE", help="the rig file")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises Misuse: it is yet to come."""
    raise Misuse(f"{arguments.rig}: outlets cannot be mapped yet")
