"""Globs of models and kernels: what fits them, and what fits two of them."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.inventory.globs import common, fits, is_glob, meant, overlap

globs = st.text(alphabet="ab*?[", max_size=6)


def test_what_fits() -> None:
    assert fits("INTEL SSD*", "INTEL SSDSC2BX016T4")
    assert fits("*", "")
    assert fits("a?c", "abc")
    assert not fits("a?c", "ac")
    assert not fits("intel*", "INTEL SSD"), "case matters"
    assert fits("6.1.*", "6.1.0-18-amd64")
    assert not fits("6.1.*", "6.10.3"), "a dot is a dot"


def test_brackets_stand_for_themselves() -> None:
    assert fits("A[1]*", "A[1]B")
    assert not fits("A[1]*", "A1B")
    assert not is_glob("A[1]")


def test_a_text_that_fits_two() -> None:
    assert common("MAKER SSD*", "*SSD?") == "MAKER SSDx"
    assert common("a*", "b*") is None
    assert common("*a", "*b") is None
    assert common("a?", "a") is None
    assert common("abc", "abc") == "abc"


@given(globs, globs)
def test_what_fits_both_does(one: str, other: str) -> None:
    text = common(one, other)
    if text is not None:
        assert fits(one, text)
        assert fits(other, text)


@given(globs, globs, st.text(alphabet="abx[", max_size=6))
def test_nothing_that_fits_both_is_missed(one: str, other: str, text: str) -> None:
    if fits(one, text) and fits(other, text):
        assert common(one, other) is not None


@given(globs, globs)
def test_globs_overlap_where_a_text_fits_both(one: str, other: str) -> None:
    assert overlap(one, other) == (common(one, other) is not None)


def test_what_is_meant_is_its_own_entry_else_all_that_fit() -> None:
    names = ["MAKER SSD*", "MAKER SSD/1", "OTHER"]
    assert meant("MAKER SSD/1", names) == [1]
    assert meant("MAKER SSD/2", names) == [0]
    assert meant("MAKER*", names) == [0, 1]
    assert meant("*", names) == [0, 1, 2]
    assert meant("MAKR*", names) == []
    assert meant("*/1", names) == [0, 1]
