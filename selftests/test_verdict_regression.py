"""Firmware regression: what blocks of stations prove, what they cannot, and how often they err."""

import math
import random
from dataclasses import replace
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.verdict.interval import ALPHA
from leadline.verdict.regression import ABBA, Firmware, Station, blocks_of, judge_regression
from leadline.verdict.sessions import session_spread
from leadline.verdict.verdict import Outcome, Verdict

A: Firmware = "released"
B: Firmware = "candidate"
RANK = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1, Outcome.PASS: 2}


def measured(
    order: list[Firmware],
    *,
    ratio: float = 1.0,
    seed: int = 1,
    slices: int = 30,
    session: float = 0.0,
    noise: float = 0.01,
    drift: float = 0.0,
    drive: str = "d1",
    begins: int = 0,
) -> list[Station]:
    """Stations of a simulated drive: `session` is the sd of a station, `drift` a line's slope."""
    chance = random.Random(seed)
    stations = []
    for place, firmware in enumerate(order, begins):
        level = chance.gauss(0, session) + drift * place
        level += math.log(1000 * ratio if firmware == B else 1000)
        rates = tuple(math.exp(level + chance.gauss(0, noise)) for _ in range(slices))
        stations.append(Station(drive, firmware, rates))
    return stations


def judge(
    stations: list[Station],
    largest_loss: float = 0.05,
    *,
    sigma_session: float = 0.005,
    sigma_d: float = 0.005,
    margin: float | None = None,
    spent_s: float = 1.0,
    voids: tuple[str, ...] = (),
) -> Verdict | None:
    return judge_regression(
        stations,
        largest_loss,
        slice_seconds=1.0,
        spent_s=spent_s,
        sigma_session=sigma_session,
        sigma_d=sigma_d,
        margin=margin,
        voids=voids,
    )


def last(
    stations: list[Station],
    largest_loss: float = 0.05,
    *,
    sigma_session: float = 0.005,
    sigma_d: float = 0.005,
) -> Verdict:
    """The verdict when the budget is spent."""
    verdict = judge(
        stations, largest_loss, sigma_session=sigma_session, sigma_d=sigma_d, spent_s=1e6
    )
    assert verdict is not None
    return verdict


@pytest.mark.parametrize("order", [[A, B, B, A], [B, A, A, B]])
@pytest.mark.parametrize(
    ("ratio", "outcome"), [(1.0, Outcome.PASS), (1.1, Outcome.PASS), (0.9, Outcome.FAIL)]
)
def test_one_block_settles_a_clear_case(
    order: list[Firmware], ratio: float, outcome: Outcome
) -> None:
    verdict = judge(measured(order, ratio=ratio))
    assert verdict is not None
    assert (verdict.outcome, verdict.reason, verdict.unit) == (outcome, "settled", "block")
    assert verdict.estimate == pytest.approx(ratio, rel=0.01)
    candidate, released = verdict.rates
    assert candidate.rate / released.rate == pytest.approx(verdict.estimate)
    assert verdict.threshold == 0.95
    assert (verdict.p_against <= ALPHA) == (outcome is Outcome.FAIL)


def test_linear_drift_cancels_in_a_block() -> None:
    """2 % from station to station, and no noise at all: the ratio is exact."""
    verdict = last(measured(ABBA, ratio=0.97, drift=0.02, noise=0.0))
    assert verdict.estimate == pytest.approx(0.97)


def test_linear_drift_cancels_between_two_drives_crossed() -> None:
    """Each drive had each firmware once; both were measured at the same times."""
    crossed = measured([A, B], ratio=0.97, drift=0.02, noise=0.0, drive="d1")
    crossed += measured([B, A], ratio=0.97, drift=0.02, noise=0.0, drive="d2")
    verdict = last(crossed)
    assert verdict.reason != "void"
    assert verdict.estimate == pytest.approx(0.97)


