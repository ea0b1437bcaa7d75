"""Verdicts again, from the database: the same to the last bit."""

import math
import random
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from leadline.errors import RigTrouble
from leadline.load.slices import FIO_CPU, LITTLES_LAW, Slice, SliceSetting
from leadline.load.workload import Workload, random_read
from leadline.plans import Noise
from leadline.results.record import Record
from leadline.results.rows import slice_row
from leadline.results.stored import read_run
from selftests.kept_claims import CLAIMS, CURVE, Kept, unlike
from selftests.slice_drive import SliceDrive
from selftests.test_judge_curve import healthy

drives = st.builds(
    lambda bends, speed, stalled, **others: SliceDrive(
        {depth: speed * bend * healthy(depth) for depth, bend in zip(CURVE, bends, strict=True)},
        stalled=frozenset(stalled),
        **others,
    ),
    bends=st.lists(st.floats(0.6, 1.4), min_size=6, max_size=6),
    speed=st.sampled_from([1.0, 1.0, 0.03, 0.001]),
    stalled=st.just(()) | st.lists(st.integers(0, 40), max_size=3),
    noise=st.sampled_from([0.0, 0.002, 0.02, 0.2]),
    spoil=st.sampled_from(["", "", LITTLES_LAW, FIO_CPU]),
    spoilt_share=st.floats(0.0, 0.5),
    slows_after=st.none() | st.integers(4, 40),
    drain_s=st.floats(0.0, 0.3),
    chance=st.builds(random.Random, st.integers(0, 2**32)),
)
noises = st.builds(Noise, st.floats(0.0, 0.05), st.floats(0.001, 0.1), st.sampled_from(["", "n"]))


@pytest.mark.parametrize("kind", CLAIMS)
@given(drive=drives, limit=st.floats(0.1, 0.9), budget_s=st.floats(1.0, 12.0), noise=noises)
@settings(max_examples=15, deadline=None)
def test_any_verdict_comes_out_the_same_again(
    kind: str, drive: SliceDrive, limit: float, budget_s: float, noise: Noise
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Kept(Path(folder), drive, budget_s=budget_s, noise=noise)
        run.settle(CLAIMS[kind](run.reads, limit))
        run.close()
        (row,) = read_run(Path(folder), None).verdicts
        event(f"{row.outcome}, {row.reason}")
        assert unlike(Path(folder)) == []


@given(rate=st.floats(0.0, allow_infinity=False), cpu=st.floats(allow_nan=False))
@example(rate=5e-324, cpu=-0.0)
@settings(max_examples=50, deadline=None)
def test_a_float_comes_back_from_the_database_with_the_same_bits(rate: float, cpu: float) -> None:
    """Columns hold no negative numbers, of which SQLite would turn -0.0 into 0; JSON keeps it."""
    with tempfile.TemporaryDirectory() as folder:
        record = Record(Path(folder), "run-1")
        (measured,) = SliceDrive({8: 7000}).measure(random_read(), [SliceSetting(8, 16)])
        measured = replace(measured, rate=rate, cpu=cpu)
        record.add(slice_row("cell", "claim", "left", measured, settling="ab12", place=0))
        (row,) = record.slices("ab12")
        record.close()
        assert [row.rate.hex(), row.details["rate"].hex()] == [rate.hex()] * 2
        again = row.details["cpu"]
        assert again is None if math.isinf(cpu) else again.hex() == cpu.hex()


def test_an_interval_without_end_is_the_same_again(tmp_path: Path) -> None:
    """One clean pair, so the interval is infinite, and JSON has no number for that."""
    drive = SliceDrive({8: 7000, 1: 1000}, spoil=LITTLES_LAW, spoilt_share=0.7)
    run = Kept(tmp_path, drive)
    run.settle(run.reads.at(depth=8) >= 3 * run.reads.at(depth=1))
    run.close()
    (row,) = read_run(tmp_path, None).verdicts
    assert (row.reason, row.high, row.details["interval"]["half_width"]) == ("void", None, None)
    assert unlike(tmp_path) == []


def test_the_claims_of_one_test_do_not_mix_their_slices(tmp_path: Path) -> None:
    run = Kept(tmp_path, SliceDrive({8: 7000, 1: 1000}))
    reads = run.reads
    limits = (2, 3, 9)
    run.settle(*(reads.at(depth=8) >= limit * reads.at(depth=1) for limit in limits))
    run.close()
    found = read_run(tmp_path, None)
    assert {row.claim for row in found.verdicts} == {"a_claim"}
    assert len({row.settling for row in found.verdicts}) == 3
    assert sum(map(len, found.slices.values())) == len(run.drive.settings)
    assert unlike(tmp_path) == []


def test_a_verdict_by_the_sweep_of_another_is_the_same_again(tmp_path: Path) -> None:
    run = Kept(tmp_path, SliceDrive({depth: 1000.0 * min(depth, 8) for depth in range(1, 33)}))
    curve = run.reads.curve()
    run.settle(curve.has_no_dip(), curve.does_not_collapse())
    run.close()
    dip, collapse = read_run(tmp_path, None).verdicts
    assert dip.basis["statement"]["swept"] is None
    assert len(collapse.basis["statement"]["swept"]["rates"]) == 32
    assert unlike(tmp_path) == []


def test_slices_of_a_claim_that_the_rig_broke_off_are_of_no_verdict(tmp_path: Path) -> None:
    run = Kept(tmp_path, Failing({8: 3100, 1: 1000}, noise=0.2))
    with pytest.raises(RigTrouble):
        run.settle(run.reads.at(depth=8) >= 3 * run.reads.at(depth=1))
    run.settle(run.reads.at(depth=8) >= 2 * run.reads.at(depth=1))
    run.close()
    assert read_run(tmp_path, None).unsettled_slices == run.drive.batches[0]
    assert unlike(tmp_path) == []


class Failing(SliceDrive):
    """A drive of which the rig loses the second batch."""

    lost = False

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        if self.batches and not self.lost:
            self.lost = True
            raise RigTrouble("ssh was lost")
        return super().measure(workload, settings)
