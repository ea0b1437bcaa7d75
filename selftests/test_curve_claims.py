"""The language of the tests: what can be said of a whole depth curve, and what is refused."""

from dataclasses import replace

import pytest

from leadline.claims import ClaimFailed
from leadline.depth_curve import whole_curve
from leadline.errors import Misuse
from leadline.verdict.verdict import Outcome
from selftests.test_claims import Ruling, load


def test_a_curve_reads_as_the_requirement() -> None:
    reads = load()
    assert str(reads.curve().has_no_dip()) == (
        "random_read.curve(depth 1 to 32) has no dip of more than 0.04"
    )
    assert str(reads.curve([1, 8, 4]).does_not_collapse(within=0.2)) == (
        "random_read.curve(depth 1, 4, 8) does not collapse by more than 0.2"
    )
    with pytest.raises(Misuse, match=r"curve.has_no_dip\(\)"):
        assert reads.curve()
    with pytest.raises(Misuse, match=r"0\.05 for 5 %"):
        reads.curve().has_no_dip(tolerance=4)


@pytest.mark.parametrize(
    ("deepest", "beyond"),
    [
        (32, []),
        (33, [33]),
        (64, [40, 48, 64]),
        (126, [40, 48, 64, 80, 96, 126]),
        (128, [40, 48, 64, 80, 96, 128]),
        (254, [40, 48, 64, 80, 96, 128, 160, 192, 254]),
    ],
)
def test_a_whole_curve_goes_to_the_deepest_that_the_drive_holds(
    deepest: int, beyond: list[int]
) -> None:
    """Each depth of NCQ, and beyond that so few that a SAS drive costs hardly more."""
    curve = replace(load(), full_depth=deepest).curve()
    assert [point.device_depth for point in curve.points] == [*range(1, 33), *beyond]
    assert whole_curve(31) == tuple(range(1, 32))


def test_a_curve_of_a_deep_drive_reads_as_one_of_another_does() -> None:
    deep = replace(load(), full_depth=128)
    assert str(deep.curve()) == "random_read.curve(depth 1 to 32, 40, 48, 64, 80, 96, 128)"
    assert str(deep.curve(range(1, 33))) == "random_read.curve(depth 1 to 32)"
    assert str(deep.curve(range(2, 129))) == "random_read.curve(depth 2 to 128)"
    assert str(load().curve([1, 2, 3, 8])) == "random_read.curve(depth 1, 2, 3, 8)"


@pytest.mark.parametrize("depths", [[], [1, 2], [1, 2, 2, 3], [1, 2, 33], [0, 1, 2]])
def test_depths_that_make_no_curve_are_refused(depths: list[int]) -> None:
    with pytest.raises(Misuse, match="depth"):
        load().curve(depths)


def test_a_curve_may_have_as_many_offered_at_every_depth() -> None:
    """As a busy server does: what the drive may not hold waits in the host."""
    curve = load().curve(offered=128)
    assert {point.offered_depth for point in curve.points} == {128}
    assert [point.device_depth for point in curve.points] == list(range(1, 33))
    assert str(curve) == "random_read.curve(depth 1 to 32, offered=128)"
    deep = replace(load(), full_depth=254).curve(offered=128)
    assert deep.points[-1].device_depth == 128, "no more can be held than is offered"


@pytest.mark.parametrize("offered", [-1, 0, 2, 15])
def test_what_does_not_fill_the_queue_makes_no_curve(offered: int) -> None:
    with pytest.raises(Misuse, match=r"depth|do not fill a queue of 16"):
        load().curve([1, 8, 16] if offered > 2 else None, offered=offered)


def test_a_curve_states_its_claims_too() -> None:
    judge = Ruling(Outcome.FAIL)
    claim = load(judge).curve().has_no_dip()
    assert judge.claims == [claim]
    with pytest.raises(ClaimFailed, match=r"explained: random_read\.curve"):
        assert claim
