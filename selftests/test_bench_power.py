"""The benchmark of power control, at small sizes: that it measures, compares and limits."""

import json
import math
import threading
from pathlib import Path
from typing import Any

import pytest

from bench import power
from bench.pdus import Pdus
from bench.power import against_powerman, in_turns, measure, ratio_of, recoveries, side_by_side
from leadline.power.pdu import open_pdu
from selftests.power_world import quick
from selftests.powermand import needs_powermand

pytestmark = pytest.mark.measures

__all__ = ["quick"]  # a fixture

RATIO = {"ratio": 0.5, "low": 0.4, "high": 0.6}


def test_a_ratio_and_its_interval_are_of_pairs() -> None:
    assert ratio_of([(1.0, 2.0)] * 5) == {"ratio": 0.5, "low": 0.5, "high": 0.5}
    drifting = [(n * 1.0, n * 2.0) for n in range(1, 30)]
    assert ratio_of(drifting)["high"] == 0.5, "what both share cancels"
    found = ratio_of([(1.0, 2.0), (1.0, 1.0), (2.0, 1.0)] * 10)
    assert found["low"] < found["ratio"] == 1.0 < found["high"]


def test_both_come_first_by_turns() -> None:
    done: list[str] = []
    pairs = in_turns(lambda: done.append("a"), lambda: done.append("b"), 3)
    assert done == ["a", "b", "b", "a", "a", "b"]
    assert len(pairs) == 3
    held = threading.Event()
    assert all(slow >= 0.05 for _, slow in in_turns(lambda: None, lambda: held.wait(0.05), 2))


def test_units_are_unplugged_and_plugged_in_where_they_run(tmp_path: Path, quick: None) -> None:
    with Pdus(tmp_path, ["a", "b"]) as units:
        process = units._process
        with open_pdu(power.spec("b", units)) as pdu:
            assert len(pdu.status()) == 8
            units.unplug("b")
            assert not units.port("b").is_symlink()
            assert units.port("a").is_symlink()
            units.plug_in("b")
            assert len(pdu.status()) == 8
    assert process.returncode == 0
    assert list(tmp_path.glob("?")) == []


@needs_powermand
def test_powerman_is_compared_with_on_the_same_unit(tmp_path: Path, quick: None) -> None:
    found = against_powerman(tmp_path, 2, answer_s=0.02)
    assert found.keys() == {"off", "on", "status", "on, read back"}
    for each in found.values():
        assert min(each["ours_ms"], each["powerman_ms"]) >= 20, "the unit answers after 20 ms"
        assert each["low"] <= each["ratio"] <= each["high"]


def test_outlets_side_by_side_are_compared_with_the_slowest_pdu(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(power, "PDUS", 2)
    found = side_by_side(tmp_path, 2)
    assert (found["outlets"], found["pdus"]) == (8, 2)
    assert found["slowest_alone_ms"] >= 4 * 2 * 20, "four outlets, each told and read back"
    times = iter([1.0, 2.0, 4.0])
    monkeypatch.setattr(power, "_seconds", lambda _: next(times))
    found = side_by_side(tmp_path, 1)
    assert (found["slowest_alone_ms"], found["together_ms"], found["ratio"]) == (2000, 4000, 2)


def test_recovery_is_counted_from_when_the_port_is_back(tmp_path: Path, quick: None) -> None:
    found = recoveries(tmp_path, [0.2])
    assert found.keys() == {"after 0.2 s"}
    assert 0 < found["after 0.2 s"] < 30


@pytest.mark.parametrize(
    ("name", "worse"),
    [
        ("against_powerman", {"on": {**RATIO, "high": 1.01}}),
        ("side_by_side", {**RATIO, "high": 1.31}),
        ("recoveries", {"after 1 s": 5.1}),
        ("recoveries", {"after 1 s": math.inf}),
    ],
)
def test_each_limit_is_one(
    monkeypatch: pytest.MonkeyPatch, name: str, worse: dict[str, Any]
) -> None:
    good = {
        "against_powerman": {"on": RATIO},
        "side_by_side": {**RATIO, "high": 1.3},
        "recoveries": {"after 1 s": 5.0},
    }
    for each, found in good.items():
        monkeypatch.setattr(power, each, lambda *_, found=found, **__: found)
    assert measure()["within_limits"] is True
    json.dumps(measure())
    monkeypatch.setattr(power, name, lambda *_, **__: worse)
    assert measure()["within_limits"] is False
    json.dumps(measure(), allow_nan=False)
