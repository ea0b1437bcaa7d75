"""The loop that settles a claim, on slices drawn from drives of known ratio."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from leadline.claims import Claim, ClaimFailed, Load, Unsettled
from leadline.judge import PAIRS_AT_ONCE, SliceJudge
from leadline.load.slices import LITTLES_LAW, TOO_SHORT, Slice, SliceSetting
from leadline.load.workload import Workload, random_read
from leadline.verdict.verdict import Outcome, Verdict


@dataclass
class Drive:
    """Gives each slice the rate of its depth, with noise; `spoil` names what voids a slice."""

    rates: dict[int, float]
    noise: float = 0.01
    spoil: str = ""
    spoilt_share: float = 1.0
    settings: list[SliceSetting] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def measure(self, workload: Workload, settings: Sequence[SliceSetting]) -> list[Slice]:
        assert workload.name == "random_read"
        self.settings += settings
        return [self._slice(setting) for setting in settings]

    def _slice(self, setting: SliceSetting) -> Slice:
        assert setting.device_depth is not None
        rate = self.rates[setting.device_depth] * self.chance.lognormvariate(0, self.noise)
        spoilt = self.spoil and self.chance.random() < self.spoilt_share
        short = rate * setting.seconds < 5 * setting.offered_depth
        voids = ((self.spoil,) if spoilt else ()) + ((TOO_SHORT,) if short else ())
        return Slice(
            setting=setting,
            job="s",
            seed=1,
            rate=rate,
            completions=int(rate),
            window_s=setting.seconds - 0.1,
            mean_latency_s=setting.offered_depth / rate,
            p99_latency_s=0.01,
            little_ratio=1.0,
            in_flight_by_law=setting.offered_depth,
            started=0.0,
            began=0.0,
            drain_s=0.0,
            gap_s=None,
            device_depth=setting.device_depth,
            cpu=0.1,
            fio_version="fio-3.33",
            voids=voids,
        )


@dataclass
class Kept:
    """What the judge handed out to be kept."""

    slices: list[tuple[str, Slice]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)


def judged(drive: Drive, budget_s: float = 130.0) -> tuple[Load, Kept]:
    kept = Kept()

    def keep_verdict(claim: Claim, verdict: Verdict, explanation: str) -> None:
        assert explanation.startswith(verdict.outcome)
        kept.verdicts.append(verdict)

    judge = SliceJudge(
        cell="bench-slot1",
        measure=drive.measure,
        keep_slice=lambda side, measured: kept.slices.append((side, measured)),
        keep_verdict=keep_verdict,
        slice_s=0.5,
        budget_s=budget_s,
        repeat="leadline hil -k this",
    )
    return Load(random_read(), judge, full_depth=32), kept


def test_a_parallel_drive_passes_after_a_few_pairs() -> None:
    drive = Drive({8: 7000, 1: 1000})
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    (verdict,) = kept.verdicts
    assert verdict.outcome is Outcome.PASS
    assert verdict.estimate == pytest.approx(7, rel=0.05)
    assert verdict.drive_seconds <= 8
    assert len(kept.slices) == len(drive.settings)


def test_a_serialising_drive_fails_and_the_message_has_every_figure() -> None:
    reads, kept = judged(Drive({8: 1400, 1: 1000}))
    with pytest.raises(ClaimFailed) as failure:
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    text = str(failure.value)
    assert "FAIL: random_read.at(depth=8) >= 3 * random_read.at(depth=1)" in text
    for needed in ("bench-slot1", "ratio: 1.", "threshold: >= 3", "drive-seconds", "leadline hil"):
        assert needed in text
    assert kept.verdicts[0].high is not None
    assert kept.verdicts[0].high < 3


def test_order_within_pairs_alternates_and_sides_are_not_mixed_up() -> None:
    drive = Drive({8: 7000, 1: 1000})
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    depths = [setting.device_depth for setting in drive.settings[: 2 * PAIRS_AT_ONCE]]
    assert depths == [8, 1, 1, 8] * (PAIRS_AT_ONCE // 2)
    for side, measured in kept.slices:
        assert measured.setting.device_depth == (8 if side == "left" else 1)


def test_a_ratio_on_the_threshold_is_inconclusive_and_never_a_guess() -> None:
    reads, kept = judged(Drive({8: 3000, 1: 1000}, noise=0.002))
    with pytest.raises(Unsettled, match=r"INCONCLUSIVE \((marginal|budget)\)"):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].drive_seconds <= 130 + 2 * PAIRS_AT_ONCE


def test_the_budget_ends_it() -> None:
    reads, kept = judged(Drive({8: 3100, 1: 1000}, noise=0.3), budget_s=20)
    with pytest.raises(Unsettled, match="--drive-time"):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].reason == "budget"


def test_unclean_slices_void_the_verdict_and_name_why() -> None:
    reads, kept = judged(Drive({8: 7000, 1: 1000}, spoil=LITTLES_LAW))
    with pytest.raises(Unsettled, match=LITTLES_LAW):
        assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].reason == "void"


def test_a_rare_unclean_slice_is_measured_again() -> None:
    reads, kept = judged(Drive({8: 7000, 1: 1000}, spoil=LITTLES_LAW, spoilt_share=0.05))
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert kept.verdicts[0].outcome is Outcome.PASS


def test_slices_too_short_for_a_slow_drive_are_lengthened() -> None:
    drive = Drive({8: 70, 1: 10})
    reads, kept = judged(drive)
    assert reads.at(depth=8) >= 3 * reads.at(depth=1)
    assert drive.settings[-1].seconds >= 5 * 5 / 10
    assert kept.verdicts[0].outcome is Outcome.PASS


def test_a_claim_that_nobody_asked_is_known() -> None:
    reads, _ = judged(Drive({8: 7000, 1: 1000}))
    asked = reads.at(depth=8) >= 3 * reads.at(depth=1)
    forgotten = reads.at(depth=8) <= 9 * reads.at(depth=1)
    assert asked
    judge = reads.judge
    assert isinstance(judge, SliceJudge)
    assert judge.unasserted() == [forgotten]
