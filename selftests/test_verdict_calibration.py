"""A rig's noise from A/A pairs: that it covers the truth, and not by much."""

import math
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest

from bench.noise import DISK, NOISY, QUIET, NoiseModel
from leadline.verdict.calibration import DRIFT_CAP, DRIFT_FLOOR, Session, drift_bound, rig_noise
from leadline.verdict.sessions import session_spread
from selftests.calibrated import simulated

SILENT = replace(
    QUIET, **{each.name: 0.0 for each in fields(NoiseModel) if not each.name.endswith("_s")}
)
RUNS = 100


def session(
    contrasts: list[float], aa: list[float], *, apart: float = 2.0, rate: float = 100.0
) -> Session:
    """Blocks of such log ratios of deep over shallow, and of such A/A log ratios at both."""
    blocks = []
    for ratio, same in zip(contrasts, aa, strict=True):
        deep, half = rate * math.exp(ratio), math.exp(0.5 * same)
        blocks.append((deep * half, deep / half, rate * half, rate / half))
    return Session(blocks, [k * apart for k in range(len(blocks))], 2.0)


def normal(count: int, sd: float, seed: int = 1) -> list[float]:
    values: list[float] = (sd * np.random.default_rng(seed).standard_normal(count)).tolist()
    return values


@pytest.mark.parametrize(
    ("model", "slice_s"), [(QUIET, 0.5), (NOISY, 0.5), (DISK, 1.0)], ids=["quiet", "noisy", "disk"]
)
def test_a_minute_covers_the_true_drift_mostly_and_is_about_twice_it_at_most(
    model: NoiseModel, slice_s: float
) -> None:
    bounds = [drift_bound([simulated(model, seed, slice_s=slice_s)]) for seed in range(RUNS)]
    over = np.array(bounds) / model.drift
    assert float((over >= 1.0).mean()) >= 0.8
    assert 1.3 < float(np.median(over)) < 2.0
    assert float((over > 3.0).mean()) <= 0.1


def test_more_seconds_and_more_sessions_say_more() -> None:
    """And a session that is short against the drift's time knows little, and says so."""
    model = replace(SILENT, jitter=0.01, drift=0.03)

    def typical(measured: Callable[[int], list[Session]]) -> float:
        return float(np.median([drift_bound(measured(seed)) for seed in range(20)]))

    short = typical(lambda seed: [simulated(model, seed, seconds=16.0)])
    minute = typical(lambda seed: [simulated(model, seed)])
    long = typical(lambda seed: [simulated(model, seed, seconds=180.0)])
    pooled = typical(lambda seed: [simulated(model, 3 * seed + k) for k in range(3)])
    assert short > 1.2 * minute
    assert 0.03 < long < 0.9 * minute
    assert 0.03 < pooled < 0.9 * minute


def test_independent_noise_is_pair_sd_and_hardly_any_drift() -> None:
    noise = rig_noise([simulated(replace(SILENT, jitter=0.01), 1, seconds=400.0)])
    assert noise.pair_sd == pytest.approx(0.02, rel=0.15)
    assert noise.correlation < 0.2
    assert noise.sigma_d < 0.005
    assert noise.pairs == 400
    assert noise.seconds == pytest.approx(400.0)


def test_what_drifts_with_a_setting_is_drift_though_no_pair_shows_it() -> None:
    noise = rig_noise([simulated(replace(SILENT, drift=0.03), 1)])
    assert noise.pair_sd < 0.012
    assert noise.sigma_d > 0.02


def test_what_all_settings_share_is_no_drift_of_their_ratio() -> None:
    assert rig_noise([simulated(replace(SILENT, wander=0.1), 1)]).sigma_d < 0.01


def test_blocks_that_differ_by_more_than_their_pairs_do_drift() -> None:
    """So far apart in time, drift looks like noise: only the A/A pairs tell the two apart."""
    steady = drift_bound([session(normal(60, 0.0141), normal(60, 0.02, 2), apart=1e3)])
    drifting = drift_bound([session(normal(60, 0.03), normal(60, 0.002, 2), apart=1e3)])
    assert steady < 0.011
    assert 0.03 < drifting < 0.05


