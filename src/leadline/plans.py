"""How a statement is measured: the slices of a block, their order, and the look at them.

A plan is all that the judge's loop needs to know of a claim.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from leadline.drive.finding import LINK_LIMIT
from leadline.load.slices import DRIVE_DEPTH, SliceSetting
from leadline.load.workload import Workload
from leadline.quantities import SECONDS
from leadline.remedies import NOT_SEEN
from leadline.statements import Against, Agreement, Contrast, Ratio, Within
from leadline.verdict.absolute import judge_absolute, judge_times, typical_time
from leadline.verdict.contrast import SIGMA_D, edge_of
from leadline.verdict.equivalence import judge_equivalence
from leadline.verdict.interval import interval_of
from leadline.verdict.pace import blocks_needed
from leadline.verdict.ratio import judge_ratio
from leadline.verdict.verdict import Direction, Verdict

SIGMA_SESSION = 0.03
"""Spread of a shared rig's rates from session to session, where nobody has measured it."""


@dataclass(frozen=True)
class Noise:
    """The rig's own noise, as logs: drift within a session, and spread between sessions.

    `note` says where they come from, in words for the notes of a verdict.  `sigma_session_deep`
    is the spread of random reads at the depth of a calibration's deep side, None where that is
    not known.
    """

    sigma_d: float = SIGMA_D
    sigma_session: float = SIGMA_SESSION
    note: str = "the rig has no calibration: 1 % of drift was assumed (leadline calibrate)"
    sigma_session_deep: float | None = None


@dataclass(frozen=True)
class Progress:
    """What one look is told besides the rates: seconds, and what spoilt the evidence."""

    block_seconds: float
    spent_s: float
    budget_s: float
    voids: tuple[str, ...] = ()


Rates = Sequence[tuple[float, ...]]


@dataclass(frozen=True)
class Plan:
    """One block has a slice for each of `sides`, in the order that `order(number)` gives.

    `look(rates, progress)` is a verdict, or None to measure on; `needed(rates, seconds)` a
    guess at how many blocks there must be in all.  Voids that are `tolerated`
    of a side, by its place, could only have lowered its rates, and take nothing from one that is
    claimed to be high and is.
    """

    workload: Workload
    names: tuple[str, ...]
    sides: tuple[SliceSetting, ...]
    look: Callable[[Rates, Progress], Verdict | None]
    needed: Callable[[Rates, float], int]
    order: Callable[[int], Sequence[int]] = field(default=lambda number: alternating(number, 2))
    tolerated: Mapping[int, frozenset[str]] = field(default_factory=dict)


def alternating(number: int, count: int) -> Sequence[int]:
    """The sides forwards, then backwards: what drifts slowly favours none of them."""
    sides = range(count)
    return sides if number % 2 == 0 else sides[::-1]


def plan_of(statement: Contrast, noise: Noise) -> Plan:
    """The plan of a statement that blocks of slices settle by themselves."""
    quantities = statement.quantities
    look, edge = _LOOKS[type(statement)](statement, noise)
    session = 0.0
    value: Callable[..., float] = _log_of
    if isinstance(statement, Against):
        session, value = noise.sigma_session, _log_in_unit_of(statement)
    return Plan(
        workload=statement.load.workload,
        names=("left", "right")[: len(quantities)],
        sides=tuple(quantity.setting for quantity in quantities),
        look=look,
        needed=needed_by(value, edge, noise.sigma_d, session),
        order=lambda number: alternating(number, len(quantities)),
        tolerated=_tolerated(statement),
    )


def _tolerated(statement: Contrast) -> dict[int, frozenset[str]]:
    """By the place of the side that is claimed to be high: what could only have lowered its rate.

    A drive that is given fewer requests than it may hold is no faster for it, unless its requests
    follow one another: several streams may be better off with a shorter queue.
    """
    late = frozenset() if statement.load.workload.sequential else frozenset({DRIVE_DEPTH})
    match statement:
        case Against(quantity, direction):
            high = "<=" if quantity.unit == SECONDS else ">="
            return {0: late | {LINK_LIMIT}} if direction == high else {}
        case Ratio():
            return {0 if statement.direction == ">=" else 1: late}
        case _:
            return {}


