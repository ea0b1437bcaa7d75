"""What a ratio that fails says of the drive, and what it does not."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.claims import Claim, ClaimFailed
from leadline.diagnosis import NOT_QUEUEING, SLOWER, STREAMS_SLOWER, of_ratio, slower_of
from leadline.load.workload import random_mix, random_read, sequential_read
from leadline.on_record import Recorded
from leadline.quantities import Load, Quantity
from leadline.statements import Agreement, AsRecorded, Ratio
from leadline.verdict.verdict import Outcome, Verdict
from selftests.slice_drive import SliceDrive
from selftests.test_claims import Ruling
from selftests.test_judge import judged

READS = Load(random_read(), Ruling(), full_depth=32, kernel_depth=32)
STREAMS = Load(sequential_read(1 << 30), Ruling(), full_depth=32, kernel_depth=32)


def cause(claim: Claim, low: float, high: float, outcome: Outcome = Outcome.FAIL) -> str:
    said = claim.statement
    assert isinstance(said, Ratio)
    verdict = Verdict(
        outcome, "settled", said.direction, said.threshold, 4, "pair", 8.0, 1.0, low, high
    )
    return of_ratio(said, verdict)


def deep(load: Load = READS) -> tuple[Quantity, Quantity]:
    return load.at(depth=8), load.at(depth=1)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.2, 1.4, NOT_QUEUEING),
        (1.0, 1.99, NOT_QUEUEING),
        (1.9, 2.1, ""),
        (2.5, 2.8, ""),
        (0.5, 0.9, SLOWER),
    ],
)
def test_a_parallel_drive_that_hardly_gains_is_not_queueing(
    low: float, high: float, expected: str
) -> None:
    eight, one = deep()
    assert cause(eight >= 3 * one, low, high) == expected


def test_the_same_is_told_by_what_ncq_off_costs() -> None:
    whole, one = READS.at(depth=32), READS.at(depth=1)
    assert cause(one <= 0.4 * whole, 0.6, 0.9) == NOT_QUEUEING
    assert cause(one <= 0.4 * whole, 0.45, 0.48) == "", "more than twice as fast when queued"
    assert cause(one <= 0.4 * whole, 1.2, 1.3) == SLOWER


def test_a_busy_server_that_is_claimed_to_gain_just_twice_as_much_is_not_queueing() -> None:
    """The limit of a mix of reads and writes: random_mix_depth_8_over_depth_1 of an SSD."""
    mix = Load(random_mix(), Ruling(), full_depth=32, kernel_depth=32)
    deep, shallow = (mix.at(depth=depth, offered=128) for depth in (8, 1))
    assert cause(deep >= 2.0 * shallow, 1.1, 1.3) == NOT_QUEUEING
    assert cause(deep >= 2.0 * shallow, 0.8, 0.9) == SLOWER
    assert cause(deep >= 1.99 * shallow, 1.1, 1.3) == "", "nobody claims that it queues"


def test_and_by_threads_which_have_the_kernels_depth() -> None:
    on, off = READS.at(threads=8), READS.at(depth=1, threads=8)
    assert cause(on >= 3.0 * off, 1.1, 1.2) == NOT_QUEUEING


def test_of_a_disk_nobody_claims_so_much() -> None:
    eight, one = deep()
    assert cause(eight >= 1.2 * one, 1.0, 1.1) == ""
    assert cause(eight >= 0.5 * one, 0.3, 0.4) == SLOWER


def test_streams_have_words_of_their_own() -> None:
    on, off = STREAMS.at(threads=4), STREAMS.at(depth=1, threads=4)
    assert cause(on >= 0.95 * off, 0.05, 0.06) == STREAMS_SLOWER
    eight, one = deep(STREAMS)
    assert cause(eight >= 0.95 * one, 0.5, 0.6) == SLOWER, "a single one is no several"


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.INCONCLUSIVE])
def test_what_has_not_failed_has_no_cause(outcome: Outcome) -> None:
    eight, one = deep()
    assert cause(eight >= 3 * one, 1.2, 1.4, outcome) == ""


def test_two_depths_that_are_both_queued_say_nothing_of_queueing() -> None:
    assert cause(READS.at(depth=16) >= 3 * READS.at(depth=4), 1.0, 1.1) == ""


def test_a_claim_that_a_drive_gains_little_has_no_such_cause() -> None:
    eight, one = deep()
    assert cause(eight <= 1.1 * one, 1.2, 1.4) == ""
    assert cause(one >= 0.9 * eight, 0.6, 0.7) == ""


@given(st.floats(2.0, 20.0), st.floats(0.1, 20.0), st.floats(1.0, 1.5))
def test_not_queueing_is_said_below_twice_alone(claimed: float, low: float, width: float) -> None:
    eight, one = deep()
    said = cause(eight >= claimed * one, low, low * width)
    assert (said == NOT_QUEUEING) == (1.0 <= low * width < 2.0)


def apart(low: float, middle: float, high: float, outcome: Outcome = Outcome.FAIL) -> Verdict:
    return Verdict(outcome, "settled", "within", 0.05, 4, "pair", 8.0, middle, low, high)


def test_of_two_that_do_not_agree_the_slower_one_is_named_and_by_how_much() -> None:
    said = Agreement(READS.at(depth=8), READS.at(depth=16), 0.05)
    assert slower_of(said, apart(0.6, 0.75, 0.8)) == (
        "the slower one is random_read.at(depth=8): by 25.0% [20.0%, 40.0%] of "
        "random_read.at(depth=16)"
    )
    assert slower_of(said, apart(1.25, 2.0, 4.0)) == (
        "the slower one is random_read.at(depth=16): by 50.0% [20.0%, 75.0%] of "
        "random_read.at(depth=8)"
    )


def test_of_a_drive_and_its_twin_too() -> None:
    said = AsRecorded(READS.at(offered=32), Recorded((1.0,) * 4, "that of SN2"), 0.25, "a twin")
    assert slower_of(said, apart(0.4, 0.5, 0.6)) == (
        "the slower one is this drive now: by 50.0% [40.0%, 60.0%] of that of SN2"
    )
    assert slower_of(said, apart(0.9, 1.0, 1.1, Outcome.PASS)) == ""


@pytest.mark.parametrize("gain", [1.0, 1.4, 1.8])
def test_the_verdict_names_it_in_its_first_line(gain: float) -> None:
    reads, kept = judged(SliceDrive({8: 1000 * gain, 1: 1000}, chance=random.Random(7)))
    with pytest.raises(ClaimFailed, match=r"^FAIL: not queueing: random_read\.at") as failure:
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts == [failure.value.verdict]
    assert failure.value.verdict.cause == NOT_QUEUEING
