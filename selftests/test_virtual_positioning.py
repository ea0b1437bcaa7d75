"""Where a disk's heads are, and how long they take to be elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.virtual.positioning import Geometry
from leadline.virtual.rotation import Rotation

CAPACITY = 1 << 33
SECTORS = CAPACITY // 512
DISK = Geometry.of(Rotation(rpm=7200, mb_per_s=150), CAPACITY)
TRACK = round(DISK.revolution_ns / DISK.sector_ns)

geometries = st.builds(
    lambda rpm, mb, short, more: Geometry.of(
        Rotation(rpm=rpm, mb_per_s=mb, track_to_track_ms=short, full_stroke_ms=short + more),
        CAPACITY,
    ),
    st.integers(1025, 20_000),
    st.floats(1, 400),
    st.floats(0, 5),
    st.floats(0, 50),
)
lbas = st.integers(0, SECTORS - 1)
moments = st.integers(0, 10**14)


@given(geometries, lbas, moments)
def test_a_sector_passes_at_its_own_moment_of_every_revolution(
    disk: Geometry, lba: int, at_ns: int
) -> None:
    wait_ns = disk.rotation_ns(lba, at_ns)
    assert 0 <= wait_ns < disk.revolution_ns
    assert (at_ns + wait_ns) % disk.revolution_ns == disk.rotation_ns(lba, 0)


@given(geometries, lbas, lbas, moments)
def test_positioning_ends_when_the_sector_passes_first_after_the_seek(
    disk: Geometry, one: int, other: int, at_ns: int
) -> None:
    took_ns = disk.positioning_ns(one, other, at_ns)
    assert disk.rotation_ns(other, at_ns + took_ns) == 0
    assert 0 <= took_ns - disk.seek_ns(one, other) < disk.revolution_ns


@given(geometries, lbas, st.integers(1, 5000), moments)
def test_a_transfer_that_goes_on_where_another_ended_waits_for_nothing(
    disk: Geometry, lba: int, sectors: int, at_ns: int
) -> None:
    start_ns = at_ns + disk.rotation_ns(lba, at_ns)
    end_ns = start_ns + disk.transfer_ns(lba, lba + sectors)
    assert disk.rotation_ns(lba + sectors, end_ns) == 0


@given(geometries, lbas, lbas, lbas)
def test_a_seek_is_as_long_both_ways_and_longer_for_a_longer_way(
    disk: Geometry, one: int, other: int, third: int
) -> None:
    near, far = sorted((other, third), key=lambda lba: abs(lba - one))
    assert disk.seek_ns(one, near) == disk.seek_ns(near, one)
    assert disk.seek_ns(one, near) <= disk.seek_ns(one, far) <= disk.full_stroke_ns + 1


@given(geometries, lbas, st.integers(0, 5000))
def test_what_has_passed_is_what_its_transfer_takes(disk: Geometry, lba: int, sectors: int) -> None:
    took_ns = disk.transfer_ns(lba, lba + sectors)
    assert disk.passed(lba, took_ns) == pytest.approx(lba + sectors, abs=1)


def test_the_seeks_of_the_profile() -> None:
    assert DISK.seek_ns(1000, 1000 + TRACK // 2) == 0
    assert DISK.seek_ns(0, TRACK + 1) == pytest.approx(800_000, rel=0.03)
    assert DISK.seek_ns(0, SECTORS) == pytest.approx(16_000_000, rel=0.001)
    # A third of the stroke, the mean way between two random places, is what data sheets call
    # the average seek: 8.5 to 9.5 ms where the full stroke is 16.
    assert DISK.seek_ns(0, SECTORS // 3) == pytest.approx(9_500_000, rel=0.02)


def test_a_track_holds_what_passes_in_a_revolution() -> None:
    assert DISK.revolution_ns == 8_333_333
    assert DISK.transfer_ns(0, TRACK) == pytest.approx(DISK.revolution_ns, abs=DISK.sector_ns)
    assert SECTORS * 512 / (DISK.transfer_ns(0, SECTORS) / 1e9) == pytest.approx(150e6)
