"""Slices and verdicts on their way from a judge into the results, tied to one another."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leadline.basis import basis_of
from leadline.results.rows import slice_row, verdict_row
from leadline.results.schema import Phase

if TYPE_CHECKING:
    from leadline.claims import Claim
    from leadline.judge import SliceJudge
    from leadline.load.slices import Slice
    from leadline.results.record import Record
    from leadline.verdict.verdict import Verdict


@dataclass
class Keeping:
    """The claims of one test on one cell, in one run's record.  Each call is committed at once.

    `about` is the cell that its verdicts are about, where that is not the one that is measured.
    """

    record: "Record"
    cell: str
    claim: str
    about: str = ""
    _places: Counter[str] = field(default_factory=Counter)

    def slice(self, judge: "SliceJudge", side: str, measured: "Slice") -> None:
        """Keep the next slice of the claim that `judge` is settling, in the order in which it ran.

        Raises RigTrouble when it cannot be written.
        """
        settling = judge.now.name
        place = self._places[settling]
        self._places[settling] += 1
        row = slice_row(self.cell, self.claim, side, measured, settling=settling, place=place)
        self.record.add(row)

    def verdict(
        self, judge: "SliceJudge", claim: "Claim", verdict: "Verdict", explanation: str
    ) -> None:
        """Keep the verdict on `claim` with what it rests on, and the drive time that it took.

        Raises RigTrouble when it cannot be written.
        """
        settling = judge.now.name
        row = verdict_row(
            self.about or self.cell,
            self.claim,
            claim,
            verdict,
            explanation,
            settling=settling,
            basis=basis_of(claim.statement, judge, self.record.slices(settling)),
        )
        self.record.add(row, self._load(verdict.drive_seconds))

    def spent(self, seconds: float) -> None:
        """Keep drive time that is part of no verdict.  Raises RigTrouble as the others do."""
        self.record.add(self._load(seconds))

    def _load(self, seconds: float) -> Phase:
        return Phase(cell=self.cell, name="drive", seconds=seconds)
