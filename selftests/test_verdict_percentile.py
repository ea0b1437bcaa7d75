"""Percentiles: from enough requests, or not at all."""

import json
import math
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.verdict.percentile import percentile_of, percentile_of_bins, requests_needed

REAL = Path(__file__).parents[2] / "shared" / "realdata" / "fio_json"


@pytest.mark.parametrize(
    ("share", "needed"), [(0.5, 200), (0.99, 10_000), (0.999, 100_000), (0.9999, 1_000_000)]
)
def test_needed_requests(share: float, needed: int) -> None:
    assert requests_needed(share) == needed


def test_percentile_is_the_least_latency_that_the_share_does_not_exceed() -> None:
    latencies = [n / 1000 for n in range(1, 10_001)]
    random.Random(1).shuffle(latencies)
    found = percentile_of(latencies, 0.99)
    assert found.latency_s == 9.9
    assert (found.count, found.needed, found.voids) == (10_000, 10_000, ())


def test_too_few_requests_are_void_and_say_how_many_it_takes() -> None:
    found = percentile_of([0.001] * 9_999, 0.99)
    assert found.latency_s is None
    assert found.voids == ("too-few-requests: 9999 of the 10000 that it takes",)
    assert str(found).startswith("p99 (closed loop): void, too-few-requests")
    assert percentile_of([], 0.5).voids[0].startswith("too-few-requests: 0 of")


def test_percentiles_are_labelled_closed_loop() -> None:
    found = percentile_of([0.002] * 100_000, 0.999)
    assert found.load == "closed loop"
    assert str(found) == "p99.9 (closed loop): 2 ms of 100000 requests"


@settings(max_examples=30)
@given(st.lists(st.integers(1, 10**9), min_size=200, max_size=400), st.floats(0.01, 0.5))
def test_bins_give_what_the_requests_in_them_give(nanoseconds: list[int], share: float) -> None:
    bins = {str(each): times for each, times in Counter(nanoseconds).items()}
    binned = percentile_of_bins(bins, share)
    single = percentile_of([each / 1e9 for each in nanoseconds], share)
    assert (binned.latency_s, binned.count) == (single.latency_s, single.count)


def test_bins_are_read_by_their_numbers_and_not_as_text() -> None:
    found = percentile_of_bins({"900": 150, "1000": 50, "20": 100}, 0.5)
    assert found.latency_s == pytest.approx(900e-9)
    assert found.resolution == pytest.approx(1 / 64)


@settings(max_examples=30)
@given(st.lists(st.floats(0, 10), min_size=200, max_size=300), st.floats(0.001, 1000.0))
def test_percentile_scales(latencies: list[float], scale: float) -> None:
    here = percentile_of(latencies, 0.5).latency_s
    there = percentile_of([each * scale for each in latencies], 0.5).latency_s
    assert here is not None
    assert there == pytest.approx(here * scale)


@pytest.mark.parametrize("share", [0.0, 1.0, 99.9, -0.5, math.nan])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share is"):
        percentile_of([0.001] * 1000, share)
    with pytest.raises(ValueError, match="share is"):
        percentile_of_bins({"1000": 1000}, share)


@pytest.mark.parametrize("bad", [-0.001, math.nan, math.inf])
def test_impossible_latencies_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=f"a latency is {bad}"):
        percentile_of([0.001] * 1000 + [bad], 0.5)


@pytest.mark.parametrize("bins", [{"-5": 1}, {"1.5": 1}, {"x": 1}, {"1000": -1}])
def test_bins_that_are_not_fios_are_refused(bins: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"bin '.*json\+"):
        percentile_of_bins(bins, 0.5)


@pytest.mark.skipif(not REAL.is_dir(), reason="no recorded fio output here")
def test_recorded_bins_agree_with_fios_own_percentiles() -> None:
    """Wherever a recorded json+ has bins and enough requests; fio reads the same bins."""
    compared = 0
    for path in REAL.glob("*/*.json"):
        text = path.read_text()
        if '"bins"' not in text:
            continue
        document = json.loads(text[text.index("{") :])
        for latency in (job[d]["lat_ns"] for job in document["jobs"] for d in ("read", "write")):
            for name, nanoseconds in latency.get("percentile", {}).items():
                found = percentile_of_bins(latency["bins"], float(name) / 100)
                if found.latency_s is not None:
                    assert found.latency_s * 1e9 == pytest.approx(nanoseconds)
                    compared += 1
    assert compared
