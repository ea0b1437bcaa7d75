"""Many claims: corrections, the running p-value, and FAILs confirmed by a fresh run."""

import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.verdict.absolute import judge_times
from leadline.verdict.interval import ALPHA, interval_of, p_value
from leadline.verdict.many import benjamini_hochberg, confirm, holm, p_over_looks
from leadline.verdict.ratio import judge_ratio
from leadline.verdict.verdict import Outcome, Verdict

p_lists = st.lists(st.floats(0, 1), max_size=8)
MIXED = [0.012, 0.0004, 0.2, 0.003, 0.049, 0.8, 0.0021, 0.003]


def test_holm_is_that_of_statsmodels() -> None:
    """statsmodels 0.15.0: multipletests(MIXED, method="holm")[1]."""
    expected = [0.048, 0.0032, 0.4, 0.018, 0.147, 0.8, 0.0147, 0.018]
    assert holm(MIXED) == pytest.approx(expected)
    assert holm([0.6, 0.5]) == [1.0, 1.0]


def test_benjamini_hochberg_is_that_of_statsmodels() -> None:
    """statsmodels 0.15.0: multipletests(MIXED, method="fdr_bh")[1]."""
    expected = [0.0192, 0.0032, 0.2285714286, 0.006, 0.0653333333, 0.8, 0.006, 0.006]
    assert benjamini_hochberg(MIXED) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_closed_test_of_bonferronis(p_values: list[float]) -> None:
    """A claim is rejected at its level when every set of claims around it is."""
    places = range(len(p_values))
    for place, adjusted in enumerate(holm(p_values)):
        around = [
            min(1.0, len(chosen) * min(p_values[each] for each in chosen))
            for size in places
            for chosen in combinations(places, size + 1)
            if place in chosen
        ]
        assert adjusted == pytest.approx(max(around))


@given(p_lists)
def test_corrections_only_raise_and_holm_raises_most(p_values: list[float]) -> None:
    family, discovery = holm(p_values), benjamini_hochberg(p_values)
    for p, strict, lenient in zip(p_values, family, discovery, strict=True):
        assert p <= lenient * (1 + 1e-12)
        assert lenient <= strict * (1 + 1e-12)
        assert strict <= 1.0


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_what_is_no_p_value_is_refused(bad: float) -> None:
    for correct in (holm, benjamini_hochberg):
        with pytest.raises(ValueError, match=f"p-value 1 is {bad}"):
            correct([0.5, bad])


def test_p_over_looks_keeps_the_most_that_was_ever_seen() -> None:
    """A drive that looked bad for a while; the last look alone says less, and never more."""
    chance = random.Random(1)
    values = [chance.gauss(-0.04, 0.01) for _ in range(12)]
    values += [chance.gauss(0.02, 0.01) for _ in range(24)]
    looks = [interval_of(values[:n], value_seconds=1.0, sigma_d=0.005) for n in range(4, 37, 4)]
    assert p_over_looks(looks, 1.0, ">=") == min(p_value(look, 0.0) for look in looks[:4])
    assert p_over_looks(looks[-1:], 1.0, ">=") > 10 * p_over_looks(looks, 1.0, ">=")


def ratio(true: float, seed: int, threshold: float = 3.0, pairs: int = 16) -> Verdict:
    chance = random.Random(seed)
    tops = [true * 100 * chance.lognormvariate(0, 0.01) for _ in range(pairs)]
    bottoms = [100 * chance.lognormvariate(0, 0.01) for _ in range(pairs)]
    verdict = judge_ratio(tops, bottoms, threshold, ">=", pair_seconds=1.0, spent_s=1e6)
    assert verdict is not None
    return verdict


def test_evidence_is_only_against_what_the_estimate_denies() -> None:
    assert ratio(3.5, 1).p_against == 1.0
    assert ratio(2.5, 1).p_against < ALPHA
    near = ratio(2.92, 1, pairs=6)
    assert near.outcome is Outcome.INCONCLUSIVE
    assert ALPHA < near.p_against <= 1.0


KEYS = [("depth_8_over_depth_1", cell) for cell in ("passes", "fails", "flukes", "unsure", "gone")]


def test_every_fail_is_paired_with_its_fresh_run() -> None:
    first = dict(zip(KEYS, [ratio(t, 1) for t in (3.5, 2.0, 2.0, 2.0, 2.0)], strict=True))
    again = dict(zip(KEYS, [ratio(t, 2) for t in (2.0, 2.0, 3.5, 2.98)], strict=False))
    found = confirm(first, again)
    assert [(each.key[1], each.standing) for each in found] == [
        ("fails", "confirmed"),
        ("flukes", "refuted"),
        ("unsure", "open"),
        ("gone", "open"),
    ]
    assert found[0].first is first[KEYS[1]]
    assert found[0].fresh is again[KEYS[1]]
    assert (found[3].fresh, found[3].p_adjusted) == (None, 1.0)


def test_holm_counts_the_suspects_and_not_the_claims_that_passed() -> None:
    """One fresh FAIL at 0.4 %: enough by itself among 1,000 passes, too little among four."""
    weak = ratio(2.78, 1, pairs=8)
    assert ALPHA / 4 < weak.p_against < ALPHA
    assert weak.outcome is Outcome.FAIL
    passes = {("claim", str(n)): ratio(3.5, n) for n in range(20)}
    (alone,) = confirm({**passes, KEYS[1]: ratio(2.0, 1)}, {**passes, KEYS[1]: weak})
    assert alone.standing == "confirmed"
    among = confirm({key: ratio(2.0, 1) for key in KEYS[:4]}, dict.fromkeys(KEYS[:4], weak))
    assert {each.standing for each in among} == {"open"}


def test_a_confirmation_asks_for_the_same_claim() -> None:
    first, other = {KEYS[1]: ratio(2.0, 1)}, {KEYS[1]: ratio(2.0, 2, threshold=2.9)}
    with pytest.raises(ValueError, match=r">= 3 in the first run and >= 2\.9 in the fresh"):
        confirm(first, other)


def test_an_event_that_came_too_late_twice_is_confirmed() -> None:
    late = judge_times([11.0], 10.0)
    (found,) = confirm({KEYS[1]: late}, {KEYS[1]: late})
    assert found.standing == "confirmed"
    (once,) = confirm({KEYS[1]: late}, {KEYS[1]: judge_times([9.0], 10.0)})
    assert once.standing == "refuted"


def test_void_and_inconclusive_verdicts_are_never_confirmed() -> None:
    void = judge_times([], 10.0)
    assert confirm({KEYS[1]: void}, {KEYS[1]: void}) == []
    (found,) = confirm({KEYS[1]: judge_times([11.0], 10.0)}, {KEYS[1]: void})
    assert found.standing == "open"


def test_thousands_of_good_claims_leave_no_confirmed_fail() -> None:
    """Level 1 % each: some fail by chance where p-values are uniform; none twice, after Holm."""
    chance = random.Random(1)
    flukes = [p for p in (chance.random() for _ in range(5000)) if p <= ALPHA]
    assert len(flukes) > 25
    assert min(holm([chance.random() for _ in flukes])) > ALPHA
