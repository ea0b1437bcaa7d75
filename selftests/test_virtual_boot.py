"""A virtual rig's power, as far as it can be told without a guest that boots.

A guest that hangs in its boot, as emulation lets it do now and then, is given another try.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leadline.inventory.fields import packaged
from leadline.inventory.rig import load_rig
from leadline.virtual import machine as machine_module
from leadline.virtual import power as power_module
from leadline.virtual.accel import Accelerator
from leadline.virtual.machine import Machine
from leadline.virtual.power import Power
from leadline.virtual.state import State

EMULATED = Accelerator(False, "")
SILENT_S = 1.0


@pytest.fixture
def power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Callable[..., Power]":
    """A machine whose QEMU says one word on its console, or goes on for ever, and never boots."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(power_module, "_SILENT_S", SILENT_S)

    def make(*, speech: str = "echo booting", **machine: Any) -> Power:
        program = tmp_path / "qemu"
        # One process, or its children would outlive it when its power is cut.
        program.write_text(f"#!/bin/sh\nexec >> {state.log}/console.log\n{speech}\nexec sleep 60\n")
        program.chmod(0o755)
        monkeypatch.setattr(machine_module, "QEMU", str(program))
        made = Machine(EMULATED, Path("k"), Path("i"), 700, 2, "")
        return Power(rig, state, replace(made, **machine), port=1)

    rig = load_rig(packaged("rigs/virtual.yaml").resolve())
    state = State(rig.name)
    state.log.mkdir(parents=True)
    monkeypatch.setattr(Power, "_drives_on", lambda self, slots: None)
    return make


def part(name: str, did: list[str]) -> Any:
    """A process that notes what is done to it."""
    process = SimpleNamespace(kill=lambda: did.append(f"{name} killed"))
    return SimpleNamespace(process=process, reap=lambda: did.append(f"{name} awaited"))


def running(made: Power, did: list[str]) -> Power:
    """As if its machine and one drive ran."""
    made.qemu, made.phase = part("QEMU", did), "up"
    slot = made.slots["ssd1"]
    slot.powered, slot.model = True, part("drive", did)
    return made


@pytest.mark.parametrize("cut", [Power.host_off, Power.all_off])
def test_a_drive_that_hangs_does_not_keep_the_power_from_being_cut(
    power: "Callable[..., Power]", cut: Callable[[Power], None]
) -> None:
    did: list[str] = []
    made = running(power(), did)
    cut(made)
    assert did == ["QEMU killed", "drive killed", "drive awaited", "QEMU awaited"]
    assert (made.qemu, made.phase) == (None, "off")


def look_for(power: Power, seconds: float) -> list[str]:
    """What the server would note meanwhile."""
    said = []
    end = time.monotonic() + seconds
    power.host_on()
    try:
        while time.monotonic() < end:
            said.append(power.look())
            time.sleep(0.02)
    finally:
        power.host_off()
    return [each for each in said if each]


def test_a_boot_that_falls_silent_is_begun_anew_and_not_for_ever(
    power: "Callable[..., Power]",
) -> None:
    made = power()
    said = look_for(made, 6 * SILENT_S)
    assert [each[-8:] for each in said] == ["(2 of 3)", "(3 of 3)"]
    assert made.console.read_text().count("booting") == 3


def test_a_boot_that_goes_on_is_waited_for(power: "Callable[..., Power]") -> None:
    assert look_for(power(speech="while :; do echo on; sleep 0.1; done"), 4 * SILENT_S) == []


@pytest.mark.parametrize("own", [{"own_kernel": True}, {"accelerator": Accelerator(True, "")}])
def test_a_kernel_of_the_users_own_is_left_hanging(
    power: "Callable[..., Power]", own: dict[str, object]
) -> None:
    assert look_for(power(**own), 3 * SILENT_S) == []
