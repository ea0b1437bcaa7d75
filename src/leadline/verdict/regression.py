"""Firmware regression: a candidate against the released firmware, with reflashing in between.

Two firmwares cannot be interleaved slice by slice, so each is measured in a *station*: flash,
settle, many slices.  Stations come in blocks of four in the order released, candidate,
candidate, released (or its mirror image), in which any linear drift cancels.  A crossover of
two drives, one in each order, is a block too: drift that the drives share cancels.

What the unit is.  Four slices, the k-th of each station of a block, give one value: the mean
log of the candidate's two less that of the released one's two.  These values are many, and
their always-valid interval says what the slices leave uncertain.  But they all share the
four stations, and a station differs from its own repeat (another flash, another layout,
another hour) by more than its slices show.  That spread, sigma_session, cannot be learned
from one block; it comes from A/A repeats, stations with the same image flashed again.  The
contrast of four stations with weights of one half has exactly that standard deviation, the
mean of n blocks has it over sqrt(n), and it goes to the drift term.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean, stdev
from typing import Literal

from leadline.verdict.contrast import (
    BUDGET_S,
    SIGMA_D,
    judge_contrast,
    margin_below,
    usable,
)
from leadline.verdict.interval import ALPHA, DRIFT_FACTOR
from leadline.verdict.sessions import checked_session_sd
from leadline.verdict.verdict import Verdict

Firmware = Literal["released", "candidate"]

NO_RETURN = (
    "no-return: {drive} was measured on one firmware and then on the other, and never on the "
    "first again, so drift and firmware cannot be told apart (in simulation, that misses a loss "
    "of 10 % 19 % of the time); measure released, candidate, candidate, released"
)
ONE_FIRMWARE = "one-firmware: {drive} was measured on its {firmware} firmware alone"
OUT_OF_ORDER = (
    "order: {drive} was measured in the order {order}, in which drift does not cancel; "
    "measure released, candidate, candidate, released"
)


@dataclass(frozen=True)
class Station:
    """One stay of a drive on one firmware; `rates` are its slices' (requests a second)."""

    drive: str
    firmware: Firmware
    rates: tuple[float, ...]


ABBA: list[Firmware] = ["released", "candidate", "candidate", "released"]
ABBA_MIRRORED: list[Firmware] = ["candidate", "released", "released", "candidate"]
STATIONS = len(ABBA)
Block = tuple[Station, Station, Station, Station]
"""Two stations of the released firmware, then two of the candidate."""


def judge_regression(
    stations: Sequence[Station],
    largest_loss: float,
    *,
    slice_seconds: float,
    spent_s: float,
    sigma_session: float,
    budget_s: float = BUDGET_S,
    sigma_d: float = SIGMA_D,
    margin: float | None = None,
    voids: Sequence[str] = (),
) -> Verdict | None:
    """Settle `candidate >= (1 - largest_loss) x released`, or None: measure another block.

    `stations` are in the order in which they were measured, of one or several drives, and
    are judged when a block is whole: stations after the last whole block are left out, and
    with none the verdict is void and says what is missing.  Blocks of all drives are pooled,
    each slice with the same weight, and the claim is about these drives.  The estimate is
    the ratio candidate/released; `count` says how many fours of slices it comes from.

    `sigma_session` is the standard deviation of a station's mean log rate between repeats of
    the same firmware (`sessions.session_spread`); where blocks, or drives, differ by more,
    what they differ by is used.  `margin` is by default half of `largest_loss`, at most 3 %.
    The rest as in `contrast.judge_contrast`.  With `voids`, unusable slices are left out;
    without, ValueError on a station without slices and on rates not finite and above 0.
    """
    margin = margin_below(largest_loss, margin, "largest_loss")
    checked_session_sd(sigma_session)
    kept = [_usable_slices(place, each, bool(voids)) for place, each in enumerate(stations)]
    blocks, missing = blocks_of([each for each in kept if each.rates])
    values = [_values(block) for block in blocks]
    spread = max(sigma_session, _spread_seen(blocks, values))
    voids = (*voids, *missing)
    if not blocks and not voids:
        voids = ("no-station: nothing was measured",)
    return judge_contrast(
        [value for block in values for value in block],
        1.0 - largest_loss,
        ">=",
        unit="block",
        # Drift averages out over the slices of a station, and its four are hours apart.
        unit_seconds=slice_seconds,
        spent_s=spent_s,
        budget_s=budget_s,
        sigma_d=sigma_d,
        sigma_session=spread * _share_left([len(each) for each in values]),
        margin=margin,
        sides=_sides(blocks),
        voids=voids,
        notes=_notes(len(stations), len(blocks), sigma_session, spread),
    )


