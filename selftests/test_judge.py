"""The loop that settles a claim, on slices drawn from drives of known ratio."""

import itertools
import random
import re
from dataclasses import dataclass, field, replace

import pytest

from leadline.claims import Claim, ClaimFailed, Unsettled
from leadline.drive.finding import LINK_LIMIT
from leadline.evidence import FEWEST_BLOCKS
from leadline.expected import Limit
from leadline.judge import LONGEST_BATCH_S, SliceJudge
from leadline.load.slices import DRIVE_DEPTH, FIO_CPU, LITTLES_LAW, TOO_SHORT, Slice
from leadline.load.workload import Workload, random_read, sequential_read
from leadline.quantities import Load
from leadline.selection import CURVE_BUDGETS
from leadline.verdict.ratio import judge_ratio
from leadline.verdict.verdict import Outcome, Verdict
from selftests.slice_drive import SliceDrive


@dataclass
class Kept:
    """What the judge handed out to be kept."""

    slices: list[tuple[str, Slice]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    def rates(self, side: str) -> list[float]:
        """Of one side's slices, in order."""
        return [measured.rate for each, measured in self.slices if each == side]


def judged(drive: SliceDrive, budget_s: float = 130.0) -> tuple[Load, Kept]:
    kept = Kept()

    def keep_verdict(claim: Claim, verdict: Verdict, explanation: str) -> None:
        assert explanation.startswith(verdict.outcome)
        kept.verdicts.append(verdict)

    judge = SliceJudge(
        cell="bench-slot1",
        measure=drive.measure,
        keep_slice=lambda side, measured: kept.slices.append((side, measured)),
        keep_verdict=keep_verdict,
        slice_s=0.5,
        budget_s=budget_s,
        curve_budget_s=CURVE_BUDGETS * budget_s,
        repeat="leadline hil -k this",
    )
    return Load(random_read(), judge, full_depth=32), kept


@pytest.mark.parametrize("alone", [True, False])
def test_a_verdict_with_128_offered_says_how_much_waited_in_the_host(alone: bool) -> None:
    """Of several drives below an array one alone is counted, and nobody knows what waited."""
    reads, kept = judged(SliceDrive({8: 7000, 1: 1000}, counted=True))
    assert isinstance(reads.judge, SliceJudge)
    reads.judge.alone = alone
    assert reads.at(depth=8, offered=128) >= 3 * reads.at(depth=1, offered=128)
    said = "waited in the host: 127 of 128 at depth 1, 120 of 128 at depth 8 on average"
    assert (said in kept.verdicts[0].notes) is alone


def test_a_parallel_drive_passes_after_a_few_pairs() -> None:
    drive = SliceDrive({8: 7000, 1: 1000})
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (verdict,) = kept.verdicts
    assert verdict.outcome is Outcome.PASS
    assert verdict.estimate == pytest.approx(7, rel=0.05)
    assert verdict.drive_seconds <= 8
    assert len(kept.slices) == len(drive.settings)


def test_a_serialising_drive_fails_and_the_message_has_every_figure() -> None:
    reads, kept = judged(SliceDrive({8: 1400, 1: 1000}))
    with pytest.raises(ClaimFailed) as failure:
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    text = str(failure.value)
    assert "FAIL: not queueing: random_read.at(depth=8) >= 3 * random_read.at(depth=1)" in text
    for needed in ("bench-slot1", "ratio: 1.", "threshold: >= 3", "drive-seconds", "leadline hil"):
        assert needed in text
    assert kept.verdicts[0].high is not None
    assert kept.verdicts[0].high < 3


def test_the_explanation_has_quantities_without_factors_and_the_limits_source() -> None:
    reads, _ = judged(SliceDrive({8: 1400, 1: 1000}))
    with pytest.raises(ClaimFailed) as failure:
        assert reads.at(depth=8) >= Limit(3.0, "a_claim", "a source") * reads.at(depth=1)
    text = str(failure.value)
    assert "  random_read.at(depth=8): 14" in text
    assert "  random_read.at(depth=1): 1" in text
    assert "  threshold: >= 3 (a source)" in text


def test_the_verdict_is_what_the_statistics_say_of_all_pairs() -> None:
    reads, kept = judged(SliceDrive({8: 3300, 1: 1000}, noise=0.1))
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (verdict,) = kept.verdicts
    assert verdict.count > 20, "so that the time of a pair counts: see interval.drift_term"
    seconds = sum(measured.setting.seconds for _, measured in kept.slices)
    again = judge_ratio(
        kept.rates("left"),
        kept.rates("right"),
        3,
        ">=",
        pair_seconds=1.0,
        spent_s=seconds,
        budget_s=130.0,
    )
    assert replace(verdict, notes=()) == again
    assert "no calibration" in verdict.notes[-1]


def test_order_within_pairs_alternates_and_sides_are_not_mixed_up() -> None:
    drive = SliceDrive({8: 7000, 1: 1000})
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    depths = [setting.device_depth for setting in drive.settings[: 2 * FEWEST_BLOCKS]]
    assert depths == [8, 1, 1, 8] * (FEWEST_BLOCKS // 2)
    for side, measured in kept.slices:
        assert measured.setting.device_depth == (8 if side == "left" else 1)


def test_a_ratio_on_the_threshold_is_inconclusive_and_never_a_guess() -> None:
    reads, kept = judged(SliceDrive({8: 3000, 1: 1000}, noise=0.002))
    with pytest.raises(Unsettled, match=r"INCONCLUSIVE \((marginal|budget)\)"):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].drive_seconds <= 130 + 2 * FEWEST_BLOCKS


def test_the_budget_ends_it_and_what_would_do_is_said() -> None:
    drive = SliceDrive({8: 3300, 1: 1000}, noise=0.1)
    reads, kept = judged(drive, budget_s=8)
    with pytest.raises(Unsettled, match="--drive-time") as unsettled:
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (price,) = re.findall(
        r"about (\d+) s would settle it \(--drive-time \1\)", str(unsettled.value)
    )
    assert kept.verdicts[0].drive_seconds < int(price)
    reads, kept = judged(drive, budget_s=2 * int(price))  # the noise of a few pairs is a guess
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)


