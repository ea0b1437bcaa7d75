"""Request sizes in a visit: what is watched is kept, and memory is there while it is needed."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from leadline import visiting
from leadline.claims import ClaimFailed
from leadline.drive import arrivals
from leadline.drive.arrivals import Arrived
from leadline.drive.bind import Drive
from leadline.drive.request_limits import KIB, MIB, RequestLimits
from leadline.host.connection import Host
from leadline.host.journal import Journal
from leadline.load.slices import Slice
from leadline.load.workload import random_read
from leadline.quantities import Load
from leadline.recompute import differences
from leadline.results.stored import read_run
from leadline.suite import test_request_size
from leadline.visiting import OpenVisit
from selftests.visit_world import Bench, bench, kept, opened, station

__all__ = ["bench", "opened", "station"]  # fixtures

LIMITS = RequestLimits(1024, 1024, 128, 64 * KIB)


@pytest.fixture
def watched(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> dict[int, Arrived]:
    """What this drive is sent for requests of a size."""
    sent = {MIB: Arrived("tracepoint", ((512 * KIB, 20),), ((512 * KIB, 10),))}

    def watch(
        host: Host, drive: Drive, asked: int, run: Callable[[], Sequence[Slice]]
    ) -> tuple[Sequence[Slice], Arrived]:
        bench.did.append("watch")
        return run(), sent[asked]

    monkeypatch.setattr(arrivals, "watch", watch)
    return sent


@pytest.fixture
def reads(opened: OpenVisit, request: pytest.FixtureRequest) -> Load:
    return opened.load(random_read(), request.node)


def test_what_arrived_is_kept_with_its_slice_and_the_verdict_comes_out_again(
    bench: Bench, reads: Load, watched: dict[int, Arrived]
) -> None:
    assert reads.arrives_as(LIMITS.promise(MIB))
    assert bench.did[-2:] == ["watch", "slices"], "nothing else is run while it is watched"
    (row,) = kept(bench.folder, "slices")
    details = json.loads(row["details"])
    assert details["arrived"]["firsts"] == [[512 * KIB, 10]]
    assert (row["side"], row["device_depth"], row["offered_depth"]) == ("arrival", None, 8)
    assert bench.file("device/queue_depth").read_text() == "32"
    results = read_run(bench.folder / "results", "run-1")
    (verdict,) = results.verdicts
    assert (verdict.outcome, verdict.estimate, verdict.threshold) == ("PASS", 512.0, 512.0)
    assert differences(verdict, results.slices[verdict.settling]) == ()


def test_a_drive_that_is_sent_less_fails(reads: Load, watched: dict[int, Arrived]) -> None:
    watched[MIB] = Arrived("tracepoint", ((64 * KIB, 160),), ((64 * KIB, 10),))
    with pytest.raises(ClaimFailed, match="max_segments is 128"):
        assert reads.arrives_as(LIMITS.promise(MIB))


def test_other_claims_are_measured_without_being_watched(
    bench: Bench, reads: Load, watched: dict[int, Arrived]
) -> None:
    assert reads.at(depth=8, size=MIB).mb_per_s >= 200
    assert "watch" not in bench.did


@pytest.fixture
def pool(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is reserved of the pool is told by the bench."""

    @contextmanager
    def reserved(host: Host, journal: Journal, pages: int) -> Iterator[None]:
        bench.did.append(f"reserve {pages}")
        yield
        bench.did.append("give back")

    monkeypatch.setattr(visiting, "reserved", reserved)


@pytest.mark.usefixtures("pool")
def test_for_a_load_without_hugepages_none_are_reserved(
    bench: Bench, reads: Load, watched: dict[int, Arrived]
) -> None:
    watched[MIB] = Arrived("tracepoint", ((MIB, 10),), ((MIB, 10),))
    assert reads.arrives_as(LIMITS.promise(MIB))
    assert "reserve 0" in bench.did


@pytest.mark.usefixtures("pool")
def test_the_suite_tries_every_size_from_hugepages_that_are_there_while_fio_runs(
    bench: Bench, reads: Load, watched: dict[int, Arrived]
) -> None:
    states = (
        test_request_size.test_from_hugepages_they_arrive_whole_where_the_sector_limits_allow_it
    )
    (sizes,) = (mark.args[1] for mark in states.pytestmark if mark.name == "parametrize")
    limits, needed = RequestLimits(4096, 4096, 128, 64 * KIB), []
    assert sizes == test_request_size.SIZES
    for size in sizes:
        watched[size] = Arrived("tracepoint", ((size, 10),), ((size, 10),))
        states(reads, limits, size)
        watch, reserve, slices, back = bench.did[-4:]
        assert (watch, slices, back) == ("watch", "slices", "give back")
        needed.append(reserve)
    assert needed == [*["reserve 3"] * 4, "reserve 6", "reserve 18"]


def test_the_limits_are_the_drives_own(bench: Bench, opened: OpenVisit) -> None:
    names = ("max_sectors_kb", "max_hw_sectors_kb", "max_segments", "max_segment_size")
    for name, text in zip(names, ("1024", "32767", "128", "65536"), strict=True):
        bench.file(f"queue/{name}").write_text(text)
    assert opened.request_limits().promise(MIB).guaranteed <= 512 * KIB
    assert "max_segments is 128" in opened.request_limits().promise(MIB).binding
