"""When a virtual drive answers, in simulated time: a host that keeps a depth, and no sleeping."""

import errno
import itertools
from statistics import fmean, quantiles

import pytest

from leadline.virtual.faults import DepthFault, Faults, LongTail, SlowStart, Stall
from leadline.virtual.profile import Profile
from leadline.virtual.request_log import Request, true_rates
from leadline.virtual.scheduling import Op
from leadline.virtual.service import Service
from selftests.simulated_host import SECOND, Host

pytestmark = pytest.mark.measures

MS = 1_000_000


def drive(faults: Faults | None = None, **fields: float | str) -> Profile:
    settings: dict[str, object] = {"channels": 8, "read_ms": 10, "write_ms": 3, **fields}
    return Profile.model_validate(
        {"model": "D", "serial": "S", "firmware": "1", "capacity_bytes": 1 << 30, **settings}
        | {"faults": faults or Faults()}
    )


def rate(profile: Profile, depth: int, seconds: float = 20.0) -> float:
    return Host(profile).offer(depth, seconds)


@pytest.mark.parametrize("channels", [1, 4, 8, 32])
def test_the_knee_is_at_the_channel_count(channels: int) -> None:
    profile = drive(channels=channels)
    full = channels / 0.010
    assert rate(profile, 1) == pytest.approx(1 / 0.0103, rel=0.01)
    assert rate(profile, channels) == pytest.approx(full / 1.03, rel=0.02)
    assert rate(profile, 2 * channels) == pytest.approx(full, rel=0.01)
    assert rate(profile, 4 * channels) == pytest.approx(full, rel=0.01)


# By the formulas of each distribution of mean 1, at its quartiles: a normal one's are 0.6745 of its
# deviation away; a lognormal one's sigma is sqrt(ln(1 + deviation^2)), its median exp(-sigma^2/2);
# an exponential one's are -ln(1 - share), whatever the deviation is said to be.
QUARTILES = {
    ("normal", 0.2): (0.8651, 1.0, 1.1349),
    ("lognormal", 0.2): (0.8579, 0.9806, 1.1208),
    ("lognormal", 0.5): (0.6505, 0.8944, 1.2299),
    ("exponential", 0.2): (0.2877, 0.6931, 1.3863),
}


@pytest.mark.parametrize("op", ["read", "write"])
@pytest.mark.parametrize(("shape", "quartiles"), QUARTILES.items(), ids=str)
def test_lone_requests_take_the_profiles_time_in_its_distribution(
    shape: tuple[str, float], quartiles: tuple[float, ...], op: Op
) -> None:
    """The median and the quartiles beside it: the mean alone is the same for every distribution."""
    distribution, jitter = shape
    profile = drive(distribution=distribution, jitter=jitter)
    host = Host(profile)
    host.offer(1, 100.0, op=op)
    took_ms = [(each.end_ns - each.start_ns) / MS for each in host.log]
    mean_ms = profile.read_ms if op == "read" else profile.write_ms
    assert fmean(took_ms) == pytest.approx(mean_ms, rel=0.02)
    found = [each / mean_ms for each in quantiles(took_ms, n=4)]
    assert found == pytest.approx(quartiles, abs=0.025)


def test_a_serialising_drive_gains_only_what_overlaps() -> None:
    profile = drive(Faults(serialise=True), read_ms=7, overhead_ms=1.8)
    host_ms = 0.3
    assert rate(profile, 8) / rate(profile, 1) == pytest.approx((7 + 1.8 + host_ms) / 7, rel=0.01)


def test_requests_are_answered_in_the_order_they_came() -> None:
    service = Service(drive(channels=1), cycle=0, power_on_ns=0)
    due = [service.admit("read", 0, 8, arrival).due_ns for arrival in range(100)]
    assert due == sorted(due)


def test_a_dip_is_at_its_depth_alone() -> None:
    profile = drive(Faults(slow_depths=(DepthFault(at=11, factor=2),)))
    rates = {depth: rate(profile, depth) for depth in (10, 11, 12)}
    assert rates[10] == pytest.approx(800, rel=0.02)
    assert rates[11] == pytest.approx(400, rel=0.02)
    assert rates[12] == pytest.approx(800, rel=0.02)


def test_a_drive_recovers_when_the_slow_depth_has_passed() -> None:
    host = Host(drive(Faults(slow_depths=(DepthFault(at=11, factor=2),))))
    assert host.offer(11, 1) == pytest.approx(400, rel=0.05)
    assert host.offer(10, 1) == pytest.approx(800, rel=0.05)


def test_throughput_collapses_beyond_a_depth() -> None:
    profile = drive(Faults(slow_depths=(DepthFault(beyond=16, factor=3),)))
    assert rate(profile, 16) == pytest.approx(800, rel=0.02)
    assert rate(profile, 17) == pytest.approx(800 / 3, rel=0.02)
    assert rate(profile, 31) == pytest.approx(800 / 3, rel=0.02)


def test_the_share_of_reads_that_fail_and_no_writes() -> None:
    host = Host(drive(Faults(read_error_rate=0.01)))
    host.offer(8, 20)
    reads = len(host.log)
    assert sum(r.error == errno.EIO for r in host.log) / reads == pytest.approx(0.01, rel=0.3)
    host.offer(8, 5, op="write")
    assert not any(r.error for r in host.log[reads:])