class Swinging(random.Random):
    """As far above as below, pair after pair: order alternates, so depth 8 is first and last."""

    def __init__(self) -> None:
        super().__init__()
        self.swings = itertools.cycle([1.3, 1.0, 1.0, 1 / 1.3])

    def lognormvariate(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        return next(self.swings)


def test_what_no_drive_time_would_settle_is_said() -> None:
    reads, kept = judged(SliceDrive({8: 3000, 1: 1000}, chance=Swinging()), budget_s=8)
    with pytest.raises(Unsettled, match="no drive time within reason") as unsettled:
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].reason == "budget"
    assert "--drive-time" not in str(unsettled.value)


def test_a_rate_too_near_its_figure_for_an_uncalibrated_rig_costs_a_look() -> None:
    reads, kept = judged(SliceDrive({8: 1030}))
    with pytest.raises(Unsettled) as unsettled:
        assert reads.at(depth=8) >= 1000
    (headline, *_) = str(unsettled.value).splitlines()
    assert headline.startswith("INCONCLUSIVE (budget): ")
    assert "whatever the drive time; three sessions of leadline calibrate or more" in headline
    assert "--drive-time" not in str(unsettled.value)
    assert kept.verdicts[0].drive_seconds <= 8


def test_unclean_slices_void_the_verdict_and_name_why() -> None:
    reads, kept = judged(SliceDrive({8: 7000, 1: 1000}, spoil=LITTLES_LAW))
    with pytest.raises(Unsettled, match=LITTLES_LAW):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].reason == "void"


def test_the_most_frequent_reason_comes_first() -> None:
    drive = SliceDrive({8: 7000, 1: 0.1}, spoil=LITTLES_LAW, spoilt_depth=8, spoilt_share=0.5)
    reads, kept = judged(drive)
    with pytest.raises(Unsettled):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    reasons = [void.partition(":")[0] for void in kept.verdicts[0].voids]
    assert reasons == [TOO_SHORT, LITTLES_LAW]


def test_a_pair_counts_only_when_both_its_slices_do() -> None:
    reads, kept = judged(SliceDrive({8: 7000, 1: 1000}, spoil=FIO_CPU, spoilt_depth=8))
    with pytest.raises(Unsettled, match=FIO_CPU):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].count == 0


def test_what_is_measured_again_is_paid_for() -> None:
    reads, kept = judged(SliceDrive({8: 7000, 1: 1000}, stalled=frozenset({3})))
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert [measured.clean for _, measured in kept.slices].count(False) == 1
    seconds = sum(measured.setting.seconds for _, measured in kept.slices)
    assert kept.verdicts[0].drive_seconds == pytest.approx(seconds)


