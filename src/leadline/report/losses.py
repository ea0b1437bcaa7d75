"""What a candidate loses that the released firmware has: it is told before all else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline.inventory.stations import Route
from leadline.outcomes import NOT_OFFERED, Ended
from leadline.report.summary import WORDS, SummaryRow

LOST = frozenset({Ended.FAIL, Ended.EXCUSED, Ended.INCONCLUSIVE})
SLOWER = frozenset({Ended.FAIL, Ended.EXCUSED})


@dataclass(frozen=True)
class Loss:
    """A test that held with the firmware `against` and does not hold with the candidate.

    `before` is None for one that compares the two.
    """

    row: SummaryRow
    against: str
    before: SummaryRow | None

    def as_json(self) -> dict[str, object]:
        """Plain values, for `leadline hil --json`."""
        return {
            "cell": self.row.cell,
            "against": self.against,
            "claim": self.row.claim,
            "test": self.row.node,
            "outcome": self.row.outcome.value,
            "message": self.row.message,
        }


def losses(rows: Sequence[SummaryRow], route: Route) -> tuple[Loss, ...]:
    """Every test that passed with a released firmware and not with the candidate held against
    it, and every comparison of the two that failed.

    What fails at a station is the firmware's that the drive has there, so that it is the
    candidate's here only where it failed with that, or as both were judged."""
    stations = [stay.id for stay in route.stays]
    found = []
    for candidate, released in route.comparisons:
        held = {_test(row): row for row in rows if row.cell == released.id}
        for row in rows:
            if row.cell != candidate.id:
                continue
            compares = any(name in row.node for name in stations)
            before = None if compares else held.get(_test(row))
            lost = before is not None and before.outcome is Ended.PASS and _is_lost(row)
            if lost or (compares and row.outcome in SLOWER):
                found.append(Loss(row, released.firmware, before))
    return tuple(found)


def _is_lost(row: SummaryRow) -> bool:
    """Whether what it is about is not there any more: the test fails, or is left out for that."""
    gone = row.outcome is Ended.SKIPPED and row.message.startswith(NOT_OFFERED)
    return gone or row.outcome in LOST


def told(found: Sequence[Loss]) -> Iterator[str]:
    """The losses in lines, those of each candidate under its cell."""
    last = ""
    for loss in found:
        if loss.row.cell != last:
            last = loss.row.cell
            yield f"{last} loses what {loss.against} has:"
        gone = loss.row.message if loss.row.outcome is Ended.SKIPPED else ""
        words = [gone or WORDS[loss.row.outcome], loss.row.estimate]
        if loss.before is not None and loss.before.estimate:
            words.append(f"(with {loss.against}: {loss.before.estimate})")
        said = " ".join(filter(None, words))
        yield f"  {loss.row.claim}: {said}: {_name(loss.row.node)}"


def _test(row: SummaryRow) -> str:
    """What a test is called on any cell."""
    return row.node.replace(row.cell, "")


def _name(node: str) -> str:
    return node.rpartition("::")[2]
