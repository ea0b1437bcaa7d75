"""Screening a depth curve: what is suspected, what is not, and how long it goes on."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from leadline.verdict.curve import (
    CONCAVE_FROM,
    DIP_TOLERANCE,
    MOST_PASSES,
    SURE,
    Suspect,
    Sweep,
    another_pass,
    collapse_depths,
    contrast_of,
    fewest_passes,
    last_that_keeps,
    least_dip,
    pass_order,
    plan_passes,
    sees_dips,
    slice_spread,
    suspects,
    sweep_of,
    to_confirm,
)

SWEEPS = Path(__file__).parents[2] / "shared" / "realdata" / "fio_json"

depth_sets = st.lists(st.integers(1, 256), min_size=3, max_size=33, unique=True).map(sorted)


@st.composite
def concave_curves(draw: st.DrawFn) -> dict[int, float]:
    """Curves whose slopes never rise: they may rise, saturate and fall."""
    depths = draw(depth_sets)
    slopes = st.lists(st.floats(-1.0, 10.0), min_size=len(depths) - 1, max_size=len(depths) - 1)
    rate = draw(st.floats(1.0, 100.0))
    curve = {depths[0]: rate}
    steps = zip(depths, depths[1:], sorted(draw(slopes), reverse=True), strict=False)
    for below, depth, slope in steps:
        rate += slope * (depth - below)
        curve[depth] = rate
    assume(all(each > 0.01 for each in curve.values()))
    return curve


@st.composite
def noisy_sweeps(draw: st.DrawFn) -> list[list[tuple[int, float]]]:
    """Passes over any depths, with any rates."""
    depths = draw(depth_sets)
    rates = st.floats(50.0, 200.0)
    count = draw(st.integers(2, 4))
    return [[(depth, draw(rates)) for depth in depths] for _ in range(count)]


def flat(depths: range = range(1, 33), passes: int = 3, rate: float = 1000.0) -> Sweep:
    return Sweep(dict.fromkeys(depths, (rate,) * passes))


def noisy(spread: float, passes: int, *, dip: float = 0.0, seed: int = 1) -> Sweep:
    """A curve that saturates at 8, measured with noise, and a dip at 19."""
    chance = random.Random(seed)
    truth = {depth: 100.0 * min(depth, 8) for depth in range(1, 33)}
    truth[19] *= 1.0 - dip
    order = [(depth, rate) for depth, rate in truth.items() for _ in range(passes)]
    rates: dict[int, list[float]] = {}
    for depth, rate in order:
        rates.setdefault(depth, []).append(rate * chance.lognormvariate(0.0, spread))
    return Sweep({depth: tuple(values) for depth, values in rates.items()})


def test_contrast_is_the_log_of_a_rate_over_the_mean_of_its_neighbours() -> None:
    assert contrast_of(100.0, 138.0, 200.0) == pytest.approx(math.log(0.92))


def test_between_uneven_neighbours_the_chord_is_a_straight_line() -> None:
    sweep = Sweep({1: (100.0,), 2: (200.0,), 4: (250.0,), 16: (600.0,)})
    (found,) = suspects(sweep, 0.02)
    # Two of the fourteen steps from 2 to 16: the line is at 200 + 400/7.
    assert (found.depth, found.below, found.above) == (4, 2, 16)
    assert found.contrast == pytest.approx(math.log(250 / (200 + 400 / 7)))


ARM = {1: 65.6, 2: 75.2, 3: 99.0, 4: 122.9, 8: 141.2}
"""What a disk does: the first three of a WD740GD as recorded, but for depth 3, halfway."""


@pytest.mark.parametrize(("at_two", "dips"), [(75.2, []), (62.0, [2])])
def test_a_single_arm_has_nothing_to_choose_from_at_depth_2(at_two: float, dips: list[int]) -> None:
    passes = [list((ARM | {2: at_two}).items())]
    assert 2 in [each.depth for each in suspects(sweep_of(passes))], "eight channels are slow so"
    of_disk = sweep_of(passes, CONCAVE_FROM["hdd"])
    assert [each.depth for each in suspects(of_disk)] == dips
    assert all(each.by_below == (each.depth == 2) for each in to_confirm(of_disk))


def test_a_curve_that_is_concave_later_on_has_its_chords_from_there() -> None:
    """At 4 the neighbour below is 1, at 8 it is 4."""
    sweep = sweep_of([[(1, 100.0), (4, 98.0), (8, 280.0), (16, 700.0)]], 2)
    found = {each.depth: each for each in suspects(sweep, 0.01)}
    assert found[4].contrast == pytest.approx(math.log(0.98))
    assert found[8].contrast == pytest.approx(math.log(280 / (98 + 602 / 3)))


@given(concave_curves())
def test_a_concave_curve_without_noise_yields_no_suspect(curve: dict[int, float]) -> None:
    sweep = Sweep({depth: (rate, rate) for depth, rate in curve.items()})
    assert suspects(sweep) == ()
    (lowest,) = to_confirm(sweep)
    assert lowest.contrast >= -1e-9


@given(concave_curves(), st.data())
def test_a_dip_of_eight_percent_without_noise_is_always_the_first_suspect(
    curve: dict[int, float], data: st.DataObject
) -> None:
    depths = sorted(curve)
    place = data.draw(st.integers(1, len(depths) - 2))
    below, depth, above = depths[place - 1 : place + 2]
    share = (depth - below) / (above - below)
    curve[depth] = 0.92 * ((1 - share) * curve[below] + share * curve[above])
    sweep = Sweep({depth: (rate, rate) for depth, rate in curve.items()})
    assert [each.depth for each in suspects(sweep)] == [depth]
    assert to_confirm(sweep)[0].contrast == pytest.approx(math.log(0.92))


def test_deepest_dip_comes_first() -> None:
    rates = dict.fromkeys(range(1, 20), 1000.0) | {5: 900.0, 12: 700.0, 16: 950.0}
    sweep = Sweep({depth: (rate,) for depth, rate in rates.items()})
    assert [each.depth for each in suspects(sweep)] == [12, 5, 16]
    assert [each.depth for each in suspects(sweep, 0.06)] == [12, 5]


@pytest.mark.parametrize(("dip", "suspected"), [(0.039, False), (0.041, True)])
def test_the_tolerance_is_the_limit(dip: float, suspected: bool) -> None:
    rates = dict.fromkeys(range(1, 9), 1000.0) | {4: 1000.0 * (1 - dip)}
    sweep = Sweep({depth: (rate,) for depth, rate in rates.items()})
    assert bool(suspects(sweep)) == suspected


def test_without_suspects_the_lowest_contrast_is_confirmed() -> None:
    rates = dict.fromkeys(range(1, 9), 1000.0) | {6: 990.0}
    sweep = Sweep({depth: (rate,) for depth, rate in rates.items()})
    assert [each.depth for each in to_confirm(sweep)] == [6]


@given(noisy_sweeps(), st.sampled_from([0.001, 3.0, 1e6]))
def test_scaling_all_rates_changes_nothing(
    passes: list[list[tuple[int, float]]], scale: float
) -> None:
    here = sweep_of(passes)
    there = sweep_of([[(depth, rate * scale) for depth, rate in each] for each in passes])
    assert least_dip(there) == pytest.approx(least_dip(here))
    assert collapse_depths(there)[0] == collapse_depths(here)[0]
    contrasts = {each.depth: each.contrast for each in suspects(here)}
    scaled = {each.depth: each.contrast for each in suspects(there)}
    for depth in contrasts.keys() ^ scaled.keys():  # at the very limit, rounding decides
        contrast = contrasts.get(depth, scaled.get(depth))
        assert contrast == pytest.approx(math.log1p(-DIP_TOLERANCE))
    for depth in contrasts.keys() & scaled.keys():
        assert scaled[depth] == pytest.approx(contrasts[depth])


@given(noisy_sweeps(), st.randoms())
def test_neither_the_order_of_passes_nor_that_within_them_matters(
    passes: list[list[tuple[int, float]]], chance: random.Random
) -> None:
    here = sweep_of(passes)
    shuffled = [chance.sample(each, len(each)) for each in chance.sample(passes, len(passes))]
    there = sweep_of(shuffled)
    assert suspects(there) == suspects(here)
    assert to_confirm(there) == to_confirm(here)
    assert collapse_depths(there) == collapse_depths(here)
    assert another_pass(there) == another_pass(here)
    assert slice_spread(there) == pytest.approx(slice_spread(here))


def test_pass_order_is_random_and_repeats_from_its_seed() -> None:
    depths = range(1, 33)
    first = pass_order(depths, 7, 0)
    assert sorted(first) == list(depths)
    assert pass_order(list(reversed(depths)), 7, 0) == first
    orders = {pass_order(depths, seed, number) for seed in range(5) for number in range(5)}
    assert len(orders) == 25
    # On record: another order would make old runs unrepeatable.
    assert pass_order([1, 2, 4, 8, 16, 32], 7, 0) == (4, 16, 32, 2, 1, 8)


def test_pass_order_favours_no_depth() -> None:
    firsts = [pass_order(range(1, 5), seed, 0)[0] for seed in range(2000)]
    for depth in range(1, 5):
        assert 400 < firsts.count(depth) < 600


def test_spread_is_that_of_slices_without_what_depths_and_passes_share() -> None:
    chance = random.Random(3)
    steady = noisy(0.02, 40)
    assert slice_spread(steady) == pytest.approx(0.02, rel=0.05)
    shifts = [chance.lognormvariate(0.0, 0.3) for _ in range(40)]
    moved = Sweep(
        {
            depth: tuple(rate * shift for rate, shift in zip(rates, shifts, strict=True))
            for depth, rates in steady.rates.items()
        }
    )
    assert slice_spread(moved) == pytest.approx(slice_spread(steady))


def test_plan_follows_the_noise_of_the_pilot() -> None:
    tolerated, contrast = -math.log1p(-DIP_TOLERANCE), 0.05 * math.sqrt(1.5)
    assert plan_passes(0.05, 32) == math.ceil((SURE * contrast / tolerated) ** 2)
    assert plan_passes(0.05, 32) * 4 == pytest.approx(plan_passes(0.10, 32), abs=4)
    assert plan_passes(0.05, 32, 0.08) < plan_passes(0.05, 32)
    assert plan_passes(0.0, 32) == fewest_passes(32) == 2
    assert plan_passes(1.0, 32) == MOST_PASSES


def test_few_depths_need_more_passes_before_their_spread_is_believed() -> None:
    assert [fewest_passes(count) for count in (3, 6, 16, 17, 32)] == [9, 4, 2, 2, 2]
    assert another_pass(flat(range(1, 4), passes=8))
    assert not another_pass(flat(range(1, 4), passes=9))


def test_one_pass_shows_nothing_for_sure() -> None:
    assert another_pass(flat(passes=1))
    assert least_dip(flat(passes=1)) == 1.0
    assert not sees_dips(flat(passes=1))


def test_passes_are_taken_until_the_screen_sees_dips() -> None:
    for spread in (0.004, 0.02, 0.05):
        counts = [count for count in range(2, MOST_PASSES) if another_pass(noisy(spread, count))]
        assert max(counts, default=1) + 1 == pytest.approx(plan_passes(spread, 32), rel=0.3, abs=1)


def test_a_hopeless_screen_ends_and_says_what_it_sees() -> None:
    sweep = noisy(0.3, MOST_PASSES)
    assert not another_pass(sweep)
    assert not sees_dips(sweep)
    assert 0.1 < least_dip(sweep) < 0.3


def test_a_screen_that_sees_dips_suspects_them_nearly_always() -> None:
    spread = 0.025
    passes = plan_passes(spread, 32)
    found = [
        19 in {each.depth for each in suspects(noisy(spread, passes, dip=0.08, seed=seed))}
        for seed in range(200)
    ]
    assert sum(found) >= 190


def test_collapse_is_asked_of_the_highest_depth_against_the_best() -> None:
    rates = {1: 100.0, 2: 200.0, 4: 400.0, 8: 800.0, 16: 780.0, 32: 300.0}
    sweep = Sweep({depth: (rate,) for depth, rate in rates.items()})
    assert collapse_depths(sweep) == (32, 8)


def test_the_best_depth_is_never_the_highest_itself() -> None:
    """A drive that still rises at its highest depth is held against the best before it."""
    sweep = Sweep({depth: (100.0 * depth,) for depth in range(1, 9)})
    assert collapse_depths(sweep) == (8, 7)


def test_the_depth_above_which_the_rate_is_lost() -> None:
    rates = {1: 100.0, 2: 200.0, 4: 400.0, 8: 800.0, 16: 730.0, 32: 300.0}
    sweep = Sweep({depth: (rate,) for depth, rate in rates.items()})
    assert last_that_keeps(sweep) == 16
    dipping = Sweep({**sweep.rates, 16: (400.0,)})
    assert last_that_keeps(dipping) == 8, "nearer to the last one's, which is as bad"
    rising = Sweep({depth: (100.0 * depth,) for depth in range(1, 9)})
    assert last_that_keeps(rising) == 7


def test_curve_is_the_geometric_mean_of_the_passes() -> None:
    sweep = sweep_of([[(4, 100.0), (2, 50.0), (1, 30.0)], [(1, 30.0), (2, 50.0), (4, 400.0)]])
    assert (sweep.depths, sweep.passes) == ((1, 2, 4), 2)
    assert sweep.curve == pytest.approx({1: 30.0, 2: 50.0, 4: 200.0})


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ({}, "0 depth"),
        ({1: (1.0,), 2: (1.0,)}, "2 depth.*at least three"),
        ({0: (1.0,), 1: (1.0,), 2: (1.0,)}, "depth 0: a depth is a whole number from 1"),
        ({-1: (1.0,), 1: (1.0,), 2: (1.0,)}, "depth -1"),
        ({1.5: (1.0,), 1: (1.0,), 2: (1.0,)}, "depth 1.5"),
        ({True: (1.0,), 2: (1.0,), 3: (1.0,)}, "depth True"),
        ({"8": (1.0,), 2: (1.0,), 3: (1.0,)}, "depth '8'"),
        ({1: (), 2: (), 3: ()}, "at least one pass"),
        ({1: (1.0,), 2: (1.0, 1.0), 3: (1.0,)}, "depth 1 has 1 rate.* depth 2 has 2"),
        ({1: (1.0,), 2: (0.0,), 3: (1.0,)}, "depth 2, pass 0: the rate is 0.0"),
        ({1: (1.0, 1.0), 2: (1.0, -3.0), 3: (1.0, 1.0)}, "depth 2, pass 1: the rate is -3"),
        ({1: (math.nan,), 2: (1.0,), 3: (1.0,)}, "the rate is nan"),
        ({1: (1.0,), 2: (1.0,), 3: (math.inf,)}, "the rate is inf"),
    ],
)
def test_what_is_no_sweep_is_refused_by_place(rates: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Sweep(rates)


def test_a_depth_twice_in_a_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="pass 1 has depth 2 twice"):
        sweep_of([[(1, 1.0), (2, 1.0), (3, 1.0)], [(1, 1.0), (2, 1.0), (2, 1.0), (3, 1.0)]])
    with pytest.raises(ValueError, match="depth 2 is there twice"):
        pass_order([1, 2, 2, 3], 0, 0)


def test_a_sweep_does_not_follow_what_it_was_made_from() -> None:
    rates: dict[int, tuple[float, ...]] = {4: (4.0,), 2: (2.0,), 1: (1.0,)}
    sweep = Sweep(rates)
    rates[8] = (0.0,)
    assert sweep.depths == (1, 2, 4)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -0.04, math.nan])
def test_a_tolerance_of_nothing_or_everything_is_refused(tolerance: float) -> None:
    for asked in (suspects, to_confirm, another_pass, least_dip):
        with pytest.raises(ValueError, match="tolerance is"):
            asked(flat(), tolerance)
    with pytest.raises(ValueError, match="tolerance is"):
        plan_passes(0.02, 32, tolerance)


def test_a_pilot_that_cannot_be_is_refused() -> None:
    for spread in (-0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="spread is"):
            plan_passes(spread, 32)
    with pytest.raises(ValueError, match="2 depth"):
        plan_passes(0.02, 2)
    with pytest.raises(ValueError, match="one pass only"):
        slice_spread(flat(passes=1))


@pytest.mark.parametrize(("below", "above"), [(4, 6), (5, 5), (3, 4)])
def test_a_suspect_lies_between_its_neighbours(below: int, above: int) -> None:
    with pytest.raises(ValueError, match="depth"):
        Suspect(4, below, above, -0.1)


def recorded(name: str) -> Sweep:
    """Random reads of a recorded sweep, one fio file a depth."""
    rates = {}
    for path in (SWEEPS / name).glob("randread-*-1.json"):
        text = path.read_text()
        (job,) = json.loads(text[text.index("{") :])["jobs"]
        rates[int(path.name.split("-")[1])] = (float(job["read"]["iops"]),)
    return Sweep(rates)


@pytest.mark.skipif(not SWEEPS.is_dir(), reason="recorded sweeps are not here")
@pytest.mark.parametrize(
    "name",
    [
        "AHCI_INTEL_D3-S4610",
        "AHCI_SAMSUNG_PM833_MZ7LH480",
        "SATA300_SAMSUNG_860PRO",
        "SATA_CRUCIAL250_RUN1",
        "USB_CRUCIAL_240GB",
    ],
)
def test_recorded_sweeps_of_healthy_ssds_yield_no_suspect(name: str) -> None:
    assert suspects(recorded(name)) == ()


@pytest.mark.skipif(not SWEEPS.is_dir(), reason="recorded sweeps are not here")
def test_a_recorded_sweep_that_falls_and_rises_is_suspected() -> None:
    """One run a depth on a disk, which did 123 at depth 1 and 61 at depth 2."""
    assert suspects(recorded("AHCI_HDD_WD740GD_RUN1"))[0].depth == 2
