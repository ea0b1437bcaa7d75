"""Tails: episodes of stalling compared between two sides.

What counts is episodes and not slow requests: one stall holds up everything in the queue, so
that a queue of 32 makes 32 slow requests of it, and they are no independent evidence.
Percentiles are in `percentile`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leadline.verdict.contrast import BUDGET_S, check_times, usable
from leadline.verdict.interval import ALPHA
from leadline.verdict.verdict import Outcome, Reason, Verdict

EDGE = 1e-12
"""Shares nearer to 0 or 1 than this are not told apart from them."""


@dataclass(frozen=True)
class Episode:
    """One stall: from the issue of its first slow request to the completion of its last.

    Seconds on the clock of the requests; `requests` is how many of them were slow, `worst_s`
    the longest latency.
    """

    began: float
    ended: float
    requests: int
    worst_s: float


def stall_episodes(
    requests: Iterable[tuple[float, float]], *, threshold_s: float, gap_s: float
) -> list[Episode]:
    """Stalls among `requests`, each (completion, latency) in seconds, in any order.

    A request is slow when its latency is above `threshold_s`.  Slow requests whose times in
    flight overlap, or are less than `gap_s` apart, are one episode.  Choose the gap longer
    than a stall's pauses: two halves of one stall counted twice would make the comparison
    surer than it is.  Raises ValueError on a latency that is negative, on a time that is
    not finite, and on a threshold or gap that makes no sense.
    """
    if not usable(threshold_s):
        raise ValueError(f"threshold_s is {threshold_s}: a latency is finite and above 0")
    if not (math.isfinite(gap_s) and gap_s >= 0.0):
        raise ValueError(f"gap_s is {gap_s}: a gap is finite and at least 0")
    slow = []
    for done, latency in requests:
        if not (math.isfinite(done) and math.isfinite(latency) and latency >= 0.0):
            raise ValueError(
                f"a request that completed at {done} took {latency} s: both are finite, "
                "and a latency is at least 0"
            )
        if latency > threshold_s:
            slow.append((done - latency, done))
    episodes: list[Episode] = []
    for began, ended in sorted(slow):
        last = episodes[-1] if episodes else None
        if last is None or (began > last.ended and began - last.ended >= gap_s):
            episodes.append(Episode(began, ended, 1, ended - began))
        else:
            episodes[-1] = Episode(
                last.began,
                max(last.ended, ended),
                last.requests + 1,
                max(last.worst_s, ended - began),
            )
    return episodes


def judge_stalls(
    a_episodes: int,
    b_episodes: int,
    *,
    a_seconds: float,
    b_seconds: float,
    spent_s: float,
    threshold: float = 1.0,
    factor: float = 2.0,
    budget_s: float = BUDGET_S,
    voids: Sequence[str] = (),
) -> Verdict | None:
    """Settle `a stalls at most threshold times as often as b`, or None: measure on.

    `a_episodes` were seen in `a_seconds` of load, likewise b; the two sides are interleaved,
    so that what makes both stall more often for a while favours neither.  An episode is
    then a's with chance p = rho T_a/(rho T_a + T_b), rho being the ratio of their rates
    (Przyborowski and Wilenski 1940, Biometrika 31), and Wald's sequential test (1945, Annals
    of Mathematical Statistics 16) decides between rho = `threshold` and `factor` times it,
    each at level ALPHA however often it is looked at.  PASS is against `factor` times the
    threshold; a true ratio in between may settle either way.  Notes say how many episodes
    there are and how many it takes.

    `low` and `high` are the always-valid interval of rho, by a uniform mixture over p
    (Robbins 1970, Annals of Mathematical Statistics 41).  Raises ValueError on counts that
    are not whole or below 0, and on parameters that make no sense.
    """
    _check_claim(a_episodes, b_episodes, threshold, factor)
    check_times(spent_s, budget_s=budget_s, a_seconds=a_seconds, b_seconds=b_seconds)
    odds = a_seconds / b_seconds
    gain = _log_likelihood_ratio(a_episodes, b_episodes, threshold * odds, factor)
    outcome, reason = _decide(gain)
    if voids:
        outcome, reason = Outcome.INCONCLUSIVE, "void"
    elif reason == "budget" and spent_s < budget_s:
        return None
    needed = episodes_needed(threshold * odds, factor)
    low, high = _share_interval(a_episodes, b_episodes)
    return Verdict(
        outcome=outcome,
        reason=reason,
        direction="<=",
        threshold=threshold,
        count=a_episodes + b_episodes,
        unit="episode",
        drive_seconds=spent_s,
        estimate=_ratio(a_episodes, b_episodes) / odds if a_episodes + b_episodes else None,
        low=_ratio(low, 1.0 - low) / odds,
        high=_ratio(high, 1.0 - high) / odds,
        voids=tuple(voids),
        p_against=1.0 if voids else min(1.0, math.exp(-gain)),
        notes=(
            f"{a_episodes} episodes against {b_episodes}; to tell {factor:g} times the rate "
            f"from what is allowed takes about {needed} in all",
        ),
    )


def episodes_needed(odds: float = 1.0, factor: float = 2.0) -> int:
    """How many episodes it takes, on average, to tell `factor` times the rate from once it.

    `odds` is how many episodes a has for each of b where the claim just holds.  Wald's
    expected number, log(1/ALPHA) over the relative entropy, of the slower of the two
    decisions: 82 for twice the rate at equal times, level 1 % both ways.  Raises ValueError
    on a factor of 1 or less and on odds that are not finite and above 0.
    """
    _check_factor(factor)
    if not usable(odds):
        raise ValueError(f"odds is {odds}: it is finite and above 0")
    p, q = odds / (1.0 + odds), odds * factor / (1.0 + odds * factor)
    to_fail = q * math.log(q / p) + (1.0 - q) * math.log((1.0 - q) / (1.0 - p))
    to_pass = p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return math.ceil(-math.log(ALPHA) / min(to_fail, to_pass))


def _log_likelihood_ratio(a: int, b: int, odds: float, factor: float) -> float:
    """Log of how much likelier `a` of a + b is at `factor` times the odds."""
    grown = math.log1p(odds) - math.log1p(odds * factor)
    return a * (math.log(factor) + grown) + b * grown


def _decide(gain: float) -> tuple[Outcome, Reason]:
    """By Ville's inequality a likelihood ratio reaches 1/ALPHA with chance ALPHA at most."""
    bound = -math.log(ALPHA)
    if gain >= bound:
        return Outcome.FAIL, "settled"
    return (Outcome.PASS, "settled") if gain <= -bound else (Outcome.INCONCLUSIVE, "budget")


