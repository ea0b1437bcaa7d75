"""Hugepages reserved and given back: by this machine's kernel, and by one short of memory."""

import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.host import hugepages, lease
from leadline.host import journal as journals
from leadline.host.connection import Host, HostLost
from leadline.host.hugepages import page_bytes, reserved
from leadline.host.journal import Journal, replay
from leadline.load.fio import run_slices
from leadline.load.jobs import hugepages_needed
from leadline.load.slices import SliceSetting
from leadline.load.workload import random_read
from selftests.local_hosts import AWAIT_S, host, next_host

__all__ = ["host", "next_host"]  # fixtures

pytestmark = pytest.mark.measures  # the pool is the machine's
real = pytest.mark.skipif(
    os.geteuid() != 0 or not os.access(hugepages.POOL, os.W_OK),
    reason="the pool of this machine cannot be changed: root is needed, and CONFIG_HUGETLBFS",
)
PAGES = 3
MEMINFO = """\
MemTotal:         1000 kB
HugePages_Free:     2
HugePages_Rsvd:     1
Hugepagesize:    2048 kB
"""


@pytest.fixture
def journal(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    monkeypatch.setattr(lease, "DIRECTORY", str(tmp_path / "leases"))
    with Journal(host, "run-1", directory=str(tmp_path / "journal")) as opened:
        yield opened


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pool of a kernel that finds memory for one page, whatever it is asked for."""
    pool, meminfo = tmp_path / "nr_hugepages", tmp_path / "meminfo"
    pool.write_text("0\n")
    meminfo.write_text(MEMINFO)
    monkeypatch.setattr(hugepages, "POOL", str(pool))
    monkeypatch.setattr(hugepages, "MEMINFO", str(meminfo))
    return pool


def free(host: Host) -> int:
    return hugepages._free(host)


@real
@pytest.mark.parametrize("pages", [PAGES, 18], ids=["a few", "for 4 MiB"])
def test_pages_are_there_while_they_are_used_and_not_after(
    host: Host, journal: Journal, pages: int
) -> None:
    pool = Path(hugepages.POOL).read_text()
    before = free(host)
    with reserved(host, journal, before + pages):
        assert free(host) >= before + pages
    assert Path(hugepages.POOL).read_text() == pool


@real
def test_what_a_test_raises_does_not_keep_them(host: Host, journal: Journal) -> None:
    pool = Path(hugepages.POOL).read_text()
    with pytest.raises(ZeroDivisionError), reserved(host, journal, free(host) + PAGES):
        raise ZeroDivisionError
    assert Path(hugepages.POOL).read_text() == pool


@real
def test_a_killed_runs_pages_are_in_its_journal(
    host: Host, journal: Journal, tmp_path: Path
) -> None:
    pool = Path(hugepages.POOL).read_text().strip()
    with reserved(host, journal, free(host) + PAGES):
        (kept,) = (tmp_path / "journal").iterdir()
        assert f'"path": "{hugepages.POOL}", "old": "{pool}"' in kept.read_text()


def test_too_little_memory_is_the_rigs_trouble_and_the_pool_is_as_before(
    host: Host, journal: Journal, short: Path
) -> None:
    used: list[str] = []
    with (
        pytest.raises(RigTrouble, match=r"3 free hugepages of 2048 KiB .* memory for 1.*at boot"),
        reserved(host, journal, PAGES),
    ):
        used.append(short.read_text())
    assert not used
    assert short.read_text() == "0"


def test_pages_that_are_free_already_are_not_made_again(
    host: Host, journal: Journal, short: Path
) -> None:
    with reserved(host, journal, 1):
        assert short.read_text() == "0"
    with pytest.raises(RigTrouble), reserved(host, journal, 2):
        pass
    assert short.read_text() == "0"


def test_nothing_is_touched_for_a_load_without_hugepages(
    host: Host, journal: Journal, short: Path, tmp_path: Path
) -> None:
    with reserved(host, journal, 0):
        assert not (tmp_path / "journal").exists()
    assert short.read_text() == "0\n"


@pytest.fixture
def other(next_host: Host, tmp_path: Path) -> Iterator[Journal]:
    """The journal of another run."""
    with Journal(next_host, "run-2", directory=str(tmp_path / "journal")) as opened:
        yield opened


@pytest.mark.usefixtures("short")
def test_two_runs_take_turns(
    host: Host, next_host: Host, journal: Journal, other: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the one that ends first would take the other's pages, or leave its own."""
    monkeypatch.setattr(hugepages, "PATIENCE_S", 0.0)
    late = reserved(next_host, other, 1)
    with reserved(host, journal, 1), pytest.raises(RigTrouble, match="another run"), late:
        pass
    with reserved(next_host, other, 1):
        pass


def test_a_run_that_ends_leaves_anothers_pages(
    host: Host, next_host: Host, journal: Journal, other: Journal, short: Path
) -> None:
    """It had some of its own before; what it found then is no concern of the pool's now."""
    (short.parent / "meminfo").write_text(MEMINFO.replace("Free:     2", "Free:     9"))
    with reserved(host, journal, 1):
        pass
    with reserved(next_host, other, 1):
        short.write_text("7")  # what the other run has made of it
        journal.give_back()
        assert short.read_text() == "7"
    assert short.read_text().strip() == "0"


def test_what_a_killed_run_had_is_given_back_when_no_other_has_any(
    host: Host,
    next_host: Host,
    journal: Journal,
    short: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journals, "TURN_S", 0.0)
    kept, lock = str(short.parent / "journal"), f"{lease.DIRECTORY}/hugepages.lock"
    (short.parent / "meminfo").write_text(MEMINFO.replace("Free:     2", "Free:     9"))
    with pytest.raises(HostLost), reserved(host, journal, 1):
        short.write_text("7")
        host.close()
    handle = next_host.lock_file(lock, shared=True)
    assert isinstance(handle, int)
    with pytest.raises(RigTrouble, match=r"another run has held .*hugepages\.lock .*write '0'"):
        replay(next_host, directory=kept)
    assert short.read_text() == "7"
    next_host.unlock_file(handle)
    replay(next_host, directory=kept)
    assert short.read_text() == "0"
    host.reconnect(AWAIT_S)


def test_the_size_of_a_page_is_the_kernels(
    host: Host, short: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert page_bytes(host) == 2 << 20
    (tmp_path / "meminfo").write_text("MemTotal:  1000 kB\n")
    assert page_bytes(host) == 0


@real
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fios_data_are_in_them_and_are_nobodys_who_outlives_it(
    host: Host, journal: Journal, tmp_path: Path
) -> None:
    """Its shared memory is not to be seen from here: a killed fio takes it along."""
    medium = tmp_path / "medium"
    medium.write_bytes(os.urandom(8 << 20))
    setting = SliceSetting(None, 4, 0.2, block_bytes=1 << 20, huge_page_bytes=page_bytes(host))
    looks: list[tuple[int, int]] = []

    def run() -> None:
        needed = hugepages_needed(random_read(), [setting])
        with reserved(host, journal, needed):
            run_slices(host, str(medium), random_read(), [setting], depth_path=None, seeds=[1])

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        while not running.done():
            looks.append((taken(), segments(4 << 20)))
        running.result()
    most, outside = max(looks)
    assert most > 0, "no hugepage was ever in use"
    assert outside == looks[0][1], "a segment that a killed fio would leave"


def segments(least: int) -> int:
    """How many pieces of shared memory of so many bytes can be seen from here."""
    rows = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return sum(int(row.split()[3]) >= least for row in rows)


def taken() -> int:
    """Hugepages that somebody has, or has been promised."""
    text = Path("/proc/meminfo").read_text()
    total, free, promised = (
        int(re.search(rf"HugePages_{name}: +(\d+)", text)[1])  # type: ignore[index]
        for name in ("Total", "Free", "Rsvd")
    )
    return total - free + promised
