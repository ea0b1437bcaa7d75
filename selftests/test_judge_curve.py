"""Curves: what the screen picks, what confirming decides, and what it costs."""

import random
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from leadline.claims import ClaimFailed, Unsettled
from leadline.depth_curve import whole_curve
from leadline.load.slices import LITTLES_LAW, TOO_SHORT, Slice, SliceSetting
from leadline.load.workload import Workload
from leadline.verdict.verdict import Outcome
from selftests.slice_drive import SliceDrive
from selftests.test_judge import judged

DEPTHS = range(1, 33)
CHANNELS = 8


def healthy(depth: int) -> float:
    """A drive of eight channels whose rate bends softly into its best one."""
    return 1000 * CHANNELS * depth / (depth + CHANNELS - 1)


def drive(*, seed: int = 1, changed: Mapping[int, float] | None = None) -> SliceDrive:
    """A healthy drive, but at some depths for a share of the rate: `{19: 0.92}`."""
    rates = {depth: healthy(depth) * (changed or {}).get(depth, 1.0) for depth in DEPTHS}
    return SliceDrive(rates, chance=random.Random(seed))


@pytest.mark.parametrize("seed", range(5))
def test_a_healthy_curve_is_clean(seed: int) -> None:
    reads, kept = judged(drive(seed=seed))
    assert reads.curve().has_no_dip()
    (verdict,) = kept.verdicts
    assert verdict.unit == "triple"
    assert verdict.drive_seconds <= 32 * 65 / 15
    assert "knee at depth" in verdict.notes[-2]


def test_the_knee_is_told_against_the_channels_of_the_model() -> None:
    reads, kept = judged(drive())
    assert replace(reads, channels=CHANNELS).curve().does_not_collapse()
    assert f"within 50% of the {CHANNELS} channels" in kept.verdicts[0].notes[-2]


@pytest.mark.parametrize("depth", [3, 13, 19, 29])
def test_a_dip_of_8_percent_is_found_and_named(depth: int) -> None:
    reads, kept = judged(drive(changed={depth: 0.92}))
    with pytest.raises(ClaimFailed) as failure:
        assert reads.curve().has_no_dip()
    assert str(failure.value).startswith(f"FAIL: dip at depth {depth}: random_read.curve(")
    assert f"depth {depth} against {depth - 1} and {depth + 1}" in str(failure.value)
    chord = (healthy(depth - 1) + healthy(depth + 1)) / 2
    assert kept.verdicts[0].estimate == pytest.approx(0.92 * healthy(depth) / chord, abs=0.02)


@pytest.mark.parametrize("offered", [64, 128])
def test_a_curve_with_as_many_offered_at_every_depth_is_measured_so(offered: int) -> None:
    """The dip of the published sweep, under its own load."""
    reads, kept = judged(drive(changed={19: 0.92}))
    with pytest.raises(ClaimFailed, match=f"dip at depth 19: .*, offered={offered}"):
        assert reads.curve(offered=offered).has_no_dip()
    assert {measured.setting.offered_depth for _, measured in kept.slices} == {offered}


def test_screening_picks_and_confirming_decides_on_slices_measured_afresh() -> None:
    reads, kept = judged(drive(changed={19: 0.92}))
    with pytest.raises(ClaimFailed):
        assert reads.curve().has_no_dip()
    sides = [side for side, _ in kept.slices]
    screened = [side for side in sides if side.startswith("screen ")]
    assert len(screened) % len(DEPTHS) == 0
    fresh = sides[len(screened) :]
    assert set(fresh) == {"below", "at", "above"}
    assert kept.verdicts[0].count == len(fresh) / 3


def test_one_sweep_serves_both_claims_of_a_curve() -> None:
    reads, kept = judged(drive())
    assert reads.curve().has_no_dip()
    dip = len(kept.slices)
    assert reads.curve().does_not_collapse()
    assert {side for side, _ in kept.slices[dip:]} == {"last", "best"}
    (told,) = [note for note in kept.verdicts[1].notes if note.startswith("the sweep")]
    assert told.startswith("the sweep, which another claim paid for: knee at depth ")
    assert kept.verdicts[1].drive_seconds == pytest.approx(0.5 * (len(kept.slices) - dip))


def test_a_sweep_of_another_curve_serves_no_claim() -> None:
    reads, kept = judged(drive())
    assert reads.curve().has_no_dip()
    dip = len(kept.slices)
    assert reads.curve(offered=64).does_not_collapse()
    assert any(side.startswith("screen ") for side, _ in kept.slices[dip:])


def test_one_dip_that_is_confirmed_is_enough() -> None:
    """The others are not paid for: the claim has failed."""
    reads, kept = judged(drive(changed={7: 0.85, 19: 0.85, 27: 0.85}))
    with pytest.raises(ClaimFailed):
        assert reads.curve().has_no_dip()
    confirmed = {measured.setting.device_depth for side, measured in kept.slices if side == "at"}
    assert len(confirmed) == 1


