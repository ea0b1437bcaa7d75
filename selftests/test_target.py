"""What a workload is aimed at: blank flash and small spans are seen, with what to do about them."""

import pytest

from leadline.host.connection import CommandRefused, Host
from leadline.load.target import (
    SAMPLES,
    check_span,
    check_written,
    fill_seconds,
    in_words,
    sample_places,
    span_of,
    zero_samples,
)
from leadline.load.workload import random_read

MIB = 1 << 20


def test_samples_are_spread_over_the_whole_span_and_inside_it() -> None:
    offset, size = 10 * MIB, SAMPLES * MIB
    places = sample_places((offset, size), seed=1)
    assert len(places) == SAMPLES
    assert all(place % 4096 == 0 for place in places)
    parts = [(place - offset) // MIB for place in places]
    assert parts == list(range(SAMPLES)), "one in each equal part"
    assert places != sample_places((offset, size), seed=2)


@pytest.mark.parametrize("span", [(0, 8192), (512, 12288), (4096, 4096), (0, 512), (512, 4096)])
def test_a_small_span_is_sampled_at_what_places_it_has(span: tuple[int, int]) -> None:
    places = sample_places(span, seed=1)
    assert len(set(places)) == len(places) == (sum(span) // 4096 - -(-span[0] // 4096))
    assert all(span[0] <= place and place + 4096 <= sum(span) for place in places)


@pytest.mark.parametrize(
    ("zeros", "rotates", "outcome"),
    [
        (0, False, "ok"),
        (32, False, "ok"),
        (33, False, "void"),
        (64, False, "void"),
        (64, True, "ok"),
    ],
)
def test_reads_of_an_ssd_that_is_mostly_blank_are_void(
    zeros: int, rotates: bool, outcome: str
) -> None:
    finding = check_written(zeros, 64, span_bytes=480 * 10**9, rotates=rotates)
    assert (finding.name, finding.outcome) == ("unwritten", outcome)
    assert f"{zeros} of 64" in finding.found
    assert ("about 80 min at 200 MB/s" in finding.found) == (outcome == "void")


def test_a_span_of_which_no_sample_could_be_read_is_unknown() -> None:
    assert check_written(0, 0, span_bytes=4096, rotates=False).outcome == "unknown"


@pytest.mark.parametrize(
    ("span", "cache", "outcome"),
    [
        (16 * MIB, MIB, "ok"),
        (16 * MIB - 4096, MIB, "void"),
        (16 << 30, None, "ok"),
        (8 << 30, None, "void"),
        (4096, 0, "ok"),
    ],
)
def test_a_span_is_held_against_sixteen_caches(span: int, cache: int | None, outcome: str) -> None:
    assert check_span(span, cache).outcome == outcome
    assert ("cache_bytes" in check_span(span, cache).found) == (cache is None)


def test_the_span_of_a_workload_is_the_drive_unless_it_says() -> None:
    assert span_of(random_read(), 8 * MIB) == (0, 8 * MIB)
    assert span_of(random_read((4096, 8192)), 8 * MIB) == (4096, 8192)


def test_a_price_is_said_as_people_do() -> None:
    assert in_words(fill_seconds(8 * 10**9)) == "about 80 s"
    assert in_words(fill_seconds(4 * 10**12)) == "about 11.1 h"


class Blank:
    """A drive of 512-byte blocks whose first MiB was written, and whose second cannot be read."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self.commands: list[bytes] = []

    def hold_device(self, path: str, *, exclusive: bool) -> int:
        assert not exclusive, "it is held exclusively already"
        self.held.append(path)
        return 7

    def release_device(self, handle: int) -> None:
        assert handle == 7
        self.held.pop()

    def sg_io(self, handle: int, cdb: bytes, length: int, deadline: float) -> bytes:
        self.commands.append(cdb)
        place = int.from_bytes(cdb[2:10], "big") * 512
        assert int.from_bytes(cdb[10:14], "big") * 512 == length == 4096
        if MIB <= place < 2 * MIB:
            raise CommandRefused("medium error", 2, b"")
        return b"\1" * length if place < MIB else bytes(length)


def test_samples_are_read_by_commands_to_the_drive_and_a_bad_sector_is_left_out() -> None:
    drive = Blank()
    host: Host = drive  # type: ignore[assignment]
    zeros, read = zero_samples(host, "/dev/sdx", [0, 4096, MIB, 3 * MIB], 512)
    assert (zeros, read) == (1, 3)
    assert {cdb[0] for cdb in drive.commands} == {0x88}
    assert drive.held == []
