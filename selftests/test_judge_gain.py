"""Claims of gains: by rounds of replays, on average and of each trace."""

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from leadline.claims import Claim, ClaimFailed, Unsettled
from leadline.errors import Misuse
from leadline.expected import Limit
from leadline.judge import SliceJudge
from leadline.judge_gain import (
    READS_ALONE,
    enough_clean,
    in_doubt,
    look_at_gain,
    mostly_void,
)
from leadline.multitasking import Multitasking
from leadline.plans import Noise
from leadline.statements import Gain
from leadline.trace.loads import LOADS
from leadline.trace.rounds import Replayed, ReplayedTrace, Round, Times
from leadline.verdict.verdict import Outcome, Verdict
from selftests.kept_claims import Kept, change, details, fields, unlike
from selftests.slice_drive import SliceDrive


def replayed(mean_ms: float, *, writes: int = 1, seconds: float = 0.5) -> Replayed:
    written = Times(writes, mean_ms / 1e3 if writes else 0.0)
    return Replayed(Times(3, mean_ms / 1e3), written, seconds)


def rounds(
    ratio: float, *, spread: float = 0.004, count: int = 6, writes: int = 1
) -> tuple[Round, ...]:
    """On over off, a little more and a little less by turns."""
    return tuple(
        Round(
            replayed(10.0, writes=writes),
            replayed(10.0 * ratio * (1.0 + spread * (1 if n % 2 else -1)), writes=writes),
        )
        for n in range(count)
    )


def trace(name: str, of: Sequence[Round]) -> ReplayedTrace:
    return ReplayedTrace(
        trace=name, requests=4, in_flight=4, seconds=2.0, notes=(), rounds=tuple(of)
    )


def gain(at_least: float, *ratios: float, each: bool = False, **how: Any) -> Gain:
    traces = (trace(f"load-{n}", rounds(ratio, **how)) for n, ratio in enumerate(ratios))
    return Gain("multitasking", at_least, each, tuple(traces), 9.0, "a page")


def looked(said: Gain) -> Verdict:
    return look_at_gain(said, Noise())


def test_what_traces_gain_on_average_is_the_geometric_mean_of_on_over_off() -> None:
    verdict = looked(gain(0.05, 0.8, 0.9))
    assert (verdict.outcome, verdict.reason) == (Outcome.PASS, "settled")
    assert verdict.estimate == pytest.approx((0.8 * 0.9) ** 0.5, rel=1e-3)
    assert (verdict.direction, verdict.unit, verdict.count) == ("<=", "round", 6)
    assert verdict.threshold == pytest.approx(0.95)
    assert verdict.drive_seconds == 9.0
    assert verdict.low is not None and verdict.high is not None
    assert verdict.low < 0.8485 < verdict.high < 0.95


def spoil(said: Gain, *places: tuple[int, int]) -> Gain:
    """The same, the replay with NCQ on void in these rounds of these traces, and far off."""
    traces = []
    for number, each in enumerate(said.traces):
        rounds_ = list(each.rounds)
        for which, place in places:
            if which == number:
                off = rounds_[place].off
                on = replace(replayed(1000.0), voids=("other-io",))
                rounds_[place] = Round(off, on)
        traces.append(each.model_copy(update={"rounds": tuple(rounds_)}))
    return replace(said, traces=tuple(traces))


@pytest.mark.parametrize("each", [False, True])
def test_a_round_in_which_a_replay_is_void_counts_for_nothing(each: bool) -> None:
    clean = looked(gain(0.05, 0.8, 0.9, each=each))
    spoilt = looked(spoil(gain(0.05, 0.8, 0.9, each=each), (1, 2)))
    assert (clean.outcome, spoilt.outcome) == (Outcome.PASS, Outcome.PASS)
    assert (clean.count, spoilt.count) == (6, 5)


def test_where_too_many_are_void_nothing_counts_and_it_is_said_why() -> None:
    verdict = looked(spoil(gain(0.05, 0.8, 0.9), *((0, place) for place in range(4))))
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")
    (void,) = verdict.voids
    assert void.startswith("other-io: another program read or wrote")
    assert void.endswith("(4 replays)")


