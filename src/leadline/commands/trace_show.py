"""`leadline trace show`: what a trace is like, in figures."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.drive.text import plain

if TYPE_CHECKING:
    from leadline.trace.figures import Figures
    from leadline.trace.header import Header

_EXAMPLES = """\
examples:
  leadline trace show traces/dual-copy.iolog.gz
  leadline trace show --json traces/*.iolog.gz

A request is sequential when it begins where one of the 32 before it, of its kind, ended.

Exit codes: 0, and 2 where a file is no sound trace.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `show` to `leadline trace`."""
    parser = subparsers.add_parser(
        "show",
        help="a trace in figures",
        description="Show what traces are like: requests, sizes, order, time.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+", help="NAME.iolog.gz")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the figures of each; 0.  Raises Misuse."""
    from leadline.trace.figures import figures_of
    from leadline.trace.files import load_trace

    shown = []
    for path in arguments.files:
        trace, header = load_trace(path)
        figures = figures_of(trace)
        shown.append(
            {"file": str(path), "header": header.model_dump(mode="json"), **asdict(figures)}
        )
        if not arguments.json:
            print("\n".join(_lines(path, header, figures)))
    if arguments.json:
        print(json.dumps({"traces": shown}, indent=2))
    return 0


def _lines(path: Path, header: "Header", figures: "Figures") -> Iterator[str]:
    seed = f", seed {header.seed}" if header.seed is not None else ""
    yield plain(f"{path}: {header.what}")
    yield plain(f"  {header.made} {header.when:%Y-%m-%d %H:%M} by {header.generator}{seed}")
    yield plain(f"  where: {header.where}; capacity {header.capacity_bytes / 1e9:.4g} GB")
    others = ((figures.trims, "trims"), (figures.syncs, "syncs"))
    counts = "".join(f", {count} {name}" for count, name in others if count)
    yield (
        f"  {figures.requests} requests in {figures.seconds:.1f} s: {figures.read_share:.0%} reads"
        f"{counts}; at most {header.in_flight} in flight"
    )
    yield (
        f"  {figures.bytes_read / 1e9:.3g} GB read, {figures.bytes_written / 1e9:.3g} GB written; "
        f"sizes: mean {figures.mean_bytes / 1024:.1f} KiB, median "
        f"{figures.median_bytes / 1024:.1f} KiB, largest {figures.largest_bytes / 1024:.1f} KiB"
    )
    yield (
        f"  {figures.sequential_share:.0%} sequential, "
        f"from {figures.lowest / 1e9:.3g} to {figures.highest / 1e9:.3g} GB"
    )
