"""Workloads, settings, and what a slice's requests say: rate, depth held, and what voids it."""

import heapq
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import Misuse
from leadline.load.measure import Measured, measure
from leadline.load.output import Requests
from leadline.load.slices import (
    DEVICE_DEPTH,
    DRIVE_DEPTH,
    FIO_CPU,
    IO_ERRORS,
    LATE_START,
    LITTLES_LAW,
    LOG_INCOMPLETE,
    OVERLAP,
    TOO_SHORT,
    VOID_MEANINGS,
    Slice,
    SliceSetting,
    offered_for,
    void_names,
)
from leadline.load.workload import Workload, random_read

CLOCK = 1_800_000_000.0
"""Some second of the rig's clock, as fio's log has it."""


def closed_loop(
    depth: int,
    channels: int,
    service_s: float,
    *,
    seconds: float = 0.5,
    opened_late_s: float = 0.0,
    stall: tuple[float, float] = (math.inf, 0.0),
) -> Requests:
    """The requests of a slice on a drive that serves `channels` at once, as fio logs them.

    fio counts its time from CLOCK; the first request is issued `opened_late_s` after it.
    `stall` (at, length) is a time in which fio issues nothing.
    """
    free = [0.0] * channels
    in_flight: list[tuple[float, float]] = []
    requests = []
    now = opened_late_s
    for _ in range(depth):
        _issue(in_flight, free, now, service_s)
    while in_flight:
        now, issued = heapq.heappop(in_flight)
        requests.append((math.floor((CLOCK + now) * 1e3) / 1e3, now - issued))
        held_until = stall[0] + stall[1]
        issue_at = held_until if stall[0] <= now < held_until else now
        if issue_at < seconds:
            _issue(in_flight, free, issue_at, service_s)
    return requests


def _issue(
    in_flight: list[tuple[float, float]], free: list[float], now: float, service_s: float
) -> None:
    starts = max(now, heapq.heappop(free))
    heapq.heappush(free, starts + service_s)
    heapq.heappush(in_flight, (starts + service_s, now))


def measured(requests: Requests, *, seconds: float = 0.5, offered: int = 16) -> Measured:
    ran_s = max(done for done, _ in requests) - CLOCK
    return measure(requests, seconds=seconds, ran_s=ran_s, offered=offered)


def a_slice(**changes: Any) -> Slice:
    good = Slice(
        setting=SliceSetting(device_depth=8, offered_depth=16),
        job="s00.0",
        seed=1,
        rate=800.0,
        completions=320,
        window_s=0.4,
        mean_latency_s=0.02,
        p99_latency_s=0.021,
        little_ratio=1.0,
        in_flight_by_law=16.0,
        started=0.0,
        began=CLOCK,
        drain_s=0.02,
        gap_s=0.01,
        device_depth=8,
        cpu=0.05,
        fio_version="fio-3.33",
    )
    return replace(good, **changes)


def voids(logged: int = 420, counted: int = 420, **changes: Any) -> tuple[str, ...]:
    return void_names(a_slice(**changes), logged=logged, counted=counted)


# Workloads and settings.


def test_random_read_is_4_kib_over_the_whole_drive() -> None:
    load = random_read()
    assert (load.name, load.rw, load.block_bytes, load.span) == (
        "random_read",
        "randread",
        4096,
        None,
    )
    assert not load.writes


@pytest.mark.parametrize("rw", ["randwrite", "write"])
def test_writes_are_known_as_such(rw: str) -> None:
    assert Workload("w", rw=rw).writes
    assert Workload("mix", rw="randrw", read_percent=70).writes


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "Random Read"}, "name 'Random Read'"),
        ({"name": "x\nfilename=/dev/sdb"}, "name"),
        ({"rw": "trim"}, "rw 'trim'"),
        ({"block_bytes": 0}, "block_bytes 0"),
        ({"block_bytes": 1000}, "block_bytes 1000"),
        ({"rw": "randrw"}, "read_percent None"),
        ({"rw": "randrw", "read_percent": 100}, "read_percent 100"),
        ({"read_percent": 50}, "randread is no mix"),
        ({"span": (100, 8192)}, "span offset 100"),
        ({"span": (-4096, 8192)}, "span offset -4096"),
        ({"span": (0, 0)}, "span size 0"),
    ],
)
def test_a_workload_that_means_nothing_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse, match=said):
        Workload(**({"name": "x"} | fields))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"device_depth": 0}, "device depth 0"),
        ({"offered_depth": 0}, "offered depth 0"),
        ({"offered_depth": 5, "jobs": 2}, "offered depth 5 over 2"),
        ({"jobs": 0}, "0 jobs"),
        ({"seconds": 0.1}, "a slice of 0.1 s"),
        ({"seconds": math.nan}, "a slice of nan s"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse, match=said):
        SliceSetting(**({"device_depth": 8, "offered_depth": 16} | fields))


