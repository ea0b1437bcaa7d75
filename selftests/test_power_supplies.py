"""`leadline power` on what has two supplies: both at once, or what is missing is said."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from leadline.power import cycle
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.commanded_rig import GRACEFUL, Rig, rig
from selftests.outlet_rig import OF_A, OF_HOST, OF_HOST_TOO, SECOND, Eyes
from selftests.power_world import quick, stage

__all__ = ["quick", "rig", "stage"]  # fixtures


@pytest.mark.parametrize("yes", [False, True])
def test_one_of_two_outlets_proves_nothing_about_the_drive(rig: Rig, yes: bool) -> None:
    words = ("a", "off", "--yes") if yes else ("a", "off")
    code, out, err = rig.run(*words, outlets=[OF_A, SECOND])
    if yes:
        assert (code, out) == (0, "outlet a (2 of PDU p): off, by readback\n")
    else:
        assert code == 3
        assert "outlet second feeds the same as outlet a" in err
    asked = ["admitted a to cut power", "released a"]
    assert rig.did == asked, "a drive in use stays on both: who knows whether the other one is on?"


@pytest.fixture
def second(rig: Rig) -> Iterator[VirtualPdu]:
    """The PDU with drive a's other supply."""
    with VirtualPdu(4, lambda *_: None, rig.stage.tmp_path / "second") as unit:
        yield unit


DUAL = (OF_A, SECOND)


@pytest.mark.parametrize("words", [("a", "second"), ("second", "a"), ("--drive", "a")])
def test_both_supplies_of_a_drive_are_cycled_together(
    rig: Rig, second: VirtualPdu, words: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    off: list[set[int]] = []

    def at_rescan() -> None:
        off.append({n for n, on in second.contacts.items() if not on})

    eyes = rig.eyes

    def watched(*arguments: Any) -> Eyes:
        made = eyes(*arguments)
        made.after_rescan = at_rescan
        return made

    monkeypatch.setattr(cycle, "Sight", watched)
    said = rig.json(*words, "cycle", outlets=DUAL)
    assert rig.stage.world.did == GRACEFUL
    assert off == [{3}], "while the drive is looked for, its other supply is off, too"
    assert all(second.contacts.values())
    assert (said["on"], said["verified"], said["drives"]) == (True, True, ["a"])
    assert {(one["outlet"], one["pdu"], one["number"]) for one in said["outlets"]} == {
        ("a", "p", 2),
        ("second", "q", 3),
    }
    assert "outlet" not in said, "which of them?"


def test_a_group_is_said_in_one_line_or_a_line_each(rig: Rig, second: VirtualPdu) -> None:
    _, out, _ = rig.run("--drive", "a", "off", outlets=DUAL)
    assert out == "outlet a (2 of PDU p) and outlet second (3 of PDU q): off, by readback; a gone\n"
    assert rig.run("a", "on", outlets=DUAL)[0] == 0
    said = rig.json("a", "second", "status", outlets=DUAL)
    assert (said["on"], said["verified"]) == (None, True)
    assert [one["on"] for one in said["outlets"]] == [True, False]
    assert rig.json("second", "a", "off", outlets=DUAL)["drives"] == ["a"], "one of them was off"
    assert not rig.stage.has_power(2)
    _, out, _ = rig.run("second", "a", "second", "on", outlets=DUAL)
    assert out == (
        "outlet second (3 of PDU q): on, by readback\noutlet a (2 of PDU p): on, by readback\n"
    )


def test_the_other_supply_is_named_with_what_to_do(rig: Rig, second: VirtualPdu) -> None:
    code, _, err = rig.run("second", "cycle", outlets=DUAL)
    assert code == 3
    assert "outlet a feeds the same as outlet second, so nothing goes dark without it; " in err
    assert "name all of them, or give --drive a\n" in err
    code, _, err = rig.run("host", "cycle", outlets=[OF_HOST, OF_HOST_TOO, OF_A])
    assert code == 3
    assert "outlet host2 feeds the same as outlet host, " in err
    assert "--drive" not in err
    assert rig.stage.world.did == []
