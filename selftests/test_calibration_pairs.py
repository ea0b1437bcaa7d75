"""A/A pairs on a drive of known rates: which slices are run, which count, and how many."""

from collections.abc import Sequence

import pytest

from leadline.calibration.pairs import SETTLE_S, measure_pairs
from leadline.errors import Inconclusive, RigTrouble
from leadline.load.slices import LITTLES_LAW, Slice, SliceSetting
from leadline.load.workload import Workload, random_read
from leadline.verdict.calibration import FEWEST_BLOCKS, Session, rig_noise
from selftests.calibrated import TimedDrive


def pairs(
    drive: TimedDrive, *, seconds: float = 20.0, deep: int = 8
) -> tuple[Session, list[tuple[str, Slice]]]:
    kept: list[tuple[str, Slice]] = []
    session = measure_pairs(
        drive.measure,
        random_read(),
        slice_s=0.5,
        seconds=seconds,
        deep=deep,
        keep_slice=lambda side, measured: kept.append((side, measured)),
    )
    return session, kept


def test_twice_deep_and_twice_shallow_in_alternating_order() -> None:
    drive = TimedDrive({8: 7000, 1: 1000})
    session, kept = pairs(drive)
    depths = [setting.device_depth for setting in drive.settings]
    assert depths[:8] == [8, 8, 1, 1, 1, 1, 8, 8]
    assert [setting.offered_depth for setting in drive.settings[:3]] == [24, 24, 5]
    assert {side for side, _ in kept} == {"deep", "deep again", "shallow", "shallow again"}
    assert len(kept) == len(drive.settings)
    for deep, deep_again, shallow, shallow_again in session.blocks:
        assert deep == pytest.approx(7000, rel=0.1)
        assert deep_again == pytest.approx(7000, rel=0.1)
        assert shallow == pytest.approx(1000, rel=0.1)
        assert shallow_again == pytest.approx(1000, rel=0.1)


def test_of_a_pair_each_half_is_first_as_often() -> None:
    drive = TimedDrive({8: 7000, 1: 1000})
    _, kept = pairs(drive)
    began = [measured.began for side, measured in kept if side == "deep"]
    again = [measured.began for side, measured in kept if side == "deep again"]
    first = [one < other for one, other in zip(began, again, strict=True)]
    assert first == [place % 2 == 0 for place in range(len(first))]


def test_the_start_is_measured_and_does_not_count() -> None:
    drive = TimedDrive({8: 7000, 1: 1000})
    session, _ = pairs(drive)
    assert session.starts[0] >= 1000.0 + SETTLE_S
    assert session.block_seconds == 2.0
    assert sum(setting.seconds for setting in drive.settings) > 20.0 + SETTLE_S
    assert 20.0 <= len(session.blocks) * session.block_seconds < 20.0 + 8.0


def test_fewer_blocks_than_statistics_need_are_never_measured() -> None:
    session, _ = pairs(TimedDrive({8: 7000, 1: 1000}), seconds=1.0)
    assert len(session.blocks) >= FEWEST_BLOCKS
    assert rig_noise([session]).pairs == 2 * len(session.blocks)


def test_a_slow_drive_gets_longer_slices_and_no_short_ones_are_mixed_in() -> None:
    session, _ = pairs(TimedDrive({8: 120, 1: 60}), seconds=30.0)
    assert session.block_seconds == pytest.approx(4 * 1.2, rel=0.05)
    assert len(session.blocks) >= FEWEST_BLOCKS


def test_a_block_with_a_slice_that_does_not_count_is_left_out() -> None:
    drive = TimedDrive({8: 7000, 1: 1000}, spoil=LITTLES_LAW, spoilt_share=0.03)
    session, kept = pairs(drive, seconds=60.0)
    spoilt = {measured.began for _, measured in kept if measured.voids}
    assert spoilt
    ends = [start + 2.04 for start in session.starts]
    spans = list(zip(session.starts, ends, strict=True))
    assert not any(start <= began < end for began in spoilt for start, end in spans)
    assert len(session.blocks) * 2.0 >= 60.0


@pytest.mark.parametrize("share", [0.12, 0.3])
def test_too_many_that_do_not_count_are_no_calibration(share: float) -> None:
    """At 0.12 enough blocks are left, and a rig that spoils four in ten is not to be believed."""
    drive = TimedDrive({8: 7000, 1: 1000}, spoil=LITTLES_LAW, spoilt_share=share)
    with pytest.raises(Inconclusive, match=r"no calibration.*littles-law.*--seconds"):
        pairs(drive)
    assert sum(setting.seconds for setting in drive.settings) < 5 * 20.0


def test_a_clock_that_is_set_back_is_the_rigs_trouble() -> None:
    class SetBack(TimedDrive):
        def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
            self.clock -= 4.0 if len(self.batches) == 2 else 0.0
            return super().measure(workload, settings)

    with pytest.raises(RigTrouble, match="clock was set back"):
        pairs(SetBack({8: 7000, 1: 1000}))


def test_a_drive_that_holds_less_is_measured_at_what_it_holds() -> None:
    drive = TimedDrive({2: 2000, 1: 1000})
    pairs(drive, deep=2)
    assert {setting.device_depth for setting in drive.settings} == {1, 2}


def test_noise_comes_out_as_it_went_in() -> None:
    session, _ = pairs(TimedDrive({8: 7000, 1: 1000}, noise=0.02), seconds=400.0)
    noise = rig_noise([session])
    assert noise.pair_sd == pytest.approx(0.02 * 2**0.5, rel=0.15)
    assert noise.sigma_d < 0.01
