"""Which of two that do not agree is the slow one, and where to look; words for the notes.

The ratio tells which is slower, and no more: the other may be uncommonly fast.  Two things tell
more: what NCQ gains on each, held against the limit that the firmware matrix has for it, and what
this drive itself did in an earlier run.  Nothing is measured for that, and nothing hangs on it:
whether the disagreement is a FAIL, and of this drive, `odd_one` has said.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from leadline.calibration.visited import noise_on
from leadline.diagnosis import NOW
from leadline.errors import RigTrouble
from leadline.odd_one import gain_of
from leadline.results.history import before
from leadline.results.stood import Stood, controller_text, stood
from leadline.verdict.equivalence import judge_equivalence
from leadline.verdict.interval import Interval
from leadline.verdict.verdict import Outcome

if TYPE_CHECKING:
    from leadline.evidence import Evidence
    from leadline.on_record import Recorded
    from leadline.plans import Noise
    from leadline.quantities import Quantity
    from leadline.statements import AsRecorded
    from leadline.verdict.verdict import Verdict
    from leadline.visiting import OpenVisit

THERE = "the one on record"
QUEUE_OF_A_LIMIT = 8
"""Both limits below are of a queue of 8; a deeper one gains no less."""


def tell_apart(
    visit: "OpenVisit", said: "AsRecorded", failed: "Verdict", evidence: "Evidence"
) -> tuple[str, ...]:
    """What tells which of the two is slow in a claim that `failed`, in words, and how both stand.

    What keeps it from being looked up is said instead: the verdict is there already.
    """
    if said.recorded is None:
        return ()
    try:
        return tuple(_told(visit, said, said.recorded, failed, evidence))
    except RigTrouble as trouble:
        return (f"which of the two is slow could not be looked up: {trouble}",)


def _told(
    visit: "OpenVisit",
    said: "AsRecorded",
    recorded: "Recorded",
    failed: "Verdict",
    evidence: "Evidence",
) -> Iterator[str]:
    record, cell, noise = visit.station.record, visit.visit.cell, noise_on(visit)
    slower_now = (failed.estimate or 1.0) < 1.0
    rates, block_s = evidence.rates(), evidence.block_s(2)
    there = stood(record, recorded)
    then = list(zip(recorded.rates, recorded.alone or (), strict=False))
    yield from by_gain(
        gain_of(rates, block_s, noise.sigma_d),
        gain_of(then, block_s, noise.sigma_d),
        asked_of(visit, said.quantity),
        slower_now=slower_now,
    )
    own = before(record, cell, visit.drive.identity.serial).find(str(said.quantity))
    if own is None:
        yield "this drive has no earlier run of its own on record that would tell more"
    elif (own.run, own.cell) != (recorded.run, recorded.cell):
        yield _by_own_record(own, said.within, evidence, noise, slower_now=slower_now)
    here = _stands(visit)
    yield str(here)
    if there is not None:
        yield str(there)
        yield where_to_look(here, there)


@dataclass(frozen=True)
class Asked:
    """What NCQ on over off must be at least by the firmware matrix, and the limit that says so."""

    ratio: float
    limit: str


def asked_of(visit: "OpenVisit", quantity: "Quantity") -> Asked | None:
    """The limit for random reads of so many in flight; None without one.

    None, too, where it is 1 or less, which a drive meets that gains nothing by its queue, and
    where the quantity itself is of a shallower one.
    """
    depth, kernels = quantity.device_depth, quantity.load.kernel_depth
    whole = depth == kernels or depth >= QUEUE_OF_A_LIMIT
    deep = whole and quantity.offered_depth >= QUEUE_OF_A_LIMIT
    if quantity.load.workload.name != "random_read" or not deep:
        return None
    name = "depth_8_over_depth_1" if quantity.threads == 1 else "threads_ncq_on_over_off"
    limit = visit.station.run.limits(visit.visit, visit.station.kernel).get(name)
    if limit is None or limit.at_least is None or limit.at_least <= 1.0:
        return None
    return Asked(limit.at_least, f"{name}: {limit.source}")


def by_gain(
    now: Interval | None, then: Interval | None, asked: Asked | None, *, slower_now: bool
) -> Iterator[str]:
    """What NCQ gains on each, and whether that is why the slower one is slow."""
    both = (now, NOW), (then, THERE)
    each = [
        f"{_figures(gain.middle, gain.low, gain.high)} of {whose}" for gain, whose in both if gain
    ]
    if not each:
        return
    wanted = f"; at least {asked.ratio:.3g} is asked ({asked.limit})" if asked else ""
    yield f"NCQ on over off is {', and '.join(each)}{wanted}"
    slow, gain = (NOW, now) if slower_now else (THERE, then)
    if gain is None or asked is None:
        return
    if gain.high < asked.ratio:
        yield f"so the slow one is {slow}, for it gains less by its queue than it must"
    elif gain.low >= asked.ratio:
        yield f"{slow} gains by its queue what it must: that is not why it is slower"


def _figures(middle: float, low: float, high: float) -> str:
    return f"{middle:.3g} [{low:.3g}, {high:.3g}]"


def _by_own_record(
    own: "Recorded", within: float, evidence: "Evidence", noise: "Noise", *, slower_now: bool
) -> str:
    """What this drive gives now against what it gave itself, by as many slices as are of both."""
    queued = [queued for queued, _ in evidence.rates()]
    count = min(len(queued), len(own.rates))
    found = judge_equivalence(
        queued[:count],
        own.rates[:count],
        within,
        pair_seconds=evidence.block_s(2),
        spent_s=evidence.spent_s,
        sigma_session=noise.sigma_session,
        budget_s=evidence.spent_s,  # nothing more is measured
        sigma_d=noise.sigma_d,
    )
    assert found and found.estimate and found.low is not None and found.high is not None
    said = f"{_figures(found.estimate, found.low, found.high)} times {own.whose}"
    if found.outcome is Outcome.PASS:
        who = "it was the slower one then, too" if slower_now else f"the slow one is {THERE}"
        return f"by its own record this drive is as fast as it was, {said}: {who}"
    if found.outcome is Outcome.INCONCLUSIVE:
        return f"against its own record this drive gives {said}, which settles nothing"
    if found.estimate < 1.0:
        who = f": the slow one is {NOW}" if slower_now else ""
        return f"by its own record this drive has become slower, {said}{who}"
    return f"by its own record this drive has become faster, {said}"


def _stands(visit: "OpenVisit") -> Stood:
    """How this drive stands now."""
    drive, broken = visit.drive, visit.ladder.first_broken
    return Stood(
        who=NOW,
        queue_depth=visit.kernel_queue_depth,
        controller=controller_text(asdict(drive.controller)),
        link=drive.link.speed if drive.link else "",
        broken=str(broken) if broken else "",
    )


def where_to_look(here: Stood, there: Stood) -> str:
    """The first thing that may be the cause: a broken rung, or else what differs."""
    for each in (here, there):
        if each.broken:
            return f"look first at the ladder of {each.who}: {each.broken}"
    facts = {
        "device queue depth": (here.queue_depth, there.queue_depth),
        "controller": (here.controller, there.controller),
        "speed of the link": (here.link, there.link),
    }
    differ = [name for name, both in facts.items() if all(both) and len(set(both)) > 1]
    if differ:
        return f"look first at what differs: {', '.join(differ)}"
    return (
        "they stand alike: look at what else a rate hangs on, such as temperature, wear and other "
        "work on the rig"
    )
