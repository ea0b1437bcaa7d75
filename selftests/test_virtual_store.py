"""What a virtual drive remembers, and what a power cut takes from it."""

import os
import resource
import shutil
import struct
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.virtual.faults import Faults, PartialFlush
from leadline.virtual.profile import SECTOR_BYTES, Profile
from leadline.virtual.store import Store, unwritten_pattern

KIB4 = bytes(range(256)) * 16
CACHE_SECTORS = 64


def drive(faults: Faults | None = None, **fields: object) -> Profile:
    settings: dict[str, object] = {
        "model": "D",
        "serial": "S",
        "firmware": "1",
        "capacity_bytes": 1 << 24,
        "channels": 8,
        "read_ms": 10,
        "write_ms": 3,
        "cache_bytes": CACHE_SECTORS * SECTOR_BYTES,
        "faults": faults or Faults(),
    }
    return Profile.model_validate(settings | fields)


@contextmanager
def powered(directory: Path, profile: Profile) -> Iterator[Store]:
    """The drive until its power is cut."""
    store = Store(directory, profile)
    try:
        yield store
    finally:
        store.close()


def after_a_power_cut(directory: Path, profile: Profile, lba: int, sectors: int) -> bytes:
    with powered(directory, profile) as store:
        return store.read(lba, sectors)


def test_flushed_writes_survive_a_power_cut_and_unflushed_ones_do_not(tmp_path: Path) -> None:
    with powered(tmp_path, drive()) as store:
        store.write(0, KIB4)
        store.flush()
        store.write(100, KIB4)
        assert store.read(100, 8) == KIB4
    assert after_a_power_cut(tmp_path, drive(), 0, 8) == KIB4
    assert after_a_power_cut(tmp_path, drive(), 100, 8) == unwritten_pattern(100, 8)


def test_an_unflushed_rewrite_is_lost_back_to_what_was_flushed(tmp_path: Path) -> None:
    with powered(tmp_path, drive()) as store:
        store.write(0, KIB4)
        store.flush()
        store.write(0, bytes(4096))
        assert store.read(0, 8) == bytes(4096)
    assert after_a_power_cut(tmp_path, drive(), 0, 8) == KIB4


def test_a_drive_that_ignores_flush_loses_what_was_flushed(tmp_path: Path) -> None:
    profile = drive(Faults(ignore_flush=True))
    with powered(tmp_path, profile) as store:
        store.write(0, KIB4)
        store.flush()
        assert store.read(0, 8) == KIB4
    assert after_a_power_cut(tmp_path, profile, 0, 8) == unwritten_pattern(0, 8)


LBAS = range(0, 200 * 16, 16)


def partly_flushed(directory: Path, profile: Profile, *, cycle: int = 0) -> set[int]:
    """Which of LBAS are there after a flush and a power cut; before it all of them are."""
    store = Store(directory, profile, cycle=cycle)
    for lba in LBAS:
        store.write(lba, KIB4)
    store.flush()
    store.flush()  # a second one brings nothing back that the first has left out
    assert all(store.read(lba, 8) == KIB4 for lba in LBAS)
    assert not any(store.is_blank(lba, 8) for lba in LBAS)
    store.close()
    return {lba for lba in LBAS if after_a_power_cut(directory, profile, lba, 8) == KIB4}


def test_a_partial_flush_loses_some_of_what_was_flushed_whole_stretches_at_once(
    tmp_path: Path,
) -> None:
    fault = Faults(partial_flush=PartialFlush(one_in=10))
    profile = drive(fault, cache_bytes=1 << 20)
    kept = partly_flushed(tmp_path / "a", profile)
    assert 5 <= len(LBAS) - len(kept) <= 40
    for lba in set(LBAS) - kept:
        assert after_a_power_cut(tmp_path / "a", profile, lba, 8) == unwritten_pattern(lba, 8)
    assert partly_flushed(tmp_path / "b", profile) == kept, "the same seed, the same losses"
    assert partly_flushed(tmp_path / "c", profile, cycle=1) != kept


def test_what_a_flush_left_out_is_mended_by_writing_it_again(tmp_path: Path) -> None:
    profile = drive(Faults(partial_flush=PartialFlush(one_in=1)))
    with powered(tmp_path, profile) as store:
        store.write(0, KIB4)
        store.flush()
        assert store.read(0, 8) == KIB4
        store.write(0, bytes(4096))
        assert store.read(0, 8) == bytes(4096)
        store.write(0, bytes(2 * CACHE_SECTORS * SECTOR_BYTES))  # more than the cache: written
        assert store.read(0, 8) == bytes(4096)
    assert after_a_power_cut(tmp_path, profile, 0, 8) == bytes(4096)


def test_without_a_write_cache_nothing_is_lost(tmp_path: Path) -> None:
    profile = drive(write_cache=False)
    with powered(tmp_path, profile) as store:
        store.write(8, KIB4)
    assert after_a_power_cut(tmp_path, profile, 8, 8) == KIB4


def test_a_full_cache_makes_room_by_its_oldest_writes(tmp_path: Path) -> None:
    with powered(tmp_path, drive()) as store:
        for lba in range(0, CACHE_SECTORS, 8):
            store.write(lba, KIB4)
        store.write(0, KIB4)  # written again, and so no longer the oldest
        store.write(1000, KIB4)
    survived = [
        lba
        for lba in (*range(0, CACHE_SECTORS, 8), 1000)
        if after_a_power_cut(tmp_path, drive(), lba, 8) == KIB4
    ]
    assert survived[0] == 8
    assert 0 not in survived
    assert 1000 not in survived


