"""A drive that does not agree with what is on record: is it the odd one?  Pure.

That two drives differ says that one of them is not as it should be, and not which.  A FAIL is of
the drive under test, so it needs that this is the one: its own NCQ comparison is lost, its own
record says otherwise, or most drives of its kind do.  Where nothing tells, there is no verdict on
it; nor is there one by a record of which nobody can say that it was made with a queue.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import TYPE_CHECKING

from leadline.remedies import NO_DIFFERENCE, WHICH_IS_OFF
from leadline.verdict.contrast import SIGMA_D
from leadline.verdict.equivalence import judge_equivalence
from leadline.verdict.interval import Interval, interval_of
from leadline.verdict.ratio import judge_ratio
from leadline.verdict.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from leadline.on_record import Beside, Recorded
    from leadline.plans import Noise, Progress, Rates
    from leadline.statements import AsRecorded

DISCRIMINATES = 1.2
"""So much faster must a load be with NCQ on, if drives that agree on it are to be called alike."""
FEWEST_PAIRS = 4
"""Fewer give no interval."""
PAIR_S = 1.0
"""Two slices of the usual length, where nobody said how long those on record were."""


@dataclass(frozen=True)
class Seen:
    """What one look sees: the rates of each block with NCQ on and off, and what a plan is told."""

    rates: "Rates"
    at: "Progress"
    noise: "Noise"

    @property
    def queued(self) -> list[float]:
        """The rates with NCQ on."""
        return [queued for queued, _ in self.rates]


def gain_of(
    pairs: Sequence[tuple[float, ...]], pair_s: float = PAIR_S, sigma_d: float = SIGMA_D
) -> Interval | None:
    """NCQ on over off, by the rates of both in turn; None where there are too few."""
    logs = [math.log(queued) - math.log(alone) for queued, alone in pairs]
    if len(logs) < FEWEST_PAIRS:
        return None
    return interval_of(logs, value_seconds=pair_s, sigma_d=sigma_d)


def tells(recorded: "Recorded") -> bool:
    """Whether a session was shown to be faster with NCQ on: one made without a queue is not."""
    found = _gain_there(recorded)
    return found is not None and found.low >= DISCRIMINATES


def what_it_tells(said: "AsRecorded") -> tuple[str, ...]:
    """The session it is held against, and whether that tells a queue from none, in words.

    Nothing where nobody kept that.
    """
    if said.recorded is None or said.recorded.alone is None:
        return ()
    return (f"held against {said.recorded.whose}: {_how_it_tells(said.recorded)}",)


def nearest_to_median(said: "AsRecorded", queued: Sequence[float]) -> "AsRecorded":
    """The same, held against that drive of several on record which is nearest to the median of
    all, this one with them; the newest of two as near."""
    if not queued or said.recorded is None or said.beside is None or not said.beside.others:
        return said
    on_record = (said.recorded, *said.beside.others)
    logs = [_typical(each.rates) for each in on_record]
    middle = median([_typical(queued), *logs])
    place = min(range(len(logs)), key=lambda place: (abs(logs[place] - middle), place))
    others = (*on_record[:place], *on_record[place + 1 :])
    beside = replace(said.beside, others=others)
    return replace(said, recorded=on_record[place], beside=beside)


def judge_odd_one(said: "AsRecorded", failed: Verdict, seen: Seen) -> Verdict | None:
    """A disagreement, as a FAIL if it is this drive's; None to measure on."""
    recorded, beside = said.recorded, said.beside
    assert recorded is not None, "there was something to disagree with"
    if recorded.alone is not None and not tells(recorded):
        why = f"{recorded.whose}: {_how_it_tells(recorded)}, so this drive may well be right"
        return _nobodys(failed, f"{NO_DIFFERENCE}: {why}")
    if beside is None:
        return failed
    return _against_others(said, beside, failed, seen)


def difference_by_ncq(seen: Seen) -> Verdict | None:
    """Whether NCQ makes this drive DISCRIMINATES times as fast; None to measure on."""
    return judge_ratio(
        seen.queued,
        [alone for _, alone in seen.rates],
        DISCRIMINATES,
        ">=",
        pair_seconds=seen.at.block_seconds,
        spent_s=seen.at.spent_s,
        budget_s=seen.at.budget_s,
        sigma_d=seen.noise.sigma_d,
    )


