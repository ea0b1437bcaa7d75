"""The loop that settles a claim: measure a few pairs of slices, look, go on or stop.

It knows neither pytest nor the rig: it is handed a function that measures and one
that keeps what was measured.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from leadline.claims import Claim, Settled
from leadline.explain import explain
from leadline.load.slices import ROUNDS, TOO_SHORT, VOID_MEANINGS, Slice, SliceSetting
from leadline.load.workload import Workload
from leadline.verdict.ratio import SIGMA_D, judge_ratio
from leadline.verdict.verdict import Verdict

PAIRS_AT_ONCE = 4
"""Pairs in one batch: one process of the load generator, so a killed run loses no more."""
LONGEST_SLICE_S = 10.0
UNCLEAN_SHARE = 0.25
"""Unclean pairs are measured again; when more than this share of them is, nothing counts."""

Measure = Callable[[Workload, Sequence[SliceSetting]], Sequence[Slice]]


@dataclass
class Evidence:
    """What was measured for one claim so far; pairs are (left, right) however they were run."""

    seconds: float
    pairs: list[tuple[Slice, Slice]] = field(default_factory=list)
    unclean: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    spent_s: float = 0.0

    def voids(self) -> tuple[str, ...]:
        """Why the evidence does not count, most frequent first; empty when it does."""
        measured = len(self.pairs) + self.dropped
        if self.dropped < 2 or self.dropped <= UNCLEAN_SHARE * measured:
            return ()
        return tuple(
            f"{name}: {VOID_MEANINGS.get(name, name)} ({times} slices)"
            for name, times in self.unclean.most_common()
        )


@dataclass
class SliceJudge:
    """Settles the claims of one test on one drive.

    `measure` runs slices on the drive, in order; `keep_slice` and `keep_verdict` are told of
    everything at once; `slice_s` is the length of a slice to begin with, in seconds; `repeat`
    the command that runs the same test again.
    """

    cell: str
    measure: Measure
    keep_slice: Callable[[str, Slice], None]
    keep_verdict: Callable[[Claim, Verdict, str], None]
    slice_s: float
    budget_s: float
    repeat: str
    sigma_d: float = SIGMA_D
    _stated: list[Claim] = field(default_factory=list)

    def stated(self, claim: Claim) -> None:
        """Take note that a test has stated `claim`."""
        self._stated.append(claim)

    def unasserted(self) -> list[Claim]:
        """The claims whose truth nobody asked."""
        return [claim for claim in self._stated if claim.settled is None]

    def settle(self, claim: Claim) -> Settled:
        """Measure pairs of slices until `claim` is settled, void or over its budget."""
        evidence = Evidence(self.slice_s)
        verdict = None
        while verdict is None:
            self._measure_batch(claim, evidence)
            verdict = self._look(claim, evidence)
        explanation = explain(
            verdict,
            cell=self.cell,
            statement=str(claim),
            left=str(replace(claim.left, factor=1.0)),
            right=str(replace(claim.right, factor=1.0)),
            source=claim.source,
            repeat=self.repeat,
        )
        self.keep_verdict(claim, verdict, explanation)
        return Settled(verdict, explanation)

    def _measure_batch(self, claim: Claim, evidence: Evidence) -> None:
        left = replace(claim.left.setting, seconds=evidence.seconds)
        right = replace(claim.right.setting, seconds=evidence.seconds)
        # Order alternates, so that what drifts slowly favours neither side.
        swapped = [n % 2 == 1 for n in range(PAIRS_AT_ONCE)]
        settings = [s for swap in swapped for s in ((right, left) if swap else (left, right))]
        slices = self.measure(claim.left.load.workload, settings)
        evidence.spent_s += sum(s.setting.seconds for s in slices)
        pairs = []
        for swap, first, second in zip(swapped, slices[::2], slices[1::2], strict=True):
            pair = (second, first) if swap else (first, second)
            pairs.append(pair)
            for side, measured in zip(("left", "right"), pair, strict=True):
                self.keep_slice(side, measured)
        self._take(evidence, pairs)

    def _take(self, evidence: Evidence, pairs: Sequence[tuple[Slice, Slice]]) -> None:
        """Sort new pairs into evidence and waste; lengthen the slices if they were too short."""
        needed = max(_needed_of(side) for side in zip(*pairs, strict=True))
        if evidence.seconds < needed <= LONGEST_SLICE_S:
            # A longer slice has another noise: what was measured before cannot be mixed in.
            evidence.seconds = needed
            evidence.pairs.clear()
            return
        for pair in pairs:
            if all(measured.clean for measured in pair):
                evidence.pairs.append(pair)
            else:
                evidence.dropped += 1
                evidence.unclean.update(name for measured in pair for name in measured.voids)

    def _look(self, claim: Claim, evidence: Evidence) -> Verdict | None:
        voids = evidence.voids()
        over = evidence.spent_s >= self.budget_s
        if not voids and len(evidence.pairs) < PAIRS_AT_ONCE:
            if not over:
                return None
            voids = ("too-few-pairs: the budget was spent before four clean pairs were measured",)
        return judge_ratio(
            [left.rate for left, _ in evidence.pairs],
            [right.rate for _, right in evidence.pairs],
            claim.threshold,
            claim.direction,
            pair_seconds=2 * evidence.seconds,
            spent_s=evidence.spent_s,
            budget_s=self.budget_s,
            sigma_d=self.sigma_d,
            voids=voids,
        )


def _needed_of(side: Sequence[Slice]) -> float:
    """How long slices like these must be to count; 0 where most of them were long enough.

    A single one that was too short has met a stall: that is no reason to begin again.
    """
    short = [each for each in side if TOO_SHORT in each.voids and each.rate > 0]
    if 2 * len(short) <= len(side):
        return 0.0
    return needed_seconds(side[0].setting.offered_depth, median(each.rate for each in short))


def needed_seconds(offered_depth: int, rate: float) -> float:
    """How long a slice must be for its queue to turn over often enough, with some to spare."""
    return 1.2 * ROUNDS * offered_depth / rate