class Unlucky(SliceDrive):
    """At depth 7 the screen sees less than there is."""

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        measured = super().measure(workload, settings)
        if len(settings) < len(DEPTHS):
            return measured
        return [
            replace(each, rate=0.9 * each.rate) if each.setting.device_depth == 7 else each
            for each in measured
        ]


def test_a_suspect_that_is_marginal_hides_no_dip_behind_it() -> None:
    chord = (healthy(6) + healthy(8)) / 2
    rates = {depth: healthy(depth) for depth in DEPTHS}
    rates |= {7: 0.958 * chord, 20: 0.92 * healthy(20)}
    reads, kept = judged(Unlucky(rates, noise=0.003))
    with pytest.raises(ClaimFailed, match="FAIL: dip at depth 20"):
        assert reads.curve().has_no_dip()
    confirmed = [measured.setting.device_depth for side, measured in kept.slices if side == "at"]
    assert list(dict.fromkeys(confirmed)) == [7, 20]


def test_where_no_dip_is_behind_it_a_marginal_suspect_leaves_the_curve_marginal() -> None:
    rates = {depth: healthy(depth) for depth in DEPTHS}
    rates[7] = 0.958 * (healthy(6) + healthy(8)) / 2
    reads, kept = judged(Unlucky(rates, noise=0.003))
    with pytest.raises(Unsettled, match="marginal"):
        assert reads.curve().has_no_dip()
    assert "depth 7 against 6 and 8" in kept.verdicts[0].notes


def test_each_place_of_a_triple_comes_first_as_often() -> None:
    """What a slice leaves behind for the next one falls on all three alike."""
    dipping = drive(changed={19: 0.92})
    reads, kept = judged(dipping)
    with pytest.raises(ClaimFailed):
        assert reads.curve().has_no_dip()
    fresh = [setting.device_depth for setting in dipping.settings[-3 * kept.verdicts[0].count :]]
    firsts = [fresh[start] for start in range(0, len(fresh), 3)]
    assert {depth: firsts[:3].count(depth) for depth in (18, 19, 20)} == {18: 1, 19: 1, 20: 1}


def test_a_drive_that_collapses_at_its_last_depth() -> None:
    reads, _ = judged(drive(changed={32: 0.7}))
    with pytest.raises(ClaimFailed, match=r"depth 32 against \d+, the best one"):
        assert reads.curve().does_not_collapse(within=0.1)
    reads, _ = judged(drive())
    assert reads.curve().does_not_collapse(within=0.1)


@pytest.mark.parametrize("last", [5, 12, 24, 31])
def test_a_collapse_is_told_by_the_depth_above_which_the_rate_is_lost(last: int) -> None:
    lower = dict.fromkeys(range(last + 1, 33), 0.4)
    reads, kept = judged(drive(changed=lower))
    with pytest.raises(ClaimFailed, match=rf"^FAIL: collapses above depth {last}: random_read"):
        assert reads.curve().does_not_collapse(within=0.1)
    assert kept.verdicts[0].cause == f"collapses above depth {last}"


DEEP = whole_curve(128)
"""The depths of a SAS drive: they lie further and further apart from 32 on."""


def deep_drive(changed: Mapping[int, float]) -> SliceDrive:
    rates = {depth: healthy(depth) * changed.get(depth, 1.0) for depth in DEEP}
    return SliceDrive(rates, chance=random.Random(1))


def test_a_collapse_past_32_is_seen_on_a_drive_that_holds_more() -> None:
    reads, kept = judged(deep_drive(dict.fromkeys((80, 96, 128), 0.4)))
    with pytest.raises(ClaimFailed, match=r"depth 128 against 64, the best one"):
        assert replace(reads, full_depth=128).curve().does_not_collapse(within=0.1)
    assert kept.verdicts[0].cause == "collapses above depth 64"


def test_a_curve_with_128_offered_says_from_where_to_where_it_waited_in_the_host() -> None:
    reads, kept = judged(replace(drive(), counted=True))
    assert reads.curve(offered=128).has_no_dip()
    waited = [note for note in kept.verdicts[0].notes if note.startswith("waited in the host")]
    assert len(waited) == 1


def test_a_curve_is_clean_where_its_depths_lie_apart() -> None:
    """The chord is taken where the depth lies: by the mean of 31 and 40, 32 would be a dip."""
    rates = {depth: 1000.0 * min(depth, 64) for depth in DEEP}
    assert rates[32] < 0.92 * (rates[31] + rates[40]) / 2
    reads, _ = judged(SliceDrive(rates, chance=random.Random(1)))
    assert replace(reads, full_depth=128).curve().has_no_dip()


@pytest.mark.parametrize(("depth", "below", "above"), [(32, 31, 40), (40, 32, 48), (96, 80, 128)])
def test_a_dip_is_found_where_depths_lie_apart(depth: int, below: int, above: int) -> None:
    reads, _ = judged(deep_drive({depth: 0.92}))
    with pytest.raises(ClaimFailed, match=rf"depth {depth} against {below} and {above}") as failure:
        assert replace(reads, full_depth=128).curve().has_no_dip()
    assert str(failure.value).startswith(f"FAIL: dip at depth {depth}: ")


