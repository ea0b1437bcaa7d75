"""The language of the tests: what can be said, what is refused, and when truth is asked."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from leadline.claims import Claim, ClaimFailed, Load, Quantity, Settled, Unsettled
from leadline.errors import Misuse
from leadline.expected import Limit
from leadline.load.workload import random_read
from leadline.verdict.verdict import Outcome, Verdict


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
        verdict = Verdict(self.outcome, "settled", claim.direction, claim.threshold, 4, 4.0)
        return Settled(verdict, f"explained: {claim}")


def load(judge: Ruling | None = None) -> Load:
    return Load(random_read(), judge or Ruling(), full_depth=32)


def test_a_claim_reads_as_the_requirement() -> None:
    reads = load()
    claim = reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert str(claim) == "random_read.at(depth=8) >= 3 * random_read.at(depth=1)"
    assert claim.threshold == 3


def test_depth_sets_the_device_queue_depth_and_offers_a_little_more() -> None:
    assert load().at(depth=1).setting.device_depth == 1
    assert load().at(depth=1).setting.offered_depth == 5
    assert load().at(depth=31).setting.offered_depth == 62


def test_offered_alone_leaves_the_device_queue_depth_full() -> None:
    quantity = load().at(offered=1)
    assert (quantity.device_depth, quantity.offered_depth) == (32, 1)


@pytest.mark.parametrize("factor", [3, 3.0, np.float64(3), np.int32(3), Limit(3, "c", "s")])
def test_any_number_scales_from_either_side(factor: float) -> None:
    assert (factor * load().at(depth=1)).factor == 3
    assert (load().at(depth=1) * factor).factor == 3


def test_scales_on_both_sides_make_one_threshold() -> None:
    reads = load()
    assert (2 * reads.at(depth=8) >= 3 * reads.at(depth=1)).threshold == 1.5


def test_the_source_of_a_limit_travels_with_it() -> None:
    reads = load()
    claim = reads.at(depth=8) >= Limit(3.0, "depth_8_over_depth_1", "a source") * reads.at(depth=1)
    assert claim.source == "a source"


@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt, operator.gt])
def test_other_comparisons_are_refused_and_say_what_to_write(
    compare: Callable[[Quantity, Quantity], bool],
) -> None:
    with pytest.raises(Misuse, match=r"write [<>]="):
        compare(load().at(depth=8), load().at(depth=1))


def test_a_quantity_has_no_truth() -> None:
    with pytest.raises(Misuse, match="compare it"):
        assert load().at(depth=8)


@pytest.mark.parametrize("factor", [0, -1, float("nan")])
def test_a_factor_must_be_above_zero(factor: float) -> None:
    with pytest.raises(Misuse, match="above 0"):
        factor * load().at(depth=1)


@pytest.mark.parametrize("wrong", ["3", None, [1]])
def test_what_is_no_number_does_not_scale(wrong: float) -> None:
    with pytest.raises(TypeError):
        wrong * load().at(depth=1)


def test_a_quantity_is_not_compared_with_a_number() -> None:
    with pytest.raises(Misuse, match="with another quantity"):
        assert load().at(depth=8) >= 3


def test_loads_on_two_drives_are_not_compared() -> None:
    with pytest.raises(Misuse, match="different drives"):
        assert load().at(depth=8) >= load().at(depth=1)


@pytest.mark.parametrize("depth", [0, -1, 33])
def test_a_depth_that_the_drive_cannot_hold_is_refused(depth: int) -> None:
    with pytest.raises(Misuse, match="depth"):
        load().at(depth=depth)


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


def test_a_stated_claim_is_known_to_the_judge_before_it_is_asked() -> None:
    judge = Ruling()
    reads = load(judge)
    claim = reads.at(depth=8) >= reads.at(depth=1)
    assert judge.claims == [claim]
    assert claim.settled is None
