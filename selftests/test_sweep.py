"""What a recorded sweep settles, what it does not, and what in it looks wrong."""

from collections.abc import Mapping
from typing import Any

import pytest

from leadline.inventory.matrix import LimitSpec
from leadline.load.recorded_document import read_output
from leadline.load.recorded_job import RecordedRun, recorded_run
from leadline.sweep.claims import Finding, Unsupported, judge
from leadline.sweep.screening import Suspect, suspects
from leadline.sweep.yardstick import Yardstick, guess_class
from leadline.verdict.verdict import Outcome
from selftests.recorded_files import fio3, text_of

PARALLEL = {1: 7000.0, 2: 13_900.0, 4: 26_000.0, 8: 45_000.0, 16: 52_000.0, 32: 52_100.0}
SERIAL = {1: 4200.0, 2: 4700.0, 4: 4800.0, 8: 4850.0, 16: 4860.0, 32: 4850.0}
DISK = {1: 120.0, 2: 122.0, 4: 128.0, 8: 142.0, 16: 165.0, 32: 190.0}
USUAL = "depth_8_over_depth_1"
WRITES = f"random_write_{USUAL}"


def recorded(
    rate: float, depth: int, rw: str = "randread", *, name: str = "", **more: Any
) -> RecordedRun:
    document = fio3(rate, depth, rw, **more)
    return recorded_run(name or f"{rw} {depth}", read_output(text_of(document)))


def sweep(rates: Mapping[int, float], rw: str = "randread", **more: Any) -> list[RecordedRun]:
    return [recorded(rate, depth, rw, **more) for depth, rate in rates.items()]


def limit(at_least: float | None = None, at_most: float | None = None) -> LimitSpec:
    return LimitSpec(at_least=at_least, at_most=at_most, source="our data sheet")


def ssd(limits: Mapping[str, LimitSpec] | None = None, **more: Any) -> Yardstick:
    return Yardstick("ssd", "", limits or {USUAL: limit(3.0)}, "our matrix, class ssd", **more)


def of_class(class_: str, limits: Mapping[str, LimitSpec] | None = None) -> Yardstick:
    return Yardstick(class_, "", limits or {}, f"our matrix, class {class_}")


def outcomes(runs: list[RecordedRun], yardstick: Yardstick) -> dict[str, str]:
    """By claim, the outcome, or "unsupported"."""
    return {
        end.claim: end.verdict.outcome.value if isinstance(end, Finding) else "unsupported"
        for end in judge(runs, yardstick)
    }


def finding(claim: str, runs: list[RecordedRun], yardstick: Yardstick) -> Finding:
    (found,) = (end for end in judge(runs, yardstick) if end.claim == claim)
    assert isinstance(found, Finding)
    return found


def unsupported(claim: str, runs: list[RecordedRun], yardstick: Yardstick) -> Unsupported:
    (found,) = (end for end in judge(runs, yardstick) if end.claim == claim)
    assert isinstance(found, Unsupported)
    return found


def test_a_parallel_drive_passes_and_one_at_a_time_is_not_queueing() -> None:
    assert outcomes(sweep(PARALLEL), ssd()) == {"queueing": "PASS", USUAL: "PASS"}
    assert outcomes(sweep(SERIAL), ssd()) == {"queueing": "FAIL", USUAL: "FAIL"}
    said = finding("queueing", sweep(SERIAL), ssd()).explanation
    assert said.startswith("FAIL: not queueing: ")
    assert "randread at depth 16 >= 2 x that at depth 1 does not hold" in said


def test_a_limit_of_a_mix_is_held_against_that_mix_alone() -> None:
    claim = f"random_mix_{USUAL}"
    yardstick = ssd({claim: limit(2.0)}, preconditioned=True)
    runs = sweep(PARALLEL, "randrw", asked={"rwmixread": "70"})
    assert outcomes(runs, yardstick)[claim] == "PASS"
    half = sweep(PARALLEL, "randrw")
    assert unsupported(claim, half, yardstick).why == (
        "the limit is for 70 % reads, and these are 50 %"
    )