def test_a_bad_sector_fails_the_reads_that_cover_it() -> None:
    service = Service(drive(Faults(bad_lbas=(100,))), cycle=0, power_on_ns=0)
    spans = {(92, 8): 0, (93, 8): errno.EIO, (100, 1): errno.EIO, (101, 8): 0}
    assert {span: service.admit("read", *span, 0).error for span in spans} == spans
    assert service.admit("write", 100, 1, 0).error == 0


def test_the_same_seed_gives_the_same_run_and_another_another() -> None:
    faults = Faults(read_error_rate=0.1, long_tail=LongTail(one_in=50, times=20))

    def run(seed: int, cycle: int) -> list[Request]:
        host = Host(drive(faults, seed=seed), cycle=cycle)
        host.offer(8, 2)
        return host.log

    assert run(1, 0) == run(1, 0)
    assert run(1, 0) != run(2, 0)
    assert run(1, 0) != run(1, 1)


def test_a_fault_leaves_the_course_of_the_others_as_it_was() -> None:
    def failed(faults: Faults) -> list[int]:
        service = Service(drive(faults), cycle=0, power_on_ns=0)
        return [n for n in range(2000) if service.admit("read", 0, 8, n * SECOND).error]

    tail = LongTail(one_in=10, times=9)
    assert failed(Faults(read_error_rate=0.01)) == failed(
        Faults(read_error_rate=0.01, long_tail=tail)
    )


def test_the_long_tail_is_as_long_and_as_rare_as_said() -> None:
    host = Host(drive(Faults(long_tail=LongTail(one_in=100, times=50)), jitter=0))
    host.offer(1, 100)
    took = [(r.end_ns - r.start_ns) // MS for r in host.log]
    assert set(took) == {10, 500}
    assert took.count(500) / len(took) == pytest.approx(0.01, rel=0.4)


def test_slow_at_first() -> None:
    host = Host(drive(Faults(slow_after_power_on=SlowStart(seconds=5, factor=4))))
    assert host.offer(8, 4.9) == pytest.approx(200, rel=0.05)
    host.offer(1, 0.3)
    assert host.offer(8, 5) == pytest.approx(777, rel=0.05)


def test_nothing_is_answered_before_the_drive_is_ready() -> None:
    service = Service(drive(ready_s=3, jitter=0), cycle=0, power_on_ns=7 * SECOND)
    assert service.admit("read", 0, 8, 8 * SECOND).due_ns == 10 * SECOND + 10 * MS
    assert service.admit("flush", 0, 0, 8 * SECOND).due_ns == 10 * SECOND + 2 * MS
    assert service.admit("read", 0, 8, 12 * SECOND).due_ns == 12 * SECOND + 10 * MS


def test_stalls_come_when_said_and_work_goes_on_after_them() -> None:
    stalls = (Stall(after_s=2, seconds=0.5, every_s=3),)
    host = Host(drive(Faults(stalls=stalls), jitter=0))
    host.offer(8, 10)
    ends = sorted(r.end_ns for r in host.log)
    gaps = [(a, b) for a, b in itertools.pairwise(ends) if b - a > 100 * MS]
    assert [round(a / SECOND) for a, _ in gaps] == [2, 5, 8]
    assert all(500 * MS <= b - a <= 511 * MS for a, b in gaps)


def test_a_single_stall_is_single() -> None:
    service = Service(
        drive(Faults(stalls=(Stall(after_s=1, seconds=2),)), jitter=0), cycle=0, power_on_ns=0
    )
    due = [service.admit("read", 0, 8, at * SECOND).due_ns for at in (0, 2, 4, 1000)]
    assert service.admit("flush", 0, 0, 2 * SECOND).due_ns == 3 * SECOND + 2 * MS
    assert due == [10 * MS, 3 * SECOND + 10 * MS, 4 * SECOND + 10 * MS, 1000 * SECOND + 10 * MS]


def test_a_request_that_touches_no_flash_takes_no_channel() -> None:
    service = Service(drive(channels=1, overhead_ms=1, jitter=0), cycle=0, power_on_ns=0)
    assert service.admit("read", 0, 8, 0, touches_flash=False).due_ns == 1 * MS
    assert service.admit("read", 0, 8, 0).due_ns == 11 * MS


def test_the_log_tells_the_rate_at_each_depth() -> None:
    faults = Faults(slow_depths=(DepthFault(at=11, factor=2),))
    truth = {depth: rate(drive(faults), depth) for depth in (1, 4, 8, 11, 31)}
    host = Host(drive(faults))
    for _ in range(20):  # short slices, so that their beginnings and ends weigh much
        for depth in truth:
            host.offer(depth, 0.45)
    rates = true_rates(host.log)
    assert set(rates) >= set(truth)
    for depth, per_second in truth.items():
        assert rates[depth].per_second == pytest.approx(per_second, rel=0.03)
        assert rates[depth].mean_in_flight == pytest.approx(depth, rel=0.06)
