"""The story's conclusion, in simulated time: what NCQ gains nine loads, by what the drive does.

The judge, the traces and the drive model are the real ones; only the kernel and the clock are not.
"""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import multitasking
from bench.multitasking import ABOUT_ZERO, KINDS, REQUESTS, Gains, as_expected
from bench.virtual_drive import IDENTITY
from leadline.judge_gain import look_at_gain
from leadline.plans import Noise
from leadline.statements import Gain
from leadline.trace.fitting import Reach
from leadline.trace.gain import Estimate, gain_of, overall
from leadline.trace.loads import LOADS, generate
from leadline.trace.patterns import Drive
from leadline.trace.rounds import Replayed, ReplayedTrace, Times
from leadline.trace.trace import Trace
from leadline.verdict.verdict import Outcome
from leadline.virtual.profile import Profile, load_profile
from selftests.simulated_replay import SimulatedRounds

ROUNDS = 6
"""One that loses among nine is not found with fewer than five."""


def replayed(profile: Profile) -> tuple[ReplayedTrace, ...]:
    drive = Drive(profile.capacity_bytes)
    traces = {name: (generate(load, drive, 1), load.in_flight) for name, load in LOADS.items()}
    rounds = SimulatedRounds(profile, traces)
    for _ in range(ROUNDS):
        rounds.one_more(REQUESTS)
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

    assert as_expected(seen(0.02))
    assert not as_expected(seen(0.02) | {"reorders": seen(0.02)["does not reorder"]})
    assert not as_expected(seen(0.02) | {"does not reorder": seen(0.02)["reorders"]})
    assert not as_expected(seen(0.02) | {"does not reorder": seen(0.02)["queueing costs"]})
    assert not as_expected(seen(0.02) | {"queueing costs": seen(0.02)["does not reorder"]})
    slow = seen(12.0)  # so long a way to the drive would explain it all
    assert slow["reorders"].by_transport == pytest.approx(0.5, abs=0.1)
    assert not as_expected(slow)


def test_no_replay_of_the_bench_lies_where_another_has_read_whichever_load_it_was_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loads read files that they have in common, and the drive's cache would answer."""
    replays: list[Trace] = []
    host = SimpleNamespace(read_file=lambda _: b"16777216", write_value=lambda *_: None)
    drive: Any = SimpleNamespace(host=host, drive=SimpleNamespace(name="sda", node="/dev/sda"))

    def replay(host: object, node: str, trace: Trace, *_: object, **__: object) -> Replayed:
        replays.append(trace)
        return Replayed(Times(1, 1.0), Times(), 1.0)

    monkeypatch.setattr(multitasking, "under_test", lambda *_, **__: nullcontext(drive))
    monkeypatch.setattr(multitasking, "replay", replay)
    monkeypatch.setattr(multitasking, "_transport_ms", lambda _: 1.0)
    names = list(LOADS)[:2]
    multitasking._gains(tmp_path, "reorders", KINDS["reorders"], (40, 2, names))
    reach = Reach()
    fits = [multitasking._fitted(drive, name, 40) for name in names]
    asked = [reach.next_of(fitted) for _ in range(2) for fitted in fits for _ in "01"]
    assert len(replays) == len(asked) == 8
    assert all(one.equals(other) for one, other in zip(replays, asked, strict=True))
    assert not replays[2].equals(fits[1].trace), "the first of a load lies beyond the one before"