@pytest.mark.parametrize(
    ("depth", "offered"),
    [(1, 5), (2, 6), (3, 9), (8, 24), (16, 48), (32, 64), (33, 65), (128, 160), (254, 286)],
)
def test_offered_depth_keeps_the_drive_supplied(depth: int, offered: int) -> None:
    assert offered_for(depth) == offered


def test_offered_depth_stays_within_what_the_block_layer_queues() -> None:
    assert offered_for(32, nr_requests=32) == 32
    assert offered_for(1, nr_requests=64) == 5


# Measuring.


@pytest.mark.parametrize(
    ("depth", "channels", "rate"), [(5, 1, 100.0), (16, 8, 800.0), (1, 1, 100.0), (64, 32, 3200.0)]
)
def test_rate_and_latency_of_a_known_drive(depth: int, channels: int, rate: float) -> None:
    found = measured(closed_loop(depth, channels, 0.0100003), offered=depth)
    assert found.rate == pytest.approx(rate, rel=0.03)
    assert found.mean_latency_s == pytest.approx(depth / rate, rel=0.03)
    assert found.in_flight == pytest.approx(depth, rel=0.01)
    assert found.window_s == pytest.approx(0.4, abs=0.002)


def test_the_drain_is_not_counted() -> None:
    """After the end nothing is issued, and a drive of 8 channels slows down: 64 to drain."""
    requests = closed_loop(64, 8, 0.0100003)
    found = measured(requests)
    assert found.drain_s == pytest.approx(0.08, abs=0.011)
    assert found.rate == pytest.approx(800, rel=0.03)
    assert found.last == max(done for done, _ in requests)


def test_a_device_that_opens_late_shortens_the_window_and_not_the_rate() -> None:
    """fio counts a slice from before it opens the device: here 50 ms of it are lost."""
    found = measured(closed_loop(16, 8, 0.0100003, opened_late_s=0.05))
    assert found.window_s == pytest.approx(0.35, abs=0.002)
    assert found.rate == pytest.approx(800, rel=0.03)
    assert found.in_flight == pytest.approx(16, rel=0.01)


def test_a_queue_that_was_not_kept_full_shows_in_its_mean_length() -> None:
    found = measured(closed_loop(16, 8, 0.0100003, stall=(0.2, 0.1)))
    assert found.in_flight / 16 < 0.85


def test_a_queue_that_fills_at_the_pace_of_the_drive_counts_from_when_it_is_full() -> None:
    """128 are offered and the block layer admits 32: io_submit waits for each of the others."""
    filling = [max(0, number - 32) * 0.01 for number in range(128)]
    answered = [filling[-1] + 0.01 * (number + 1) for number in range(800)]
    issued = [*filling, *answered]
    requests = [(CLOCK + at, at - issued[number]) for number, at in enumerate(answered)]
    found = measured(requests, seconds=7.5, offered=128)
    assert found.opens == pytest.approx(CLOCK + filling[-1], abs=0.002)
    assert found.in_flight == pytest.approx(128, rel=0.01)
    assert found.rate == pytest.approx(100, rel=0.03)
    assert measured(requests, seconds=7.5, offered=32).in_flight < 0.97 * 128, "which is void"


def test_a_queue_that_was_never_filled_is_measured_from_the_start() -> None:
    requests = closed_loop(16, 8, 0.0100003)
    found, full = (measured(requests, offered=offered) for offered in (10_000, 16))
    assert found == full


def test_threads_that_join_in_late_are_waited_for() -> None:
    """Eight requests, the last four from 0.15 s on; each takes 10 ms beside the others."""
    early = closed_loop(4, 8, 0.01)
    late = [(done + 0.15, latency) for done, latency in closed_loop(4, 8, 0.01, seconds=0.35)]
    found = measure([*early, *late], seconds=0.5, ran_s=0.5, offered=8, joined_s=0.15)
    assert found.in_flight == pytest.approx(8, rel=0.01)
    assert found.rate == pytest.approx(800, rel=0.03)
    assert found.window_s == pytest.approx(0.25, abs=0.02)
    assert measure([*early, *late], seconds=0.5, ran_s=0.5, offered=8).in_flight < 7.7


def test_what_completes_before_the_window_does_not_count() -> None:
    slow_start = [(CLOCK + 0.05, 0.05)] * 5000 + closed_loop(16, 8, 0.0100003)
    assert measured(slow_start).rate == pytest.approx(800, rel=0.03)


def test_p99_is_a_latency_that_was_seen() -> None:
    requests = [(CLOCK + 0.1 + n / 1000, 0.001 if n % 50 else 0.2) for n in range(400)]
    assert measured(requests).p99_latency_s == 0.2


