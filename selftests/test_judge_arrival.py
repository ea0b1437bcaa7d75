"""Claims of request sizes: settled by one slice that was watched, and what they say."""

from typing import Any

import pytest

from leadline.claims import ClaimFailed, Unsettled
from leadline.drive.arrivals import Arrived
from leadline.drive.finding import MERGED
from leadline.drive.request_limits import KIB, MIB, RequestLimits
from leadline.judge import SliceJudge
from leadline.load.slices import FIO_CPU, IO_ERRORS, LITTLES_LAW
from leadline.load.workload import random_read
from leadline.quantities import Load
from leadline.statements import Arrival
from leadline.verdict.verdict import Outcome, Verdict
from selftests.slice_drive import SliceDrive
from selftests.test_claims import Ruling

STORY = RequestLimits(1024, 32767, 128, 64 * KIB)


def sent(*sizes: tuple[int, int], firsts: tuple[int, int] | None = None) -> Arrived:
    """What the drive was sent; the first is also what requests begin with, unless said."""
    return Arrived("tracepoint", tuple(sizes), (firsts or sizes[0],))


def settled(arrived: Arrived, *, asked: int = MIB, **drive: Any) -> tuple[Verdict, str]:
    """The verdict on what the story's drive is promised, and its explanation."""
    kept: list[tuple[Verdict, str]] = []
    model = SliceDrive({8: 1000}, arrived=arrived, **drive)
    judge = SliceJudge(
        cell="bench-slot1",
        measure=model.measure,
        keep_slice=lambda side, measured: None,
        keep_verdict=lambda claim, verdict, text: kept.append((verdict, text)),
        slice_s=0.5,
        budget_s=130.0,
        curve_budget_s=2080.0,
        repeat="leadline hil -k this",
    )
    claim = Load(random_read(), judge, full_depth=32).arrives_as(STORY.promise(asked))
    try:
        assert claim
    except (ClaimFailed, Unsettled) as raised:
        assert str(raised) == kept[0][1]
    (setting,) = model.settings
    assert setting.watched
    assert (setting.block_bytes, setting.huge_page_bytes) == (asked, None)
    assert (setting.device_depth, setting.offered_depth) == (None, 8)
    return kept[0]


def test_what_is_promised_passes_and_the_limit_is_named_all_the_same() -> None:
    verdict, text = settled(sent((512 * KIB, 190), firsts=(512 * KIB, 95)))
    assert (verdict.outcome, verdict.reason) == (Outcome.PASS, "settled")
    assert (verdict.estimate, verdict.threshold, verdict.count) == (512.0, 512.0, 95)
    assert "PASS: random_read of 1 MiB arrives as 512 KiB holds on bench-slot1" in text
    assert "arrived as: 512 KiB, over 95 requests" in text
    assert "max_segments is 128" in text


def test_less_than_promised_fails_with_what_was_asked_seen_and_predicted() -> None:
    verdict, text = settled(sent((256 * KIB, 400), firsts=(256 * KIB, 100)))
    assert verdict.outcome is Outcome.FAIL
    for needed in (
        "1 MiB from pages of 4 KiB arrive as 512 KiB at least",
        "max_segments is 128, one for each page of 4 KiB",
        "threshold: >= 512 KiB",
        "arrived as: 256 KiB, over 100 requests",
        "the drive was sent 400 of 256 KiB",
        "leadline hil -k this",
    ):
        assert needed in text
    assert verdict.p_against == 0.0


@pytest.mark.parametrize(("times", "outcome"), [(1, Outcome.PASS), (3, Outcome.FAIL)])
def test_what_others_may_do_meanwhile_fails_nothing(times: int, outcome: Outcome) -> None:
    firsts = ((512 * KIB, 200), (4 * KIB, times))
    verdict, _ = settled(Arrived("tracepoint", firsts, firsts))
    assert verdict.outcome is outcome


@pytest.mark.parametrize(
    ("ours", "others", "outcome"),
    [(24, 1, Outcome.PASS), (24, 2, Outcome.FAIL), (14, 1, Outcome.FAIL)],
)
def test_one_look_of_somebody_elses_fails_no_drive_that_serves_few_requests(
    ours: int, others: int, outcome: Outcome
) -> None:
    firsts = ((512 * KIB, ours), (4 * KIB, others))
    verdict, _ = settled(Arrived("tracepoint", firsts, firsts))
    assert verdict.outcome is outcome


def test_requests_that_fail_are_the_drives_fault_whatever_size_arrived() -> None:
    verdict, text = settled(sent((MIB, 5)), error="Input/output error", spoil=IO_ERRORS)
    assert (verdict.outcome, verdict.voids) == (Outcome.FAIL, ())
    assert "requests of this size fail: Input/output error" in text


def test_another_error_of_the_load_is_nobodys_proof() -> None:
    verdict, _ = settled(sent((MIB, 5)), error="Cannot allocate memory", spoil=IO_ERRORS)
    assert verdict.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("asked", "drain_s", "outcome"),
    [
        (MIB, 2.5, Outcome.PASS),  # 8 MiB at 5 MB/s are 1.7 s
        (MIB, 2.8, Outcome.FAIL),
        (4 * KIB, 0.9, Outcome.PASS),
        (4 * KIB, 1.1, Outcome.FAIL),
    ],
)
def test_a_request_that_takes_too_long_for_its_size_is_a_stall(
    asked: int, drain_s: float, outcome: Outcome
) -> None:
    verdict, text = settled(sent((asked, 5)), asked=asked, drain_s=drain_s)
    assert verdict.outcome is outcome
    assert (f"one took {drain_s:g} s" in text) == (outcome is Outcome.FAIL)


def test_what_spoils_sizes_voids_and_what_spoils_a_rate_does_not() -> None:
    verdict, text = settled(sent((MIB, 5)), spoil=MERGED)
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")
    assert "merged" in text
    for harmless in (LITTLES_LAW, FIO_CPU):
        assert settled(sent((MIB, 5)), spoil=harmless)[0].outcome is Outcome.PASS


def test_nothing_seen_is_no_pass() -> None:
    verdict, text = settled(Arrived("tracepoint", ()))
    assert (verdict.outcome, verdict.estimate) == (Outcome.INCONCLUSIVE, None)
    assert "void: no-request-seen: none of the requests was seen" in text
    assert "remedy: run it again; when it stays, report it" in text


@pytest.mark.parametrize(
    ("asked", "mean", "outcome"),
    [
        (MIB, 350 * KIB, Outcome.PASS),  # promised 512 KiB, and the rest is less
        (MIB, 200 * KIB, Outcome.FAIL),
        (256 * KIB, 250 * KIB, Outcome.PASS),  # promised whole
        (256 * KIB, 128 * KIB, Outcome.FAIL),
    ],
)
def test_a_mean_is_held_against_less_for_what_is_left_of_each_request(
    asked: int, mean: int, outcome: Outcome
) -> None:
    verdict, text = settled(Arrived("stat", ((mean, 100),)), asked=asked)
    assert verdict.outcome is outcome
    assert "on average" in text


def test_a_promise_for_hugepages_is_kept_in_hugepages() -> None:
    load = Load(random_read(), Ruling(), full_depth=32)
    claim = load.arrives_as(STORY.promise(MIB, hugepages=True))
    assert str(claim) == "random_read of 1 MiB from hugepages arrives as 1 MiB"
    assert isinstance(claim.statement, Arrival)
    assert claim.statement.setting.huge_page_bytes == STORY.huge_page_bytes
    assert "no limit is in the way" in claim.statement.source