def test_a_verdict_says_what_it_rests_on() -> None:
    found = finding(USUAL, sweep(PARALLEL), ssd())
    assert found.files == ("randread 8", "randread 1")
    assert found.verdict.estimate == pytest.approx(45 / 7)
    assert found.verdict.threshold == 3.0
    assert found.source == "our matrix, class ssd: our data sheet"
    for piece in (
        "depth 8: 45000 [",
        "(randread 8)",
        "depth 1: 7000 [",
        "ratio: 6.43 [",
    ):
        assert piece in found.explanation


def test_a_ratio_near_its_limit_is_left_open() -> None:
    near = {**PARALLEL, 8: 3.05 * 7000}
    found = finding(USUAL, sweep(near), ssd())
    assert (found.verdict.outcome, found.verdict.reason) == (Outcome.INCONCLUSIVE, "budget")
    assert "measure it in pairs" in found.explanation


def test_a_noisier_recording_needs_more_distance() -> None:
    rates = {**PARALLEL, 8: 3.4 * 7000}
    assert outcomes(sweep(rates, spread=0.02), ssd())[USUAL] == "PASS"
    assert outcomes(sweep(rates, spread=0.15), ssd())[USUAL] == "INCONCLUSIVE"
    assert outcomes(sweep(rates, samples=5), ssd())[USUAL] == "INCONCLUSIVE"
    said = finding(USUAL, sweep(rates, samples=5), ssd()).explanation
    assert "23.1% is allowed for" in said
    assert "too few samples" in said


def test_limits_are_those_of_the_class_and_the_load() -> None:
    disk = sweep(DISK) + sweep({1: 220.0, 8: 230.0}, "randwrite")
    assert outcomes(disk, of_class("hdd")) == {
        "queueing": "unsupported",
        USUAL: "unsupported",
        WRITES: "unsupported",
    }
    for end in judge(disk, of_class("hdd")):
        assert isinstance(end, Unsupported)
        assert not end.lacks_evidence
    why = unsupported(USUAL, disk, of_class("hdd")).why
    assert why == (
        f"no limit for this class: our matrix, class hdd has none for {USUAL}; recorded: 1.18"
    )
    limits = {"depth_32_over_depth_1": limit(1.3), WRITES: limit(0.9, 2.0)}
    found = judge(disk, of_class("hdd", limits))
    assert [
        (end.claim, end.verdict.direction, end.verdict.outcome)
        for end in found
        if isinstance(end, Finding)
    ] == [
        ("depth_32_over_depth_1", ">=", Outcome.PASS),
        (WRITES, ">=", Outcome.PASS),
        (WRITES, "<=", Outcome.PASS),
    ]
    assert outcomes(sweep(DISK), ssd()) == {"queueing": "FAIL", USUAL: "FAIL"}


def test_writes_of_an_ssd_need_word_that_it_was_preconditioned() -> None:
    writes = sweep({1: 12_000.0, 8: 45_000.0}, "randwrite")
    limits = {WRITES: limit(2.0)}
    why = unsupported(WRITES, writes, ssd(limits))
    assert why.lacks_evidence
    assert "preconditioned and in steady state" in why.why
    assert outcomes(writes, ssd(limits, preconditioned=True))[WRITES] == "PASS"


def test_a_claim_whose_depth_is_missing_says_which_there_are() -> None:
    missing = unsupported(USUAL, sweep({1: 7000.0, 4: 26_000.0, 16: 52_000.0}), ssd())
    assert missing.lacks_evidence
    assert missing.why == "no file with randread at depth 8 (usable: 1, 4, 16)"
    shallow = sweep({1: 7000.0, 4: 7000.0})
    assert unsupported("queueing", shallow, ssd()).why == (
        "no file with randread at depth 8 or more (usable: 1, 4)"
    )
    nothing = unsupported("queueing", [], ssd())
    assert nothing.why == "no file with randread at depth 1 and 8 or more (usable: none)"
    assert nothing.lacks_evidence


def test_a_claim_is_about_4_kib_and_about_depth() -> None:
    big = sweep(PARALLEL, asked={"bs": "64k"})
    assert "requests of 4096 bytes, and these are of 65536" in unsupported(USUAL, big, ssd()).why
    mixed = sweep(PARALLEL, asked={"bssplit": "4k/50:8k/50"})
    assert "these are of mixed sizes" in unsupported("queueing", mixed, ssd()).why
    other = unsupported("ready_s", sweep(PARALLEL), ssd({"ready_s": limit(at_most=10)}))
    assert (other.rw, other.lacks_evidence) == (None, False)


