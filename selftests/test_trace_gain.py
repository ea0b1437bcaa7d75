"""What queueing gains: from the times of replays to gains with intervals."""

from dataclasses import replace

import pytest
from scipy import stats

from leadline.errors import Inconclusive, Misuse
from leadline.trace.gain import estimate, gain_of, overall
from leadline.trace.replay_job import times_of
from leadline.trace.rounds import Replayed, Round, Times


def replayed(reads_ms: float, writes_ms: float = 0.0, counts: tuple[int, int] = (3, 1)) -> Replayed:
    reads, writes = counts
    return Replayed(Times(reads, reads_ms / 1e3), Times(writes, writes_ms / 1e3), 1.0)


def rounds(*pairs: tuple[float, float]) -> list[Round]:
    return [Round(replayed(off, off), replayed(on, on)) for off, on in pairs]


def test_gain_is_off_less_on_over_off() -> None:
    found = gain_of("t", rounds((10.0, 8.0), (20.0, 16.0)))
    assert found.gain is not None
    assert (found.gain.mean, found.gain.low, found.gain.high) == pytest.approx((0.2, 0.2, 0.2))
    assert found.off_s.mean == pytest.approx(0.015)
    assert found.on_s is not None
    assert found.on_s.mean == pytest.approx(0.012)


def test_rounds_are_paired_so_that_what_drifts_cancels() -> None:
    found = gain_of("t", rounds((10.0, 9.0), (20.0, 18.2), (40.0, 35.8)))
    assert found.gain is not None
    assert found.gain.low is not None and found.gain.low > 0.07
    assert found.off_s.low is not None and found.off_s.low < 0.0


def test_a_slower_drive_has_a_negative_gain() -> None:
    found = gain_of("t", rounds((10.0, 11.0), (10.0, 12.0)))
    assert found.gain is not None
    assert found.gain.mean == pytest.approx(-0.15)


def test_the_interval_is_students() -> None:
    values = [0.1, 0.2, 0.15, 0.05]
    found = estimate(values)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.count == 4


def test_the_mean_weighs_reads_and_writes_by_their_number() -> None:
    off, on = replayed(1.0, 9.0), replayed(1.0, 5.0)
    found = gain_of("t", [Round(off, on)] * 2)
    assert found.off_s.mean == pytest.approx(3e-3)
    assert found.gain is not None and found.reads is not None and found.writes is not None
    assert found.gain.mean == pytest.approx(1 / 3)
    assert found.reads.mean == pytest.approx(0.0)
    assert found.writes.mean == pytest.approx(4 / 9)


def test_a_trace_without_writes_has_no_gain_on_them() -> None:
    only = [Round(replayed(2.0, counts=(3, 0)), replayed(1.0, counts=(3, 0)))] * 2
    found = gain_of("t", only)
    assert found.writes is None
    assert found.gain is not None
    assert found.gain.mean == pytest.approx(0.5)


def test_a_drive_without_ncq_is_a_baseline() -> None:
    found = gain_of("t", [Round(replayed(10.0, 10.0), None), Round(replayed(12.0, 12.0), None)])
    assert found.off_s.mean == pytest.approx(0.011)
    assert (found.on_s, found.gain, found.reads, found.writes) == (None, None, None, None)
    assert overall([found, found]) is None


def test_one_round_is_refused() -> None:
    with pytest.raises(Misuse, match="1 rounds of t: at least 2 are needed"):
        gain_of("t", rounds((10.0, 8.0)))


def test_the_gain_over_all_traces_weighs_each_the_same() -> None:
    first, second = (
        gain_of(name, rounds(*[(off, on)] * 2)) for name, off, on in (("a", 100, 90), ("b", 1, 0.7))
    )
    found = overall([first, second])
    assert found is not None
    assert found.mean == pytest.approx(0.2)
    assert found.low is not None and found.high is not None
    assert found.low == pytest.approx(0.2 - 0.1 * 12.706, rel=1e-3)
    alone = overall([first])
    assert alone is not None
    assert alone.mean == pytest.approx(0.1)
    assert (alone.low, alone.high) == (None, None)


def test_fios_times_are_put_together_over_its_jobs() -> None:
    def job(reads: int, read_ns: float, writes: int, write_ns: float, ms: int) -> dict[str, object]:
        return {
            "read": {"total_ios": reads, "lat_ns": {"mean": read_ns, "N": reads}},
            "write": {"total_ios": writes, "lat_ns": {"mean": write_ns, "N": writes}},
            "job_runtime": ms,
        }

    found = times_of([job(1, 4e6, 2, 1e6, 900), job(3, 8e6, 0, 0.0, 1100)])
    assert (found.reads.count, found.writes.count, found.all.count) == (4, 2, 6)
    assert (found.reads.mean_s, found.writes.mean_s) == pytest.approx((7e-3, 1e-3))
    assert found.all.mean_s == pytest.approx(5e-3)
    assert found.seconds == 1.1


def test_rounds_that_are_void_are_no_part_of_the_gain() -> None:
    spoilt = [Round(replace(replayed(10.0, 10.0), voids=("temperature",)), replayed(1.0, 1.0))]
    clean = rounds((10.0, 8.0), (20.0, 16.0))
    assert gain_of("t", [*spoilt, *clean]) == gain_of("t", clean)
    with pytest.raises(Inconclusive, match=r"t: 1 of 2 rounds count for nothing \(temperature\)"):
        gain_of("t", [*spoilt, *clean[:1]])
