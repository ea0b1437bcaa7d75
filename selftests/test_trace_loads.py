"""The nine loads: what is generated is what is described."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.errors import Misuse
from leadline.trace.figures import figures_of
from leadline.trace.loads import LOADS, Load, Task, generate
from leadline.trace.patterns import (
    LEAST_BYTES,
    PAGE,
    REFERENCE_BYTES,
    Appends,
    Drive,
    Files,
    Place,
    Random,
    Sequential,
)
from leadline.trace.trace import READ, WRITE, trace_of

SMALL = 1 << 30
KIB = 1024


def chance() -> np.random.Generator:
    return np.random.default_rng(5)


def test_the_loads_are_those_of_the_story() -> None:
    fronts, backs = (
        ("copy", "media"),
        (
            "archive-create",
            "archive-extract",
            "mail-import",
            "mail-export",
        ),
    )
    assert set(LOADS) == {"dual-copy"} | {f"{a}-{b}" for a in fronts for b in backs}


@given(
    st.sampled_from(sorted(LOADS)),
    st.integers(LEAST_BYTES, 2 * SMALL),
    st.integers(1, 300),
    st.integers(0, 2**32),
)
@settings(max_examples=40, deadline=None)
def test_every_trace_is_fit_for_its_drive(
    name: str, capacity: int, fragments: int, seed: int
) -> None:
    trace = generate(LOADS[name], Drive(capacity, fragments), seed)
    assert len(trace) > 50
    assert int(trace.time_us[0]) > 0
    assert bool((np.diff(trace.time_us) >= 0).all())
    assert int(trace.offset.min()) >= 0
    assert int(trace.end.max()) <= capacity
    assert not (trace.offset % PAGE).any()
    assert not (trace.length % PAGE).any()
    assert int(trace.length.min()) >= PAGE


def test_a_seed_gives_the_same_trace_and_another_seed_another() -> None:
    load = LOADS["copy-mail-import"]
    first = generate(load, Drive(SMALL), 7)
    assert generate(load, Drive(SMALL), 7).equals(first)
    assert not generate(load, Drive(SMALL), 8).equals(first)


def test_streams_that_are_alike_are_not_the_same_requests() -> None:
    index = Random(Place(0.5, 1 << 30), "read", 4 * KIB, per_s=100.0)
    file = Sequential(Place(0.1, 10**9), "read", 64 * KIB, 50e6)
    load = Load("twice", (Task("one", (file, index)), Task("another", (file, index))))
    trace = generate(load, Drive(REFERENCE_BYTES), 1)
    random = trace.take(trace.length == 4 * KIB)
    assert len(np.unique(random.offset)) > 0.98 * len(random)


def test_on_the_storys_partition_a_load_lasts_two_to_ten_minutes() -> None:
    for load in LOADS.values():
        assert 120 <= generate(load, Drive(REFERENCE_BYTES), 1).seconds <= 600, load.name


def test_a_load_ends_with_the_task_that_ends_first() -> None:
    trace = generate(LOADS["dual-copy"], Drive(REFERENCE_BYTES), 1)
    read = trace.take((trace.kind == READ) & (trace.offset < 0.25 * REFERENCE_BYTES))
    # The small files are copied first, so that the large one is not read to its end.
    assert int(read.end.max()) < 0.1 * REFERENCE_BYTES + 0.7 * 6.86e9


def test_foreground_and_background_are_what_they_say() -> None:
    figures = {name: figures_of(generate(load, Drive(SMALL), 1)) for name, load in LOADS.items()}
    assert figures["media-mail-export"].read_share > 0.9
    assert 0.3 < figures["dual-copy"].read_share < 0.7
    assert (
        figures["copy-mail-import"].sequential_share
        < figures["copy-archive-create"].sequential_share
    )
    assert all(each.largest_bytes == 64 * KIB for each in figures.values())


def test_fragments_break_sequences_and_keep_every_byte() -> None:
    file = Sequential(Place(0.1, 100 << 20), "read", 64 * KIB, 50e6)
    whole = file.requests(Drive(REFERENCE_BYTES), chance(), 0)
    broken = file.requests(Drive(REFERENCE_BYTES, fragments=100), chance(), 0)
    assert figures_of(whole).sequential_share == pytest.approx(1, abs=0.001)
    jumps = np.count_nonzero(broken.offset[1:] != broken.end[:-1])
    assert 90 <= jumps <= 100
    assert int(broken.length.sum()) == int(whole.length.sum())
    assert len(np.unique(broken.offset)) == len(broken)


def test_a_sequential_stream_has_its_rate_its_bursts_and_its_size() -> None:
    file = Sequential(Place(0.0, 100_000_000), "write", 64 * KIB, 10e6, burst=4)
    trace = file.requests(Drive(REFERENCE_BYTES), chance(), 0)
    assert trace.seconds == pytest.approx(10, rel=0.15)
    assert int(trace.length.sum()) == 100_000_000 // PAGE * PAGE
    assert (np.diff(trace.time_us) == 20).mean() == pytest.approx(0.75, abs=0.01)
    assert set(trace.kind.tolist()) == {WRITE}


def test_files_are_read_whole_and_lie_in_their_region() -> None:
    files = Files(Place(0.5, 1_000_000_000), "read", 64_000_000, 64_000, files_per_s=100.0)
    trace = files.requests(Drive(REFERENCE_BYTES), chance(), 0)
    assert int(trace.length.sum()) == pytest.approx(64_000_000, rel=0.2)
    begins = np.count_nonzero(~np.isin(trace.offset, trace.end))
    assert begins == pytest.approx(1000, rel=0.05)
    assert int(trace.offset.min()) >= REFERENCE_BYTES // 2
    assert int(trace.end.max()) <= REFERENCE_BYTES // 2 + 1_000_000_000


def test_random_requests_and_appends_come_at_their_rates_until_the_end() -> None:
    drive = Drive(REFERENCE_BYTES)
    index = Random(Place(0.5, 1 << 20), "read", 4 * KIB, per_s=100.0, burst=3)
    trace = index.requests(drive, chance(), 50_000_000)
    assert len(trace) == pytest.approx(15_000, rel=0.1)
    assert int(trace.time_us[-1]) <= 50_000_000 + 3 * 20
    assert len(np.unique(trace.offset)) == 256
    journal = Appends(Place(0.5, 1 << 20), 4 * KIB, per_s=100.0).requests(
        drive, chance(), 50_000_000
    )
    steps = np.diff(journal.offset)
    assert set(steps.tolist()) == {4096, 4096 - (1 << 20)}


@pytest.mark.parametrize(
    ("capacity", "fragments", "said"),
    [
        (LEAST_BYTES - 1, 1, "a capacity of 67108863 bytes"),
        (SMALL, 0, "0 fragments"),
        (SMALL, 100_001, "100001 fragments"),
    ],
)
def test_what_cannot_be_is_refused(capacity: int, fragments: int, said: str) -> None:
    with pytest.raises(Misuse, match=said):
        Drive(capacity, fragments)


def test_figures_of_a_trace_by_hand() -> None:
    rows = [
        (1, READ, 0, 4096),
        (2, WRITE, 4096, 512),
        (3, READ, 4096, 8192),
        (4, 3, 0, 0),
        (5, READ, 65536, 512),
        (2_000_000, 2, 0, 1 << 20),
    ]
    found = figures_of(trace_of(*zip(*rows, strict=True)))
    assert (found.requests, found.reads, found.writes) == (6, 3, 1)
    assert (found.trims, found.syncs, found.read_share) == (1, 1, 0.75)
    assert (found.bytes_read, found.bytes_written) == (12800, 512)
    assert (found.mean_bytes, found.median_bytes, found.largest_bytes) == (3328, 2304, 8192)
    assert (found.sequential_share, found.lowest, found.highest) == (0.25, 0, 66048)
    assert found.seconds == 2.0


def test_a_trace_that_only_syncs_has_figures() -> None:
    found = figures_of(trace_of([1], [3], [0], [0]))
    assert (found.requests, found.mean_bytes, found.lowest, found.highest) == (1, 0, 0, 0)