def test_two_rounds_of_which_one_is_void_are_no_evidence() -> None:
    said = spoil(gain(0.05, 0.8, 0.9, 0.8, count=2), (0, 0))
    assert not mostly_void(said.traces) and not enough_clean(said.traces)
    assert looked(said).reason == "void"


def test_a_drive_that_gains_nothing_fails_a_claim_that_it_does() -> None:
    verdict = looked(gain(0.09, 1.0, 1.0, 1.0))
    assert verdict.outcome is Outcome.FAIL
    assert verdict.p_against <= 0.01


def test_one_trace_that_gains_much_does_not_make_up_for_the_noise_of_the_others() -> None:
    noisy = looked(gain(0.05, 0.5, 1.0, spread=0.2, count=4))
    assert (noisy.outcome, noisy.reason) == (Outcome.INCONCLUSIVE, "budget")


def test_rounds_are_paired_so_that_what_drifts_cancels() -> None:
    drifting = [Round(replayed(10.0 * slow), replayed(8.01 * slow)) for slow in (1, 2, 4, 8)]
    drifting.append(Round(replayed(160.0), replayed(128.0)))
    said = Gain("multitasking", 0.05, False, (trace("one", drifting),), 1.0)
    assert looked(said).outcome is Outcome.PASS


def test_every_trace_is_told_with_its_gain_and_its_interval() -> None:
    verdict = looked(gain(0.05, 0.8, 0.9))
    assert "gain over 2 traces, (off - on) / off: +15.0% [-48.5%, +78.5%]" in verdict.notes
    one = next(note for note in verdict.notes if note.startswith("load-0"))
    assert one == "load-0: gain +20.0% [+19.6%, +20.4%], 10 ms to 8 ms"
    assert READS_ALONE not in verdict.notes
    assert READS_ALONE in looked(replace(gain(0.05, 0.8), traces=alone())).notes


def alone() -> tuple[ReplayedTrace, ...]:
    return (trace("reads", rounds(0.8, writes=0)),)


def test_no_trace_may_lose_whatever_the_others_gain() -> None:
    verdict = looked(gain(-0.1, 0.5, 0.6, 1.3, each=True))
    assert verdict.outcome is Outcome.FAIL
    assert verdict.estimate == pytest.approx(1.3, rel=1e-3)
    assert verdict.notes[0] == "load-2 decides it"
    assert looked(gain(-0.1, 0.5, 0.6, 1.3)).outcome is Outcome.PASS, "on average it does not"


def test_the_one_that_gains_least_stands_for_all_that_pass() -> None:
    verdict = looked(gain(-0.1, 0.9, 1.02, 1.0, each=True))
    assert (verdict.outcome, verdict.reason) == (Outcome.PASS, "settled")
    assert verdict.notes[0] == "load-1 decides it"
    assert verdict.threshold == pytest.approx(1.1)


def test_one_that_is_not_settled_keeps_all_open() -> None:
    traces = (trace("sure", rounds(0.9)), trace("noisy", rounds(1.0, spread=0.3)))
    said = Gain("multitasking", -0.1, True, traces, 1.0)
    verdict = looked(said)
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "budget")
    assert verdict.notes[0] == "noisy decides it"


def test_one_that_surely_loses_settles_it_beside_one_that_perhaps_loses_more() -> None:
    traces = (trace("noisy", rounds(2.0, spread=0.5)), trace("sure", rounds(1.3)))
    verdict = looked(Gain("multitasking", -0.1, True, traces, 1.0))
    assert verdict.outcome is Outcome.FAIL
    assert verdict.notes[0] == "sure decides it"


def test_one_at_the_very_limit_is_marginal_where_all_others_pass() -> None:
    verdict = looked(gain(-0.1, 0.9, 1.1, each=True, spread=0.001, count=40))
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "marginal")


