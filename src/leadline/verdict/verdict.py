"""What a claim ends in: PASS, FAIL or INCONCLUSIVE, with its evidence and its cost."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from leadline.verdict.interval import Interval, SignOpinion

Direction = Literal[">=", "<=", "within"]
"""`within` is of ratios: the estimate and its inverse are both at most 1 + threshold."""
Reason = Literal["settled", "marginal", "budget", "void"]
Unit = Literal["pair", "triple", "block", "slice", "event", "episode", "request", "round"]
"""What was counted: the slices of a ratio, of a point of a curve and its neighbours, of
firmwares in the order ABBA; single slices; single events such as a power-on; stalls; requests;
rounds of replays."""


class Outcome(StrEnum):
    """The three ends of a claim; nothing else is said of it, and nothing is guessed."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class RateEstimate:
    """A rate in its quantity's unit, with its always-valid interval within this session.

    Nothing cancels in a single rate as it does in a ratio: what the rig does differently
    on another day is not in the interval.
    """

    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """One claim, decided or not: `estimate  direction  threshold`.

    `estimate`, `low` and `high` are the ratio (or the rate, or the time) and the ends of
    its always-valid interval (0 and infinity while there is too little of it).  They and
    `interval` are None when a void verdict has nothing usable.  `count` says how many
    `unit`s they come from; `rates` are those of the quantities compared, in the order in
    which the claim names them.  `reason` is "settled" for PASS and FAIL;
    for INCONCLUSIVE "marginal" (so near the threshold that more drive time is not worth
    it), "budget" (drive time spent) or "void", when `voids` names what spoilt it.
    `drive_seconds` is the time that the drive was under load for this claim.

    The slowest of all events, and the size that requests reach, have no interval: `low` and
    `high` are None there too.
    `p_against` is the always-valid p-value of the claim (the level at which the evidence
    would just have refuted it), 1 while nothing speaks against it: a FAIL by an interval
    has at most ALPHA.  It is what `many` corrects for many claims.
    `cause` says in a few words what a FAIL has found of the drive, as in "dip at depth 11"; ""
    where the claim itself says it all.  `shortage` says of "budget" what there was too little of
    and what mends that; "" where it is drive time.
    """

    outcome: Outcome
    reason: Reason
    direction: Direction
    threshold: float
    count: int
    unit: Unit
    drive_seconds: float
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    rates: tuple[RateEstimate, ...] = ()
    interval: Interval | None = None
    signs: SignOpinion | None = None
    voids: tuple[str, ...] = ()
    p_against: float = 1.0
    notes: tuple[str, ...] = ()
    cause: str = ""
    shortage: str = ""