@pytest.mark.parametrize(
    ("order", "name"),
    [
        ([A, B], "no-return: d1"),
        ([B, A], "no-return: d1"),
        ([A, B, B], "no-return: d1"),
        ([A, A], "one-firmware: d1 was measured on its released firmware alone"),
        ([B], "one-firmware: d1 was measured on its candidate firmware alone"),
        ([A, B, A, B], "order: d1 was measured in the order released, candidate, released, can"),
        ([A, A, B, B], "order: d1"),
        ([A, A, A, A], "order: d1"),
        ([], "no-station"),
    ],
)
def test_orders_in_which_drift_does_not_cancel_are_void(order: list[Firmware], name: str) -> None:
    verdict = judge(measured(order, ratio=1.1))
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, "void")
    assert verdict.voids[0].startswith(name)


def test_two_drives_in_the_same_order_are_no_crossover() -> None:
    verdict = judge(measured([A, B]) + measured([A, B], drive="d2"))
    assert verdict is not None
    assert [void.split()[:2] for void in verdict.voids] == [
        ["no-return:", "d1"],
        ["no-return:", "d2"],
    ]


def test_a_wrong_order_voids_what_is_in_order_elsewhere() -> None:
    verdict = judge(measured(ABBA) + measured([A, B, A, B], drive="d2"))
    assert verdict is not None
    assert verdict.reason == "void"


def test_stations_after_the_last_whole_block_wait() -> None:
    whole, more = measured(ABBA), measured([B, A], ratio=0.5, begins=4)
    assert last(whole + more).estimate == last(whole).estimate
    assert any("2 station(s) outside" in note for note in last(whole + more).notes)


def test_interleaved_drives_are_pooled_drive_by_drive() -> None:
    one, two = measured(ABBA, seed=1), measured(ABBA, seed=2, drive="d2")
    mixed = [station for both in zip(one, two, strict=True) for station in both]
    blocks, voids = blocks_of(mixed)
    assert voids == ()
    assert [{station.drive for station in block} for block in blocks] == [{"d1"}, {"d2"}]
    assert [[s.firmware for s in block] for block in blocks] == [[A, A, B, B]] * 2
    assert last(mixed).estimate == last(one + two).estimate


def test_slices_without_end_do_not_narrow_the_interval_below_the_rigs_own_spread() -> None:
    for slices in (30, 3000):
        interval = last(measured(ABBA, slices=slices), sigma_session=0.01).interval
        assert interval is not None
        assert interval.half_width > 2.8 * 0.01
        assert interval.drift >= 2.8 * 0.01


def test_more_blocks_average_the_rigs_own_spread() -> None:
    """By sqrt(n), less what the second look costs."""
    one = last(measured(ABBA), sigma_session=0.01, sigma_d=0.0).interval
    two = last(measured([*ABBA, *ABBA]), sigma_session=0.01, sigma_d=0.0).interval
    assert one is not None
    assert two is not None
    assert 1 / math.sqrt(2) < two.drift / one.drift < 0.8


def test_a_short_block_beside_a_long_one_averages_little() -> None:
    long_, short = measured(ABBA, slices=100), measured(ABBA, slices=5)
    one = last(long_, sigma_session=0.01, sigma_d=0.0).interval
    both = last(long_ + short, sigma_session=0.01, sigma_d=0.0).interval
    assert one is not None
    assert both is not None
    assert both.drift > one.drift


@pytest.mark.parametrize("drives", [("d1", "d1"), ("d1", "d2")])
def test_blocks_that_differ_by_more_than_the_rig_widen_the_interval(
    drives: tuple[str, str],
) -> None:
    """0 % on one and 10 % on the other is no 5 % on both."""
    stations = measured(ABBA, drive=drives[0]) + measured(ABBA, ratio=0.9, drive=drives[1])
    verdict = last(stations, 0.2)
    assert verdict.interval is not None
    assert verdict.interval.drift > 2.6 * 0.07 / math.sqrt(2)
    assert any("differ by 7." in note for note in verdict.notes)