def test_a_void_file_voids_the_claims_that_rest_on_it_by_name() -> None:
    runs = sweep(PARALLEL)
    runs[3] = recorded(45_000, 8, in_flight=5)
    found = finding(USUAL, runs, ssd())
    assert (found.verdict.outcome, found.verdict.reason) == (Outcome.INCONCLUSIVE, "void")
    assert "void: littles-law: randread 8: rate x latency" in found.explanation
    assert outcomes(runs, ssd())["queueing"] == "PASS"  # 16 and 32 are still there
    runs[5] = recorded(90_000, 32, in_flight=16)  # void, and so never the best
    assert finding("queueing", runs, ssd()).files == ("randread 16", "randread 1")
    runs[0] = recorded(7000, 1, asked={"direct": "0"})
    assert "page-cache: randread 1" in finding("queueing", runs, ssd()).explanation
    assert outcomes(runs, ssd())["queueing"] == "INCONCLUSIVE"


def test_fios_own_time_between_requests_cannot_make_a_ratio() -> None:
    """8 us of 65 are fio's at depth 1: a drive that is 3.2 times as fast may be 2.8 times."""
    runs = [recorded(15_400, 1, fio_s=8e-6), recorded(15_400 * 3.2, 8, fio_s=8e-6)]
    found = finding(USUAL, runs, ssd())
    assert found.verdict.outcome is Outcome.INCONCLUSIVE
    assert "fio took 8.0 us from one request of a slot to the next" in found.explanation
    quick = [recorded(15_400, 1), recorded(15_400 * 3.4, 8)]
    assert finding(USUAL, quick, ssd()).verdict.outcome is Outcome.PASS


def test_a_drive_is_not_blamed_for_a_load_generator_that_is_too_slow() -> None:
    runs = sweep({1: 15_000.0}) + sweep({8: 30_000.0, 32: 24_000.0}, cpu=99.8)
    for claim in ("queueing", USUAL):
        found = finding(claim, runs, ssd())
        assert found.verdict.outcome is Outcome.INCONCLUSIVE
        assert found.verdict.high == float("inf")
    assert "a thread of fio used 100% of a CPU" in finding(USUAL, runs, ssd()).explanation
    assert suspects(runs, "ssd") == []
    fast = sweep({1: 15_000.0}) + sweep({8: 60_000.0}, cpu=99.8)
    assert outcomes(fast, ssd())[USUAL] == "PASS"


def test_a_stall_in_a_run_leaves_open_what_its_rate_would_have_been() -> None:
    stalled = [*sweep({1: 7000.0}), recorded(15_000, 8, longest_s=30.5, still=0.5)]
    found = finding(USUAL, stalled, ssd())
    assert found.verdict.outcome is Outcome.INCONCLUSIVE
    assert "one request took 30.5 s of the run's 60 s" in found.explanation
    unseen = [*sweep({1: 7000.0}), recorded(15_000, 8, longest_s=30.5)]
    assert outcomes(unseen, ssd())[USUAL] == "INCONCLUSIVE"  # the samples do not show it
    hopeless = [*sweep({1: 7000.0}), recorded(5000, 8, longest_s=30.5, still=0.5)]
    assert outcomes(hopeless, ssd())[USUAL] == "FAIL"
    twice = [*sweep({1: 7000.0}), recorded(5000, 8, longest_s=30.5, still=0.8)]
    assert outcomes(twice, ssd())[USUAL] == "INCONCLUSIVE"  # one stall is not all of it


def test_not_queueing_is_said_only_when_no_depth_may_have_been_faster() -> None:
    runs = [*sweep({1: 4200.0, 8: 4850.0}), recorded(4800, 32, longest_s=30.0, still=0.6)]
    assert outcomes(runs, ssd())["queueing"] == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("rate", "class_"), [(7000, "ssd"), (120, "hdd"), (500, "unknown"), (1200, "ssd"), (250, "hdd")]
)
def test_a_class_is_guessed_by_random_reads_at_depth_1(rate: float, class_: str) -> None:
    guess, reason = guess_class(sweep({1: rate, 8: 9000}))
    assert guess == class_
    assert reason.startswith("guessed: a random read at depth 1 takes ")
    assert "(randread 1)" in reason


