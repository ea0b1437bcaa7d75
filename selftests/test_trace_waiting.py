"""How long requests wait for a drive that takes one at a time, in their order."""

from pathlib import Path

import numpy as np
import pytest

from bench.multitasking import KINDS, REQUESTS
from bench.virtual_drive import IDENTITY
from leadline.trace.loads import LOADS, generate
from leadline.trace.patterns import Drive
from leadline.trace.trace import READ, SYNC, WRITE, Trace, trace_of
from leadline.trace.waiting import waited
from leadline.virtual.profile import Profile, load_profile
from leadline.virtual.service import Service
from selftests.simulated_replay import _Replay, replay

ALTERNATE = trace_of(range(4), [READ, WRITE, READ, WRITE], [0, 4096, 8192, 12288], 4096)


def of(*took_s: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array(took_s)


def test_one_in_flight_waits_for_nothing() -> None:
    reads, writes = waited(ALTERNATE, of(1, 2, 3, 4), 1)
    assert (reads.count, reads.mean_s) == (2, 2.0)
    assert (writes.count, writes.mean_s) == (2, 3.0)


def test_each_waits_for_those_that_were_submitted_before_it_and_are_not_done() -> None:
    """The first two at once; then each when the one two before it is done."""
    reads, writes = waited(ALTERNATE, of(1, 2, 3, 4), 2)
    assert reads.mean_s == pytest.approx((1 + (2 + 3)) / 2)
    assert writes.mean_s == pytest.approx(((1 + 2) + (3 + 4)) / 2)
    reads, writes = waited(ALTERNATE, of(1, 2, 3, 4), 32)
    assert reads.mean_s == pytest.approx((1 + (1 + 2 + 3)) / 2)
    assert writes.mean_s == pytest.approx(((1 + 2) + (1 + 2 + 3 + 4)) / 2)


def test_nothing_waits_across_a_sync() -> None:
    """fio submits nothing until it is done, and it is done when all before it are."""
    kinds = [SYNC, READ, READ, SYNC, SYNC, READ, READ, SYNC]
    trace = trace_of(range(8), kinds, 0, [0 if kind == SYNC else 4096 for kind in kinds])
    reads, writes = waited(trace, of(1, 2, 3, 4), 8)
    assert reads.mean_s == pytest.approx((1 + (1 + 2) + 3 + (3 + 4)) / 4)
    assert (writes.count, writes.mean_s) == (0, 0.0)


def test_times_of_other_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="3 times of 4 requests"):
        waited(ALTERNATE, of(1, 2, 3), 2)


def disk(folder: Path) -> Profile:
    path = folder / "profile.yaml"
    path.write_text(IDENTITY + KINDS["does not reorder"].profile)
    return load_profile(path)


def alone(profile: Profile, trace: Trace) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """How long each takes, one at a time."""
    done = _Replay(Service(profile, cycle=0, power_on_ns=0), trace, depth=1, gap_ns=20_000)
    done.run(1)
    by_kind = {kind: iter(done.took_s[kind]) for kind in (True, False)}
    return np.array([next(by_kind[bool(kind == READ)]) for kind in trace.kind])


@pytest.mark.parametrize("name", LOADS)
def test_it_is_what_a_host_that_keeps_the_order_shows(tmp_path: Path, name: str) -> None:
    """The loads on a disk of moving parts, with all that wait in the host's queue."""
    profile, load = disk(tmp_path), LOADS[name]
    trace = generate(load, Drive(profile.capacity_bytes), 1).take(slice(REQUESTS))
    shown = replay(profile, trace, load.in_flight, 1, cycle=0, gap_ns=20_000)
    reads, writes = waited(trace, alone(profile, trace), load.in_flight)
    assert (reads.count, writes.count) == (shown.reads.count, shown.writes.count)
    assert reads.mean_s == pytest.approx(shown.reads.mean_s, rel=1e-6)
    assert writes.mean_s == pytest.approx(shown.writes.mean_s, rel=1e-6)