def needed_by(
    value: Callable[..., float], edge: "Edge", sigma_d: float, sigma_session: float = 0.0
) -> Callable[[Rates, float], int]:
    """How many blocks will probably do, where `value(*rates)` is a block's contrast."""
    sigmas = {"sigma_d": sigma_d, "sigma_session": sigma_session}

    def needed(rates: Rates, block_seconds: float) -> int:
        logs = [value(*block) for block in rates]
        interval = interval_of(logs, value_seconds=block_seconds, **sigmas)
        return blocks_needed(interval, edge(interval.mean), value_seconds=block_seconds, **sigmas)

    return needed


def _log_of(left: float, right: float = 1.0) -> float:
    return math.log(left) - math.log(right)


def _log_in_unit_of(said: Against) -> Callable[..., float]:
    return lambda rate: math.log(said.quantity.in_unit(rate))


Look = Callable[[Rates, Progress], Verdict | None]
Edge = Callable[[float], float]


def _ratio(said: Ratio, noise: Noise) -> tuple[Look, Edge]:
    def look(rates: Rates, at: Progress) -> Verdict | None:
        left, right = _sides(said, rates)
        return judge_ratio(
            left,
            right,
            said.threshold,
            said.direction,
            pair_seconds=at.block_seconds,
            spent_s=at.spent_s,
            budget_s=at.budget_s,
            sigma_d=noise.sigma_d,
            voids=at.voids,
        )

    units = said.right.in_unit(1.0) / said.left.in_unit(1.0)
    return look, _edge(said.threshold * units, said.direction)


def _agreement(said: Agreement, noise: Noise) -> tuple[Look, Edge]:
    def look(rates: Rates, at: Progress) -> Verdict | None:
        left, right = _sides(said, rates)
        return judge_equivalence(
            left,
            right,
            said.within,
            pair_seconds=at.block_seconds,
            spent_s=at.spent_s,
            sigma_session=0.0,  # both sides of each pair are of one session of one rig
            budget_s=at.budget_s,
            sigma_d=noise.sigma_d,
            voids=at.voids,
        )

    return look, _edge(said.within, "within")


def _against(said: Against, noise: Noise) -> tuple[Look, Edge]:
    def look(rates: Rates, at: Progress) -> Verdict | None:
        return judge_absolute(
            [said.quantity.in_unit(rate) for (rate,) in rates],
            said.threshold,
            said.direction,
            slice_seconds=at.block_seconds,
            spent_s=at.spent_s,
            sigma_session=noise.sigma_session,
            budget_s=at.budget_s,
            sigma_d=noise.sigma_d,
            voids=at.voids,
        )

    return look, _edge(said.threshold, said.direction)


_LOOKS: dict[type, Callable[..., tuple[Look, Edge]]] = {
    Ratio: _ratio,
    Agreement: _agreement,
    Against: _against,
}


def _edge(threshold: float, direction: Direction) -> Edge:
    return lambda mean: edge_of(mean, threshold, direction)


def _sides(said: Ratio | Agreement, rates: Rates) -> tuple[list[float], list[float]]:
    """The rates of each side, in its own unit."""
    one, other = said.left.in_unit, said.right.in_unit
    return [one(left) for left, _ in rates], [other(right) for _, right in rates]


MEDIAN_OF = 8
"""Fewer events have no median that is bounded."""


def look_at_times(statement: Within) -> Verdict:
    """The verdict on a claim of times: all its evidence is there.

    One that is late settles it, whatever nobody saw; else what nobody saw makes it void.
    """
    seen = [each for each in statement.times if each is not None]
    unseen = len(statement.times) - len(seen)
    late = any(each > statement.limit for each in seen)
    cycles = f"{unseen} of {len(statement.times)} power cycles"
    voids = (f"{NOT_SEEN}: in {cycles} nobody saw when",)
    verdict = judge_times(seen, statement.limit, voids=voids if unseen and not late else ())
    said = [f"in their order: {', '.join(f'{each:.3g} s' for each in seen)}"]
    if len(seen) >= MEDIAN_OF:
        typical = typical_time(seen)
        said.append(f"median {typical.median:.3g} s [{typical.low:.3g}, {typical.high:.3g}]")
    return replace(verdict, notes=(*verdict.notes, *said)) if seen else verdict
