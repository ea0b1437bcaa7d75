"""One run as its processes know it: from the options, and from what a worker is handed."""

import json
import re
from copy import copy
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from leadline.errors import Misuse
from leadline.run_id import RUN_ID, new_run_id
from leadline.running import Run, make_run, repeating, run_from_worker, whole_of, worker_plan
from selftests.vendor import MATRIX, RIG


def made(pytestconfig: pytest.Config, **options: object) -> tuple[pytest.Config, Run]:
    """A configuration with these options, and the run of it."""
    chosen = copy(pytestconfig.option)
    for name, value in {"rig": [RIG], "matrix": MATRIX, "run_id": "run-7", **options}.items():
        assert hasattr(chosen, name), "an option that the plugin knows"
        setattr(chosen, name, value)
    config = cast(pytest.Config, SimpleNamespace(option=chosen))
    return config, make_run(config)


def test_options_reach_the_run(pytestconfig: pytest.Config) -> None:
    _, run = made(pytestconfig, drive_time=20.0, no_excuses=True, results=Path("there"))
    assert (run.id, run.drive_time_s, run.no_excuses) == ("run-7", 20, True)
    assert run.results == Path.cwd() / "there"
    assert not run.allow_writes
    assert made(pytestconfig, allow_writes=True)[1].allow_writes
    assert made(pytestconfig, run_id=None)[1].id != "run-7"


def test_the_command_that_repeats_a_test_has_what_this_run_was_given(
    pytestconfig: pytest.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = made(pytestconfig, matrix=None)
    (rig,) = run.rigs.values()
    assert repeating(run, rig, "test_x.py::test[a b]") == (
        f"leadline hil --rig {RIG} 'test_x.py::test[a b]'"
    )
    mine = tmp_path / "mine.yaml"
    mine.write_text(MATRIX.read_text().replace("image: rigs", f"image: {MATRIX.parent}/rigs"))
    _, run = made(pytestconfig, matrix=mine, drive_time=20.0, allow_writes=True)
    assert repeating(run, rig, "test_x.py") == (
        f"leadline hil --rig {RIG} --matrix {mine} --allow-writes --drive-time 20 test_x.py"
    )
    there = tmp_path / "there"
    _, run = made(pytestconfig, matrix=None, no_excuses=True, baseline="stored", results=there)
    assert repeating(run, rig, "test_x.py") == (
        f"leadline hil --rig {RIG} --baseline stored --no-excuses --results {there} test_x.py"
    )


@pytest.mark.parametrize(
    ("started_in", "stay", "repeated"),
    [
        ("clone", None, "tests/test_x.py::test_a[b::c]"),
        ("clone/tests", None, "test_x.py::test_a[b::c]"),
        ("elsewhere", None, "{clone}/tests/test_x.py::test_a[b::c]"),
        ("clone", object(), "tests/test_x.py::test_a"),
    ],
)
def test_what_repeats_a_test_is_found_from_where_the_run_was_started(
    tmp_path: Path, started_in: str, stay: object, repeated: str
) -> None:
    """The node id is as from pytest's root directory, here the clone."""
    item = SimpleNamespace(
        nodeid="tests/test_x.py::test_a[b::c]",
        path=tmp_path / "clone" / "tests" / "test_x.py",
        config=SimpleNamespace(invocation_params=SimpleNamespace(dir=tmp_path / started_in)),
        callspec=SimpleNamespace(params={"stay": stay}),
    )
    wanted = repeated.format(clone=tmp_path / "clone")
    assert whole_of(cast(pytest.Item, item)) == wanted


@pytest.mark.parametrize("seconds", [0.0, -5.0, float("nan"), float("inf")])
def test_a_drive_time_that_is_none_is_refused_before_any_is_spent(
    pytestconfig: pytest.Config, seconds: float
) -> None:
    with pytest.raises(Misuse, match=r"--drive-time \S+: seconds, more than 0"):
        made(pytestconfig, drive_time=seconds)


@pytest.mark.parametrize("rounds", [0, -1, 21])
def test_rounds_that_are_none_or_take_a_day_are_refused(
    pytestconfig: pytest.Config, rounds: int
) -> None:
    with pytest.raises(Misuse, match=rf"--rounds {rounds}: from 1 to 20, each of two flashes"):
        made(pytestconfig, rounds=rounds)


def test_rounds_and_what_is_stored_are_one_or_the_other(pytestconfig: pytest.Config) -> None:
    with pytest.raises(Misuse, match=r"--rounds 2 with .*stored: .* leave one of them out"):
        made(pytestconfig, rounds=2, baseline="stored")
    _, run = made(pytestconfig, rounds=2)
    assert " --rounds 2 " in repeating(run, run.rigs["virtual"], "x.py")
    assert len(run.route.stays) == 2 * len(made(pytestconfig)[1].route.stays) > 0


def test_the_second_key_for_flashing(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """A virtual rig needs none: its drives are files."""
    _, run = made(pytestconfig)
    assert all(run.serves(visit) for visit in run.visits)
    real = tmp_path / "real.yaml"
    real.write_text(RIG.read_text().partition("\nvirtual:")[0])
    _, run = made(pytestconfig, rig=[real])
    assert [run.serves(visit) for visit in run.visits] == [True, False, True]
    assert "--allow-flash" not in repeating(run, run.rigs["virtual"], "x.py")
    _, run = made(pytestconfig, rig=[real], allow_flash=True)
    assert all(run.serves(visit) for visit in run.visits)
    assert "--allow-flash x.py" in repeating(run, run.rigs["virtual"], "x.py")


def test_home_is_the_firmware_of_the_rig_file(pytestconfig: pytest.Config) -> None:
    _, run = made(pytestconfig, keep_firmware=True)
    assert run.keep_firmware
    good, serialising, _ = run.visits
    assert run.home(good) == good
    home = run.home(serialising)
    assert (home.cell, home.image, home.installed) == (good.cell, good.image, True)


def test_limits_and_known_issues_are_those_of_the_visited_model_and_firmware(
    pytestconfig: pytest.Config,
) -> None:
    _, run = made(pytestconfig)
    good, serialising, scsi = run.visits
    assert [run.limits(visit)["ready_s"].at_most for visit in run.visits] == [120, 120, 10]
    assert [bool(run.known_issues(visit)) for visit in run.visits] == [False, True, False]
    assert run.drive_spec(scsi).serial == "VSCSI0001"
    assert good.cell.firmware == "1.0"
    assert serialising.cell.firmware == "1.1"


def test_where_a_limit_stands_that_holds(pytestconfig: pytest.Config) -> None:
    _, run = made(pytestconfig)
    home, where = run.visits[0], run.matrix.where
    assert run.limit_at(home, "ready_s") == where("models", 0, "limits", "ready_s")
    claim = "depth_8_over_depth_1"
    assert run.limit_at(home, claim) == where("classes", "ssd", claim)


def test_a_worker_takes_the_plan_and_the_id_that_it_is_handed(pytestconfig: pytest.Config) -> None:
    config, run = made(pytestconfig)
    assert run_from_worker(config, worker_plan(run)) == run
    handed = json.loads(worker_plan(run))
    handed["visits"] = json.dumps(json.loads(handed["visits"])[2:])
    assert run_from_worker(config, json.dumps(handed)).visits == run.visits[2:], "not planned again"


def test_run_ids_sort_by_time_and_are_not_alike() -> None:
    first, second = new_run_id(), new_run_id()
    assert re.fullmatch(r"20\d{6}-\d{6}-[0-9a-f]{4}", first)
    assert RUN_ID.fullmatch(first)
    assert first != second
