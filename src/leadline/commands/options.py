"""Options that several commands have."""

import argparse
from pathlib import Path


def add_results(parser: "argparse.ArgumentParser | argparse._ArgumentGroup", has: str = "") -> None:
    """`--results DIR`; `has` says what a user finds there after this command."""
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("leadline-results"),
        metavar="DIR",
        help="where the results database is kept (leadline-results)" + (has and f": it has {has}"),
    )
