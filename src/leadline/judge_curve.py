"""Curves: screen all depths, then confirm what the screen picked on slices measured afresh."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from leadline.depth_curve import Curve
from leadline.drive.finding import SCATTERS
from leadline.evidence import (
    PASSING,
    UNCLEAN_SHARE,
    WAITED,
    Evidence,
    lengthened,
    needed_seconds,
    seconds_begun,
    waited_in_host,
)
from leadline.load.slices import LATE_START, TOO_SHORT, VOID_MEANINGS, Slice, SliceSetting
from leadline.plans import Plan, Progress, Rates, needed_by
from leadline.price import price_of_curve, priced
from leadline.remedies import TOO_FEW
from leadline.statements import NoCollapse, NoDip, Swept
from leadline.verdict.contrast import edge_of
from leadline.verdict.curve import (
    MOST_PASSES,
    Suspect,
    Sweep,
    another_pass,
    collapse_depths,
    contrast_of,
    fewest_passes,
    last_that_keeps,
    pass_order,
    passes_needed,
    sweep_of,
    to_confirm,
)
from leadline.verdict.dip import judge_curve, judge_dip, triple_order
from leadline.verdict.ratio import judge_ratio
from leadline.verdict.shape import knee, knee_in_words
from leadline.verdict.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from leadline.judge import SliceJudge

SPOILT_PASSES = 3
"""More passes with a slice that does not count, and the whole curve does not.  Those in which
slices were only too short, and were made longer, are none of them."""
TRIES_AGAIN = 2
"""So often at most is a slice of a pass measured again that met what may be over soon."""
SCATTERED_SHARE = 0.5
"""Of a pass, where what makes rates scatter met more of its slices, it lasts: they count."""
_NO_SWEEP = f"{TOO_FEW}: the budget was spent while slices were made longer, and on no whole sweep"


@dataclass(frozen=True)
class Screen:
    """A sweep and its drive time in seconds; None and why, when it does not count.

    `waited`: how much of what was offered waited in the host, in words.  `lengths`: how many
    seconds its slices took in the end, by depth.
    """

    sweep: Sweep | None
    spent_s: float
    voids: tuple[str, ...] = ()
    waited: str = ""
    lengths: Mapping[int, float] = field(default_factory=dict)

    def evidence(self, depths: Iterable[int], spent_s: float) -> Evidence:
        """For what is measured afresh at these depths, in slices as long as they had to be here.

        Shorter ones would count for nothing, where the budget may be spent by now.
        """
        return Evidence(max(self.lengths[depth] for depth in depths), spent_s=spent_s)


def settle_dip(judge: "SliceJudge", said: NoDip) -> Verdict:
    """Screen the curve, and confirm its suspects until one fails or no more can be known."""
    budget = judge.curve_budget_s
    screen = screened(judge, said.curve, tolerance=said.tolerance)
    if screen.sweep is None:
        return _void(screen, 1.0 - said.tolerance)
    judge.sweeps[said.curve.settings] = Swept(screen.sweep.rates, screen.lengths, screen.waited)
    spent, verdicts = screen.spent_s, {}
    more_s = _still_to_screen_s(screen, screen.sweep, said.tolerance)
    for suspect in to_confirm(screen.sweep, said.tolerance):
        depths = suspect.below, suspect.depth, suspect.above
        evidence = screen.evidence(depths, spent)
        plan = _triples(judge, said, suspect)
        found = judge.carry_out(plan, evidence, budget)
        verdicts[suspect] = priced(found, plan, evidence, screen_s=spent, more_s=more_s)
        spent = evidence.spent_s
        if ends_confirming(verdicts[suspect], spent, budget):
            break
    verdict = judge_curve(screen.sweep, verdicts, spent_s=spent, tolerance=said.tolerance)
    cleared = all(one.outcome is Outcome.PASS for one in verdicts.values())
    if cleared and verdict.reason == "budget" and not verdict.shortage:
        verdict = replace(verdict, notes=(*verdict.notes, price_of_curve(spent + more_s)))
    failed = [each.depth for each, found in verdicts.items() if found.outcome is Outcome.FAIL]
    verdict = replace(verdict, cause=f"dip at depth {failed[0]}" if failed else "")
    return _with_shape(verdict, screen, screen.sweep, said.curve)


def ends_confirming(verdict: Verdict, spent_s: float, budget_s: float) -> bool:
    """Whether no further suspect is to be confirmed after this one.

    One that is marginal is no reason to stop: which suspect comes first is the luck of the
    screen, and a dip that fails the claim may be behind it.
    """
    if verdict.reason == "marginal":
        return spent_s >= budget_s
    return verdict.outcome is not Outcome.PASS


def settle_collapse(judge: "SliceJudge", said: NoCollapse) -> Verdict:
    """Find the best depth, and hold the last one against it on slices measured afresh."""
    screen = _known(said) or screened(judge, said.curve, tolerance=None)
    if screen.sweep is None:
        return _void(screen, 1.0 - said.within)
    depths = collapse_depths(screen.sweep)
    evidence = screen.evidence(depths, screen.spent_s)
    plan = _last_against_best(judge, said, depths)
    verdict = judge.carry_out(plan, evidence, judge.curve_budget_s)
    verdict = priced(verdict, plan, evidence, screen_s=screen.spent_s)
    if verdict.outcome is Outcome.FAIL:
        keeps = last_that_keeps(screen.sweep)
        verdict = replace(verdict, cause=f"collapses above depth {keeps}")
    return _with_shape(verdict, screen, screen.sweep, said.curve)


def _known(said: NoCollapse) -> Screen | None:
    """The screen that there is already, which costs nothing; None where there is none."""
    swept = said.swept
    if swept is None:
        return None
    sweep = Sweep(swept.rates, said.load.concave_from)
    return Screen(sweep, 0.0, waited=swept.waited, lengths=swept.lengths)


def screened(judge: "SliceJudge", curve: Curve, *, tolerance: float | None) -> Screen:
    """Passes over all depths in random order; as many as it takes to miss no dip of twice the
    `tolerance`, or two where none is looked for."""
    depths = [point.device_depth for point in curve.points]
    lengths = dict.fromkeys(depths, judge.slice_s)
    passes: list[dict[int, Slice]] = []
    spoilt: list[list[Slice]] = []
    fewest = 2 if tolerance is None else fewest_passes(len(depths))
    spent, number = 0.0, 0
    while True:
        order = pass_order(depths, judge.now.seed, number)
        measured, pass_s = _passed(judge, curve, order, lengths, judge.curve_budget_s - spent)
        spent += pass_s
        number += 1
        unclean = [each for each in measured.values() if _spoilt(each)]
        if not unclean:
            passes.append(measured)
        elif all(each.setting.seconds >= lengths[depth] for depth, each in measured.items()):
            spoilt.append(unclean)
        over, few = spent >= judge.curve_budget_s, len(passes) < fewest
        without_end = few and over and number - len(passes) > SPOILT_PASSES
        if len(spoilt) > SPOILT_PASSES or without_end:
            return Screen(None, spent, _voids(spoilt) or (_NO_SWEEP,))
        if few:
            continue
        rates = [[(depth, each.rate) for depth, each in one.items()] for one in passes]
        sweep = sweep_of(rates, curve.load.concave_from)
        if over or tolerance is None or not another_pass(sweep, tolerance):
            ran = [each for one in passes for each in one.values()] if judge.alone else []
            return Screen(sweep, spent, waited=waited_in_host(ran), lengths=lengths)


def _passed(
    judge: "SliceJudge",
    curve: Curve,
    order: Sequence[int],
    lengths: dict[int, float],
    budget_s: float,
) -> tuple[dict[int, Slice], float]:
    """One pass over the depths in this order, and its drive time in seconds.

    What was too short is measured again within the pass, longer, and as it was what met something
    that may be over by then: the pass would else be lost for one slice of 32.  `lengths` has what
    they are by then; slices that are shorter are still to be measured again, and are not because
    the budget is spent.
    """
    settings = {point.device_depth: point.setting for point in curve.points}
    measured: dict[int, Slice] = {}
    tried: Counter[int] = Counter()
    spent, left = 0.0, list(order)
    while left:
        wanted = [replace(settings[depth], seconds=lengths[depth]) for depth in left]
        ran = dict(zip(left, judge.run(curve.load.workload, wanted), strict=True))
        for depth, each in ran.items():
            judge.keep_slice(f"screen {depth}", each)
        spent += sum(each.drive_s for each in ran.values())
        measured |= ran
        longer = {depth for depth in left if _lengthened(lengths, depth, ran[depth])}
        again = _to_try_again(measured, tried, longer)
        tried.update(again)
        left = [depth for depth in order if depth in longer or depth in again]
        if spent >= budget_s:
            break
    return measured, spent


def _spoilt(measured: Slice) -> bool:
    return not SCATTERS.issuperset(measured.voids)


def _to_try_again(
    measured: Mapping[int, Slice], tried: Mapping[int, int], longer: set[int]
) -> set[int]:
    """The depths whose slices met what may be over soon; none where so many did that it lasts.

    Those that are made `longer` are measured again for that.
    """
    spoilt = {depth for depth, each in measured.items() if _spoilt(each)} - longer
    scattered = {depth for depth, each in measured.items() if each.voids} - spoilt - longer
    if len(spoilt) > UNCLEAN_SHARE * len(measured):
        spoilt = set()
    if len(scattered) > SCATTERED_SHARE * len(measured):
        scattered = set()
    return {
        depth
        for depth in spoilt | scattered
        if tried[depth] < TRIES_AGAIN and PASSING.issuperset(measured[depth].voids)
    }


def _still_to_screen_s(screen: Screen, sweep: Sweep, tolerance: float) -> float:
    """The drive time of the passes that the screen would have taken, had it been there."""
    more = min(passes_needed(sweep, tolerance), MOST_PASSES) - sweep.passes
    return max(more, 0) * screen.spent_s / sweep.passes


def _lengthened(lengths: dict[int, float], depth: int, measured: Slice) -> bool:
    """Whether slices at this depth, whose last one was too short, are made longer by it."""
    if LATE_START in measured.voids:
        needed = seconds_begun(measured)
    elif TOO_SHORT in measured.voids and measured.rate > 0:
        needed = needed_seconds(measured.setting.offered_depth, measured.rate)
    else:
        return False
    longer = lengthened(lengths[depth], needed)
    was, lengths[depth] = lengths[depth], longer
    return longer > was


def _triples(judge: "SliceJudge", said: NoDip, suspect: Suspect) -> Plan:
    noise = judge.noise

    def look(rates: Rates, at: Progress) -> Verdict | None:
        below, middle, above = ([block[place] for block in rates] for place in range(3))
        return judge_dip(
            suspect,
            below,
            middle,
            above,
            triple_seconds=at.block_seconds,
            spent_s=at.spent_s,
            budget_s=at.budget_s,
            sigma_d=noise.sigma_d,
            tolerance=said.tolerance,
            voids=at.voids,
        )

    names = ("below", "at", "above")
    threshold = 1.0 - said.tolerance
    return Plan(
        workload=said.load.workload,
        names=names,
        sides=_settings(said.curve, (suspect.below, suspect.depth, suspect.above)),
        look=look,
        needed=needed_by(
            lambda below, middle, above: contrast_of(below, middle, above, suspect.share),
            lambda mean: edge_of(mean, threshold, ">="),
            noise.sigma_d,
        ),
        order=lambda number: [names.index(place) for place in triple_order(number)],
    )


def _last_against_best(judge: "SliceJudge", said: NoCollapse, depths: tuple[int, int]) -> Plan:
    noise, threshold = judge.noise, 1.0 - said.within

    def look(rates: Rates, at: Progress) -> Verdict | None:
        verdict = judge_ratio(
            [last for last, _ in rates],
            [best for _, best in rates],
            threshold,
            ">=",
            pair_seconds=at.block_seconds,
            spent_s=at.spent_s,
            budget_s=at.budget_s,
            sigma_d=noise.sigma_d,
            voids=at.voids,
        )
        where = f"depth {depths[0]} against {depths[1]}, the best one"
        return verdict and replace(verdict, notes=(where, *verdict.notes))

    return Plan(
        workload=said.load.workload,
        names=("last", "best"),
        sides=_settings(said.curve, depths),
        look=look,
        needed=needed_by(
            lambda last, best: math.log(last) - math.log(best),
            lambda mean: edge_of(mean, threshold, ">="),
            noise.sigma_d,
        ),
    )


def _settings(curve: Curve, depths: tuple[int, ...]) -> tuple[SliceSetting, ...]:
    settings = {point.device_depth: point.setting for point in curve.points}
    return tuple(settings[depth] for depth in depths)


def _voids(spoilt: list[list[Slice]]) -> tuple[str, ...]:
    names = dict.fromkeys(name for one in spoilt for each in one for name in each.voids)
    return tuple(f"{name}: {VOID_MEANINGS.get(name, name)}" for name in names)


def _void(screen: Screen, threshold: float) -> Verdict:
    return Verdict(
        Outcome.INCONCLUSIVE,
        "void",
        ">=",
        threshold,
        0,
        "triple",
        screen.spent_s,
        voids=screen.voids,
    )


def _with_shape(verdict: Verdict, screen: Screen, sweep: Sweep, of: Curve) -> Verdict:
    """What a report wants to know besides; none of it has decided anything."""
    curve = sweep.curve
    best = max(curve, key=lambda depth: curve[depth])
    shape = knee_in_words(knee(sweep), of.load.channels)
    whose = "" if screen.spent_s else ", which another claim paid for"
    note = f"the sweep{whose}: {shape}; best {curve[best]:.4g} requests/s at depth {best}"
    told = any(each.startswith(WAITED) for each in verdict.notes)
    waited = (screen.waited,) if screen.waited and not told else ()
    return replace(verdict, notes=(*verdict.notes, note, *waited))
