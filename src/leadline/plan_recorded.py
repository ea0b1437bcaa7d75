"""How agreement with what is on record is measured: the quantity, and the same with NCQ off.

Two drives that agree on a load which NCQ does not change may differ all the same in whether
they queue, so a PASS needs that difference, too, on the drive that is measured.
"""

import math
from dataclasses import replace
from statistics import fmean

from leadline.odd_one import Seen, difference_by_ncq, judge_odd_one, nearest_to_median
from leadline.plans import Noise, Plan, Progress, Rates, alternating, needed_by
from leadline.remedies import NO_DIFFERENCE, SESSIONS_TELL
from leadline.statements import AsRecorded
from leadline.verdict.contrast import edge_of
from leadline.verdict.equivalence import judge_equivalence
from leadline.verdict.verdict import Outcome, Verdict


def plan_of_record(said: AsRecorded, noise: Noise) -> Plan:
    """The plan of a claim about what is on record; without a record, of making one.

    Slices are kept under the names of their quantities, to be found by them later.
    """
    recorded = said.recorded.rates if said.recorded else (1.0,)
    usual = fmean(map(math.log, recorded))
    needed = needed_by(
        lambda queued, _: math.log(queued) - usual,
        lambda mean: edge_of(mean, said.within, "within"),
        noise.sigma_d,
        math.sqrt(2.0) * noise.sigma_session,
    )
    return Plan(
        workload=said.load.workload,
        names=tuple(map(str, said.quantities)),
        sides=tuple(quantity.setting for quantity in said.quantities),
        look=lambda rates, at: _look(said, noise, rates, at),
        needed=lambda rates, seconds: min(len(recorded), needed(rates, seconds)),
        order=lambda number: alternating(number, 2),
    )


def _look(said: AsRecorded, noise: Noise, rates: Rates, at: Progress) -> Verdict | None:
    """Held against the one on record; a disagreement must be this drive's, to be a FAIL."""
    queued = [queued for queued, _ in rates]
    held = nearest_to_median(said, queued)
    recorded = held.recorded.rates if held.recorded else (1.0,)
    count = min(len(queued), len(recorded))
    verdict = judge_equivalence(
        queued[:count],
        recorded[:count],
        said.within,
        pair_seconds=at.block_seconds,
        spent_s=at.spent_s,
        sigma_session=noise.sigma_session,
        # No more is on record than there is.
        budget_s=at.budget_s if count < len(recorded) else min(at.budget_s, at.spent_s),
        sigma_d=noise.sigma_d,
        voids=at.voids,
    )
    if verdict is None:
        return None
    if verdict.shortage:
        return replace(verdict, shortage=f"{verdict.shortage}; {SESSIONS_TELL}")
    if verdict.reason == "budget" and count == len(recorded):
        return replace(verdict, shortage=_no_more(count))
    if verdict.outcome is Outcome.FAIL:
        return judge_odd_one(held, verdict, Seen(rates, at, noise))
    if verdict.outcome is not Outcome.PASS:
        return verdict
    difference = difference_by_ncq(Seen(rates, at, noise))
    return None if difference is None else _if_it_discriminates(verdict, difference)


def _no_more(count: int) -> str:
    return f"{count} slices are on record, and no drive time tells more than they do"


def _if_it_discriminates(verdict: Verdict, difference: Verdict) -> Verdict:
    """The agreement, if NCQ makes a difference to the load; else it is no evidence of anything."""
    interval = f"[{difference.low:.3g}, {difference.high:.3g}]"
    found = f"NCQ on over off is {difference.estimate:.3g} {interval}"
    if difference.outcome is Outcome.PASS:
        return replace(verdict, notes=(*verdict.notes, f"{found}: this load would notice"))
    void = f"{NO_DIFFERENCE}: {found} here, so a drive with its NCQ off would agree as well"
    return replace(verdict, outcome=Outcome.INCONCLUSIVE, reason="void", voids=(void,))
