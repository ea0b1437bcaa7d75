"""A disk under load, in simulated time: what queueing gains, and what streams get."""

import itertools

import pytest

from leadline.virtual.profile import Profile
from selftests.simulated_host import Addresses, Host, ascending, longest_ns, scattered

MS = 1_000_000
REVOLUTION_MS = 60_000 / 7200
TRANSFER_MS = 256 * 512 / 150e3


def disk(*, jitter: float = 0.05, write_cache: bool = True, **rotation: object) -> Profile:
    return Profile.model_validate(
        {
            "model": "D",
            "serial": "S",
            "firmware": "1",
            "capacity_bytes": 1 << 33,
            "channels": 1,
            "read_ms": 0.2,
            "write_ms": 0.2,
            "jitter": jitter,
            "write_cache": write_cache,
            "rotation": {"rpm": 7200, "mb_per_s": 150} | rotation,
        }
    )


def random_reads(profile: Profile, depth: int, seconds: float = 30.0) -> float:
    return Host(profile).offer(depth, seconds, lbas=scattered(profile))


def test_one_random_read_takes_a_seek_and_half_a_revolution() -> None:
    # Seeks follow a root, so their mean is 8/15 of the span over the shortest: 8.9 ms.
    expected_ms = 0.8 + 8 / 15 * 15.2 + 8.333 / 2 + 0.2 + 0.3
    assert 1000 / random_reads(disk(), 1) == pytest.approx(expected_ms, rel=0.03)


def test_reordering_pays_as_on_real_disks_and_its_absence_costs_that() -> None:
    rates = {depth: random_reads(disk(), depth) for depth in (1, 8, 31)}
    assert 1.5 < rates[8] / rates[1] < 1.9
    assert 1.2 < rates[31] / rates[8] < 1.6
    in_order = {depth: random_reads(disk(reorders=False), depth) for depth in (1, 8, 31)}
    assert in_order[1] == pytest.approx(rates[1], rel=0.02)
    assert in_order[8] == pytest.approx(in_order[1], rel=0.05)
    assert in_order[31] == pytest.approx(in_order[8], rel=0.02)


def test_a_request_that_reordering_passes_over_has_its_turn() -> None:
    def longest_ms(most: int) -> float:
        profile = disk(overtaken_at_most=most)
        host = Host(profile)
        host.offer(31, 60, lbas=scattered(profile))
        return longest_ns(host.log) / MS

    assert longest_ms(64) < 800
    assert longest_ms(1_000_000) > 1200


@pytest.mark.parametrize("depth", [1, 8])
def test_a_stream_is_read_at_the_rate_of_the_medium(depth: int) -> None:
    rate = Host(disk()).offer(depth, 5, sectors=256)
    assert rate * 256 * 512 / 1e6 == pytest.approx(150, rel=0.02)


def test_a_slow_reader_gets_what_it_asks_for() -> None:
    rate = Host(disk()).offer(1, 5, sectors=8)  # 0.3 ms of its own and 0.2 ms of the drive each
    assert rate == pytest.approx(2000, rel=0.05)


def test_without_read_ahead_each_read_of_a_stream_costs_a_revolution() -> None:
    rate = Host(disk(read_ahead_kib=0)).offer(1, 5, sectors=256)
    assert 1000 / rate == pytest.approx(REVOLUTION_MS + TRANSFER_MS, rel=0.01)


def test_a_stream_of_writes_needs_the_cache() -> None:
    cached = Host(disk()).offer(1, 5, op="write", sectors=256)
    assert 1000 / cached == pytest.approx(TRANSFER_MS + 0.2 + 0.3, rel=0.02)
    through = Host(disk(write_cache=False)).offer(1, 5, op="write", sectors=256)
    assert 1000 / through == pytest.approx(REVOLUTION_MS + TRANSFER_MS, rel=0.01)


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_streams_share_the_disk_and_are_no_slower_for_queueing(count: int) -> None:
    together = Host(disk()).megabytes_per_second(count, 10)
    in_turn: Addresses = itertools.chain.from_iterable(
        zip(*(ascending(256, stream * 1_000_000) for stream in range(count)), strict=True)
    )
    alone = Host(disk()).offer(1, 10, sectors=256, lbas=in_turn) * 256 * 512 / 1e6
    assert together > 30
    assert together > 0.95 * alone


def test_more_streams_than_segments_are_read_ahead_for_in_vain() -> None:
    enough = Host(disk(segments=16)).megabytes_per_second(16, 10)
    too_few = Host(disk(segments=2)).megabytes_per_second(16, 10)
    assert too_few < 0.8 * enough


def test_the_same_seed_gives_the_same_run() -> None:
    def run() -> list[tuple[int, int]]:
        host = Host(disk())
        host.offer(8, 5, lbas=scattered(disk()))
        return [(r.start_ns, r.end_ns) for r in host.log]

    assert run() == run()
