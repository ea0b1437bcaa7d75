"""Claims: what is said of a drive, and settled, once, when its truth is asked.

A claim's truth is True or it raises; it is never False, because pytest's rewriting asks for
it several times over, and `not`, `or` and `if` would each lose a False without a trace.
`leadline.quantities` has what claims are made of.
"""

from dataclasses import dataclass
from typing import Protocol

from leadline.errors import Inconclusive
from leadline.statements import Statement
from leadline.verdict.verdict import Outcome, Verdict


class ClaimFailed(AssertionError):
    """The drive does not do what the claim says: FAIL, with the whole explanation."""

    def __init__(self, explanation: str, verdict: Verdict) -> None:
        super().__init__(explanation)
        self.verdict = verdict


class Unsettled(Inconclusive):
    """Too little evidence, or none that counts: INCONCLUSIVE, with the whole explanation."""

    def __init__(self, explanation: str, verdict: Verdict) -> None:
        super().__init__(explanation)
        self.verdict = verdict


class NothingOnRecord(Exception):
    """There is nothing to agree with yet; what was measured is on record from now on."""


class NotPromised(Exception):
    """The drive lacks what the claim is about, and nobody has promised that of it."""


class NotJudgedHere(Exception):
    """A regression station has recorded what is judged at a later one."""


@dataclass(frozen=True)
class Settled:
    """A verdict, and the same in words."""

    verdict: Verdict
    explanation: str


class Judge(Protocol):
    """What settles claims: it measures, decides, records."""

    def stated(self, claim: "Claim") -> None:
        """Take note that a test has stated `claim`."""

    def settle(self, claim: "Claim") -> Settled:
        """Measure until `claim` is settled or the budget is spent."""


class Claim:
    """Something said of a drive, settled once, when its truth is asked."""

    def __init__(self, statement: Statement, judge: Judge) -> None:
        self.statement = statement
        self.settled: Settled | None = None
        self._judge = judge

    def __bool__(self) -> bool:
        __tracebackhide__ = True
        if self.settled is None:
            self.settled = self._judge.settle(self)
        verdict, explanation = self.settled.verdict, self.settled.explanation
        if verdict.outcome is Outcome.PASS:
            return True
        if verdict.outcome is Outcome.FAIL:
            raise ClaimFailed(explanation, verdict)
        raise Unsettled(explanation, verdict)

    def __str__(self) -> str:
        return str(self.statement)

    __repr__ = __str__


def stated(statement: Statement, judge: Judge) -> Claim:
    """The claim, of which the judge knows from now on: one that nobody asserts is a defect."""
    claim = Claim(statement, judge)
    judge.stated(claim)
    return claim