def test_drives_that_differ_count_as_drives_however_many_blocks_they_had() -> None:
    stations = measured([*ABBA, *ABBA]) + measured([*ABBA, *ABBA], ratio=0.9, drive="d2")
    verdict = last(stations, 0.2)
    assert verdict.interval is not None
    assert verdict.interval.drift > 2.6 * 0.07 / math.sqrt(2)


def simulated(seed: int, blocks: int, *, few: int | None, slices: int = 40) -> list[Verdict]:
    """Looks after each block at firmwares that do not differ; the rig does, by 2 % a station."""
    chance = random.Random(seed)
    spread = 0.02
    if few is not None:
        spread = session_spread([math.exp(chance.gauss(0, 0.02)) for _ in range(few)])
    stations: list[Station] = []
    looks = []
    for block in range(blocks):
        stations += measured(
            ABBA, seed=seed * 100 + block, slices=slices, session=0.02, noise=0.004, drift=0.01
        )
        looks.append(last(stations, sigma_session=spread, sigma_d=0.0))
    return looks


@pytest.mark.parametrize(("blocks", "few"), [(1, None), (4, None), (1, 4), (4, 4)])
def test_the_interval_holds_at_all_looks_together(blocks: int, few: int | None) -> None:
    """Also when sigma_session is known from four A/A repeats alone."""
    wrong = 0
    for seed in range(300):
        looks = simulated(seed, blocks, few=few)
        wrong += any(not (v.low or 0.0) <= 1.0 <= (v.high or 0.0) for v in looks)
    assert wrong / 300 <= 0.015


def test_slices_alone_know_nothing_of_the_station() -> None:
    """Why sigma_session is there: without it two blocks in three exclude the truth."""
    wrong = 0
    for seed in range(100):
        stations = measured(ABBA, seed=seed, slices=40, session=0.02, noise=0.004)
        interval = last(stations, sigma_session=1e-6, sigma_d=0.0).interval
        assert interval is not None
        wrong += abs(interval.mean) > interval.half_width
    assert wrong / 100 > 0.5


@pytest.mark.parametrize(
    ("ratio", "right", "settled"), [(1.0, Outcome.PASS, 0.9), (0.9, Outcome.FAIL, 0.9)]
)
def test_verdicts_are_right_within_four_blocks(
    ratio: float, right: Outcome, settled: float
) -> None:
    outcomes = []
    for seed in range(100):
        stations: list[Station] = []
        for block in range(4):
            stations += measured(ABBA, ratio=ratio, seed=seed * 10 + block, session=0.01)
            verdict = judge(stations, sigma_session=0.01, spent_s=200.0 if block == 3 else 50.0)
            if verdict is not None:
                outcomes.append(verdict.outcome)
                break
    assert len(outcomes) == 100
    assert set(outcomes) <= {right, Outcome.INCONCLUSIVE}
    assert outcomes.count(right) >= settled * 100


def scaled(
    stations: list[Station], factor: float, firmwares: tuple[Firmware, ...] = (A, B)
) -> list[Station]:
    return [
        replace(station, rates=tuple(rate * factor for rate in station.rates))
        if station.firmware in firmwares
        else station
        for station in stations
    ]


four_stations = st.lists(
    st.lists(st.floats(10.0, 1e4), min_size=5, max_size=5).map(tuple), min_size=4, max_size=8
).map(lambda rates: [Station("d1", f, r) for f, r in zip(ABBA * 2, rates, strict=False)])


@given(four_stations, st.sampled_from([1e-3, 7.0, 1e6]))
def test_only_the_ratio_counts(stations: list[Station], factor: float) -> None:
    assert last(scaled(stations, factor)).outcome is last(stations).outcome