def test_among_nine_it_takes_more_to_find_one_that_loses() -> None:
    """A trace that alone would fail, just, is one of nine among which it was looked for."""
    loses = trace("loses", rounds(1.2, spread=0.016))
    alone_ = looked(Gain("multitasking", -0.1, True, (loses,), 1.0))
    assert alone_.outcome is Outcome.FAIL
    assert 0.01 / 9 < alone_.p_against <= 0.01
    others = tuple(trace(f"gains-{n}", rounds(0.8)) for n in range(8))
    among = looked(Gain("multitasking", -0.1, True, (*others, loses), 1.0))
    assert (among.outcome, among.reason) == (Outcome.INCONCLUSIVE, "budget")


@dataclass
class Told:
    """Rounds of loads at these ratios of on over off, half a second a replay."""

    ratios: tuple[float, ...] = (0.8, 0.9)
    spread: float = 0.004
    noisy: dict[str, float] = field(default_factory=dict)
    replayed: list[tuple[int | None, tuple[str, ...]]] = field(default_factory=list)

    def so_far(self, first: int | None) -> tuple[ReplayedTrace, ...]:
        counts = Counter(name for _, names in self.replayed for name in names)
        told = {f"load-{n}": ratio for n, ratio in enumerate(self.ratios)}
        return tuple(
            trace(name, rounds(ratio, spread=self.noisy.get(name, self.spread), count=counts[name]))
            for name, ratio in told.items()
            if counts[name]
        )

    def one_more(self, first: int | None, names: Collection[str]) -> float:
        ours = tuple(f"load-{n}" for n in range(len(self.ratios)))
        self.replayed.append((first, ours if names == tuple(LOADS) else tuple(names)))
        return 2.0 * len(self.replayed[-1][1]) / len(self.ratios)


@pytest.fixture
def run(tmp_path: Path) -> Kept:
    return Kept(tmp_path, SliceDrive({}), budget_s=30.0)


def made(run: Kept, told: Told) -> Multitasking:
    return Multitasking(told, cast(SliceJudge, run.reads.judge))


BOTH = ("load-0", "load-1")


def explained(claim: Claim) -> str:
    assert claim
    assert claim.settled is not None
    return claim.settled.explanation


def test_rounds_are_replayed_until_the_claim_is_settled(run: Kept) -> None:
    told = Told()
    limit = Limit(0.05, "multitasking_gain", "a story")
    text = explained(made(run, told).first(300).gains_at_least(limit))
    assert told.replayed == [(300, BOTH)] * 4, "fewer bound nothing"
    head, *lines = text.splitlines()
    assert head == (
        "PASS: multitasking.first(300).gains_at_least(0.05) holds on bench-slot1-MODEL-1.0"
    )
    assert lines[0].startswith("  mean service time, NCQ on over off: 0.849 [")
    assert lines[0].endswith("], over 4 rounds of replays")
    assert lines[1:3] == ["  threshold: <= 0.95 (a story)", "  cost: 8.0 drive-seconds"]


def test_the_next_claim_has_what_was_replayed_for_the_one_before(run: Kept) -> None:
    told = Told()
    ours = made(run, told)
    assert ours.gains_at_least(0.05)
    text = explained(ours.no_load_loses_more_than(0.1))
    assert told.replayed == [(None, BOTH)] * 4
    assert "multitasking.no_load_loses_more_than(0.1) holds" in text
    assert "cost: 0.0 drive-seconds" in text


def test_a_load_that_is_settled_is_not_replayed_for_the_others(run: Kept) -> None:
    told = Told(noisy={"load-1": 0.08})
    ours = made(run, told)
    text = explained(ours.no_load_loses_more_than(0.1))
    assert "load-1 decides it" in text
    times = len(told.replayed)
    assert times > 5
    assert told.replayed == [(None, BOTH)] * 4 + [(None, ("load-1",))] * (times - 4)
    assert f"cost: {2 * 4 + times - 4}.0 drive-seconds" in text
    assert ours.gains_at_least(0.02)
    assert told.replayed[times:] == [(None, ("load-0",))] * (len(told.replayed) - times)
    assert len(told.replayed) - times <= times - 4, "what is there of the other serves"


