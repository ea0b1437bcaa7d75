"""The table of PDU faults by families, of a few: that it tells what came of them, wrong or not."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bench import pdu_faults
from bench.pdu_faults import (
    BELIEVED,
    MENDED,
    NAMED,
    RECOVERED,
    UNVERIFIED,
    Tried,
    measure,
    right_on,
    table,
)
from leadline.errors import RigTrouble
from leadline.power.pdu import Pdu, Switched
from selftests import pdu_worlds
from selftests.pdu_specimens import SPECIMENS
from selftests.pdu_worlds import in_memory
from selftests.power_world import quick

__all__ = ["quick"]  # a fixture

RPC3 = next(one for one in SPECIMENS if one.family == "baytech-rpc3")
FEW = [RPC3, *(one for one in SPECIMENS if one.family == "control-line")]
ROWS = {row.name: row for row in pdu_faults.ROWS}


def outcomes(found: dict[str, Any], family: str) -> dict[str, dict[str, int]]:
    return {fault: cell["outcomes"] for fault, cell in found["families"][family].items()}


def test_what_came_of_each_fault_is_seen_on_every_unit(
    monkeypatch: pytest.MonkeyPatch, quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["silent for 2 inputs", "wrong outlet", "lying status: off", "stuck outlet", "pager"]
    names += ["unplugged and back", "locked out"]
    monkeypatch.setattr(pdu_faults, "ROWS", [ROWS[name] for name in names])
    found = measure(FEW)
    json.dumps(found)
    assert outcomes(found, "baytech-rpc3") == {
        "silent for 2 inputs": {RECOVERED: 1},
        "wrong outlet": {NAMED: 1},
        "lying status: off": {BELIEVED: 1},
        "stuck outlet": {NAMED: 1},
        "pager": {RECOVERED: 1},
        "unplugged and back": {RECOVERED: 1},
        "left somewhere": {RECOVERED: len(RPC3.unit.LEFT_AT)},
    }
    assert outcomes(found, "control-line") == {
        "silent for 2 inputs": {UNVERIFIED: 2},
        "wrong outlet": {UNVERIFIED: 1},
        "lying status: off": {UNVERIFIED: 2},
        "stuck outlet": {UNVERIFIED: 2},
        "unplugged and back": {UNVERIFIED: 2},
    }
    assert (found["wrong"], found["within_limits"]) == ([], True)
    said = capsys.readouterr().err
    assert said.startswith("| fault | baytech-rpc3 | control-line |\n|---|---|---|\n")
    assert "| pager | recovered, " in said
    assert "| locked out |" not in said


def test_a_table_has_the_longest_of_all_units_and_what_cannot_be() -> None:
    found = {
        "a": {"mute": [Tried(RECOVERED, 1.04), Tried(UNVERIFIED, 2.0)], "hot": [Tried(NAMED, 3)]},
        "b": {"mute": [Tried(RECOVERED, 0.5)]},
    }
    assert table(found) == (
        "| fault | a | b |\n|---|---|---|\n"
        "| mute | recovered or unverified, 2.0 s | recovered, 0.5 s |\n"
        "| hot | error, 3.0 s | n.a. |"
    )


real_switch = Pdu.switch


def says_so(outlet: int, on: bool) -> Switched:
    return Switched(outlet, on, True, 0.0, 1, 0.0)


def says_little(outlet: int, on: bool) -> Switched:
    raise RigTrouble("it did not work")


def cannot_tell(outlet: int, on: bool) -> Switched:
    return Switched(outlet, on, False, 0.0, 1, 0.0)


@pytest.mark.parametrize(
    ("wrong_at", "how", "outcome"),
    [
        (False, says_so, "FALSE"),
        (False, says_little, "UNNAMED"),
        (True, says_so, "STAYS OFF"),
        (False, cannot_tell, UNVERIFIED),
    ],
)
def test_a_driver_that_does_wrong_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
    quick: None,
    wrong_at: bool,
    how: Callable[[int, bool], Switched],
    outcome: str,
) -> None:
    def switch(self: Pdu, outlet: int, on: bool, **given: Any) -> Switched:
        return how(outlet, on) if on is wrong_at else real_switch(self, outlet, on, **given)

    monkeypatch.setattr(Pdu, "switch", switch)
    monkeypatch.setattr(pdu_faults, "rows", lambda _: iter([ROWS["silent for 2 inputs"]]))
    monkeypatch.setattr(pdu_worlds, "COMES_ON_S", 5.0)
    found = measure([RPC3])
    assert found["wrong"] == [f"silent for 2 inputs on {RPC3}: {outcome}"]
    assert found["within_limits"] is False


@pytest.mark.parametrize(("took_s", "outcome"), [(40.0, RECOVERED), (60.0, "LATE")])
def test_a_deadline_that_does_not_end_it_is_found_out(
    monkeypatch: pytest.MonkeyPatch, took_s: float, outcome: str
) -> None:
    """30 s, and what is under way then."""

    def switch(self: Pdu, outlet: int, on: bool, **given: Any) -> Switched:
        done = real_switch(self, outlet, on, **given)
        self.session.clock.sleep(took_s)
        return done

    monkeypatch.setattr(Pdu, "switch", switch)
    with in_memory(RPC3) as world:
        assert pdu_faults.tried(world, 3).outcome == outcome


@pytest.mark.parametrize(
    ("family", "fault", "right"),
    [
        ("baytech-rpc3", "silent for good", {NAMED}),
        ("baytech-rpc3", "lying status: off", {BELIEVED}),
        ("control-line", "silent for good", {NAMED, UNVERIFIED}),
        ("lcus", "silent for good", {NAMED, UNVERIFIED}),
        ("lcus", "silent for 2 inputs", {RECOVERED}),
        ("lcus", "stuck outlet", {NAMED}),
    ],
)
def test_a_unit_that_can_tell_is_not_unverified(family: str, fault: str, right: set[str]) -> None:
    """But for a board that may be mute by make, and said nothing."""
    units = [one for one in SPECIMENS if one.family == family]
    unit = next((one for one in units if one.tells()), units[0])
    assert right_on(unit, ROWS[fault]) == right


def test_what_is_wrong_for_one_fault_is_right_for_another(
    monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    stuck = ROWS["stuck outlet"]
    for right, wrong in ((stuck.right, []), (MENDED, [f"stuck outlet on {RPC3}: {NAMED}"])):
        row = replace(stuck, right=right)
        monkeypatch.setattr(pdu_faults, "rows", lambda _, row=row: iter([row]))
        assert measure([RPC3])["wrong"] == wrong
