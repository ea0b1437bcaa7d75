"""Depth curves on simulated drives: what a verdict costs, and how often it is wrong.

Every run is a drive of its own: a healthy concave curve over depths 1 to 32 with its knee
somewhere, or one with a dip at a random depth between.  The verdict is reached as on a
rig, batch by batch, by the functions that judge there.  Beside it stands the practice: one
65 s run a depth, a dip being a rate 4 % or more below the mean of its neighbours.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import binomtest

from bench.noise import DISK, NOISY, QUIET, Floats, NoiseModel, rates
from leadline.evidence import FEWEST_BLOCKS
from leadline.judge import LONGEST_BATCH_S
from leadline.judge_curve import ends_confirming
from leadline.verdict.contrast import edge_of
from leadline.verdict.curve import (
    DIP_TOLERANCE,
    MOST_PASSES,
    Suspect,
    Sweep,
    another_pass,
    contrast_of,
    pass_order,
    sweep_of,
    to_confirm,
)
from leadline.verdict.dip import CURVE_BUDGET_S, judge_curve, judge_dip, triple_order
from leadline.verdict.interval import interval_of
from leadline.verdict.pace import blocks_needed
from leadline.verdict.verdict import Outcome, Verdict

DEPTHS = range(1, 33)
LEAST_SERVED = 0.05
DIP = 0.08
PRACTICE_S = 65.0
SAID_EVERY = 100
COST_LIMIT_S = PRACTICE_S * len(DEPTHS) / 20
FALSE_DIPS_LIMIT = 0.01
FOUND_LIMIT = 0.95
"""Of dips below the mean of the neighbours, which is what the claim is about."""
INCONCLUSIVE_LIMIT = 0.05
"""Of healthy drives: who never decides finds no false dip either."""


@dataclass(frozen=True)
class Rig:
    """A kind of rig and drive; so many drives are healthy, and as many have a dip."""

    noise: NoiseModel
    slice_s: float
    sigma_d: float
    drives: int


RIGS = {
    "quiet": Rig(QUIET, slice_s=0.5, sigma_d=0.01, drives=1000),
    "noisy": Rig(NOISY, slice_s=0.5, sigma_d=0.03, drives=400),
    "disk": Rig(DISK, slice_s=1.0, sigma_d=0.01, drives=400),
}


@dataclass(frozen=True)
class Drive:
    """A simulated drive: its true rate at each of DEPTHS, and the depth of its dip, if any."""

    curve: Floats
    dip: int | None


@dataclass(frozen=True)
class Run:
    """How the verdict on one drive ended: at which depth it failed, if at one."""

    drive: Drive
    outcome: Outcome
    failed: int | None
    drive_s: float


@dataclass(frozen=True)
class Share:
    """How many of how many, with the Clopper-Pearson interval at 95 %."""

    count: int
    of: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Figures:
    """What the verdicts on the drives of one rig cost, and how they ended."""

    healthy_mean_s: float
    dip_mean_s: float
    longest_s: float
    false_dips: Share
    false_dips_beside_a_dip: Share
    found: Share
    found_below_own_rate: Share
    missed: Share
    inconclusive: Share
    practice_s: float
    practice_false_dips: Share


def measure() -> dict[str, object]:
    """Cost and errors by rig; an error rate holds its limit when its interval's end does."""
    figures = {name: _figures(rig) for name, rig in RIGS.items()}
    return {
        "rigs": {name: _rounded(asdict(each)) for name, each in figures.items()},
        "quiet_mean_s_limit": COST_LIMIT_S,
        "false_dips_limit": FALSE_DIPS_LIMIT,
        "found_limit": FOUND_LIMIT,
        "inconclusive_limit": INCONCLUSIVE_LIMIT,
        "within_limits": within(figures),
    }


def within(figures: Mapping[str, Figures]) -> bool:
    """Whether every limit is kept, the one on cost on the quiet rig."""
    quiet = figures["quiet"]
    return max(quiet.healthy_mean_s, quiet.dip_mean_s) <= COST_LIMIT_S and all(
        each.false_dips.high <= FALSE_DIPS_LIMIT
        and each.found.low >= FOUND_LIMIT
        and each.inconclusive.rate <= INCONCLUSIVE_LIMIT
        for each in figures.values()
    )