def test_a_write_larger_than_the_cache_replaces_what_was_cached(tmp_path: Path) -> None:
    data = os.urandom(2 * CACHE_SECTORS * SECTOR_BYTES)
    with powered(tmp_path, drive()) as store:
        store.write(4, KIB4)
        store.write(0, data)
        assert store.read(0, 2 * CACHE_SECTORS) == data
    assert after_a_power_cut(tmp_path, drive(), 0, 2 * CACHE_SECTORS) == data


def test_never_written_sectors_begin_with_their_address(tmp_path: Path) -> None:
    with powered(tmp_path, drive()) as store:
        for lba in (0, 1, 32767):
            assert struct.unpack("<Q", store.read(lba, 1)[:8]) == (lba,)
            assert any(store.read(lba, 1)[8:])
        assert store.is_blank(0, 8)


def test_a_sector_written_among_unwritten_ones(tmp_path: Path) -> None:
    sector = b"\xab" * SECTOR_BYTES
    expected = unwritten_pattern(0, 3) + sector + unwritten_pattern(4, 4)
    with powered(tmp_path, drive()) as store:
        store.write(3, sector)
        assert store.read(0, 8) == expected
        assert not store.is_blank(0, 8)
        store.flush()
        assert store.read(0, 8) == expected
        assert not store.is_blank(0, 8)
        assert store.is_blank(4, 4)


def test_zeros_that_were_written_read_as_zeros(tmp_path: Path) -> None:
    with powered(tmp_path, drive()) as store:
        store.write(0, bytes(4096))
        store.flush()
        assert store.read(0, 8) == bytes(4096)


def test_an_unconditioned_drive_reads_as_zeros(tmp_path: Path) -> None:
    with powered(tmp_path, drive(preconditioned=False)) as store:
        assert store.read(0, 8) == bytes(4096)


def test_an_empty_drive_bears_no_signature(tmp_path: Path) -> None:
    blkid = shutil.which("blkid", path="/usr/sbin:/sbin:/usr/bin")
    if blkid is None:
        pytest.skip("blkid (package util-linux) is not installed")
    image = tmp_path / "image"
    image.write_bytes(unwritten_pattern(0, 8192))
    probe = subprocess.run(
        [blkid, "-p", image], check=False, capture_output=True, text=True, timeout=20
    )
    assert (probe.returncode, probe.stdout) == (2, "")  # blkid(8): 2 is "nothing found"


def test_two_drives_cannot_share_a_directory(tmp_path: Path) -> None:
    with powered(tmp_path, drive()), pytest.raises(RigTrouble, match="another virtual drive"):
        Store(tmp_path, drive())


def test_a_directory_that_cannot_be_is_the_rigs_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RigTrouble, match="cannot keep the virtual drive's data"):
        Store(tmp_path / "file" / "state", drive())


@contextmanager
def no_room_beyond(size: int) -> Iterator[None]:
    """Writes at or above this offset fail, as they would on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_could_not_be_written_back_is_kept_until_it_can_be(tmp_path: Path) -> None:
    lba = (12 << 20) // SECTOR_BYTES
    with powered(tmp_path, drive()) as store:
        store.write(lba, KIB4)
        with no_room_beyond(8 << 20), pytest.raises(OSError):
            store.flush()
        assert store.read(lba, 8) == KIB4
        store.flush()
    assert after_a_power_cut(tmp_path, drive(), lba, 8) == KIB4


def test_a_write_for_which_no_room_can_be_made_changes_nothing(tmp_path: Path) -> None:
    lba = (12 << 20) // SECTOR_BYTES
    with powered(tmp_path, drive()) as store, no_room_beyond(8 << 20):
        for each in range(lba, lba + CACHE_SECTORS, 8):
            store.write(each, KIB4)
        with pytest.raises(OSError):
            store.write(0, KIB4)
        assert store.read(0, 8) == unwritten_pattern(0, 8)
        assert store.read(lba, 8) == KIB4


class SlowSector:
    """A sector whose first reading the machine's disk takes its time over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, lba: int) -> None:
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self._offset = lba * SECTOR_BYTES
        self._pread = os.pread
        monkeypatch.setattr(os, "pread", self._read)

    def _read(self, file: int, length: int, offset: int) -> bytes:
        data = self._pread(file, length, offset)
        if offset == self._offset and not self.reached.is_set():
            self.reached.set()
            assert self.go_on.wait(20)
        return data


def test_what_the_machine_is_slow_to_fetch_holds_up_no_other_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with powered(tmp_path, drive()) as store, ThreadPoolExecutor() as threads:
        store.write(1000, KIB4)
        store.flush()
        slow = SlowSector(monkeypatch, 1000)
        waiting = threads.submit(store.read, 1000, 8)
        assert slow.reached.wait(20)
        assert threads.submit(store.read, 0, 8).result(10) == unwritten_pattern(0, 8)
        threads.submit(store.write, 8, KIB4).result(10)
        assert threads.submit(store.read, 8, 8).result(10) == KIB4
        assert not waiting.done()
        slow.go_on.set()
        assert waiting.result(10) == KIB4


def test_a_write_that_is_flushed_while_it_is_read_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with powered(tmp_path, drive()) as store, ThreadPoolExecutor() as threads:
        store.write(1000, bytes(4096))
        store.flush()
        store.write(1000, KIB4)
        slow = SlowSector(monkeypatch, 1000)
        waiting = threads.submit(store.read, 1000, 8)
        assert slow.reached.wait(20)
        threads.submit(store.flush).result(10)
        slow.go_on.set()
        assert waiting.result(10) == KIB4
