"""Every cut of a drive's power is counted, over all runs, and may be bounded."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.errors import RigTrouble
from leadline.inventory.rig import DriveSpec, PowerBudget
from leadline.power.dark import HotPlug
from leadline.power.wear import Cut, Toll, Wear, path_of, wear_of
from selftests.power_world import FakeEyes, Stage, drive, quick, stage

__all__ = ["quick", "stage"]  # fixtures


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def spec(**changes: Any) -> DriveSpec:
    return drive().spec.model_copy(update=changes)


def cut(of: DriveSpec, *, emergency_unload: bool = False, run: str = "run-1") -> None:
    Toll([Cut(of, emergency_unload)], run).count()


def test_cuts_add_up_over_runs_whatever_the_rig_calls_the_slot() -> None:
    assert wear_of(spec()) == Wear(0, 0)
    cut(spec())
    cut(spec(slot="b"), emergency_unload=True, run="run-2")
    assert wear_of(spec()) == Wear(power_cycles=2, emergency_unloads=1)
    assert wear_of(spec(serial="OTHER")) == Wear(0, 0)
    assert '"run": "run-2"' in path_of(spec()).read_text()


def test_each_drive_of_a_shelf_is_counted() -> None:
    others = [spec(), spec(serial="OTHER")]
    Toll([Cut(each, emergency_unload=True) for each in others], "r").count()
    assert [wear_of(each) for each in others] == [Wear(1, 1), Wear(1, 1)]


@given(model=st.text(min_size=1, max_size=30), serial=st.text(min_size=1, max_size=15))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_a_file_of_its_own_below_the_state_directory(state: Path, model: str, serial: str) -> None:
    path = path_of(spec(model=model, serial=serial))
    assert path.parent == state / "leadline" / "power"
    assert path != path_of(spec(model=model, serial=f"{serial}_"))
    assert path.name.isprintable()


def test_a_line_that_was_cut_short_counts_nothing_and_spoils_none() -> None:
    cut(spec())
    with path_of(spec()).open("ab") as file:
        file.write(b'\n{"time": "2026-01-01T00:00:00", "emerg')
    cut(spec(), emergency_unload=True)
    assert wear_of(spec()) == Wear(2, 1)


@pytest.mark.parametrize(
    ("budget", "abrupt", "words"),
    [
        (PowerBudget(power_cycles=2), False, r"had 2 power cycles, .* allows 2; raise .*`power_c"),
        (PowerBudget(power_cycles=2), True, r"had 2 power cycles"),
        (PowerBudget(emergency_unloads=1), True, r"had 1 emergency unloads, .* allows 1;.*`emerg"),
        (PowerBudget(power_cycles=9, emergency_unloads=0), True, r"had 1 emergency .* allows 0"),
        (PowerBudget(emergency_unloads=1), False, ""),
        (PowerBudget(power_cycles=3, emergency_unloads=2), True, ""),
        (None, True, ""),
    ],
)
def test_a_budget_bears_so_many_and_no_more(
    budget: PowerBudget | None, abrupt: bool, words: str
) -> None:
    cut(spec())
    cut(spec(), emergency_unload=True)
    toll = Toll([Cut(spec(power_budget=budget), abrupt)], "r")
    if not words:
        toll.afford()
        return
    with pytest.raises(
        RigTrouble, match=f"slot a: MODEL SERIAL-a: its power is not cut: .*{words}"
    ):
        toll.afford()
    assert wear_of(spec()) == Wear(2, 1), "asking costs nothing"


def test_a_neighbours_budget_counts_too() -> None:
    spent = spec(serial="OTHER", slot="b", power_budget=PowerBudget(power_cycles=0))
    with pytest.raises(RigTrouble, match="slot b: MODEL OTHER: its power is not cut"):
        Toll([Cut(spec(), False), Cut(spent, False)], "r").afford()


def test_a_cut_that_cannot_be_counted_is_refused_before_anything_is_done(state: Path) -> None:
    state.write_text("no directory")
    with pytest.raises(RigTrouble, match=r"SERIAL-a\.jsonl: .*nothing was cut; .*XDG_STATE_HOME"):
        Toll([Cut(spec(), False)], "r").afford()
    with pytest.raises(RigTrouble, match="nothing was cut"):
        wear_of(spec())


def test_a_place_to_count_in_is_made_before_anything_is_done() -> None:
    Toll([Cut(spec(), False)], "r").afford()
    assert path_of(spec()).read_bytes() == b""


def test_a_full_disk_is_no_count() -> None:
    path_of(spec()).parent.mkdir(parents=True)
    path_of(spec()).symlink_to("/dev/full")
    with pytest.raises(RigTrouble, match="No space left on device"):
        cut(spec())


@pytest.mark.parametrize("abrupt", [False, True])
@pytest.mark.parametrize("rotates", [False, True])
def test_a_cycle_is_counted_once_and_as_what_it_was(
    stage: Stage, abrupt: bool, rotates: bool
) -> None:
    eyes = FakeEyes(stage.world, "a")
    eyes.rotates = rotates
    stage.cycle(abrupt=abrupt, eyes=eyes)
    assert wear_of(eyes.drive.spec) == Wear(1, int(abrupt and rotates))


def test_it_is_counted_before_the_outlet_goes_off(stage: Stage) -> None:
    eyes = FakeEyes(stage.world, "a")
    counted: list[int] = []
    stage.world.switched = lambda *_: counted.append(wear_of(eyes.drive.spec).power_cycles)
    stage.cycle(eyes=eyes)
    assert counted == [1, 1], "off, then on"


def test_a_cut_that_was_not_made_is_not_counted(stage: Stage) -> None:
    eyes = FakeEyes(stage.world, "a")

    def refuse() -> None:
        raise RigTrouble("the host does not answer")

    eyes.delete = refuse  # type: ignore[method-assign]
    with pytest.raises(RigTrouble, match="does not answer"):
        stage.carry_out(HotPlug(eyes), eyes, 2)
    assert wear_of(eyes.drive.spec) == Wear(0, 0)


CHILD = """
import sys
from leadline.power.wear import Cut, Toll
from selftests.power_world import drive
toll = Toll([Cut(drive().spec, emergency_unload=True)], "killed")
print("ready", flush=True)
while True:
    toll.count()
"""


def test_a_run_that_is_killed_while_it_counts_loses_no_cut() -> None:
    root = str(Path(__file__).parents[1])
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdout=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == b"ready\n"
        while wear_of(spec()).power_cycles < 20:
            assert child.poll() is None
        child.send_signal(signal.SIGKILL)
    before = wear_of(spec())
    assert before.emergency_unloads == before.power_cycles
    cut(spec())
    assert wear_of(spec()).power_cycles == before.power_cycles + 1
