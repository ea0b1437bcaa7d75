"""Does NCQ make the traces faster that were replayed with it on and off?

Each round of a trace is a pair, a replay with NCQ off and one with it on, of the same requests;
it gives one value, the log of its mean service time on over off.  A round in which a replay is
void counts for nothing.  What the traces gain on average
has as many values as each of them has, the means of theirs: each weighs the same, however slow.
A drive is held against these very traces, so that what others would gain is not in the interval.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from leadline.evidence import UNCLEAN_SHARE
from leadline.load.slices import VOID_MEANINGS
from leadline.plans import Noise
from leadline.statements import Gain
from leadline.trace.gain import FEWEST_ROUNDS, Estimate, gain_of, overall, share_text
from leadline.trace.rounds import ReplayedTrace, Round
from leadline.verdict.contrast import judge_contrast
from leadline.verdict.interval import ALPHA
from leadline.verdict.many import holm
from leadline.verdict.verdict import Outcome, Verdict

_SHORTEST_S = 1e-3
"""fio's clock for a job: what took less took 0."""
READS_ALONE = (
    "reads alone: the writes were left out, for they need `writes: allowed` in the rig file and "
    "--allow-writes"
)


def look_at_gain(said: Gain, noise: Noise) -> Verdict:
    """The verdict on `said` by the rounds that are there.

    INCONCLUSIVE, "budget", where more of them might settle it.
    """
    if voids := spoilt(said.traces):
        return _void(said, voids)
    said = replace(said, traces=clean_of(said.traces))
    if said.each:
        verdict = _of_each(said, noise)
    else:
        # One that another claim had replayed more often has values which the others have not.
        rounds = zip(*(_logs(trace) for trace in said.traces), strict=False)
        seconds = sum(fmean(each.seconds for each in trace.rounds) for trace in said.traces)
        verdict = _of(said, [fmean(logs) for logs in rounds], seconds, noise)
    return replace(verdict, notes=(*verdict.notes, *_said_of(said.traces)))


def in_doubt(said: Gain, noise: Noise) -> tuple[str, ...]:
    """The traces of which another round may settle it; none where it is, or as good as it gets.

    Of traces that are each to gain so much, one that does is not replayed again for the others.
    """
    clean = {each.trace: len(each.rounds) for each in clean_of(said.traces)}
    if too_few := [name for name, count in clean.items() if count < FEWEST_ROUNDS]:
        return tuple(too_few)
    if look_at_gain(said, noise).reason != "budget":
        return ()
    if not said.each:
        return tuple(name for name, count in clean.items() if count == min(clean.values()))
    found = _found(replace(said, traces=clean_of(said.traces)), noise)
    return tuple(name for name, each in found.items() if each.outcome is not Outcome.PASS)


def clean_of(traces: Sequence[ReplayedTrace]) -> tuple[ReplayedTrace, ...]:
    """The traces with those of their rounds alone in which no replay was void."""
    return tuple(
        each.model_copy(
            update={"rounds": tuple(round_ for round_ in each.rounds if not round_.voids)}
        )
        for each in traces
    )


def spoilt(traces: Sequence[ReplayedTrace]) -> tuple[str, ...]:
    """Why the rounds do not count, most frequent first; empty when enough of them do."""
    pairs = [round_ for each in traces for round_ in each.rounds]
    if not any(each.voids for each in pairs) or (enough_clean(traces) and not mostly_void(traces)):
        return ()
    names = Counter(name for each in pairs for name in each.voids)
    return tuple(
        f"{name}: {VOID_MEANINGS.get(name, name)} ({times} replays)"
        for name, times in names.most_common()
    )


def mostly_void(traces: Sequence[ReplayedTrace]) -> bool:
    """Whether more than UNCLEAN_SHARE of all pairs are void, as of slices: then nothing counts."""
    pairs = [round_ for each in traces for round_ in each.rounds]
    return sum(bool(each.voids) for each in pairs) > UNCLEAN_SHARE * len(pairs)


def enough_clean(traces: Sequence[ReplayedTrace]) -> bool:
    """Whether the rounds that count are FEWEST_ROUNDS at least."""
    return all(len(each.rounds) >= FEWEST_ROUNDS for each in clean_of(traces))


def _void(said: Gain, voids: tuple[str, ...]) -> Verdict:
    return Verdict(
        Outcome.INCONCLUSIVE,
        "void",
        "<=",
        1.0 - said.at_least,
        0,
        "round",
        said.spent_s,
        voids=voids,
    )


def _of(said: Gain, logs: Sequence[float], seconds: float, noise: Noise) -> Verdict:
    """The verdict on values of so many seconds each, as if they were the last."""
    verdict = judge_contrast(
        logs,
        1.0 - said.at_least,
        "<=",
        unit="round",
        unit_seconds=max(seconds, _SHORTEST_S),
        spent_s=1.0,
        budget_s=1.0,
        sigma_d=noise.sigma_d,
    )
    assert verdict is not None, "its budget is spent"
    return replace(verdict, drive_seconds=said.spent_s)


def _of_each(said: Gain, noise: Noise) -> Verdict:
    """One trace that loses too much settles it, though there were many to find one among."""
    found = _found(said, noise)
    adjusted = dict(zip(found, holm([each.p_against for each in found.values()]), strict=True))
    lost = [name for name, p in adjusted.items() if p <= ALPHA]
    unsettled = [name for name, each in found.items() if each.outcome is not Outcome.PASS]
    # What stands for all of them: of those that decide it, the one that gains least.
    worst = max(lost or unsettled or found, key=lambda name: found[name].estimate or 0.0)
    verdict = replace(found[worst], notes=(f"{worst} decides it", *found[worst].notes))
    if lost:
        return replace(verdict, p_against=adjusted[worst])
    if not unsettled or verdict.voids:
        return verdict
    marginal = all(found[name].reason == "marginal" for name in unsettled)
    return replace(
        verdict,
        outcome=Outcome.INCONCLUSIVE,
        reason="marginal" if marginal else "budget",
        p_against=adjusted[worst],
    )


def _found(said: Gain, noise: Noise) -> dict[str, Verdict]:
    """The verdict on each trace, as if there were no others."""
    return {
        trace.trace: _of(said, _logs(trace), fmean(one.seconds for one in trace.rounds), noise)
        for trace in said.traces
    }


def _logs(trace: ReplayedTrace) -> list[float]:
    return [_log(round_) for round_ in trace.rounds]


def _log(round_: Round) -> float:
    assert round_.on is not None, "a drive without NCQ has nothing to gain"
    return math.log(round_.on.all.mean_s) - math.log(round_.off.all.mean_s)


def _said_of(traces: Sequence[ReplayedTrace]) -> Iterator[str]:
    """What each trace gained, and all of them; with intervals where there are two rounds."""
    gains = [gain_of(each.trace, each.rounds) for each in traces]
    whole = overall(gains)
    if whole is not None:
        yield f"gain over {whole.count} traces, (off - on) / off: {share_text(whole)}"
    for each in gains:
        yield f"{each.trace}: gain {share_text(each.gain)}, {_ms(each.off_s)} to {_ms(each.on_s)}"
    yield from dict.fromkeys(side for each in traces for side in each.sides)
    if not any(one.off.writes.count for each in traces for one in each.rounds):
        yield READS_ALONE


def _ms(estimate: Estimate | None) -> str:
    return "-" if estimate is None else f"{1e3 * estimate.mean:.4g} ms"