def disagrees(verdict: Verdict) -> bool:
    """Whether a verdict says that the two differ, be it that nobody knows which is the odd one."""
    names = {void.partition(":")[0] for void in verdict.voids}
    if verdict.outcome is Outcome.INCONCLUSIVE and not names & {NO_DIFFERENCE, WHICH_IS_OFF}:
        return False
    if verdict.low is None or verdict.high is None or verdict.outcome is Outcome.PASS:
        return False
    bound = 1.0 + verdict.threshold
    return verdict.low > bound or verdict.high < 1.0 / bound


def _against_others(
    said: "AsRecorded", beside: "Beside", failed: Verdict, seen: Seen
) -> Verdict | None:
    """As `judge_odd_one`, where both tell and the one on record is another drive."""
    lost = difference_by_ncq(seen)
    if lost is not None and lost.outcome is Outcome.FAIL:
        return _odd(failed, f"NCQ on over off is {_figures(lost)} here")
    if odd := _most_are_otherwise(said, beside, seen):
        return _odd(failed, odd)
    if lost is None:
        return None
    own = None
    if beside.own is not None and tells(beside.own):
        own = _by_its_own(said, beside.own, seen)
        if own is None:
            return None
        if own.outcome is Outcome.FAIL:
            return _odd(failed, f"it gives {_figures(own)} times {beside.own.whose}")
    void = f"{WHICH_IS_OFF}: {_why_nobodys(own)}"
    return _nobodys(failed, void)


def _gain_there(recorded: "Recorded") -> Interval | None:
    return gain_of(list(zip(recorded.rates, recorded.alone or (), strict=False)))


def _how_it_tells(recorded: "Recorded") -> str:
    found = _gain_there(recorded)
    if found is None:
        return "too few of its slices with NCQ off are on record to say that it had a queue"
    said = f"NCQ on over off was {found.middle:.3g} [{found.low:.3g}, {found.high:.3g}] there"
    return f"{said}, which tells" if tells(recorded) else f"{said}, as of a drive without a queue"


def _most_are_otherwise(said: "AsRecorded", beside: "Beside", seen: Seen) -> str:
    """That most drives of its kind are as the one it is held against, in words; "" if not.

    Most of all drives, this one with them.
    """
    assert said.recorded is not None, "it is what most are held against"
    bound, middle = math.log1p(said.within), _typical(said.recorded.rates)
    alike = 1 + sum(abs(_typical(each.rates) - middle) <= bound for each in beside.others)
    drives = 2 + len(beside.others)
    if abs(_typical(seen.queued) - middle) <= bound or 2 * alike <= drives or not beside.others:
        return ""
    return f"{alike} of the {drives} drives agree with one another within {said.within:g}"


def _by_its_own(said: "AsRecorded", own: "Recorded", seen: Seen) -> Verdict | None:
    """This drive now against its own record; None to measure on."""
    queued, at = seen.queued, seen.at
    count = min(len(queued), len(own.rates))
    return judge_equivalence(
        queued[:count],
        own.rates[:count],
        said.within,
        pair_seconds=seen.at.block_seconds,
        spent_s=seen.at.spent_s,
        sigma_session=seen.noise.sigma_session,
        budget_s=at.budget_s if count < len(own.rates) else min(at.budget_s, at.spent_s),
        sigma_d=seen.noise.sigma_d,
    )


def _why_nobodys(own: Verdict | None) -> str:
    """Why it cannot be told which of the two is the odd one."""
    two = "of this drive and the one on record one is not as it should be, and NCQ helps both"
    if own is None:
        return f"{two}; this drive has no earlier run of its own on record that would tell which"
    if own.outcome is Outcome.PASS:
        return f"{two}; this drive is as fast as by its own record, which leaves the other"
    return f"{two}; against its own record this drive gives {_figures(own)}, which settles nothing"


def _nobodys(failed: Verdict, void: str) -> Verdict:
    return replace(failed, outcome=Outcome.INCONCLUSIVE, reason="void", voids=(void,))


def _odd(failed: Verdict, why: str) -> Verdict:
    return replace(failed, notes=(*failed.notes, f"the odd one is this drive now: {why}"))


def _typical(rates: Sequence[float]) -> float:
    return fmean(map(math.log, rates))


def _figures(found: Verdict) -> str:
    return f"{found.estimate:.3g} [{found.low:.3g}, {found.high:.3g}]"
