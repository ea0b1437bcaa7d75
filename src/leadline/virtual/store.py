"""What a virtual drive remembers, and what it forgets when its power is cut.

Two sparse files: `backing`, the flash itself, and `written`, one byte a sector that says whether
the host ever wrote it.  Writes wait in this process's memory until they are flushed, so that
killing the process (SIGKILL: the power cut) loses exactly the unflushed ones.  What has reached
the files is safe, for the page cache outlives the process; nothing here guards against the
machine itself losing power, which is not what is being modelled.
"""

from __future__ import annotations

import fcntl
import os
import random
import struct
import threading
from collections.abc import Iterable
from pathlib import Path

from leadline.errors import RigTrouble
from leadline.virtual.profile import SECTOR_BYTES, Profile

# The sector's address, then text: unlike any partition table, file system or member of an array
# (no 55AA at byte 510), so that the write guard sees an empty drive, and unlike zeros.
_FILLER = (b" Leadline virtual drive: preconditioned, never written by the host." * 8)[:504]


def unwritten_pattern(lba: int, sectors: int) -> bytes:
    """What never-written sectors of a preconditioned drive read as.

    Each sector begins with its address, 8 bytes, little-endian.
    """
    return b"".join(struct.pack("<Q", each) + _FILLER for each in range(lba, lba + sectors))


class Store:
    """The contents of one drive.  Thread-safe.  Addresses and lengths are in sectors.

    Raises RigTrouble when the directory cannot be used, OSError when the files cannot be
    written later on (a full disk); what could not be written then stays in memory.
    """

    def __init__(self, directory: Path, profile: Profile, *, cycle: int = 0) -> None:
        self._profile = profile
        self._cache_sectors = profile.cache_bytes // SECTOR_BYTES if profile.write_cache else 0
        self._unflushed: dict[int, bytes] = {}  # by sector, oldest write first
        self._forgotten: dict[int, bytes] = {}  # by sector: a flush has left it out for good
        self._leaving_out = random.Random(f"{profile.seed}:{cycle}:partial flush")
        self._flash_writes = 0
        self._lock = threading.Lock()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._backing = os.open(directory / "backing", os.O_RDWR | os.O_CREAT, 0o600)
            self._written = os.open(directory / "written", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._backing, fcntl.LOCK_EX | fcntl.LOCK_NB)
            sectors = profile.capacity_bytes // SECTOR_BYTES
            _grow(self._backing, sectors * SECTOR_BYTES)
            _grow(self._written, sectors)
        except BlockingIOError as held:
            raise RigTrouble(
                f"{directory}: another virtual drive is running on this directory; stop it first"
            ) from held
        except OSError as trouble:
            raise RigTrouble(
                f"{directory}: cannot keep the virtual drive's data there: {trouble.strerror}; "
                "use a directory that can be written, with room for what the drive is to hold"
            ) from trouble

    def read(self, lba: int, sectors: int) -> bytes:
        """The data of these sectors, as the host would read them.

        The machine may have to fetch them from a slow disk: that holds up no other request.
        """
        with self._lock:
            flash_writes = self._flash_writes
        data = self._on_flash(lba, sectors)
        with self._lock:
            if self._flash_writes != flash_writes:  # perhaps these, while they were being read
                data = self._on_flash(lba, sectors)
            if not (self._unflushed or self._forgotten):
                return data
            mixed = bytearray(data)
            for i in range(sectors):
                waiting = self._unflushed.get(lba + i) or self._forgotten.get(lba + i)
                if waiting is not None:
                    mixed[i * SECTOR_BYTES : (i + 1) * SECTOR_BYTES] = waiting
            return bytes(mixed)

    def write(self, lba: int, data: bytes) -> None:
        """Take data in: into the volatile cache, or to flash what the cache cannot hold."""
        sectors = len(data) // SECTOR_BYTES
        with self._lock:
            if sectors > self._cache_sectors:
                self._put_on_flash(lba, data)
                for i in range(sectors):
                    self._unflushed.pop(lba + i, None)
                    self._forgotten.pop(lba + i, None)
                return
            new = sum(lba + i not in self._unflushed for i in range(sectors))
            excess = len(self._unflushed) + new - self._cache_sectors
            if excess > 0:  # some more than needed, for room is best made seldom
                self._write_back(list(self._unflushed)[: excess + self._cache_sectors // 4])
            for i in range(sectors):
                self._unflushed.pop(lba + i, None)  # written again: now among the newest
                self._forgotten.pop(lba + i, None)
                self._unflushed[lba + i] = data[i * SECTOR_BYTES : (i + 1) * SECTOR_BYTES]

    def flush(self) -> None:
        """Write back all that is waiting, unless it is this drive's fault not to."""
        if self._profile.faults.ignore_flush:
            return
        with self._lock:
            self._forget_some()
            self._write_back(self._unflushed)

    def close(self) -> None:
        """Let go of the files.  What is unflushed is lost: this is a power cut."""
        os.close(self._backing)
        os.close(self._written)

    def is_blank(self, lba: int, sectors: int) -> bool:
        """Whether the host never wrote any of these sectors."""
        with self._lock:
            return not any(os.pread(self._written, sectors, lba)) and not any(
                lba + i in self._unflushed or lba + i in self._forgotten for i in range(sectors)
            )

    def _on_flash(self, lba: int, sectors: int) -> bytes:
        written = os.pread(self._written, sectors, lba)
        if all(written):
            return os.pread(self._backing, sectors * SECTOR_BYTES, lba * SECTOR_BYTES)
        preconditioned = self._profile.preconditioned
        blank = unwritten_pattern(lba, sectors) if preconditioned else bytes(sectors * SECTOR_BYTES)
        if not any(written):
            return blank
        data = os.pread(self._backing, sectors * SECTOR_BYTES, lba * SECTOR_BYTES)
        return b"".join(
            (data if known else blank)[i * SECTOR_BYTES : (i + 1) * SECTOR_BYTES]
            for i, known in enumerate(written)
        )

    def _forget_some(self) -> None:
        """Leave out of this flush, and of every later one, what the drive's fault says."""
        fault = self._profile.faults.partial_flush
        if fault is None:
            return
        for run in _runs(sorted(self._unflushed)):
            if self._leaving_out.random() * fault.one_in < 1.0:
                for lba in run:
                    self._forgotten[lba] = self._unflushed.pop(lba)

    def _write_back(self, lbas: Iterable[int]) -> None:
        for run in _runs(sorted(lbas)):
            self._put_on_flash(run.start, b"".join(self._unflushed[lba] for lba in run))
            for lba in run:
                del self._unflushed[lba]

    def _put_on_flash(self, lba: int, data: bytes) -> None:
        self._flash_writes += 1
        _write_all(self._backing, data, lba * SECTOR_BYTES)
        _write_all(self._written, b"\1" * (len(data) // SECTOR_BYTES), lba)


def _runs(lbas: list[int]) -> list[range]:
    """Ascending addresses as stretches without gaps."""
    runs: list[range] = []
    for lba in lbas:
        if runs and runs[-1].stop == lba:
            runs[-1] = range(runs[-1].start, lba + 1)
        else:
            runs.append(range(lba, lba + 1))
    return runs


def _grow(file: int, size: int) -> None:
    if os.fstat(file).st_size < size:
        os.truncate(file, size)


def _write_all(file: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(file, view, offset)
        view, offset = view[done:], offset + done
