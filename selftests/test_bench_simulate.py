"""The simulated benchmark of verdicts, at small sizes: that it simulates, counts and limits."""

import json
import math
from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest

from bench import ratios, simulate
from bench.noise import DISK, NOISY, QUIET, Floats, NoiseModel, rates
from bench.ratios import Cell, Guards, Share, limits_kept, share
from bench.simulate import RIGS, TWO_RUNS_S, Rig, settle, two_runs_hold
from leadline.verdict.contrast import SIGMA_D
from leadline.verdict.interval import interval_of
from leadline.verdict.verdict import Outcome, Reason, Verdict

RIG = {rig.name: rig for rig in RIGS}
SILENT = replace(
    QUIET, **{each.name: 0.0 for each in fields(NoiseModel) if not each.name.endswith("_s")}
)
"""No noise at all; the times that remain have nothing to scale."""


def chance(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def log_ratios(model: NoiseModel, seconds: float, runs: int = 400) -> Floats:
    """The log of what two slices, one after the other, make of a ratio, over the true one."""
    pairs = [
        rates(chance(seed), np.array([300.0, 100.0]), np.full(2, seconds), model)
        for seed in range(runs)
    ]
    return np.log([top / low / 3.0 for top, low in pairs])


# Noise.


@pytest.mark.parametrize("model", [QUIET, NOISY, DISK])
def test_noise_leaves_rates_near_the_truth_and_differs_from_run_to_run(model: NoiseModel) -> None:
    truth = np.tile([700.0, 100.0], 100)
    runs = [rates(chance(seed), truth, np.full(200, 0.5), model) for seed in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.isclose(runs[0], runs[2]).any()
    for measured in runs:
        assert abs(np.log(np.median(measured / truth))) < 0.3
        assert (measured >= 0).all()


def test_without_noise_slices_measure_the_truth() -> None:
    truth = np.array([700.0, 100.0, 100.0, 700.0])
    assert rates(chance(), truth, np.array([0.5, 1.0, 65.0, 0.5]), SILENT) == pytest.approx(truth)


@pytest.mark.parametrize(
    "model",
    [replace(SILENT, jitter=0.1), replace(SILENT, drift=0.1), replace(SILENT, wander=0.1)],
    ids=["jitter", "drift", "wander"],
)
def test_eight_slices_together_are_as_noisy_as_one_of_their_length(model: NoiseModel) -> None:
    """The noise is a process in time, and slices are cut out of it."""
    model = replace(model, wander_s=10.0)
    cut, whole = (
        np.array(
            [
                np.log(rates(chance(seed), np.full(n, 100.0), np.full(n, 32.0 / n), model)).mean()
                for seed in range(3000)
            ]
        )
        for n in (8, 1)
    )
    assert float(cut.std() / whole.std()) == pytest.approx(1.0, abs=0.06)


def test_drift_moves_a_ratio_of_two_settings_by_its_own_amount() -> None:
    """The standard deviation of a judge's sigma_d, however short the slices."""
    drifting = replace(SILENT, drift=0.03)
    assert float(log_ratios(drifting, 0.01).std()) == pytest.approx(0.03, rel=0.15)
    # Over a long slice drift averages out: with h = t/tau by 2 (h - 1 + exp(-h))/h^2.
    h = 30.0 / drifting.drift_s
    averaged = 0.03 * math.sqrt(2 * (h - 1 + math.exp(-h))) / h
    assert float(log_ratios(drifting, 30.0).std()) == pytest.approx(averaged, rel=0.15)


def test_wander_cancels_between_neighbours_and_not_between_long_runs() -> None:
    wandering = replace(SILENT, wander=0.1, wander_s=100.0)
    assert float(log_ratios(wandering, 0.5).std()) < 0.02
    assert float(log_ratios(wandering, 65.0).std()) > 0.05


def test_a_run_begins_slow_and_warms_up() -> None:
    cold = replace(SILENT, warm_up=0.2)
    slices = np.full(100, 1.0)
    mean = np.mean([rates(chance(s), slices * 100.0, slices, cold) for s in range(200)], axis=0)
    assert mean[0] < 95.0
    assert mean[-1] == pytest.approx(100.0, rel=1e-3)


def test_stalls_take_their_share_of_the_time_and_never_more_than_a_slice() -> None:
    stalling = replace(SILENT, stalls_per_minute=60.0, stall_s=0.1)
    slices = np.full(6_000, 0.5)
    measured = rates(chance(), slices * 200.0, slices, stalling)
    assert measured.mean() == pytest.approx(90.0, rel=0.02)
    assert measured.max() <= 100.0
    assert 0.0 <= measured.min() < 10.0


@pytest.mark.parametrize(
    ("truth", "seconds", "said"),
    [
        ([100.0, 100.0], [0.5], "one value a slice each"),
        ([100.0, 0.0], [0.5, 0.5], "truth holds"),
        ([100.0, 100.0], [0.5, math.nan], "seconds holds"),
    ],
)
def test_noise_refuses_slices_that_cannot_be(
    truth: list[float], seconds: list[float], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        rates(chance(), np.array(truth), np.array(seconds), QUIET)


# Claims on simulated drives.


@pytest.mark.parametrize("rig", RIGS)
@pytest.mark.parametrize("off", [0.2, -0.2])
def test_without_noise_the_verdict_has_the_true_ratio(rig: Rig, off: float) -> None:
    silent = replace(rig, noise=replace(SILENT, jitter=1e-9))  # with none at all it is void
    verdict = settle(chance(), silent, off, sigma_d=0.01)
    assert verdict.outcome is (Outcome.PASS if off > 0 else Outcome.FAIL)
    assert verdict.estimate == pytest.approx(rig.threshold * (1 + off))
    assert [each.rate for each in verdict.rates] == pytest.approx(
        [rig.rate * rig.threshold * (1 + off), rig.rate]
    )
    assert verdict.drive_seconds == 8 * rig.slice_s
    assert two_runs_hold(chance(), silent, off) == (off > 0)


def test_noise_runs_on_from_batch_to_batch() -> None:
    """Had each batch a noise of its own, drift would average out as fast as jitter does."""
    drifting = replace(RIG["noisy"], noise=replace(SILENT, drift=0.1, drift_s=1e4))
    spreads = []
    for seed in range(20):
        verdict = settle(chance(seed), drifting, 0.01, sigma_d=1.0, budget_s=40.0)
        assert verdict.interval is not None
        assert verdict.count == 40
        spreads.append(verdict.interval.spread)
    assert max(spreads) < 0.03


def test_slices_in_which_nothing_completes_are_void_and_no_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stalled(_: object, truth: Floats, *__: object) -> Floats:
        return np.where(np.arange(truth.size) % 3 == 0, 0.0, truth)

    monkeypatch.setattr(simulate, "rates", stalled)
    verdict = settle(chance(), RIG["quiet"], 0.2, sigma_d=0.01)
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")


def test_a_judge_that_lengthens_its_slices_is_refused() -> None:
    slow = replace(RIG["disk"], rate=10.0, noise=SILENT)
    with pytest.raises(ValueError, match="long enough from the start"):
        settle(chance(), slow, 0.2, sigma_d=0.01)


def test_two_long_runs_are_often_wrong_on_a_noisy_rig() -> None:
    said = [two_runs_hold(chance(seed), RIG["noisy"], 0.05) for seed in range(300)]
    assert 0.05 < said.count(False) / len(said) < 0.4


# Counting.


def verdict_of(outcome: Outcome) -> Verdict:
    reason: Reason = "budget" if outcome is Outcome.INCONCLUSIVE else "settled"
    return Verdict(outcome, reason, ">=", 3.0, 8, "pair", 8.0)


@pytest.mark.parametrize(("off", "error", "wrong"), [(0.05, "false alarm", 2), (-0.05, "miss", 3)])
def test_wrong_is_a_fail_where_the_claim_holds_and_a_pass_where_it_does_not(
    off: float, error: str, wrong: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = [Outcome.FAIL] * 2 + [Outcome.PASS] * 3 + [Outcome.INCONCLUSIVE] * 5
    given = iter(map(verdict_of, outcomes))
    monkeypatch.setattr(ratios, "settle", lambda *_, **__: next(given))
    cell = ratios.cell_of(RIG["quiet"], off, len(outcomes))
    assert (cell.error, cell.wrong.times, cell.wrong.of) == (error, wrong, 10)
    assert cell.inconclusive == {"marginal": 0.0, "budget": 0.5, "void": 0.0}
    assert (cell.mean_drive_s, cell.longest_drive_s) == (8.0, 8.0)


def test_none_of_a_thousand_is_not_none() -> None:
    none, ten = share(0, 1000), share(10, 1000)
    # By hand: the p at which 1,000 runs without a wrong one have a chance of 2.5 %.
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 1000), abs=1e-5)
    assert none.low == 0.0
    assert ten.low < 0.01 < ten.high


def test_a_run_meets_the_same_noise_again_and_no_other_run_meets_it() -> None:
    """Drift that never forgets gives each run one error, however many pairs it has."""
    rigs = [replace(rig, noise=replace(SILENT, drift=0.01, drift_s=1e9)) for rig in RIGS]

    def errors(rig: Rig, off: float) -> list[float]:
        settled = ratios.verdicts_of(rig, off, 3, sigma_d=0.01)
        return [round((v.estimate or 0.0) / rig.threshold / (1 + off), 6) for v in settled]

    assert errors(rigs[0], 0.2) == errors(rigs[0], 0.2)
    every = [error for rig in rigs for off in (0.2, -0.2) for error in errors(rig, off)]
    assert len(set(every)) == len(every)


def guards_correlation() -> bool:
    """Whether the interval that decides is widened for neighbours that resemble each other."""
    rising = interval_of([0.0, 1.0, 2.0, 3.0], value_seconds=1.0, sigma_d=0.0)
    return rising.correlation > 0


def test_the_judge_is_told_the_drift_of_the_rig_unless_that_is_what_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = []

    def settle_as_told(*_: object, sigma_d: float) -> Verdict:
        told.append((sigma_d, guards_correlation()))
        return verdict_of(Outcome.PASS)

    monkeypatch.setattr(ratios, "settle", settle_as_told)
    ratios.guards_of(RIG["noisy"], 0.05, ratios.cell_of(RIG["noisy"], 0.05, 1).wrong)
    assert told == [(NOISY.drift, True), (SIGMA_D, True), (0.0, False)]


def test_guards_taken_away_make_verdicts_wrong_and_are_given_back() -> None:
    drifting = replace(SILENT, jitter=0.01, drift=0.03)
    rig = replace(RIG["noisy"], noise=drifting)
    whole = ratios.cell_of(rig, -0.01, 80)
    guards = ratios.guards_of(rig, -0.01, whole.wrong)
    assert guards.with_guards == whole.wrong
    assert guards.with_guards.times <= 1
    assert guards.without_guards.times >= 3
    assert guards.with_guards.times <= guards.drift_not_told.times <= guards.without_guards.times
    assert guards_correlation()


# Limits.


def cell(rig: str, off: float, wrong: Share, mean_drive_s: float = 5.0) -> Cell:
    reasons = {"marginal": 0.0, "budget": 0.0, "void": 0.0}
    return Cell(rig, off, "miss", wrong, reasons, mean_drive_s, 130.0, share(100, 1000))


GOOD = [
    *(cell("quiet", off, share(0, 1000), cost) for off, cost in ((0.2, 13.0), (-0.1, 26.0))),
    cell("noisy", 0.05, share(3, 1000), 110.0),
    cell("noisy", 0.01, share(30, 1000), 130.0),
]
SHY = cell("quiet", 0.2, share(0, 1000), 8.0)
NEEDED = Guards("noisy", 0.05, share(0, 1000), share(20, 1000), share(5, 1000))


@pytest.mark.parametrize(
    ("cells", "guards", "missed"),
    [
        (GOOD, [NEEDED], []),
        ([*GOOD, cell("disk", -0.05, share(4, 1000))], [NEEDED], ["wrong"]),
        ([*GOOD, cell("disk", -0.05, share(0, 100))], [NEEDED], ["wrong"]),
        ([*GOOD, cell("quiet", -0.2, share(0, 1000), 13.1)], [NEEDED], ["quiet_mean_drive_s"]),
        ([*GOOD, cell("quiet", 0.1, share(0, 1000), 26.1)], [NEEDED], ["quiet_mean_drive_s"]),
        ([*GOOD, cell("disk", 0.1, share(0, 1000), 60.0)], [NEEDED], []),
        ([*GOOD, replace(SHY, inconclusive={"budget": 0.01, "void": 0.0})], [NEEDED], []),
        (
            [*GOOD, replace(SHY, inconclusive={"budget": 0.01, "void": 0.001})],
            [NEEDED],
            ["quiet_inconclusive"],
        ),
        ([*GOOD, replace(SHY, rig="disk", inconclusive={"budget": 1.0})], [NEEDED], []),
        (GOOD, [replace(NEEDED, without_guards=share(5, 1000))], ["guards_are_needed"]),
    ],
)
def test_each_limit_is_missed_by_what_is_over_it(
    cells: Sequence[Cell], guards: Sequence[Guards], missed: list[str]
) -> None:
    assert [name for name, kept in limits_kept(cells, guards).items() if not kept] == missed


def test_the_limits_are_a_tenth_and_a_fifth_of_two_long_runs() -> None:
    assert TWO_RUNS_S == 130.0
    assert ratios.QUIET_COST_LIMITS_S == {0.2: 13.0, 0.1: 26.0}


def test_the_benchmark_is_one_json_object_and_too_few_runs_prove_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = json.loads(json.dumps(ratios.measure(runs=2)))
    said = capsys.readouterr().err.splitlines()  # for it takes minutes
    assert (said[0], len(said)) == ("quiet, +5%: 2 claims", 3 * 8 + 2 * 4)
    assert figures["claims_a_cell"] == 2
    assert {each["rig"] for each in figures["cells"]} == {"quiet", "noisy", "disk"}
    assert len(figures["cells"]) == 3 * 8
    assert len(figures["guards"]) == 2 * 4
    assert figures["noise"]["noisy"]["drift"] == NOISY.drift
    assert figures["within_limits"] is False
    assert figures["limits_kept"]["wrong"] is False
    assert figures["limits_kept"]["quiet_mean_drive_s"] is True
