"""`leadline recompute`: the verdicts of a run again, from its stored slices."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.commands.options import add_results
from leadline.drive.text import plain
from leadline.outcomes import FAILED_CODE, PASSED_CODE

if TYPE_CHECKING:
    from leadline.recompute import Difference
    from leadline.results.schema import VerdictRow
    from leadline.results.stored import StoredRun

_EXAMPLES = """\
examples:
  leadline recompute                               the last run
  leadline recompute 20260131-235959-1a2b          another one
  leadline recompute --results DIR --json

Nothing is measured and nothing is changed.  The judge is put before the stored slices, and
each verdict must come out the same: statement, outcome, reason, voids, and every number, to
the last bit.  A slice that was changed or is missing is found, too.

Exit codes: 0 all verdicts are the same, 1 one differs, 2 no such run or results file, or a
run without verdicts.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `recompute` to the command line."""
    parser = subparsers.add_parser(
        "recompute",
        help="the verdicts of a run again, from its stored slices",
        description="Compute the verdicts of a run again from its stored slices, and compare.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN", nargs="?", help="its id (default: the last run)")
    add_results(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(func=run)


@dataclass(frozen=True)
class Again:
    """A stored verdict, and how it differs from what was computed again."""

    row: "VerdictRow"
    differences: "tuple[Difference, ...]"

    @property
    def same(self) -> bool:
        """Whether it does not."""
        return not self.differences


def run(arguments: argparse.Namespace) -> int:
    """Print what was compared; the exit code.  Raises Misuse when there is nothing to compare."""
    from leadline.recompute import differences
    from leadline.results.stored import read_run

    stored = read_run(arguments.results, arguments.run)
    compared = [
        Again(row, differences(row, stored.slices.get(row.settling, ()))) for row in stored.verdicts
    ]
    if arguments.json:
        print(json.dumps(_document(arguments.results, stored, compared), allow_nan=False))
    else:
        print("\n".join(_lines(stored, compared)))
    sys.stdout.flush()
    return PASSED_CODE if all(each.same for each in compared) else FAILED_CODE


def _document(results: Path, stored: "StoredRun", compared: Sequence[Again]) -> dict[str, Any]:
    return {
        "results": str(results),
        "run": stored.run.id,
        "measured_by": stored.run.version,
        "recomputed_by": version("leadline"),
        "same": all(each.same for each in compared),
        "verdicts": [
            {
                **{name: str(getattr(each.row, name)) for name in _SHOWN},
                "same": each.same,
                "differences": [asdict(one) for one in each.differences],
            }
            for each in compared
        ],
        "unsettled_slices": stored.unsettled_slices,
    }


_SHOWN = ("cell", "claim", "statement", "outcome", "reason")


def _lines(stored: "StoredRun", compared: Sequence[Again]) -> Iterator[str]:
    yield f"run {plain(stored.run.id)}, measured by {_by(stored.run.version)}"
    width = max(len(_said(each)) for each in compared)
    cell = None
    for each in compared:
        if each.row.cell != cell:
            cell = each.row.cell
            yield f"\n{plain(str(cell))}"
        same = "same" if each.same else "differs"
        yield f"  {_said(each):{width}}  {plain(str(each.row.outcome)):12}  {same}"
        for one in each.differences:
            old, new = (plain(str(value)) for value in (one.stored, one.recomputed))
            yield f"      {plain(one.field)}: stored {old}, recomputed {new}"
    yield f"\n{_count(compared)}"
    if stored.unsettled_slices:
        yield (
            f"{stored.unsettled_slices} slices are of no verdict: on record for others to be held "
            "against, or of claims that were not settled when the run or their test ended"
        )
    if not all(each.same for each in compared) and stored.run.version != version("leadline"):
        yield (
            f"computed again by {_by(version('leadline'))}: to tell what is stored from how "
            "verdicts are reached, install the version that measured"
        )


def _said(each: Again) -> str:
    return plain(f"{each.row.claim}: {each.row.statement}")


def _by(release: str) -> str:
    return f"Leadline {plain(release)}"


def _count(compared: Sequence[Again]) -> str:
    differing = sum(not each.same for each in compared)
    verdicts = f"{len(compared)} verdict" + ("" if len(compared) == 1 else "s")
    if not differing:
        return f"{verdicts}: all the same"
    return f"{verdicts}: {differing} {'differs' if differing == 1 else 'differ'}"
