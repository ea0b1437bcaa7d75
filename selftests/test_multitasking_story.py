"""The story's conclusion, in simulated time: what NCQ gains nine loads, by what the drive does.

The judge, the traces and the drive model are the real ones; only the kernel and the clock are not.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace as changed
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import multitasking
from bench.multitasking import (
    ABOUT_ZERO,
    BASELINE,
    KINDS,
    LIKE_BASELINE,
    REQUESTS,
    Gains,
    as_expected,
    baseline_rows,
    overall_as_expected,
)
from bench.virtual_drive import IDENTITY, SLOT, _rig_of_its_own
from leadline.drive import queue_depth
from leadline.inventory.rig import load_rig
from leadline.judge_gain import look_at_gain
from leadline.plans import Noise
from leadline.statements import Gain
from leadline.trace.fitting import Reach
from leadline.trace.gain import Estimate, gain_of, overall
from leadline.trace.loads import LOADS, generate
from leadline.trace.patterns import Drive
from leadline.trace.replay_job import Replay
from leadline.trace.rounds import Replayed, ReplayedTrace, Round, Times
from leadline.trace.trace import Trace
from leadline.verdict.verdict import Outcome
from leadline.virtual.machine import attachments
from leadline.virtual.profile import Profile, load_profile
from selftests.simulated_replay import SimulatedRounds

ROUNDS = 6
"""One that loses among nine is not found with fewer than five."""
NOWHERE: Any = SimpleNamespace(
    host=SimpleNamespace(read_file=lambda _: b"16777216", write_value=lambda *_: None),
    drive=SimpleNamespace(name="sda", node="/dev/sda"),
)
"""A drive of 8 GiB of which nothing but the size is known."""


def replayed(profile: Profile) -> tuple[ReplayedTrace, ...]:
    drive = Drive(profile.capacity_bytes)
    traces = {name: (generate(load, drive, 1), load.in_flight) for name, load in LOADS.items()}
    rounds = SimulatedRounds(profile, traces)
    for _ in range(ROUNDS):
        rounds.one_more(REQUESTS, LOADS)
    return rounds.so_far(REQUESTS)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[ReplayedTrace, ...]]:
    """What was replayed on each of the bench's disks."""
    folder = tmp_path_factory.mktemp("profiles")

    def profile(which: str) -> Profile:
        path = folder / "profile.yaml"
        path.write_text(IDENTITY + KINDS[which].profile)
        return load_profile(path)

    return {which: replayed(profile(which)) for which in KINDS}


def gains(traces: tuple[ReplayedTrace, ...]) -> Estimate:
    whole = overall([gain_of(each.trace, each.rounds) for each in traces])
    assert whole is not None
    return whole


def outcome(traces: tuple[ReplayedTrace, ...], at_least: float, *, each: bool) -> Outcome:
    said = Gain("multitasking", at_least, each, traces, 1.0)
    return look_at_gain(said, Noise()).outcome


def test_a_disk_that_reorders_gains_in_each_of_the_nine(
    found: dict[str, tuple[ReplayedTrace, ...]],
) -> None:
    traces = found["reorders"]
    assert [each.trace for each in traces] == list(LOADS)
    by_trace = [gain_of(each.trace, each.rounds).gain for each in traces]
    assert all(each is not None and each.low is not None and each.low > 0 for each in by_trace)
    assert outcome(traces, 0.045, each=False) is Outcome.PASS
    assert outcome(traces, -0.1, each=True) is Outcome.PASS


def test_one_that_does_not_gains_about_nothing(
    found: dict[str, tuple[ReplayedTrace, ...]],
) -> None:
    traces = found["does not reorder"]
    assert abs(gains(traces).mean) < ABOUT_ZERO
    assert outcome(traces, 0.09, each=False) is Outcome.FAIL, "the story's own gain"
    assert outcome(traces, -0.1, each=True) is Outcome.PASS, "and is not to blame for that"


def test_one_on_which_queueing_costs_loses(
    found: dict[str, tuple[ReplayedTrace, ...]],
) -> None:
    traces = found["queueing costs"]
    whole = gains(traces)
    assert whole.high is not None
    assert whole.high < 0.0
    assert outcome(traces, 0.045, each=False) is Outcome.FAIL
    assert outcome(traces, -0.1, each=True) is Outcome.FAIL


def test_the_bench_expects_just_that(found: dict[str, tuple[ReplayedTrace, ...]]) -> None:
    def seen(transport_ms: float) -> dict[str, Gains]:
        return {
            which: Gains(transport_ms, {each.trace: each.rounds for each in traces})
            for which, traces in found.items()
        }

    quick = seen(0.02)
    alone = without_ncq(quick[LIKE_BASELINE])
    assert as_expected(quick, alone)
    assert overall_as_expected(quick)
    assert not as_expected(quick | {"reorders": quick["does not reorder"]}, alone)
    assert not as_expected(quick | {"does not reorder": quick["reorders"]}, alone)
    assert not as_expected(quick | {"does not reorder": quick["queueing costs"]}, alone)
    assert not as_expected(quick | {"queueing costs": quick["does not reorder"]}, alone)
    slow = seen(12.0)  # so long a way to the drive would explain it all
    assert slow["reorders"].by_transport == pytest.approx(0.5, abs=0.1)
    assert not overall_as_expected(slow)