def test_a_few_depths_are_a_curve_too() -> None:
    rates = {depth: healthy(depth) for depth in (1, 4, 8, 16)}
    reads, _ = judged(SliceDrive(rates))
    assert reads.curve(sorted(rates)).has_no_dip()


def test_a_drive_whose_slices_do_not_count_voids_the_curve() -> None:
    spoilt = drive()
    spoilt.spoil = LITTLES_LAW
    reads, kept = judged(spoilt)
    with pytest.raises(Unsettled, match=LITTLES_LAW):
        assert reads.curve().has_no_dip()
    (verdict,) = kept.verdicts
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")
    assert verdict.drive_seconds > 0


def test_slices_are_lengthened_at_the_depths_that_need_it() -> None:
    """At depth 32 the queue of a slow drive takes long to turn over five times."""
    reads, kept = judged(SliceDrive({depth: healthy(depth) / 40 for depth in DEPTHS}))
    assert reads.curve().has_no_dip()
    lengths = {
        measured.setting.device_depth: measured.setting.seconds for _, measured in kept.slices
    }
    assert lengths[32] > 2 * lengths[2]


@pytest.mark.parametrize("claim", ["dip", "collapse"])
def test_what_is_measured_afresh_is_as_long_as_it_had_to_be_in_the_screen(claim: str) -> None:
    """Shorter slices would count for nothing, and the screen has spent the budget."""
    slow = drive(changed={19: 0.6, 32: 0.3} if claim == "collapse" else {19: 0.6})
    slow.rates = {depth: rate / 12 for depth, rate in slow.rates.items()}
    reads, kept = judged(slow, budget_s=8.0)
    with pytest.raises(ClaimFailed, match=claim):
        if claim == "dip":
            assert reads.curve().has_no_dip()
        else:
            assert reads.curve().does_not_collapse()
    sides = {"below", "at", "above", "last", "best"}
    afresh = [measured for side, measured in kept.slices if side in sides]
    assert afresh
    assert all(measured.clean for measured in afresh)


def test_a_drive_too_slow_for_any_slice_voids_the_curve() -> None:
    reads, kept = judged(SliceDrive({depth: healthy(depth) / 1e5 for depth in DEPTHS}))
    with pytest.raises(Unsettled, match=TOO_SHORT):
        assert reads.curve().has_no_dip()
    assert {measured.setting.seconds for _, measured in kept.slices} == {0.5}


def test_a_screen_that_runs_out_of_passes_says_so_and_asks_for_no_drive_time() -> None:
    reads, kept = judged(SliceDrive({1: 1000, 8: 7000, 32: 8000}, noise=0.2))
    with pytest.raises(Unsettled) as failure:
        assert reads.curve([1, 8, 32]).has_no_dip()
    headline = str(failure.value).splitlines()[0]
    assert "INCONCLUSIVE (budget)" in headline
    assert "48 passes, and it takes no more" in headline
    assert "--drive-time" not in str(failure.value)
    assert kept.verdicts[0].drive_seconds < 2080 / 10


def test_a_screen_that_runs_out_of_drive_time_says_what_would_do() -> None:
    """And the option counts sixteenfold."""
    noisy = drive()
    noisy.noise = 0.06
    reads, _ = judged(noisy, budget_s=8.0)
    with pytest.raises(Unsettled) as failure:
        assert reads.curve().has_no_dip()
    assert "raise it with --drive-time" in str(failure.value)
    found = re.search(r"about (\d+) s would settle it \(--drive-time (\d+); a", str(failure.value))
    assert found
    assert int(found[1]) == 16 * int(found[2])
    assert int(found[1]) > 16 * 8


def test_a_screen_that_runs_out_of_drive_time_is_priced_though_all_suspects_are_cleared() -> None:
    concave = SliceDrive({1: 1000, 8: 7000, 32: 8000}, noise=0.07)
    reads, kept = judged(concave, budget_s=0.5)
    with pytest.raises(Unsettled) as failure:
        assert reads.curve([1, 8, 32]).has_no_dip()
    assert any(note.startswith("so noisy was the sweep") for note in kept.verdicts[0].notes)
    found = re.search(r"about (\d+) s would settle it \(--drive-time (\d+); a", str(failure.value))
    assert found
    reads, _ = judged(concave, budget_s=2 * float(found[2]))
    assert reads.curve([1, 8, 32]).has_no_dip()


@pytest.mark.parametrize(
    ("tolerance", "fewest", "most"), [(0.1, 2, 2), (0.04, 2, 7), (0.02, 9, 21)]
)
def test_the_screen_sees_as_far_as_the_claim_asks(tolerance: float, fewest: int, most: int) -> None:
    """Too short a screen would leave a claim of small dips open, a long one costs drive time."""
    noisy = drive()
    noisy.noise = 0.03
    reads, kept = judged(noisy)
    with suppress(ClaimFailed, Unsettled):
        assert reads.curve().has_no_dip(tolerance)
    passes = sum(side == "screen 1" for side, _ in kept.slices)
    assert fewest <= passes <= most
    assert not any(note.startswith("so noisy was") for note in kept.verdicts[0].notes)
