"""What chance, faults and moods do to a virtual drive's requests, in simulated time."""

import errno
import itertools
import math
import statistics
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.virtual.profile import Profile
from leadline.virtual.service import Service
from leadline.virtual.slowing import noise
from selftests.simulated_host import SECOND, Host, ascending, longest_ns, scattered

MS = 1_000_000
KIB64 = 128
SECTORS = (1 << 30) // 512


def drive(faults: dict[str, object] | None = None, **fields: object) -> Profile:
    settings: dict[str, object] = {"channels": 8, "read_ms": 10, "write_ms": 10, "jitter": 0}
    return Profile.model_validate(
        {"model": "D", "serial": "S", "firmware": "1", "capacity_bytes": 1 << 30, **settings}
        | {"faults": faults or {}}
        | fields
    )


def disk(faults: dict[str, object] | None = None) -> Profile:
    rotation = {"rpm": 7200, "mb_per_s": 150}
    return drive(faults, channels=1, read_ms=0.2, write_ms=0.2, rotation=rotation)


@pytest.mark.parametrize("distribution", ["normal", "lognormal", "exponential"])
@pytest.mark.parametrize("deviation", [0.05, 0.25])
def test_service_times_have_the_mean_and_deviation_said(
    distribution: str, deviation: float
) -> None:
    stretch = noise(distribution, deviation)
    normals = [NormalDist().inv_cdf((n + 0.5) / 20_000) for n in range(20_000)]
    factors = [stretch(normal) for normal in normals]
    expected = 1.0 if distribution == "exponential" else deviation
    assert statistics.mean(factors) == pytest.approx(1, rel=0.001)
    assert statistics.pstdev(factors) == pytest.approx(expected, rel=0.02)
    assert factors == sorted(factors)


@pytest.mark.parametrize("deviation", [0.5, 1.0])
def test_a_normal_service_time_of_any_deviation_has_the_mean_said(deviation: float) -> None:
    stretch = noise("normal", deviation)
    factors = [stretch(NormalDist().inv_cdf((n + 0.5) / 20_000)) for n in range(20_000)]
    assert statistics.mean(factors) == pytest.approx(1, rel=0.001)


@given(st.sampled_from(["normal", "lognormal", "exponential"]), st.floats(0, 1), st.floats(-8, 8))
def test_no_service_time_is_below_nothing(
    distribution: str, deviation: float, normal: float
) -> None:
    factor = noise(distribution, deviation)(normal)
    assert factor >= 0
    assert math.isfinite(factor)


def test_the_distribution_of_the_profile_is_that_of_the_drive() -> None:
    host = Host(drive(jitter=0.05, distribution="exponential"))
    host.offer(1, 60)
    took_ms = [(r.end_ns - r.start_ns) / MS for r in host.log]
    assert statistics.mean(took_ms) == pytest.approx(10, rel=0.05)
    assert statistics.median(took_ms) == pytest.approx(10 * math.log(2), rel=0.1)


def test_large_requests_take_longer_by_their_kind_and_size() -> None:
    service = Service(
        drive(read_ms=1, write_ms=2, read_ms_per_mib=8, write_ms_per_mib=16),
        cycle=0,
        power_on_ns=0,
    )
    due = [service.admit("read", 0, sectors, 0).due_ns / MS for sectors in (2048, 1024)] + [
        service.admit("write", 0, 1024, 0).due_ns / MS
    ]
    assert due == [9, 5, 10]


def test_all_requests_share_the_link() -> None:
    profile = drive(read_ms=1, link_mb_per_s=500)
    for depth in (8, 32):
        rate = Host(profile).offer(depth, 2, sectors=2048)
        assert rate * 2048 * 512 / 1e6 == pytest.approx(500, rel=0.01)
    alone = Host(profile, gap_ns=0).offer(1, 2, sectors=2048)
    assert 1000 / alone == pytest.approx(1 + 2**20 / 500e3, rel=0.01)


def test_a_request_that_hangs_keeps_no_other_from_the_link() -> None:
    service = Service(
        drive({"end_of_range": {"sectors": 1, "seconds": 60}}, link_mb_per_s=512),
        cycle=0,
        power_on_ns=0,
    )
    assert service.admit("read", SECTORS - 8, 8, 0).due_ns > 60 * SECOND
    assert service.admit("read", 0, 8, 0).due_ns == 10 * MS + 2 * 8 * 1000