def test_draining_the_queue_is_drive_time_too() -> None:
    reads, kept = judged(SliceDrive({8: 7000, 1: 1000}, drain_s=0.25))
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].drive_seconds == pytest.approx(len(kept.slices) * (0.5 + 0.25))


def test_a_rare_unclean_slice_is_measured_again() -> None:
    reads, kept = judged(SliceDrive({8: 7000, 1: 1000}, spoil=LITTLES_LAW, spoilt_share=0.05))
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].outcome is Outcome.PASS


def test_a_disturbance_in_the_first_batch_is_outlasted() -> None:
    """Two pairs of four do not count: no more than that is known of the drive then."""
    drive = SliceDrive({8: 7000, 1: 1000}, stalled=frozenset({0, 2}))
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (verdict,) = kept.verdicts
    assert verdict.count == 6, "three in four count before there is a verdict"
    assert set(drive.batches) == {2 * FEWEST_BLOCKS}


def test_a_disturbance_that_goes_on_voids_the_verdict_and_not_at_the_end_of_its_budget() -> None:
    drive = SliceDrive({8: 7000, 1: 1000}, spoil=LITTLES_LAW, spoilt_share=0.5)
    reads, kept = judged(drive, budget_s=130)
    with pytest.raises(Unsettled, match=LITTLES_LAW):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].drive_seconds < 13


def test_batches_grow_with_what_the_claim_still_needs() -> None:
    """Each batch is a process of the load generator, whose start costs time and no slice."""
    drive = SliceDrive({8: 3200, 1: 1000}, noise=0.03)
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    first, *others = drive.batches
    assert first == 2 * FEWEST_BLOCKS
    assert len(others) <= 2, "by fours it takes half a dozen"
    assert max(others) * 0.5 <= LONGEST_BATCH_S
    assert kept.verdicts[0].drive_seconds < 60


def test_a_rate_against_a_figure() -> None:
    reads, kept = judged(SliceDrive({8: 7000}))
    assert reads.at(depth=8) >= 5000
    assert reads.at(depth=8).mb_per_s <= 40
    with pytest.raises(ClaimFailed, match="does not hold"):
        assert reads.at(depth=8).mb_per_s >= 40
    first, *_ = kept.verdicts
    assert (first.unit, first.outcome) == ("slice", Outcome.PASS)
    assert first.estimate == pytest.approx(7000, rel=0.02)
    assert kept.verdicts[1].estimate == pytest.approx(7000 * 4096 / 1e6, rel=0.02)


def test_a_time_against_a_limit() -> None:
    reads, kept = judged(SliceDrive({8: 7000}))
    assert reads.at(depth=8).time_for(7000 * 4096 * 60) <= 70
    with pytest.raises(ClaimFailed, match="does not hold"):
        assert reads.at(depth=8).time_for(7000 * 4096 * 60) <= 50
    assert kept.verdicts[0].estimate == pytest.approx(60, rel=0.02)


def test_agreement() -> None:
    reads, kept = judged(SliceDrive({8: 7000, 16: 7070, 31: 9000}))
    assert reads.at(depth=8).agrees_with(reads.at(depth=16), within=0.1)
    slower = r"the slower one is random_read\.at\(depth=8\): by 2\d\.\d% \["
    with pytest.raises(ClaimFailed, match=slower):
        assert reads.at(depth=8).agrees_with(reads.at(depth=31), within=0.1)
    with pytest.raises(Unsettled):
        assert reads.at(depth=8).agrees_with(reads.at(depth=16), within=0.01)
    assert [verdict.direction for verdict in kept.verdicts] == ["within"] * 3


def test_a_claim_that_nobody_asked_is_known() -> None:
    reads, _ = judged(SliceDrive({8: 7000, 1: 1000}))
    asked = reads.at(depth=8) >= 3 * reads.at(depth=1)
    forgotten = reads.at(depth=8) <= 9 * reads.at(depth=1)
    assert asked
    judge = reads.judge
    assert isinstance(judge, SliceJudge)
    assert judge.unasserted() == [forgotten]


