"""What reaches a drive: read from lines as kernels print them, and from counters without them."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leadline.drive import tracing
from leadline.drive.arrivals import Arrived, counted, read_limits, read_trace, watch
from leadline.drive.conditions import IoCounts
from leadline.drive.request_limits import KIB, MIB, RequestLimits
from leadline.errors import RigTrouble
from leadline.host.connection import Host
from selftests.local_hosts import host
from selftests.visit_world import sysfs_drive

__all__ = ["host"]  # a fixture

# Printed by Linux 6.1, but for the last line: 6.18, which tells the priority too.
TRACE = """\
# tracer: nop
#
# entries-in-buffer/entries-written: 8/8   #P:2
#
        fio-512     [000] d..1. 100.000001: block_rq_issue: 8,0 R 516096 () 2048 + 1008 [fio]
kworker/0:1H-77     [000] d..1. 100.000002: block_rq_issue: 8,0 R 516096 () 3056 + 1008 [kwork]
        fio-512     [000] d..1. 100.000003: block_rq_issue: 8,0 R 16384 () 4064 + 32 [fio]
        fio-512     [001] d..1. 100.000004: block_rq_issue: 8,16 R 4096 () 0 + 8 [fio]
   smartctl-99      [001] d..1. 100.000005: block_rq_issue: 8,0 N 512 (85 08 0e 00) 0 + 0 [smartctl]
        fio-512     [001] d..1. 100.000006: block_rq_complete: 8,0 R () 2048 + 1008 [0]
        fio-512     [001] d..1. 100.000007: block_rq_issue: 8,0 R 1048576 () 4096 + 2048 [fio]
        fio-512     [001] ..... 100.08: block_rq_issue: 8,0 RA 524288 () 6144 + 1024 none,0,0 [fio]
"""
LIMITS = {
    "max_sectors_kb": "1280",
    "max_hw_sectors_kb": "32767",
    "max_segments": "126",
    "max_segment_size": "65536",
}


def test_requests_are_told_apart_from_what_was_left_of_them() -> None:
    arrived = read_trace(TRACE, "8,0", MIB)
    assert arrived.requests == (
        (1024 * KIB, 1),
        (512 * KIB, 1),
        (504 * KIB, 2),
        (16 * KIB, 1),
    )
    assert arrived.firsts == ((1024 * KIB, 1), (512 * KIB, 1), (504 * KIB, 1))
    assert arrived.least == 504 * KIB
    assert str(arrived) == "the drive was sent 1 of 1 MiB, 1 of 512 KiB, 2 of 504 KiB, 1 of 16 KiB"


def test_another_drives_requests_and_commands_without_sectors_are_passed_over() -> None:
    assert read_trace(TRACE, "8,16", 4096).requests == ((4096, 1),)
    nothing = read_trace(TRACE, "8,32", 4096)
    assert (nothing.requests, nothing.least) == ((), None)
    assert "nothing" in str(nothing)


@example([(8, 99), (1, 1)])
@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 500)), min_size=1, unique_by=lambda s: s[0]
    )
)
def test_the_least_is_what_all_but_a_hundredth_or_one_reach(sizes: list[tuple[int, int]]) -> None:
    arrived = Arrived("tracepoint", (), tuple(sorted(sizes, reverse=True)))
    total = sum(times for _, times in sizes)
    least = arrived.least
    assert least is not None
    smaller = sum(times for size, times in sizes if size < least)
    others = max(0.01 * total, 1.0 if total >= 16 else 0.0)
    assert smaller <= others < smaller + dict(sizes)[least]


def test_counters_give_the_mean_of_what_was_read_meanwhile() -> None:
    before = IoCounts(reads=100, sectors_read=800, writes=5, sectors_written=40)
    after = IoCounts(reads=400, sectors_read=205600, writes=9, sectors_written=80)
    arrived = counted(before, after)
    assert arrived == Arrived("stat", ((204800 * 512 // 300, 300),))
    assert arrived.least == 204800 * 512 // 300
    assert "on average" in str(arrived)
    assert counted(before, before).least is None


def test_a_kernel_without_tracing_is_watched_by_its_counters(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "_TRACING", (str(tmp_path / "nowhere"),))
    (tmp_path / "sysfs").mkdir()
    stat = tmp_path / "sysfs" / "stat"
    stat.write_text("10 0 80 1 0 0 0 0 0 1 1 0 0 0 0 0 0\n")

    def run() -> str:
        stat.write_text("14 0 4176 1 0 0 0 0 0 1 1 0 0 0 0 0 0\n")
        return "what it gives"

    given, arrived = watch(host, sysfs_drive(tmp_path), MIB, run)
    assert given == "what it gives"
    assert arrived == Arrived("stat", ((512 * KIB, 4),))
    stat.write_text("nonsense")
    with pytest.raises(RigTrouble, match=r"mount -t tracefs"):
        watch(host, sysfs_drive(tmp_path), MIB, run=str)


def test_limits_are_read_with_the_rigs_own_pages(host: Host, tmp_path: Path) -> None:
    for name, text in LIMITS.items():
        path = tmp_path / "sysfs" / "queue" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    limits = read_limits(host, sysfs_drive(tmp_path))
    expected = {name: int(text) for name, text in LIMITS.items()}
    pages = {"page_bytes": limits.page_bytes, "huge_page_bytes": limits.huge_page_bytes}
    assert limits == RequestLimits(**expected, **pages)
    assert limits.page_bytes in (4 * KIB, 16 * KIB, 64 * KIB)
    (tmp_path / "sysfs" / "queue" / "max_segments").write_text("0\n")
    with pytest.raises(RigTrouble, match="cannot be read"):
        read_limits(host, sysfs_drive(tmp_path))