def test_no_requests_measure_nothing() -> None:
    assert measure([], seconds=0.5, ran_s=0.5, offered=1).rate == 0.0


def test_requests_of_an_instant_measure_nothing() -> None:
    assert measure([(CLOCK, 0.001)], seconds=0.5, ran_s=0.001, offered=1).rate == 0.0


@given(
    st.integers(1, 64),
    st.integers(1, 32),
    st.floats(0.0005, 0.02),
    st.floats(0.0, 0.1),
)
def test_rate_and_depth_are_right_whatever_the_phase_of_the_window(
    depth: int, channels: int, service_s: float, opened_late_s: float
) -> None:
    """A slow drive completes a dozen requests: counting whole ones would be off by 8 %."""
    requests = closed_loop(depth, channels, service_s, opened_late_s=opened_late_s)
    found = measured(requests, offered=depth)
    # fio's log rounds each completion down, by up to a millisecond at either edge.
    assert found.in_flight == pytest.approx(depth, rel=0.01)
    # The first requests find an empty drive; where theirs is over before the window.
    if depth <= channels or depth * service_s < 0.05 * channels:
        assert found.rate == pytest.approx(min(depth, channels) / service_s, rel=0.01)


# What voids a slice.


def test_a_clean_slice_has_no_voids() -> None:
    assert voids() == ()
    assert a_slice().clean


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"little_ratio": 0.96}, LITTLES_LAW),
        ({"little_ratio": 1.04}, LITTLES_LAW),
        ({"device_depth": 7}, DEVICE_DEPTH),
        ({"device_depth": None}, DEVICE_DEPTH),
        ({"gap_s": -0.001}, OVERLAP),
        ({"cpu": 0.95}, FIO_CPU),
        ({"rate": 159.0}, TOO_SHORT),
        ({"logged": 419}, LOG_INCOMPLETE),
        ({"error": "Input/output error"}, IO_ERRORS),
        ({"window_s": 0.199}, LATE_START),
    ],
)
def test_each_defect_voids_by_its_name(changes: dict[str, Any], name: str) -> None:
    assert voids(**changes) == (name,)
    assert name in VOID_MEANINGS


@pytest.mark.parametrize(
    "changes",
    [
        {"little_ratio": 0.971},
        {"rate": 160.0},
        {"gap_s": None},
        {"gap_s": 0.0},
        {"cpu": 0.89},
        {"window_s": 0.201},
        {"setting": SliceSetting(None, 16), "device_depth": None},
    ],
)
def test_what_is_just_good_enough_counts(changes: dict[str, Any]) -> None:
    assert voids(**changes) == ()


def test_a_failed_request_explains_everything_else() -> None:
    assert voids(error="Input/output error", rate=0.0, little_ratio=0.0, gap_s=-1.0) == (IO_ERRORS,)


def test_of_a_slice_that_began_late_the_figures_tell_nothing() -> None:
    nothing: dict[str, Any] = {"rate": 0.0, "little_ratio": 0.0, "drive_depth": 1.0}
    assert voids(window_s=0.0, **nothing) == (LATE_START,)
    assert voids(window_s=0.01, rate=900.0, little_ratio=0.7) == (LATE_START,)
    assert voids(window_s=0.4, **nothing) == (DRIVE_DEPTH, TOO_SHORT, LITTLES_LAW)


def test_how_late_a_slice_began_is_what_its_window_lacks() -> None:
    assert a_slice(window_s=0.15).late_s == pytest.approx(0.25)
    assert a_slice(window_s=0.4001).late_s == 0.0


@pytest.mark.parametrize(
    ("device", "offered", "held", "void"),
    [
        (8, 16, 7.9, False),
        (8, 16, 6.0, True),
        (8, 4, 3.9, False),
        (32, 4, 2.9, False),  # all of it is with the drive, and nothing waits
        (32, 4, 2.7, True),
        (4, 4, 2.7, True),
        (4, 5, 3.1, True),
        (4, 5, 3.3, False),  # one waits: it is the queue that 80 % are of
        (8, 16, None, False),
        (28, 60, 22.3, True),
        (28, 60, 22.5, False),
        (32, 64, 22.3, True),
        (30, 62, 22.5, False),
        (32, 64, 22.5, False),  # no tag is left for a request to wait with: fio is woken for it
        (64, 96, 51.0, True),  # an adapter that takes more than 32
        (64, 96, 51.3, False),
        (32, 32, 22.3, True),
        (128, 128, 90.0, False),
    ],
)
def test_a_drive_that_held_less_than_it_may_was_not_measured_at_that_depth(
    device: int, offered: int, held: float | None, void: bool
) -> None:
    setting = SliceSetting(device, offered, 0.5)
    found = voids(setting=setting, device_depth=device, drive_depth=held)
    assert (DRIVE_DEPTH in found) is void