@pytest.mark.parametrize(("large_rate", "ratio"), [(1000.0, 16.0), (20.0, 0.32)])
def test_two_sizes_are_held_against_each_other_in_bytes(large_rate: float, ratio: float) -> None:
    reads, kept = judged(SliceDrive({8: large_rate, 1: 1000}))
    large, small = reads.at(depth=8, size=1 << 20), reads.at(depth=1, size=1 << 16)
    claim = large.mb_per_s >= 0.8 * small.mb_per_s
    if ratio > 0.8:
        assert claim
    else:
        with pytest.raises(ClaimFailed, match=r"size=64 KiB\).mb_per_s: 6\d.* MB/s \["):
            assert claim
    (verdict,) = kept.verdicts
    assert verdict.estimate == pytest.approx(ratio, rel=0.05)
    assert verdict.threshold == 0.8
    assert verdict.rates[1].rate == pytest.approx(65.5, rel=0.05), "of 10^6 bytes a second"


@pytest.mark.parametrize(
    ("figure", "outcome"), [(20.0, Outcome.PASS), (40.0, Outcome.INCONCLUSIVE)]
)
def test_a_full_link_voids_a_bandwidth_that_is_too_low_and_not_one_that_is_reached(
    figure: float, outcome: Outcome
) -> None:
    reads, kept = judged(SliceDrive({8: 7000}, spoil=LINK_LIMIT))
    claim = reads.at(depth=8).mb_per_s >= figure
    if outcome is Outcome.PASS:
        assert claim
    else:
        with pytest.raises(Unsettled, match="link-limit"):
            assert claim
    assert kept.verdicts[0].outcome is outcome


def test_a_full_link_voids_every_other_claim() -> None:
    reads, kept = judged(SliceDrive({8: 7000, 1: 1000}, spoil=LINK_LIMIT))
    for claim in (
        reads.at(depth=8).mb_per_s <= 40,
        reads.at(depth=8) >= 3 * reads.at(depth=1),
    ):
        with pytest.raises(Unsettled, match="link-limit"):
            assert claim
    assert [verdict.reason for verdict in kept.verdicts] == ["void", "void"]


def test_a_drive_that_was_given_too_little_and_is_fast_enough_passes_and_it_is_said() -> None:
    reads, kept = judged(SliceDrive({8: 7000, 1: 1000}, spoil=DRIVE_DEPTH, spoilt_depth=8))
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert reads.at(depth=1) <= 0.5 * reads.at(depth=8)
    assert reads.at(depth=8).mb_per_s >= 20
    for verdict in kept.verdicts:
        told = [note for note in verdict.notes if "can only have lowered" in note]
        assert len(told) == 1
        assert f"{DRIVE_DEPTH}: " in told[0]


def test_it_does_not_fail_for_what_may_be_the_hosts_doing() -> None:
    reads, kept = judged(SliceDrive({8: 2000, 1: 1000}, spoil=DRIVE_DEPTH, spoilt_depth=8))
    for claim in (reads.at(depth=8) >= 3 * reads.at(depth=1), reads.at(depth=8).mb_per_s >= 20):
        with pytest.raises(Unsettled, match=DRIVE_DEPTH):
            assert claim
    assert [verdict.reason for verdict in kept.verdicts] == ["void", "void"]


def test_it_fails_by_the_slices_in_which_the_drive_had_its_fill() -> None:
    drive = SliceDrive(
        {8: 2700, 1: 1000}, spoil=DRIVE_DEPTH, spoilt_depth=8, spoilt_share=0.15, noise=0.05
    )
    reads, kept = judged(drive)
    with pytest.raises(ClaimFailed):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert any(DRIVE_DEPTH in measured.voids for _, measured in kept.slices)


@pytest.mark.parametrize(
    ("spoilt_depth", "load"), [(1, random_read()), (8, sequential_read(1 << 30))]
)
def test_too_little_voids_where_the_ratio_could_be_the_higher_for_it(
    spoilt_depth: int, load: Workload
) -> None:
    """Of the slow side it lowers what the other is held against; streams may be the faster."""
    drive = SliceDrive({8: 7000, 1: 1000}, spoil=DRIVE_DEPTH, spoilt_depth=spoilt_depth)
    reads, kept = judged(drive)
    reads = replace(reads, workload=load)
    with pytest.raises(Unsettled, match=DRIVE_DEPTH):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    with pytest.raises(Unsettled, match=DRIVE_DEPTH):
        assert reads.at(depth=8).agrees_with(reads.at(depth=1), within=0.05)
    assert [verdict.reason for verdict in kept.verdicts] == ["void", "void"]


def test_another_void_beside_a_full_link_is_not_tolerated() -> None:
    reads, kept = judged(SliceDrive({8: 7000}, spoil=LITTLES_LAW))
    with pytest.raises(Unsettled):
        assert reads.at(depth=8).mb_per_s >= 20
    assert kept.verdicts[0].reason == "void"
