"""Limits as tests ask for them: the number, its source, and a plain word where there is none."""

import pytest

from leadline.errors import Misuse
from leadline.expected import Expected
from leadline.inventory.matrix import LimitSpec
from leadline.inventory.suite_limits import SHARES, SIDES


def expected(**limits: LimitSpec) -> Expected:
    return Expected("MAKER SSD", limits)


def test_a_limit_is_a_number_that_knows_its_source() -> None:
    limits = expected(
        depth_8_over_depth_1=LimitSpec(at_least=3, at_most=9, source="sweeps"),
        ready_s=LimitSpec(at_least=1, at_most=10, source="libata"),
        regression=LimitSpec(at_most=0.03, source="the middle"),
    )
    assert (float(limits.regression), limits.regression.source) == (0.03, "the middle")
    assert float(limits.depth_8_over_depth_1) == 3
    assert limits.depth_8_over_depth_1.source == "sweeps"
    assert float(limits.ready_s) == 10
    assert limits.ready_s.source == "libata"
    assert limits.ready_s.claim == "ready_s"


def test_each_limit_has_the_one_side_that_the_matrix_lets_it_have() -> None:
    """The two are kept apart, for whoever reads a matrix asks no test."""
    properties = {name for name, kind in vars(Expected).items() if isinstance(kind, property)}
    assert properties == SIDES.keys()
    for claim, side in SIDES.items():
        spec = LimitSpec.model_validate({side: 0.5, "source": "a source"})
        assert getattr(expected(**{claim: spec}), claim) == 0.5
    assert SIDES.keys() > set(SHARES)


def test_a_limit_on_the_other_side_is_said() -> None:
    limits = expected(
        depth_8_over_depth_1=LimitSpec(at_most=9, source="x"),
        ready_s=LimitSpec(at_least=1, source="x"),
    )
    with pytest.raises(Misuse, match="MAKER SSD: the limit of depth_8_over_depth_1 needs at_least"):
        _ = limits.depth_8_over_depth_1
    with pytest.raises(Misuse, match="MAKER SSD: the limit of ready_s needs at_most"):
        _ = limits.ready_s


def test_a_limit_on_the_other_side_is_named_with_its_line() -> None:
    spec = LimitSpec(at_least=1, source="x")
    limits = Expected("MAKER SSD", {"ready_s": spec}, lambda claim: f"m.yaml:7 {claim}")
    with pytest.raises(Misuse, match=r"^m\.yaml:7 ready_s: MAKER SSD: the limit of ready_s needs"):
        _ = limits.ready_s


def test_no_limit_at_all_says_which_mark_the_test_needs() -> None:
    with pytest.raises(Misuse, match=r'MAKER SSD: .*@pytest\.mark\.claim\("ready_s"\)'):
        _ = expected().ready_s