def _figures(rig: Rig) -> Figures:
    healthy, dipped, hidden, practice = [], [], [], []
    for number in range(rig.drives):
        if number % SAID_EVERY == 0:
            print(f"drive {number} of {rig.drives}", file=sys.stderr, flush=True)
        rng = np.random.default_rng(number)
        drive = healthy_drive(rng)
        healthy.append(judge(rig, drive, rng, seed=number))
        practice.append(_by_practice(rig, drive, rng))
        below_chord, below_own_rate = with_dips(drive, rng)
        dipped.append(judge(rig, below_chord, rng, seed=number))
        hidden.append(judge(rig, below_own_rate, rng, seed=number))
    return Figures(
        healthy_mean_s=float(np.mean([run.drive_s for run in healthy])),
        dip_mean_s=float(np.mean([run.drive_s for run in dipped])),
        longest_s=max(run.drive_s for run in healthy + dipped),
        false_dips=share([run.failed is not None for run in healthy]),
        false_dips_beside_a_dip=share([run.failed not in (None, run.drive.dip) for run in dipped]),
        found=share([run.failed == run.drive.dip for run in dipped]),
        found_below_own_rate=share([run.failed == run.drive.dip for run in hidden]),
        missed=share([run.outcome is Outcome.PASS for run in dipped]),
        inconclusive=share([run.outcome is Outcome.INCONCLUSIVE for run in healthy]),
        practice_s=PRACTICE_S * len(DEPTHS),
        practice_false_dips=share(practice),
    )


def healthy_drive(rng: np.random.Generator) -> Drive:
    """A concave curve with its knee at 2 to 24: sharp, rounded, or that of a closed queue."""
    depth = np.arange(DEPTHS.start, DEPTHS.stop, dtype=float)
    knee = float(rng.integers(2, 25))
    shapes = (
        np.minimum(depth, knee),
        knee * -np.expm1(-depth / knee),
        # So many channels, each request at a random one (balanced closed queueing network).
        knee * depth / (depth + knee - 1.0),
        # A disk that sorts its queue.
        1.0 + 0.05 * knee * np.log2(depth),
    )
    curve = float(rng.uniform(100.0, 10_000.0)) * shapes[rng.integers(len(shapes))]
    # Equal rates would count as one setting, whose drift cancels: that is too easy.
    return Drive(curve * (1.0 + 1e-9 * depth), None)


def with_dips(drive: Drive, rng: np.random.Generator) -> tuple[Drive, Drive]:
    """The drive with one depth DIP below the mean of its neighbours, or DIP below its own rate.

    The latter is harder: at a knee, a healthy rate is above the mean of its neighbours, and
    so much of the dip is hidden.
    """
    place = int(rng.integers(1, len(DEPTHS) - 1))
    below_chord, below_own_rate = drive.curve.copy(), drive.curve.copy()
    below_chord[place] = (1.0 - DIP) * (drive.curve[place - 1] + drive.curve[place + 1]) / 2.0
    below_own_rate[place] *= 1.0 - DIP
    return Drive(below_chord, DEPTHS[place]), Drive(below_own_rate, DEPTHS[place])


def judge(rig: Rig, drive: Drive, rng: np.random.Generator, *, seed: int) -> Run:
    """The verdict on one drive, reached as on a rig: screen, then confirm."""
    sweep = _screen(rig, drive, rng, seed)
    spent = sweep.passes * len(DEPTHS) * rig.slice_s
    verdicts: dict[Suspect, Verdict] = {}
    for suspect in to_confirm(sweep):
        verdicts[suspect] = _confirm(rig, drive, rng, suspect, spent)
        spent = verdicts[suspect].drive_seconds
        if ends_confirming(verdicts[suspect], spent, CURVE_BUDGET_S):
            break
    outcome = judge_curve(sweep, verdicts, spent_s=spent).outcome
    failed = suspect.depth if outcome is Outcome.FAIL else None
    return Run(drive, outcome, failed, spent)