def test_nothing_is_little_beside_what_the_way_explains(
    found: dict[str, tuple[ReplayedTrace, ...]],
) -> None:
    gains = {
        which: Gains(0.02, {each.trace: each.rounds for each in traces})
        for which, traces in found.items()
    }
    gaining = gains["reorders"]
    assert gaining.overall.low is not None
    enough_ms = 0.02 * (gaining.overall.low - ABOUT_ZERO) / gaining.by_transport
    for share, holds in ((0.98, False), (1.02, True)):
        nothing = changed(gaining, transport_ms=share * enough_ms)
        assert overall_as_expected(gains | {"does not reorder": nothing}) is holds


def without_ncq(gains: Gains, slower: float = 1.0) -> Gains:
    """The same disk with commands that are not queued, so many times as slow."""

    def alone(round_: Round) -> Round:
        reads, writes = (
            changed(each, mean_s=slower * each.mean_s)
            for each in (round_.off.reads, round_.off.writes)
        )
        return Round(changed(round_.off, reads=reads, writes=writes), None)

    rounds = {name: [alone(each) for each in of_one] for name, of_one in gains.rounds.items()}
    return Gains(gains.transport_ms, rounds)


def test_each_of_the_nine_has_a_row_with_the_sign_that_is_expected(
    found: dict[str, tuple[ReplayedTrace, ...]],
) -> None:
    """One that has another is not lost in a mean of nine."""
    one = {each.trace: each.rounds for each in found["reorders"]}
    other = {each.trace: each.rounds for each in found["queueing costs"]}
    name = next(iter(LOADS))
    rows = Gains(0.02, one | {name: other[name]}).rows("positive")
    assert list(rows) == list(LOADS)
    assert [row["within_limits"] for row in rows.values()] == [False] + [True] * 8
    assert rows[name]["expected"] == "positive"


def test_the_baseline_has_a_row_for_each_of_the_nine(
    found: dict[str, tuple[ReplayedTrace, ...]],
) -> None:
    """On a controller without NCQ it takes as long as the same disk does with NCQ off."""
    like = Gains(0.02, {each.trace: each.rounds for each in found[LIKE_BASELINE]})
    rows = baseline_rows(without_ncq(like, 1.09), like)
    assert list(rows) == list(LOADS)
    assert {row["over_ncq_off"] for row in rows.values()} == {1.09}
    assert all(row["within_limits"] for row in rows.values())
    for wrong in (without_ncq(like, 1.12), without_ncq(like, 0.88), like):
        assert not any(row["within_limits"] for row in baseline_rows(wrong, like).values())


def test_the_baseline_is_behind_an_ide_controller(tmp_path: Path) -> None:
    rig = load_rig(_rig_of_its_own(tmp_path, BASELINE.bus))
    spec = rig.drive(SLOT)
    assert rig.controller_of(spec).driver == "ata_piix"
    assert [each.bus for each in attachments(rig) if each.slot == SLOT] == ["ide"]
    assert BASELINE.profile == KINDS[LIKE_BASELINE].profile


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[Trace]:
    """What the bench replays from here on, in its order, on no drive at all."""
    done: list[Trace] = []

    at_depth: list[str] = []

    def replay(
        host: object, node: str, replays: Sequence[Replay], *_: object, **words: object
    ) -> list[Replayed]:
        done.extend(each.trace for each in replays)
        assert all(each.queued is (at_depth[-1] != "1") for each in replays), "off keeps the order"
        return [Replayed(Times(1, 1.0), Times(), 1.0) for _ in replays]

    monkeypatch.setattr(multitasking, "under_test", lambda *_, **__: nullcontext(NOWHERE))
    monkeypatch.setattr(multitasking, "replay", replay)
    monkeypatch.setattr(multitasking, "_transport_ms", lambda *_: 1.0)
    monkeypatch.setattr(NOWHERE.host, "write_value", lambda _, depth: at_depth.append(depth))
    monkeypatch.setattr(queue_depth, "read", lambda *_: 0)
    return done


def test_no_replay_of_the_bench_lies_where_another_has_read_whichever_load_it_was_of(
    tmp_path: Path, replays: list[Trace]
) -> None:
    """The loads read files that they have in common, and the drive's cache would answer."""
    names = list(LOADS)[:2]
    multitasking._gains(tmp_path, "reorders", KINDS["reorders"], (40, 2, names))
    reach = Reach()
    fits = [multitasking._fitted(NOWHERE, name, 40) for name in names]
    asked = [reach.next_of(fitted) for _ in range(2) for fitted in fits for _ in "01"]
    assert len(replays) == len(asked) == 8
    assert all(one.equals(other) for one, other in zip(replays, asked, strict=True))
    assert not replays[2].equals(fits[1].trace), "the first of a load lies beyond the one before"


def test_the_baseline_replays_what_its_like_does_with_ncq_off(
    tmp_path: Path, replays: list[Trace]
) -> None:
    """Other requests of the same load take another time."""
    asked = (40, 2, list(LOADS)[:2])
    multitasking._gains(tmp_path, LIKE_BASELINE, KINDS[LIKE_BASELINE], asked)
    with_ncq_off = [replays[each] for each in (0, 2, 5, 7)]  # the order alternates by round
    replays.clear()
    multitasking._gains(tmp_path, "no NCQ", BASELINE, asked)
    assert len(replays) == len(with_ncq_off)
    assert all(one.equals(other) for one, other in zip(replays, with_ncq_off, strict=True))