@given(four_stations)
def test_swapping_the_firmwares_inverts_the_ratio(stations: list[Station]) -> None:
    swapped = [replace(s, firmware=A if s.firmware == B else B) for s in stations]
    here, there = last(stations), last(swapped)
    assert here.interval is not None
    assert there.interval is not None
    assert there.interval.mean == pytest.approx(-here.interval.mean, abs=1e-9)
    assert there.interval.half_width == pytest.approx(here.interval.half_width, rel=1e-6)
    assert there.rates == here.rates[::-1]


@given(four_stations, st.floats(1.0, 10.0))
def test_a_faster_candidate_never_does_worse(stations: list[Station], faster: float) -> None:
    slow, fast = last(stations), last(scaled(stations, faster, (B,)))
    assert RANK[fast.outcome] >= RANK[slow.outcome]


@given(four_stations, st.floats(0.01, 0.98))
def test_a_greater_loss_allowed_never_does_worse(stations: list[Station], loss: float) -> None:
    strict, lenient = last(stations, loss), last(stations, loss + 0.01)
    assert RANK[lenient.outcome] >= RANK[strict.outcome]


@pytest.mark.parametrize(
    ("loss", "session", "margin", "said"),
    [
        (0.0, 0.01, None, "largest_loss is 0.0"),
        (1.0, 0.01, None, "largest_loss is 1.0"),
        (math.nan, 0.01, None, "largest_loss is nan"),
        (0.05, 0.0, None, "sigma_session is 0.0.*A/A"),
        (0.05, math.nan, None, "sigma_session is nan"),
        (0.05, 0.01, 0.05, "margin is 0.05 and largest_loss 0.05"),
        (0.05, 0.01, 1.0, "margin is 1.0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(
    loss: float, session: float, margin: float | None, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        judge(measured(ABBA), loss, sigma_session=session, margin=margin)


@pytest.mark.parametrize("bad", [(), (1000.0, 0.0), (math.nan,), (1000.0, -5.0), (math.inf,)])
def test_unusable_slices_are_refused_by_station_and_void_ones_never_pass(
    bad: tuple[float, ...],
) -> None:
    stations = [*measured(ABBA)[:3], Station("d1", A, bad)]
    with pytest.raises(ValueError, match=r"station 3 \(released on d1\)"):
        judge(stations)
    verdict = judge(stations, voids=("io-errors",))
    assert verdict is not None
    assert (verdict.outcome, verdict.voids[0]) == (Outcome.INCONCLUSIVE, "io-errors")


def test_identical_slices_and_one_slice_a_station_settle_nothing() -> None:
    assert judge(measured(ABBA, noise=0.0, slices=1, ratio=1.5)) is None
    assert judge(measured(ABBA, noise=0.0, slices=3, ratio=1.5)) is None


def test_session_spread_is_the_sd_of_logs_made_wider_for_few() -> None:
    rates = [1000.0, 1010.0, 990.0, 1005.0, 1001.0]
    plain = stdev(math.log(rate) for rate in rates)
    assert session_spread(rates) == pytest.approx(plain * 4.6041 / 2.5758, rel=1e-4)
    assert session_spread(rates[:2]) > 20 * stdev(math.log(rate) for rate in rates[:2])


def test_session_spread_covers_the_next_session() -> None:
    """2.58 of it contain the next session 99 times of 100, from three repeats already."""
    chance = random.Random(1)
    within = []
    for _ in range(2000):
        logs = [chance.gauss(0, 0.02) for _ in range(3)]
        spread = session_spread([math.exp(log) for log in logs])
        within.append(abs(chance.gauss(0, 0.02)) <= 2.5758 * spread)
    assert fmean(within) >= 0.985


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ([], "0 session"),
        ([1.0], "at least two"),
        ([1.0, 0.0], "session 1"),
        ([math.nan, 1.0], "nan"),
    ],
)
def test_session_spread_of_bad_repeats_is_refused(rates: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        session_spread(rates)
