"""The table at the end of a run: cell, claim, verdict, estimate with interval, drive-seconds."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.outcomes import Ended

WORDS = {
    Ended.PASS: "PASS",
    Ended.FAIL: "FAIL",
    Ended.ERROR: "ERROR",
    Ended.INCONCLUSIVE: "INCONCLUSIVE",
    Ended.USAGE: "USAGE",
    Ended.EXCUSED: "FAIL, known issue",
    Ended.SKIPPED: "skipped",
    Ended.RECORDED: "recorded",
    Ended.DEFECT: "DEFECT",
}
NO_DRIVE = "no drive"
"""Stands in the place of a cell, for tests that ask for none."""


@dataclass(frozen=True)
class SummaryRow:
    """One test on one cell."""

    node: str
    cell: str
    claim: str
    outcome: Ended
    estimate: str
    drive_seconds: float | None
    message: str
    explanation: str
    not_needed: str = ""
    """The known issue that excuses a claim which passes."""
    cause: str = ""
    changes: tuple[str, ...] = ()
    """What the drive says of itself with the candidate that it did not say before."""

    @classmethod
    def from_facts(cls, node: str, facts: Mapping[str, Any]) -> "SummaryRow":
        """A row from the properties of a test's report.

        A test that states several claims ends with the first that does not hold: its estimate
        and cause are told, and the drive time of all.
        """
        outcome, verdicts = Ended(facts["outcome"]), _verdicts(facts)
        deciding = verdicts[0 if outcome is Ended.PASS else -1]
        spent = [each["drive_seconds"] for each in verdicts if "drive_seconds" in each]
        explained = (str(each["explanation"]) for each in verdicts if "explanation" in each)
        return cls(
            node=node,
            cell=str(facts["cell"] or NO_DRIVE),
            claim=str(facts["claim"]),
            outcome=outcome,
            estimate=str(deciding.get("estimate", "")),
            drive_seconds=sum(spent) if spent else None,
            message=str(facts.get("message", "")),
            explanation="\n".join(explained),
            not_needed=str(facts.get("not_needed", "")),
            cause=str(deciding.get("cause", "")),
            changes=tuple(str(facts.get("changes", "")).splitlines()),
        )


_OF_VERDICT = ("estimate", "drive_seconds", "explanation", "cause")


def _verdicts(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is told of each verdict of a test, in their order, the first one's without a number.

    One without anything where there is none.
    """
    found: list[dict[str, Any]] = []
    number = ""
    while True:
        named = {name: f"{name}{number}" for name in _OF_VERDICT}
        verdict = {name: facts[key] for name, key in named.items() if key in facts}
        if found and not verdict:
            return found
        found.append(verdict)
        number = f".{len(found) + 1}"


def summary_table(rows: Sequence[SummaryRow], seconds: float, width: int) -> str:
    """The table as text for a terminal `width` columns wide, and a line that counts outcomes."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("cell, claim", "verdict", "estimate [interval]"):
        table.add_column(name, overflow="fold")
    table.add_column("drive s", justify="right")
    last = ""
    for row in rows:
        if row.outcome is Ended.RECORDED:
            continue  # the verdict that it is for has a row
        if row.cell != last:
            table.add_row(row.cell)
        spent = "" if row.drive_seconds is None else f"{row.drive_seconds:.1f}"
        table.add_row(f"  {row.claim}", WORDS[row.outcome], row.estimate, spent)
        last = row.cell
    text = io.StringIO()
    width = max(width, 100)
    console = Console(file=text, width=width, highlight=False, markup=False, emoji=False)
    console.print(table)
    console.print(_count(rows, seconds))
    for row in rows:
        for change in row.changes:
            console.print(f"{row.cell}: {change}", soft_wrap=True)
    for row in rows:
        if row.outcome is Ended.SKIPPED and row.message:
            console.print(f"skipped: {row.claim} of {row.cell}: {row.message}", soft_wrap=True)
        if row.not_needed:
            said = f"no longer needed, {row.claim} of {row.cell} passes: {row.not_needed}"
            console.print(said, soft_wrap=True)
        if row.outcome is Ended.FAIL and (why := _why(row)):
            console.print(f"failed: {row.claim} of {row.cell}: {why}", soft_wrap=True)
    return text.getvalue()


def _why(row: SummaryRow) -> str:
    """The cause in a few words, else the first line of what was said."""
    first, *_ = row.message.splitlines() or [""]
    return row.cause or first.removeprefix(f"{WORDS[Ended.FAIL]}: ")


def _count(rows: Sequence[SummaryRow], seconds: float) -> str:
    counted = [
        f"{number} {WORDS[ended]}"
        for ended in Ended
        if (number := sum(row.outcome is ended for row in rows))
    ]
    drive = sum(row.drive_seconds or 0.0 for row in rows)
    return f"\n{', '.join(counted)}; {drive:.1f} s of drive time in {seconds:.0f} s"