def _share_interval(a: int, b: int) -> tuple[float, float]:
    """The shares p that a uniform mixture of bets does not refute at level ALPHA."""
    from scipy.optimize import brentq
    from scipy.special import betaln, xlog1py, xlogy

    def room(share: float) -> float:
        bet = betaln(a + 1, b + 1) - xlogy(a, share) - xlog1py(b, -share)
        return float(bet + math.log(ALPHA))

    middle = a / (a + b) if a + b else 0.5
    low = float(brentq(room, EDGE, middle)) if a and room(EDGE) > 0.0 else 0.0
    high = float(brentq(room, middle, 1.0 - EDGE)) if b and room(1.0 - EDGE) > 0.0 else 1.0
    return low, high


def _ratio(top: float, bottom: float) -> float:
    return top / bottom if bottom > 0.0 else math.inf


def _check_claim(a_episodes: int, b_episodes: int, threshold: float, factor: float) -> None:
    for name, count in (("a_episodes", a_episodes), ("b_episodes", b_episodes)):
        if not (count >= 0 and count % 1 == 0):
            raise ValueError(f"{name} is {count}: a count is whole and at least 0")
    if not usable(threshold):
        raise ValueError(f"threshold is {threshold}: a ratio of rates is finite and above 0")
    _check_factor(factor)


def _check_factor(factor: float) -> None:
    if not (math.isfinite(factor) and factor > 1.0):
        raise ValueError(f"factor is {factor}: what is to be seen is above 1, as 2 for a doubling")