def test_a_class_is_not_guessed_from_what_does_not_count() -> None:
    for runs in (
        [],
        sweep({8: 9000.0}),
        sweep({1: 9000.0}, "randwrite"),
        sweep({1: 9000.0}, asked={"direct": "0"}),
    ):
        assert guess_class(runs)[0] == "unknown"
    assert outcomes(sweep({8: 9000.0}), of_class("unknown")) == {
        "queueing": "unsupported",
        USUAL: "unsupported",
    }


def kinds(found: list[Suspect]) -> list[tuple[str, int]]:
    return [(suspect.kind, suspect.depth) for suspect in found]


def test_healthy_curves_hold_no_suspect() -> None:
    for rates, class_ in ((PARALLEL, "ssd"), (SERIAL, "ssd"), (DISK, "hdd")):
        assert suspects(sweep(rates), class_) == []


def test_a_dip_and_a_collapse_are_suspects_and_no_verdicts() -> None:
    dipped = sweep({**PARALLEL, 16: 40_000.0})
    assert kinds(suspects(dipped, "ssd")) == [("dip", 16)]
    assert "below the line between depths 8 and 32" in suspects(dipped, "ssd")[0].why
    assert outcomes(dipped, ssd()) == {"queueing": "PASS", USUAL: "PASS"}
    uneven = sweep({1: 7000.0, 8: 20_000.0, 16: 60_000.0})  # the line is at 31,700 there
    assert kinds(suspects(uneven, "ssd")) == [("dip", 8)]
    arm = sweep({1: 65.6, 2: 75.2, 4: 122.9, 8: 141.2})
    assert kinds(suspects(arm, "ssd")) == [("dip", 2)]
    assert kinds(suspects(arm, "hdd")) == []
    (slower,) = suspects(sweep({1: 75.2, 2: 65.6, 4: 122.9}), "hdd")
    assert (slower.kind, slower.depth) == ("dip", 2)
    assert slower.why.endswith(" below depth 1")
    fallen = sweep({**PARALLEL, 32: 40_000.0})
    assert kinds(suspects(fallen, "ssd")) == [("collapse", 32)]
    assert "23.1% (at least" in suspects(fallen, "ssd")[0].why
    assert outcomes(fallen, ssd()) == {"queueing": "PASS", USUAL: "PASS"}


def test_what_noise_explains_is_no_suspect() -> None:
    assert suspects(sweep({**PARALLEL, 16: 40_000.0}, spread=0.3), "ssd") == []
    assert suspects(sweep({**PARALLEL, 16: 47_500.0, 32: 51_000.0}), "ssd") == []
    void = sweep({**PARALLEL, 16: 40_000.0}, asked={"direct": "0"})
    assert suspects(void, "ssd") == []


def test_a_stall_is_a_suspect_and_beyond_30_s_sends_to_the_kernel_log() -> None:
    runs = [*sweep({1: 7000.0}), recorded(40_000, 8, longest_s=2.0)]
    assert kinds(suspects(runs, "ssd")) == [("stall", 8)]
    assert "kernel" not in suspects(runs, "ssd")[0].why
    longer = [*sweep({1: 7000.0}), recorded(40_000, 8, longest_s=31.0)]
    assert "leadline kernel-log" in suspects(longer, "ssd")[0].why
    # A deep queue on a slow drive waits as a matter of course.
    assert suspects([recorded(100, 32, longest_s=1.2)], "hdd") == []


def test_a_disk_that_no_depth_makes_faster_is_a_suspect() -> None:
    flat = {1: 120.0, 8: 119.0, 32: 118.0}
    assert kinds(suspects(sweep(flat), "hdd")) == [("flat", 32)]
    assert suspects(sweep(flat), "ssd") == []  # that is a FAIL, and no suspicion
    assert suspects(sweep({1: 120.0, 8: 119.0}), "hdd") == []
