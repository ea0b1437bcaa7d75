"""What a claim ends in: PASS, FAIL or INCONCLUSIVE, with its evidence and its cost."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from leadline.verdict.interval import Interval, SignOpinion

Direction = Literal[">=", "<="]
Reason = Literal["settled", "marginal", "budget", "void"]


class Outcome(StrEnum):
    """The three ends of a claim; nothing else is said of it, and nothing is guessed."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class RateEstimate:
    """A rate (requests a second) with its always-valid interval within this session.

    Nothing cancels in a single rate as it does in a ratio: what the rig does differently
    on another day is not in the interval.
    """

    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """One claim, decided or not: `numerator / denominator  direction  threshold`.

    `estimate`, `low` and `high` are the ratio and the ends of its always-valid interval
    (0 and infinity while there are too few pairs).  They, `interval` and the rates are
    None when a void verdict has no usable pair.  `reason` is "settled" for PASS and FAIL;
    for INCONCLUSIVE "marginal" (so near the threshold that more drive time is not worth
    it), "budget" (drive time spent) or "void", when `voids` names what spoilt it.
    `drive_seconds` is the time that the drive was under load for this claim.
    """

    outcome: Outcome
    reason: Reason
    direction: Direction
    threshold: float
    pairs: int
    drive_seconds: float
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    numerator: RateEstimate | None = None
    denominator: RateEstimate | None = None
    interval: Interval | None = None
    signs: SignOpinion | None = None
    voids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