def blocks_of(stations: Sequence[Station]) -> tuple[list[Block], tuple[str, ...]]:
    """The whole blocks among `stations`, and what voids the evidence when there is none.

    Each drive's stations are taken four at a time, in the order released, candidate,
    candidate, released or its mirror image.  What is left of a drive after its last whole
    block, when it is two different stations, makes a block with that of another drive in
    the opposite order.
    """
    blocks: list[Block] = []
    wrong: list[str] = []
    lone: list[str] = []
    halves: dict[Firmware, list[Sequence[Station]]] = {"released": [], "candidate": []}
    for drive, own in _by_drive(stations).items():
        for start in range(0, len(own), 4):
            four = own[start : start + 4]
            order = [station.firmware for station in four]
            if order in (ABBA, ABBA_MIRRORED):
                blocks.append(_block(four))
            elif len(four) == 4:
                wrong.append(OUT_OF_ORDER.format(drive=drive, order=", ".join(order)))
            elif len(set(order)) == 1:
                lone.append(ONE_FIRMWARE.format(drive=drive, firmware=order[0]))
            else:
                lone.append(NO_RETURN.format(drive=drive))
                if len(four) == 2:
                    halves[order[0]].append(four)
    crossed = zip(halves["released"], halves["candidate"], strict=False)
    blocks += [_block([*one, *other]) for one, other in crossed]
    return blocks, tuple(wrong) if blocks or wrong else tuple(lone)


def _by_drive(stations: Iterable[Station]) -> dict[str, list[Station]]:
    own: dict[str, list[Station]] = {}
    for station in stations:
        own.setdefault(station.drive, []).append(station)
    return own


def _block(four: Iterable[Station]) -> Block:
    first, second, third, fourth = sorted(four, key=lambda each: each.firmware != "released")
    return first, second, third, fourth


def _usable_slices(place: int, station: Station, drop_unusable: bool) -> Station:
    """The station with its usable rates; with ValueError for others unless they may go."""
    rates = tuple(rate for rate in station.rates if usable(rate))
    where = f"station {place} ({station.firmware} on {station.drive})"
    if not drop_unusable and len(rates) < len(station.rates):
        worst = next(rate for rate in station.rates if not usable(rate))
        raise ValueError(f"{where}: a rate is {worst}; it must be finite and above 0")
    if not drop_unusable and not rates:
        raise ValueError(f"{where} has no slices: leave the station out or measure it again")
    return replace(station, rates=rates)


def _values(block: Block) -> list[float]:
    """The contrast of each four of slices, as many as the shortest station has."""
    fours = zip(*(station.rates for station in block), strict=False)
    return [
        0.5 * ((math.log(c) + math.log(d)) - (math.log(a) + math.log(b))) for a, b, c, d in fours
    ]


def _sides(blocks: Sequence[Block]) -> Sequence[Sequence[float]]:
    """All rates of the candidate and all of the released firmware; nothing without blocks."""
    released = [rate for block in blocks for station in block[:2] for rate in station.rates]
    candidate = [rate for block in blocks for station in block[2:] for rate in station.rates]
    return (candidate, released) if blocks else ()


def _spread_seen(blocks: Sequence[Block], values: Sequence[Sequence[float]]) -> float:
    """The spread of blocks, or that of drives if it makes the mean more uncertain; as a log.

    0 while there is one block.  A guard against a sigma_session that is too small, and no
    substitute for it: two blocks may agree by chance.
    """
    if len(blocks) < 2:
        return 0.0
    means = [fmean(each) for each in values]
    by_drive: dict[frozenset[str], list[float]] = {}
    for block, mean in zip(blocks, means, strict=True):
        by_drive.setdefault(frozenset(each.drive for each in block), []).append(mean)
    spread = stdev(means)
    if len(by_drive) < 2:
        return spread
    between = stdev(fmean(own) for own in by_drive.values())
    return max(spread, between * math.sqrt(len(blocks) / len(by_drive)))


def _share_left(sizes: Sequence[int]) -> float:
    """What the mean over blocks of so many values has of sigma_session, at looks after each.

    1/sqrt(n) of n blocks of one size, for their deviations are independent; more when one
    outweighs the others.  The drift term allows for DRIFT_FACTOR standard deviations, which
    holds at one look.  Here the n-th look is given ALPHA/(n (n + 1)) to be wrong, which sums
    up to ALPHA over any number of looks.
    """
    if not sizes:
        return 1.0
    looks = len(sizes)
    quantile = NormalDist().inv_cdf(1.0 - 0.5 * ALPHA / (looks * (looks + 1)))
    return quantile / DRIFT_FACTOR * math.hypot(*sizes) / sum(sizes)


def least_told(sigma_session: float, blocks: int = 1) -> float:
    """How far from its threshold, as a log, a rate must be for that many blocks of stations to
    tell it, however many slices they have."""
    return DRIFT_FACTOR * _share_left([1] * blocks) * sigma_session


def _notes(stations: int, blocks: int, sigma_session: float, spread: float) -> tuple[str, ...]:
    notes = [
        f"{blocks} block(s) of four stations; the interval allows for a spread of "
        f"{sigma_session:.2%} between repeats of a station"
    ]
    if spread > sigma_session:
        notes.append(
            f"blocks or drives differ by {spread:.2%}, more than the rig's repeats do: that was "
            "allowed for; look whether a drive or a flash stands out"
        )
    if stations > 4 * blocks:
        notes.append(f"{stations - 4 * blocks} station(s) outside a whole block were left out")
    return tuple(notes)