def _screen(rig: Rig, drive: Drive, rng: np.random.Generator, seed: int) -> Sweep:
    # Noise is drawn for all passes at once, for it runs on from one to the next.
    orders = [pass_order(DEPTHS, seed, number) for number in range(MOST_PASSES)]
    measured = _slices(rig, drive, rng, [depth for order in orders for depth in order])
    passes = [
        list(zip(order, row, strict=True))
        for order, row in zip(orders, measured.reshape(MOST_PASSES, -1).tolist(), strict=True)
    ]
    count = 1
    while another_pass(sweep := sweep_of(passes[:count])):
        count += 1
    return sweep


def _confirm(
    rig: Rig, drive: Drive, rng: np.random.Generator, suspect: Suspect, spent_s: float
) -> Verdict:
    """Settled as by `leadline.judge.SliceJudge.carry_out`, but on noise drawn all at once."""
    depths = {"below": suspect.below, "at": suspect.depth, "above": suspect.above}
    triple_s = 3 * rig.slice_s
    most = FEWEST_BLOCKS + int((max(0.0, CURVE_BUDGET_S - spent_s) + LONGEST_BATCH_S) / triple_s)
    places = [place for n in range(most) for place in triple_order(n)]
    measured = _slices(rig, drive, rng, [depths[place] for place in places])
    sides = {name: measured[np.array(places) == name].tolist() for name in depths}
    count = FEWEST_BLOCKS
    while True:
        verdict = judge_dip(
            suspect,
            sides["below"][:count],
            sides["at"][:count],
            sides["above"][:count],
            triple_seconds=triple_s,
            spent_s=spent_s + count * triple_s,
            sigma_d=rig.sigma_d,
        )
        if verdict is not None:
            return verdict
        below, at, above = (sides[name][:count] for name in ("below", "at", "above"))
        logs = [
            contrast_of(low, mid, high, suspect.share)
            for low, mid, high in zip(below, at, above, strict=True)
        ]
        count += _next_batch(rig, logs, triple_s, CURVE_BUDGET_S - spent_s - count * triple_s)


def _next_batch(rig: Rig, logs: Sequence[float], triple_s: float, left_s: float) -> int:
    """How many triples before the next look: as many as are probably needed."""
    most = int(min(LONGEST_BATCH_S, left_s) // triple_s)
    if most <= FEWEST_BLOCKS:
        return FEWEST_BLOCKS
    sigma = {"value_seconds": triple_s, "sigma_d": rig.sigma_d}
    interval = interval_of(logs, **sigma)
    edge = edge_of(interval.mean, 1.0 - DIP_TOLERANCE, ">=")
    return max(FEWEST_BLOCKS, min(blocks_needed(interval, edge, **sigma) - len(logs), most))


def _by_practice(rig: Rig, drive: Drive, rng: np.random.Generator) -> bool:
    """Whether one long run a depth, lowest first, shows a dip anywhere."""
    seconds = np.full(len(DEPTHS), PRACTICE_S)
    seen = rates(rng, drive.curve, seconds, rig.noise).tolist()
    triples = zip(seen, seen[1:], seen[2:], strict=False)
    return any(contrast_of(*triple) < np.log1p(-DIP_TOLERANCE) for triple in triples)


def _slices(rig: Rig, drive: Drive, rng: np.random.Generator, depths: Sequence[int]) -> Floats:
    truth = drive.curve[np.array(depths) - DEPTHS.start]
    measured = rates(rng, truth, np.full(len(depths), rig.slice_s), rig.noise)
    # A slice in which nothing is served is no slice, and would be measured again.
    served: Floats = np.maximum(measured, LEAST_SERVED * truth)
    return served


def share(happened: Sequence[bool]) -> Share:
    """How often it happened; none of a thousand is not never."""
    count, of = sum(happened), len(happened)
    interval = binomtest(count, of).proportion_ci(0.95, method="exact")
    return Share(count, of, count / of, float(interval.low), float(interval.high))


def _rounded(figures: Mapping[str, object]) -> dict[str, object]:
    """Figures as one reads them: seconds to a tenth, shares to four places."""
    rounded: dict[str, object] = {}
    for name, value in figures.items():
        if isinstance(value, dict):
            rounded[name] = _rounded(value)
        elif isinstance(value, float):
            rounded[name] = round(value, 1 if name.endswith("_s") else 4)
        else:
            rounded[name] = value
    return rounded