def test_one_that_loses_ends_it_whatever_is_not_settled(run: Kept) -> None:
    told = Told(ratios=(1.0, 1.3), noisy={"load-0": 0.3})
    with pytest.raises(ClaimFailed, match="load-1 decides it"):
        assert made(run, told).no_load_loses_more_than(0.1)
    assert len(told.replayed) < 8


@pytest.mark.parametrize("each", [False, True])
def test_a_void_round_is_replayed_anew_of_its_own_load(each: bool) -> None:
    said = spoil(gain(0.05, 0.8, 0.9, each=each, count=2), (1, 0))
    assert in_doubt(said, Noise()) == ("load-1",)
    said = spoil(gain(0.05, 0.8, 0.9, each=each, count=4), (1, 0))
    assert in_doubt(said, Noise()) == ("load-1",), "the other is settled, or has its four"
    assert in_doubt(gain(0.05, 0.8, 0.9, each=each), Noise()) == ()


def test_a_claim_that_its_budget_does_not_settle_is_inconclusive(run: Kept) -> None:
    told = Told(ratios=(0.94, 0.95), spread=0.2)
    with pytest.raises(Unsettled, match=r"INCONCLUSIVE \(budget\)"):
        assert made(run, told).gains_at_least(0.05)
    assert len(told.replayed) == 15


def test_however_small_the_budget_each_load_is_replayed_twice(tmp_path: Path) -> None:
    told = Told()
    run = Kept(tmp_path, SliceDrive({}), budget_s=0.1)
    with pytest.raises(Unsettled, match=r"load-1: gain \+10\.0% \["):
        assert made(run, told).gains_at_least(0.05)
    assert len(told.replayed) == 2


def test_a_drive_that_loses_fails_with_every_figure(run: Kept) -> None:
    told = Told(ratios=(1.2, 1.3))
    with pytest.raises(ClaimFailed, match=r"load-1: gain -30\.0% \[.*10 ms to 13 ms"):
        assert made(run, told).no_load_loses_more_than(0.1)


@pytest.mark.parametrize("share", [0, 1, -0.1, "much"])
def test_what_is_no_share_is_refused(run: Kept, share: float) -> None:
    told = Told()
    with pytest.raises(Misuse, match="a share lies between 0 and 1"):
        made(run, told).gains_at_least(share)
    with pytest.raises(Misuse, match="a share lies between 0 and 1"):
        made(run, told).no_load_loses_more_than(share)
    with pytest.raises(Misuse, match=r"multitasking\.first\(0\): a number of requests"):
        made(run, told).first(0)
    assert told.replayed == []


@pytest.mark.parametrize(("ratio", "outcome"), [(0.8, "PASS"), (1.2, "FAIL"), (0.95, "none")])
@pytest.mark.parametrize("each", [False, True])
def test_its_verdict_comes_out_the_same_again(
    run: Kept, ratio: float, outcome: str, each: bool
) -> None:
    ours = made(run, Told(ratios=(ratio,) * 9, spread=0.01 if outcome != "none" else 0.3))
    run.settle(ours.no_load_loses_more_than(0.1) if each else ours.gains_at_least(0.05))
    run.close()
    (row,) = Kept(run.folder, run.drive, run="run-1").record.verdicts()
    assert row.outcome == {"none": "INCONCLUSIVE"}.get(outcome, outcome)
    assert unlike(run.folder) == []


def test_a_round_that_was_changed_is_found(run: Kept) -> None:
    run.settle(made(run, Told()).gains_at_least(0.05))
    run.close()
    basis = details(run.folder, "verdicts", 1, "basis")
    assert basis["statement"]["traces"][1]["rounds"][0]["on"]["reads"]["count"] == 3
    basis["statement"]["traces"][1]["rounds"][0]["on"]["reads"]["mean_s"] *= 1.01
    change(run.folder, "update verdicts set basis = ? where id = 1", json.dumps(basis))
    assert {"estimate", "low", "interval.mean"} <= fields(run.folder)
    basis["statement"]["traces"] = []
    change(run.folder, "update verdicts set basis = ? where id = 1", json.dumps(basis))
    assert fields(run.folder) == {"basis"}