def test_the_noisier_setting_counts() -> None:
    quiet = session([2.0] * 20, normal(20, 0.01))
    blocks = [(a, b, c, c * (a / b) ** 3) for a, b, c, _ in quiet.blocks]
    noise = rig_noise([quiet])
    assert rig_noise([replace(quiet, blocks=blocks)]).pair_sd == pytest.approx(3 * noise.pair_sd)


def test_a_rig_without_any_noise_is_not_believed() -> None:
    noise = rig_noise([session([2.0] * 20, [0.0] * 20)])
    assert noise.sigma_d == DRIFT_FLOOR
    assert noise.pair_sd == pytest.approx(0.0, abs=1e-12)


def test_a_rig_that_measures_nothing_is_at_the_cap() -> None:
    assert drift_bound([session(normal(20, 4.0), normal(20, 0.01))]) == DRIFT_CAP


def test_only_ratios_count_and_not_which_depth_is_the_faster() -> None:
    measured = simulated(NOISY, 3)
    turned = [(9 * c, 9 * d, 9 * a, 9 * b) for a, b, c, d in measured.blocks]
    here, there = rig_noise([measured]), rig_noise([replace(measured, blocks=turned)])
    assert there.sigma_d == pytest.approx(here.sigma_d, rel=1e-4)
    assert there.pair_sd == pytest.approx(here.pair_sd)


def test_the_spread_between_sessions_is_that_of_the_less_steady_depth() -> None:
    steady = session([2.0] * 10, [0.0] * 10)
    deeper = session([2.1] * 10, [0.0] * 10)
    faster = session([2.0] * 10, [0.0] * 10, rate=101.0)
    assert rig_noise([steady]).sigma_session is None
    rates = [100 * math.exp(2.0), 100 * math.exp(2.1), 101 * math.exp(2.0)]
    noise = rig_noise([steady, deeper, faster])
    assert noise.sigma_session == pytest.approx(session_spread(rates))
    assert noise.sigma_session_deep == noise.sigma_session
    assert noise.pairs == 60


def test_the_deep_setting_has_a_spread_of_its_own() -> None:
    """Of requests one at a time there are few in a slice: its rates differ more for that alone."""
    once = session([2.0] * 10, [0.0] * 10)
    again = [
        replace(once, blocks=[(a, b, c * k, d * k) for a, b, c, d in once.blocks])
        for k in (1.01, 0.99)
    ]
    noise = rig_noise([once, *again])
    assert noise.sigma_session == pytest.approx(session_spread([1.0, 1.01, 0.99]))
    assert noise.sigma_session_deep == pytest.approx(0.0, abs=1e-12)
    assert rig_noise([once]).sigma_session_deep is None


FINE = session([2.0] * 10, [0.0] * 10)


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (replace(FINE, blocks=FINE.blocks[:7]), "7 block"),
        (replace(FINE, starts=FINE.starts[:9]), "10 blocks and 9 times"),
        (replace(FINE, starts=[0.0] * 10), "block 1: began at 0.0"),
        (replace(FINE, starts=[math.nan] * 10), "block 0: began at nan"),
        (replace(FINE, block_seconds=0.0), "a block of 0.0 s"),
        (replace(FINE, blocks=[*FINE.blocks[:9], (1.0, 1.0, 0.0, 1.0)]), "block 9: a rate of"),
        (replace(FINE, blocks=[*FINE.blocks[:9], (1.0, math.nan, 1.0, 1.0)]), "block 9: a rate"),
    ],
)
def test_what_cannot_be_is_refused_by_place(spoilt: Session, said: str) -> None:
    with pytest.raises(ValueError, match=f"session 1.*{said}"):
        rig_noise([FINE, spoilt])


def test_no_session_is_no_calibration() -> None:
    with pytest.raises(ValueError, match="no session"):
        rig_noise([])
