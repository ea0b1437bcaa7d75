"""The judge of one test on a visit: whatever it measures and decides is shown and kept."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pytest

from leadline.calibration.visited import noise_on
from leadline.claims import Claim
from leadline.hunt import hunt
from leadline.judge import SliceJudge, no_hunt, tell_nothing
from leadline.keeping import Keeping
from leadline.load.slices import Slice
from leadline.results.rows import verdict_facts
from leadline.running import VERDICTS, cell_of, claim_of, repeating, stay_of, whole_of
from leadline.selection import budget_of
from leadline.telling_apart import tell_apart
from leadline.verdict.verdict import Verdict
from leadline.withheld import outlasting

if TYPE_CHECKING:
    from leadline.visiting import OpenVisit

Measured = Callable[..., Sequence[Slice]]
"""What measures a batch as `OpenVisit.measure` does."""


def judge_for(
    visit: "OpenVisit", item: pytest.Item, slice_s: float, by: Measured | None = None
) -> SliceJudge:
    """Settles the claims of one test; its slices are so long to begin with.

    It measures on the drive, or `by` somebody else: then there are no layers to hunt through, and
    no single drive to tell from another.
    """
    name, live, cell = claim_of(item), visit.station.live, visit.visit.cell.id
    about = cell if stay_of(item) is None else cell_of(item)
    keeping = Keeping(visit.station.record, cell, name, about)

    def keep_slice(side: str, measured: Slice) -> None:
        live.slice(cell, name, side, measured)
        keeping.slice(judge, side, measured)

    def keep_verdict(claim: Claim, verdict: Verdict, explanation: str) -> None:
        live.clear()
        keeping.verdict(judge, claim, verdict, explanation)
        item.stash.setdefault(VERDICTS, []).append(verdict_facts(verdict, explanation))

    remarks: dict[str, str] = {}
    measure = partial(by or visit.measure, name=name, remarks=remarks)
    budget = budget_of(item, visit.station.run)
    judge = SliceJudge(
        cell=about,
        measure=outlasting(measure, visit.patience, remarks, keeping.spent),
        remarks=remarks,
        keep_slice=keep_slice,
        keep_verdict=keep_verdict,
        slice_s=slice_s,
        budget_s=budget.claim_s,
        curve_budget_s=budget.curve_s,
        repeat=repeating(visit.station.run, visit.station.rig, whole_of(item)),
        noise=noise_on(visit),
        keep_spent=keeping.spent,
        alone=by is None,
        sweeps=visit.sweeps if by is None else {},
        hunt=partial(hunt, visit) if by is None else no_hunt,
        tell_apart=partial(tell_apart, visit) if by is None else tell_nothing,
    )
    return judge
