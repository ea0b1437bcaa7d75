"""The language of the tests: what can be said, what is refused, and when truth is asked."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from leadline.claims import Claim, ClaimFailed, Settled, Unsettled
from leadline.errors import DriveFault, Misuse
from leadline.expected import Limit
from leadline.load.slices import SliceSetting
from leadline.load.workload import Workload, random_read
from leadline.quantities import Load, Quantity
from leadline.statements import Ratio
from leadline.verdict.verdict import Outcome, Verdict

VAST = pytest.param(10**400, id="vast")


@dataclass
class Ruling:
    """A judge that rules as it is told, and counts how often it is asked."""

    outcome: Outcome = Outcome.PASS
    asked: int = 0
    claims: list[Claim] = field(default_factory=list)

    def stated(self, claim: Claim) -> None:
        self.claims.append(claim)

    def settle(self, claim: Claim) -> Settled:
        self.asked += 1
        verdict = Verdict(self.outcome, "settled", ">=", 1.0, 4, "pair", 4.0)
        return Settled(verdict, f"explained: {claim}")


def load(judge: Ruling | None = None) -> Load:
    return Load(random_read(), judge or Ruling(), full_depth=32)


def ratio(claim: Claim) -> Ratio:
    assert isinstance(claim.statement, Ratio)
    return claim.statement


def test_a_claim_reads_as_the_requirement() -> None:
    reads = load()
    claim = reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert str(claim) == "random_read.at(depth=8) >= 3 * random_read.at(depth=1)"
    assert ratio(claim).threshold == 3


def test_depth_sets_the_device_queue_depth_and_offers_a_little_more() -> None:
    assert load().at(depth=1).setting.device_depth == 1
    assert load().at(depth=1).setting.offered_depth == 5
    assert load().at(depth=31).setting.offered_depth == 63


def test_offered_alone_leaves_the_device_queue_depth_full() -> None:
    quantity = load().at(offered=1)
    assert (quantity.device_depth, quantity.offered_depth) == (32, 1)


def test_threads_offer_one_request_each_to_the_whole_queue_or_to_none() -> None:
    reads = load()
    on, off = reads.at(threads=8), reads.at(depth=1, threads=8)
    assert (on.setting.device_depth, on.setting.offered_depth, on.setting.jobs) == (32, 8, 8)
    assert (off.setting.device_depth, off.setting.offered_depth, off.setting.jobs) == (1, 8, 8)
    assert str(on >= 3 * off) == (
        "random_read.at(threads=8) >= 3 * random_read.at(depth=1, threads=8)"
    )


def test_threads_share_what_is_offered_and_share_alike() -> None:
    quantity = load().at(depth=8, offered=16, threads=4)
    assert (quantity.setting.offered_depth, quantity.setting.jobs) == (16, 4)
    assert str(quantity) == "random_read.at(depth=8, offered=16, threads=4)"
    with pytest.raises(Misuse, match=r"at\(offered=16, threads=3\): each thread offers as much"):
        load().at(offered=16, threads=3)


def test_each_of_several_drives_has_the_depth_and_its_part_of_what_is_offered() -> None:
    reads = Load(random_read(), Ruling(), full_depth=32, most_drives=4)
    one, four = reads.at(depth=8), reads.at(depth=8, drives=4)
    assert four.setting == SliceSetting(8, 96, jobs=4, drives=4)
    assert one.setting == SliceSetting(8, 24)
    limit = Limit(0.8, "c", "a source")
    claim = four >= limit * (4 * one)
    assert ratio(claim).threshold == pytest.approx(3.2)
    assert ratio(claim).source == "a source"
    assert str(claim) == ("random_read.at(depth=8, drives=4) >= 3.2 * random_read.at(depth=8)")
    assert reads.at(depth=1, threads=16, drives=4).setting == SliceSetting(1, 16, jobs=16, drives=4)


@pytest.mark.parametrize("asked", [{"drives": 5}, {"drives": 0}, {"drives": 4, "threads": 6}])
def test_drives_that_are_not_there_or_not_used_alike_are_refused(asked: dict[str, int]) -> None:
    with pytest.raises(Misuse):
        Load(random_read(), Ruling(), full_depth=32, most_drives=4).at(depth=8, **asked)


def test_a_depth_that_is_promised_and_not_there_is_the_drives_fault() -> None:
    reads = Load(random_read(), Ruling(), full_depth=4, owed_depth=32)
    with pytest.raises(DriveFault, match="advertises a queue of 4, and the firmware matrix has 32"):
        reads.at(depth=8)
    with pytest.raises(Misuse, match="hold at most 4"):
        reads.at(depth=33)
    assert reads.at(depth=4).device_depth == 4


def test_at_most_is_at_most() -> None:
    reads = load()
    said = ratio(reads.at(depth=8) <= 9 * reads.at(depth=1))
    assert (said.direction, said.threshold) == ("<=", 9)


def test_depth_and_offered_together_are_both_said() -> None:
    quantity = load().at(depth=8, offered=8)
    assert (quantity.device_depth, quantity.offered_depth) == (8, 8)
    assert str(quantity) == "random_read.at(depth=8, offered=8)"
    assert str(load().at(depth=8, offered=24)) == "random_read.at(depth=8)", "which is its own"


@pytest.mark.parametrize("factor", [3, 3.0, np.float64(3), np.int32(3), Limit(3, "c", "s")])
def test_any_number_scales_from_either_side(factor: float) -> None:
    assert (factor * load().at(depth=1)).factor == 3
    assert (load().at(depth=1) * factor).factor == 3


def test_scales_on_both_sides_make_one_threshold() -> None:
    reads = load()
    assert ratio(2 * reads.at(depth=8) >= 3 * reads.at(depth=1)).threshold == 1.5


def test_factors_multiply() -> None:
    assert (2 * (3 * load().at(depth=1))).factor == 6


def test_the_source_of_a_limit_travels_with_it() -> None:
    reads = load()
    limit = Limit(3.0, "depth_8_over_depth_1", "a source")
    assert (reads.at(depth=8) >= limit * reads.at(depth=1)).statement.source == "a source"
    assert (limit * reads.at(depth=1) <= reads.at(depth=8)).statement.source == "a source"
    assert (reads.at(depth=8) >= 0.9 * (limit * reads.at(depth=1))).statement.source == "a source"


@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt, operator.gt])
def test_other_comparisons_are_refused_and_say_what_to_write(
    compare: Callable[[Quantity, Quantity], bool],
) -> None:
    with pytest.raises(Misuse, match=r"write [<>]="):
        compare(load().at(depth=8), load().at(depth=1))


def test_a_quantity_has_no_truth_and_is_no_key() -> None:
    with pytest.raises(Misuse, match="compare it"):
        assert load().at(depth=8)
    with pytest.raises(TypeError, match="unhashable"):
        {load().at(depth=8)}


@pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf"), np.inf, VAST])
def test_a_factor_must_be_finite_and_above_zero(factor: float) -> None:
    with pytest.raises(Misuse, match="finite and above 0"):
        factor * load().at(depth=1)


def test_factors_whose_product_or_ratio_no_number_holds_are_refused_before_anything_runs() -> None:
    judge = Ruling()
    reads = load(judge)
    vast, tiny = 1e200 * reads.at(depth=1), 1e-200 * reads.at(depth=8)
    with pytest.raises(Misuse, match="finite and above 0"):
        1e200 * vast
    with pytest.raises(Misuse, match="ratio of the factors is finite"):
        assert tiny >= vast
    with pytest.raises(Misuse, match="finite and above 0"):
        assert tiny >= 1e200
    assert judge.claims == []


@pytest.mark.parametrize("wrong", ["3", None, [1], True, np.array([1.0, 2.0]), np.array(3.0)])
def test_what_is_no_number_does_not_scale_from_either_side(wrong: float) -> None:
    with pytest.raises(TypeError):
        wrong * load().at(depth=1)
    with pytest.raises(TypeError):
        load().at(depth=1) * wrong


def test_a_rate_is_held_against_a_figure_in_its_own_unit() -> None:
    claim = load().at(depth=8) >= Limit(3000, "c", "a source")
    assert str(claim) == "random_read.at(depth=8) >= 3000 requests/s"
    assert claim.statement.source == "a source"
    claim = load().at(depth=32).mb_per_s >= 200
    assert str(claim) == "random_read.at(depth=32).mb_per_s >= 200 MB/s"
    (bandwidth,) = claim.statement.quantities  # type: ignore[union-attr]
    assert bandwidth.in_unit(1000) == 4.096
    claim = load().at(offered=32).time_for(16 * 10**9) <= 60
    assert str(claim) == "random_read.at(offered=32).time_for(16 GB) <= 60 s"
    (time_,) = claim.statement.quantities  # type: ignore[union-attr]
    assert time_.in_unit(16e9 / 4096 / 50) == pytest.approx(50)


def test_a_time_is_held_against_seconds_alone() -> None:
    reads = load()
    with pytest.raises(Misuse, match="against a number of seconds"):
        assert reads.at(depth=8).time_for(10**9) <= 2 * reads.at(depth=1)
    with pytest.raises(Misuse, match="at least one request"):
        reads.at(depth=8).time_for(512)


@pytest.mark.parametrize("figure", [0, -1, float("nan"), float("inf"), VAST])
def test_a_figure_that_no_rate_can_meet_or_miss_is_refused(figure: float) -> None:
    with pytest.raises(Misuse, match="finite and above 0"):
        assert load().at(depth=8) >= figure


@pytest.mark.parametrize("wrong", ["3", None, [1], True])
def test_a_quantity_is_compared_with_quantities_and_numbers_alone(wrong: object) -> None:
    with pytest.raises(Misuse, match="with a number or with another quantity"):
        assert load().at(depth=8) >= wrong


def test_units_and_workloads_are_not_mixed() -> None:
    reads = load()
    with pytest.raises(Misuse, match="one is in MB/s, the other in requests/s"):
        assert reads.at(depth=8).mb_per_s >= reads.at(depth=1)
    other = Load(Workload("big_read", block_bytes=8192), reads.judge, full_depth=32)
    with pytest.raises(Misuse, match="two workloads"):
        assert reads.at(depth=8) >= other.at(depth=8)


def at_depth_8(reads: Load) -> Quantity:
    return reads.at(depth=8)


@pytest.mark.parametrize(
    "other",
    [
        at_depth_8,
        lambda reads: 3 * reads.at(depth=8),
        lambda reads: reads.at(depth=8, offered=24),
        lambda reads: reads.at(depth=8, drives=1, size=4096),
    ],
    ids=["the same", "a multiple", "in other words", "of the size that it has"],
)
def test_a_setting_is_not_held_against_itself(other: Callable[[Load], Quantity]) -> None:
    """Three times itself no drive reaches, and all agree with themselves: neither says anything."""
    judge = Ruling()
    reads = Load(random_read(), judge, full_depth=32, kernel_depth=32, admit=must_not_be_asked)
    q, r = reads.at(depth=8).mb_per_s, other(reads).mb_per_s
    for left, right in ((q, r), (r, q), (3 * q, r)):
        for compare in (operator.ge, operator.le):
            with pytest.raises(Misuse, match=r"both are one setting.*one of them another depth="):
                compare(left, right)
    with pytest.raises(Misuse, match="both are one setting"):
        q.agrees_with(r.plain, within=0.05)
    assert judge.claims == [], "and none is left to be asserted"


def test_threads_are_held_against_themselves_where_the_whole_queue_is_written_out() -> None:
    reads = Load(random_read(), Ruling(), full_depth=32, kernel_depth=32, admit=must_not_be_asked)
    for q in (reads.at(threads=8), reads.at(depth=32, threads=8)):
        with pytest.raises(Misuse, match="both are one setting"):
            assert reads.at(threads=8) >= 0.95 * q


def must_not_be_asked(depth: int) -> None:
    raise AssertionError(f"{depth} was asked for")


def test_agreement_reads_as_the_requirement_and_has_a_width() -> None:
    reads = load()
    claim = reads.at(depth=8).agrees_with(reads.at(depth=16), within=0.05)
    words = "random_read.at(depth=8) agrees with random_read.at(depth=16) within 0.05"
    assert str(claim) == words
    with pytest.raises(Misuse, match="without factors"):
        reads.at(depth=8).agrees_with(3 * reads.at(depth=1), within=0.05)
    for width in (0, 1, -0.1, 5, float("nan"), 10**400, "wide"):
        with pytest.raises(Misuse, match=r"0\.05 for 5 %"):
            reads.at(depth=8).agrees_with(reads.at(depth=16), within=width)  # type: ignore[arg-type]


def test_loads_on_two_drives_are_not_compared() -> None:
    with pytest.raises(Misuse, match="different drives"):
        assert load().at(depth=8) >= load().at(depth=1)


@pytest.mark.parametrize("depth", [0, -1, 33])
def test_a_depth_that_the_drive_cannot_hold_is_refused(depth: int) -> None:
    with pytest.raises(Misuse, match="depth"):
        load().at(depth=depth)


def test_an_offer_of_nothing_is_refused() -> None:
    with pytest.raises(Misuse, match="needs depth=, offered= or threads="):
        load().at()
    for nothing in ({"offered": 0}, {"threads": 0}, {"depth": 8, "threads": -1}):
        with pytest.raises(Misuse, match="starts at 1"):
            load().at(**nothing)


def test_truth_is_asked_once_however_often_it_is_needed() -> None:
    judge = Ruling()
    reads = load(judge)
    claim = reads.at(depth=8) >= reads.at(depth=1)
    assert judge.asked == 0
    assert claim
    assert bool(claim) is True
    assert judge.asked == 1


@pytest.mark.parametrize(
    ("outcome", "error"), [(Outcome.FAIL, ClaimFailed), (Outcome.INCONCLUSIVE, Unsettled)]
)
def test_truth_is_never_false(outcome: Outcome, error: type[Exception]) -> None:
    reads = load(Ruling(outcome))
    claim = reads.at(depth=8) >= reads.at(depth=1)
    with pytest.raises(error, match="explained: random_read"):
        if not claim:
            pytest.fail("a claim was False")


def test_what_a_claim_raises_carries_its_verdict() -> None:
    for outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE):
        reads = load(Ruling(outcome))
        with pytest.raises((ClaimFailed, Unsettled)) as raised:
            assert reads.at(depth=8) >= reads.at(depth=1)
        assert isinstance(raised.value, ClaimFailed | Unsettled)
        assert raised.value.verdict.outcome is outcome


def test_a_stated_claim_is_known_to_the_judge_before_it_is_asked() -> None:
    judge = Ruling()
    reads = load(judge)
    claim = reads.at(depth=8) >= reads.at(depth=1)
    assert judge.claims == [claim]
    assert claim.settled is None


def test_a_size_of_its_own_is_in_the_setting_the_name_and_the_bandwidth() -> None:
    large = load().at(depth=8, size=1 << 20)
    assert str(large.mb_per_s) == "random_read.at(depth=8, size=1 MiB).mb_per_s"
    assert large.setting.block_bytes == 1 << 20
    assert large.mb_per_s.in_unit(1.0) == pytest.approx(1.048576)
    assert load().at(depth=8).setting.block_bytes is None
    with pytest.raises(Misuse, match="a multiple of 512"):
        load().at(depth=8, size=1000)


def test_two_sizes_are_compared_by_bandwidth_and_never_agree() -> None:
    reads = load()
    large, small = reads.at(offered=8, size=1 << 20), reads.at(offered=8)
    assert large.mb_per_s >= 0.8 * small.mb_per_s
    with pytest.raises(Misuse, match=r"compare them \.mb_per_s"):
        assert large >= small
    with pytest.raises(Misuse, match="two sizes do not agree"):
        assert large.mb_per_s.agrees_with(small.mb_per_s, within=0.1)