def test_queueing_costs_where_the_profile_says_so() -> None:
    profile = drive(channels=1, queueing_ms=5)
    assert Host(profile, gap_ns=0).offer(1, 10) == pytest.approx(100, rel=0.01)
    assert Host(profile, gap_ns=0).offer(8, 10) == pytest.approx(1000 / 15, rel=0.01)


def test_it_slows_down_as_it_warms_and_stays_so() -> None:
    host = Host(drive(warm_up={"seconds": 100, "factor": 1.1}), gap_ns=0)
    rates = [host.offer(8, 10) for _ in range(12)]
    assert rates[0] == pytest.approx(800 / 1.005, rel=0.004)
    assert rates[4] == pytest.approx(800 / 1.045, rel=0.004)
    assert rates[10:] == pytest.approx([800 / 1.1] * 2, rel=0.004)


def test_garbage_is_collected_after_so_much_has_been_written() -> None:
    collection = {"every_mib": 64, "seconds": 2, "write_factor": 10, "read_factor": 3}
    profile = drive(garbage_collection=collection)

    def beginnings(seed: int) -> list[int]:
        host = Host(profile.model_copy(update={"seed": seed}))
        host.offer(8, 120, op="write", sectors=KIB64)
        slow = [r.start_ns for r in host.log if r.end_ns - r.start_ns > 90 * MS]
        return [b for a, b in itertools.pairwise([0, *slow]) if b - a > SECOND // 5]

    begun = beginnings(1)
    # 50 MiB/s, and 5 while it lasts: 64 MiB take 1.3 s, and then come 2 s with 10 MiB in them.
    assert 35 <= len(begun) <= 50
    gaps = [b - a for a, b in itertools.pairwise(begun)]
    assert max(gaps) > 1.2 * min(gaps)
    assert begun == beginnings(1)
    assert begun != beginnings(2)


def test_garbage_slows_reads_by_their_own_factor_and_comes_with_no_reads() -> None:
    collection = {"every_mib": 1, "seconds": 2, "write_factor": 10, "read_factor": 3}
    host = Host(drive(garbage_collection=collection))
    host.offer(8, 5)
    assert longest_ns(host.log) == 10 * MS
    host.offer(1, 0.3, op="write", sectors=2048)
    reads = len(host.log)
    host.offer(1, 1)
    assert {r.end_ns - r.start_ns for r in host.log[reads:]} == {30 * MS}


def test_streams_interfere_when_they_are_queued() -> None:
    profile = drive({"interfering_streams": {"factor": 20}}, read_ms=1)
    healthy = drive(read_ms=1)
    alone = Host(profile).megabytes_per_second(1, 5)
    assert alone == pytest.approx(Host(healthy).megabytes_per_second(1, 5))
    together = Host(profile).megabytes_per_second(8, 5)
    assert together < 0.1 * Host(healthy).megabytes_per_second(8, 5)
    assert together < alone
    at_random = Host(healthy).offer(8, 5, lbas=scattered(profile))
    assert Host(profile).offer(8, 5, lbas=scattered(profile)) == pytest.approx(at_random, rel=0.01)


def test_streams_on_a_disk_lose_their_read_ahead_when_they_are_queued() -> None:
    profile = disk({"interfering_streams": {"factor": 1}})
    for count in (2, 8):
        healthy = Host(disk()).megabytes_per_second(count, 10)
        assert Host(profile).megabytes_per_second(count, 10) < 0.6 * healthy
    assert Host(profile).megabytes_per_second(1, 5) == pytest.approx(150, rel=0.02)


def test_more_streams_than_are_remembered_do_not_grow_what_is_kept() -> None:
    profile = drive({"interfering_streams": {"factor": 20}}, read_ms=1)
    host = Host(profile)
    lbas = itertools.chain.from_iterable(
        zip(*(ascending(8, stream * 10_000) for stream in range(65)), strict=True)
    )
    assert host.offer(8, 5, lbas=lbas) > 5000  # no read goes on where one of the last 64 ended


@pytest.mark.parametrize(
    ("fails", "seconds", "error"), [(True, 0.0, errno.EIO), (False, 7.0, 0), (True, 7.0, errno.EIO)]
)
def test_requests_over_a_size_fail_or_hang(fails: bool, seconds: float, error: int) -> None:
    fault = {"over_kib": 64, "fails": fails, "seconds": seconds}
    service = Service(drive({"large_requests": fault}), cycle=0, power_on_ns=0)
    within = service.admit("write", 0, KIB64, 0)
    above = service.admit("write", 0, KIB64 + 1, 0)
    assert (within.error, within.due_ns) == (0, 10 * MS)
    assert (above.error, above.due_ns) == (error, round((seconds + 0.01) * SECOND))


def test_the_last_sectors_hang() -> None:
    fault = {"sectors": 8, "seconds": 40}
    service = Service(drive({"end_of_range": fault}), cycle=0, power_on_ns=0)
    due_s = [service.admit("read", lba, 8, 0).due_ns / SECOND for lba in (0, SECTORS - 16)]
    assert due_s == [0.01, 0.01]
    assert service.admit("read", SECTORS - 15, 8, 0).due_ns == 40 * SECOND + 10 * MS


def test_one_request_starves_while_newer_ones_are_served() -> None:
    profile = drive({"starvation": {"one_in": 300, "seconds": 5}})
    host = Host(profile)
    host.offer(16, 20)
    # Of those that came before the last seconds, in which the load ends.
    waited_s = [(r.end_ns - r.start_ns) / SECOND for r in host.log if r.start_ns < 14 * SECOND]
    starved = [took for took in waited_s if took > 4.9]
    assert len(waited_s) / 600 < len(starved) < len(waited_s) / 150
    assert max(starved) < 5.1
    assert all(took < 0.05 for took in waited_s if took not in starved)
    alone = Host(profile)
    alone.offer(1, 20)
    assert longest_ns(alone.log) == 10 * MS


def test_a_starved_request_is_served_when_the_load_ends() -> None:
    host = Host(drive({"starvation": {"one_in": 20, "seconds": 3600}}))
    host.offer(8, 2)
    assert 0.5 * SECOND < longest_ns(host.log) < 2.2 * SECOND


def test_queued_reads_are_now_and_then_answered_with_other_data() -> None:
    def wrong(depth: int) -> tuple[int, int]:
        service = Service(drive({"wrong_data": {"one_in": 50}}), cycle=0, power_on_ns=0)
        for _ in range(depth - 1):
            service.admit("read", 0, 8, 0)
        asked = [(n * 8, service.admit("read", n * 8, 8, 0)) for n in range(5000)]
        for lba, answer in asked[:: 1 if depth > 1 else 5001]:
            assert answer.lba == lba or (answer.lba % 8 == 0 and 0 <= answer.lba <= SECTORS - 8)
        assert service.admit("write", 800, 8, 0).lba == 800
        return sum(answer.lba != lba for lba, answer in asked), len(asked)

    count, of = wrong(2)
    assert count / of == pytest.approx(0.02, rel=0.4)


def test_a_lone_read_is_answered_with_its_own_data() -> None:
    service = Service(drive({"wrong_data": {"one_in": 1}}), cycle=0, power_on_ns=0)
    for n in range(100):
        assert service.admit("read", n * 8, 8, n * SECOND).lba == n * 8
        service.complete()
    service.admit("read", 0, 8, 200 * SECOND)
    assert service.admit("read", 0, 8, 200 * SECOND).lba != 0


def test_a_fault_leaves_the_jitter_as_it_was() -> None:
    def run(faults: dict[str, object]) -> list[int]:
        service = Service(drive(faults, jitter=0.2), cycle=0, power_on_ns=0)
        return [service.admit("read", n * 80, 8, n * SECOND).due_ns for n in range(500)]

    others: dict[str, object] = {
        "wrong_data": {"one_in": 2},
        "end_of_range": {"sectors": 1, "seconds": 1},
        "large_requests": {"over_kib": 64},
        "interfering_streams": {"factor": 2},
    }
    assert run({}) == run(others)
