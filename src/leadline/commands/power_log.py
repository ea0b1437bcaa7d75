"""`leadline power log`: every byte that went to and from the PDUs of a run."""

import argparse

from leadline.errors import Misuse


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `power log` to the command line."""
    parser = subparsers.add_parser("power log", help="every byte to and from the PDUs of a run")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises Misuse: it is yet to come."""
    raise Misuse("there is no log yet")
