"""The loop that settles a claim: measure a few blocks of slices, look, go on or stop.

It knows neither pytest nor the rig: it is handed a function that measures and one
that keeps what was measured.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from leadline.claims import Claim, NothingOnRecord, Settled
from leadline.depth_curve import CurveSettings
from leadline.diagnosis import of_ratio, slower_of
from leadline.errors import Inconclusive
from leadline.evidence import FEWEST_BLOCKS, Block, Evidence
from leadline.explain import explain
from leadline.judge_arrival import settle_arrival
from leadline.judge_curve import settle_collapse, settle_dip
from leadline.judge_gain import look_at_gain
from leadline.judge_regression import settle_regression
from leadline.load.slices import Slice, SliceSetting
from leadline.load.workload import Workload
from leadline.odd_one import DISCRIMINATES, disagrees, gain_of, nearest_to_median, what_it_tells
from leadline.plan_recorded import plan_of_record
from leadline.plans import Noise, Plan, Progress, look_at_times, plan_of
from leadline.price import priced
from leadline.remedies import NO_DIFFERENCE, SESSIONS_TELL, TOO_FEW
from leadline.statements import (
    Against,
    Agreement,
    Arrival,
    AsRecorded,
    Contrast,
    Gain,
    NoCollapse,
    NoDip,
    NotRegressed,
    Ratio,
    Swept,
    Within,
)
from leadline.verdict.verdict import Outcome, Verdict

BLOCKS_ON_RECORD = 16
"""Of a first session: a later one can be held against no more than these."""
LONGEST_BATCH_S = 16.0
"""A batch is one process of the load generator, and a killed run loses it.  Longer than this are
none but those of FEWEST_BLOCKS: one of fewer could not tell a drive that is slow from a stall.  So
the block that tries a length is counted in with those after it."""

Measure = Callable[[Workload, Sequence[SliceSetting]], Sequence[Slice]]
Hunt = Callable[[Ratio, Verdict, float], Sequence[str]]
"""Where the time went in a ratio that failed, in words, seen in slices of so many seconds."""
TellApart = Callable[[AsRecorded, Verdict, Evidence], Sequence[str]]
"""Which of two is the slow one, in words, where a drive does not agree with what is on record."""


@dataclass(frozen=True)
class Settling:
    """One time that a claim is settled: the name that its slices and its verdict are kept
    under, and the seed of the random order in which the depths of a curve are screened."""

    name: str
    seed: int


def no_hunt(said: Ratio, failed: Verdict, slice_s: float) -> Sequence[str]:
    """Of one who has no drive to look at, such as whoever computes a verdict again."""
    return ()


def tell_nothing(said: AsRecorded, failed: Verdict, evidence: Evidence) -> Sequence[str]:
    """Of one who knows nothing of the drive but its slices."""
    return ()


def keep_no_time(seconds: float) -> None:
    """Of one whose drive time nobody adds up."""


def new_settling() -> Settling:
    """One with a name of its own among all that were ever kept, and a seed drawn by chance."""
    return Settling(secrets.token_hex(8), secrets.randbits(31))


@dataclass
class SliceJudge:
    """Settles the claims of one test on one drive: by slices, or by events that have been.

    `measure` runs slices on the drive, in order; `keep_slice` and `keep_verdict` are told of
    everything at once, of slices in the order in which they ran; `slice_s` is the length of
    a slice to begin with, `budget_s` and `curve_budget_s` what a claim and a claim of a curve
    may cost, in seconds; `repeat` the command that runs the same test again;
    `noise` the rig's own; `remarks` is where whoever measures says what it saw, by a name,
    for the notes of the claim under way; `hunt` what a ratio that failed is followed by, for its
    notes too, and `tell_apart` what agreement with a record that failed is; `keep_spent` is told
    of drive time, in seconds, that is part of no verdict.  `alone`: what the slices count in the
    drive is all that was in flight below the host, for no other drive has a part of it.  `now` is
    the settling under way, or the last one; `begin` gives the next.  `sweeps` are those of curves
    that were made for other claims on this drive, as it is now.  A verdict depends on these, its
    statement and its slices alone, so that it can be computed again (`leadline.recompute`).
    """

    cell: str
    measure: Measure
    keep_slice: Callable[[str, Slice], None]
    keep_verdict: Callable[[Claim, Verdict, str], None]
    slice_s: float
    budget_s: float
    curve_budget_s: float
    repeat: str
    noise: Noise = field(default_factory=Noise)
    begin: Callable[[], Settling] = new_settling
    keep_spent: Callable[[float], None] = keep_no_time
    hunt: Hunt = no_hunt
    tell_apart: TellApart = tell_nothing
    alone: bool = True
    sweeps: dict[CurveSettings, Swept] = field(default_factory=dict)
    now: Settling = field(init=False)
    remarks: dict[str, str] = field(default_factory=dict)
    _stated: list[Claim] = field(default_factory=list)

    def stated(self, claim: Claim) -> None:
        """Take note that a test has stated `claim`."""
        self._stated.append(claim)

    def unasserted(self) -> list[Claim]:
        """The claims whose truth nobody asked."""
        return [claim for claim in self._stated if claim.settled is None]

    def settle(self, claim: Claim) -> Settled:
        """Measure until `claim` is settled, void or over its budget."""
        self.now = self.begin()
        self.remarks.clear()
        said = claim.statement
        match said:
            case NoDip() as dip:
                verdict = settle_dip(self, dip)
            case NoCollapse() as collapse:
                swept = collapse.swept or self.sweeps.get(collapse.curve.settings)
                claim.statement = collapse = replace(collapse, swept=swept)
                verdict = settle_collapse(self, collapse)
            case Within() as within:
                verdict = look_at_times(within)
            case Gain() as gain:
                verdict = look_at_gain(gain, self.noise)
            case AsRecorded(recorded=None) as unheard:
                claim.statement = recorded = self._put_on_record(unheard)
                self.now = self.begin()
                said, verdict = self._settle_record(recorded)
            case AsRecorded() as recorded:
                said, verdict = self._settle_record(recorded)
            case Arrival() as arrival:
                verdict = settle_arrival(self, arrival)
            case NotRegressed() as regression:
                verdict = settle_regression(self, regression)
            case contrast:
                verdict = self._settle_contrast(contrast)
        if self.noise.note and not isinstance(claim.statement, Within | Arrival):
            verdict = replace(verdict, notes=(*verdict.notes, self.noise.note))
        verdict = replace(verdict, notes=(*verdict.notes, *self.remarks.values()))
        explanation = explain(verdict, said, cell=self.cell, repeat=self.repeat)
        self.keep_verdict(claim, verdict, explanation)
        return Settled(verdict, explanation)

    def _settle_contrast(self, said: Contrast) -> Verdict:
        plan = plan_of(said, self.noise)
        evidence = Evidence(self.slice_s, plan.tolerated)
        verdict = self.carry_out(plan, evidence, self.budget_s)
        cure = SESSIONS_TELL if isinstance(said, Against) else ""
        verdict = priced(verdict, plan, evidence, cure=cure)
        if verdict.outcome is not Outcome.FAIL:
            return verdict
        if isinstance(said, Ratio):
            seen = self.hunt(said, verdict, evidence.longest)
            return replace(verdict, notes=(*verdict.notes, *seen), cause=of_ratio(said, verdict))
        if isinstance(said, Agreement):
            return replace(verdict, notes=(*verdict.notes, slower_of(said, verdict)))
        return verdict

    def _settle_record(self, said: AsRecorded) -> tuple[AsRecorded, Verdict]:
        """The verdict, and what was claimed held against the one of several that it is by."""
        evidence = Evidence(self.slice_s)
        verdict = self.carry_out(plan_of_record(said, self.noise), evidence, self.budget_s)
        said = nearest_to_median(said, [queued for queued, _ in evidence.counted().rates()])
        told = what_it_tells(said)
        if disagrees(verdict):
            # Also where nobody knows which is the odd one: whoever looks into it needs this.
            differs = replace(verdict, outcome=Outcome.FAIL)
            told += (slower_of(said, differs), *self.tell_apart(said, differs, evidence))
        return said, replace(verdict, notes=(*verdict.notes, *told))

    def _put_on_record(self, said: AsRecorded) -> AsRecorded:
        """Measure what there was nothing to hold against, and look once more.

        Not what others find on record already.  Of two drives that do so side by side, on two
        workers, the one that comes second finds what the first has put there; raises
        NothingOnRecord for the first.
        """
        if known := said.known():
            raise NothingOnRecord(
                f"nothing is on record of {said.whose} under {said.quantity}; what this drive does "
                f"is: {known.whose}"
            )
        plan, evidence, number = plan_of_record(said, self.noise), Evidence(self.slice_s), 0
        while (
            len(evidence.unscattered().blocks) < BLOCKS_ON_RECORD
            and evidence.spent_s < self.budget_s
        ):
            numbers = range(number, number + FEWEST_BLOCKS)
            evidence.take(self._batch(plan, evidence, numbers))
            number += FEWEST_BLOCKS
            if evidence.voids() and not evidence.may_yet_count():
                break
        self.keep_spent(evidence.spent_s)
        evidence = evidence.strictly()  # what is found on record later are clean slices alone
        if evidence.voids() or len(evidence.blocks) < FEWEST_BLOCKS:
            why = "; ".join((*evidence.voids(), *self.remarks.values())) or TOO_FEW
            raise Inconclusive(
                f"nothing is on record of {said.whose} under {said.quantity}, and what this drive "
                f"does could not be put there: {why}"
            )
        gain = gain_of(evidence.rates(), evidence.block_s(2), self.noise.sigma_d)
        if gain is not None and gain.high < DISCRIMINATES:
            raise Inconclusive(
                f"nothing is on record of {said.whose} under {said.quantity}, and what this drive "
                f"does would tell nothing of a queue: {NO_DIFFERENCE}: NCQ on over off is "
                f"{gain.middle:.3g} [{gain.low:.3g}, {gain.high:.3g}]. See its NCQ ladder"
            )
        found, beside = said.look_again()
        if found is not None:
            return replace(said, recorded=found, beside=beside)
        rate = fmean(of_quantity for of_quantity, *_ in evidence.rates())
        bandwidth = said.quantity.mb_per_s.in_unit(rate)
        raise NothingOnRecord(
            f"nothing is on record of {said.whose} under {said.quantity}; what this drive does has "
            f"been measured and is on record now: {rate:.4g} requests/s, {bandwidth:.4g} MB/s"
        )

    def carry_out(self, plan: Plan, evidence: Evidence, budget_s: float) -> Verdict:
        """Measure block after block, as many at once as are probably needed, and look."""
        count, number = FEWEST_BLOCKS, 0
        while True:
            evidence.take(self._batch(plan, evidence, range(number, number + count)))
            number += count
            verdict = self._look(plan, evidence, budget_s)
            if verdict is not None:
                told = evidence.held(), evidence.waited() if self.alone else ""
                return replace(verdict, notes=(*verdict.notes, *filter(None, told)))
            count = self._next_batch(plan, evidence, budget_s)

    def _batch(self, plan: Plan, evidence: Evidence, numbers: Sequence[int]) -> list[Block]:
        orders = [plan.order(number) for number in numbers]
        sides = [
            replace(side, seconds=evidence.length(place)) for place, side in enumerate(plan.sides)
        ]
        slices = iter(
            self.run(plan.workload, [sides[place] for order in orders for place in order])
        )
        blocks = []
        for order in orders:
            ran = {place: next(slices) for place in order}
            for place, measured in ran.items():
                self.keep_slice(plan.names[place], measured)
            blocks.append(tuple(ran[place] for place in range(len(sides))))
        return blocks

    def run(self, workload: Workload, settings: Sequence[SliceSetting]) -> Sequence[Slice]:
        """Slices on the drive, in order."""
        return self.measure(workload, settings)

    def _look(self, plan: Plan, evidence: Evidence, budget_s: float) -> Verdict | None:
        """A verdict, or None to measure on.

        What scatters may be enough for what is plain, while there is little else, and after that
        for what the rest did not settle.
        """
        counted = evidence.counted()
        verdict = self._look_at(plan, counted, budget_s)
        if counted is evidence or verdict is None or verdict.reason != "budget":
            return verdict
        by_all = self._look_at(plan, evidence, budget_s)
        return by_all if by_all is not None and by_all.reason == "settled" else verdict

    def _look_at(self, plan: Plan, evidence: Evidence, budget_s: float) -> Verdict | None:
        verdict = self._verdict_of(plan, evidence, budget_s)
        limits = evidence.limits()
        if verdict is None or not limits:
            return verdict
        if verdict.outcome is Outcome.FAIL:
            # What was tolerated may be to blame, and not the drive.
            verdict = self._verdict_of(plan, evidence.strictly(), budget_s)
            if verdict is None or verdict.reason == "settled":
                return verdict
        return replace(verdict, notes=(*verdict.notes, *limits))

    def _verdict_of(self, plan: Plan, evidence: Evidence, budget_s: float) -> Verdict | None:
        voids = evidence.voids()
        if voids and evidence.may_yet_count() and evidence.spent_s < budget_s:
            return None
        if not voids and len(evidence.blocks) < FEWEST_BLOCKS:
            if evidence.spent_s < budget_s:
                return None
            voids = (f"{TOO_FEW}: the budget was spent before four clean blocks were measured",)
        block_s = evidence.block_s(len(plan.sides))
        progress = Progress(block_s, evidence.spent_s, budget_s, voids)
        return plan.look(evidence.rates(), progress)

    def _next_batch(self, plan: Plan, evidence: Evidence, budget_s: float) -> int:
        """How many blocks to measure before the next look; within the budget, more or less.

        How long slices must be was a rough word of shorter ones: where a batch of them is long, one
        block tries their length before the others of the first batch are measured.
        """
        block_s = evidence.block_s(len(plan.sides))
        if FEWEST_BLOCKS * block_s > LONGEST_BATCH_S and not evidence.dropped:
            if not evidence.blocks:
                return 1
            if len(evidence.blocks) < FEWEST_BLOCKS:
                return FEWEST_BLOCKS - len(evidence.blocks)
        most = min(LONGEST_BATCH_S, budget_s - evidence.spent_s) // block_s
        if evidence.voids() or len(evidence.blocks) < FEWEST_BLOCKS or most <= FEWEST_BLOCKS:
            return FEWEST_BLOCKS
        counted = evidence.counted()
        needed = plan.needed(counted.rates(), block_s) - len(counted.blocks)
        return max(FEWEST_BLOCKS, min(needed, int(most)))
