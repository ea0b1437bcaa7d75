"""Calibrations kept and found again: by rig and serial number, broken, stale, or missing."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from leadline.calibration.known import noise_of, stale
from leadline.calibration.store import (
    SESSIONS_KEPT,
    BrokenCalibration,
    Conditions,
    comparable,
    load,
    path_of,
    save,
)
from leadline.errors import RigTrouble
from leadline.plans import SIGMA_SESSION
from selftests.calibrated import CONDITIONS, MEASURED, calibration, kept_session


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The user's state directory, of this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_what_is_kept_is_found_again_by_rig_and_serial(state: Path) -> None:
    kept = calibration()
    assert save(kept) == state / "leadline" / "calibrations" / "bench" / "SERIAL-a.json"
    assert load("bench", "SERIAL-a") == kept
    assert load("bench", "SERIAL-b") is None
    assert load("other", "SERIAL-a") is None
    assert [path.name for path in path_of("bench", "x").parent.iterdir()] == ["SERIAL-a.json"]


def test_a_newer_calibration_takes_the_place_of_the_older() -> None:
    save(calibration())
    save(calibration(slot="b"))
    found = load("bench", "SERIAL-a")
    assert found is not None
    assert found.slot == "b"


@pytest.mark.parametrize("serial", ["../../../escape", "..", ".", "", "a/b", "nul\0", "日本"])
def test_a_serial_number_is_no_path(state: Path, serial: str) -> None:
    """A drive says what it likes."""
    path = save(calibration(serial=serial))
    assert path.parent == state / "leadline" / "calibrations" / "bench"
    found = load("bench", serial)
    assert found is not None
    assert found.serial == serial


def test_a_relative_state_home_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert path_of("r", "s") == tmp_path / ".local/state/leadline/calibrations/r/s.json"


def changed(change: Callable[[dict[str, Any]], None]) -> str:
    """The text of a file with one thing other than it should be."""
    document = json.loads(save(calibration()).read_text())
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda d: d.pop("noise"), "noise: Field required"),
        (lambda d: d["noise"].update(sigma_d="much"), r"noise\.sigma_d"),
        (lambda d: d["noise"].update(sigma_d=0.0), "sigma_d is 0.0, expected 0.002 to 1"),
        (lambda d: d["noise"].update(sigma_d=float("nan")), "sigma_d"),
        (lambda d: d["noise"].update(pair_sd=-1.0), "pair_sd is -1.0"),
        (lambda d: d["noise"].update(sigma_session=0.0), "sigma_session is 0.0"),
        (lambda d: d["noise"].update(sigma_session_deep=-1.0), "sigma_session_deep is -1.0"),
        (lambda d: d.update(sessions=[]), "no session"),
        (lambda d: d.update(serial="OTHER"), "serial 'OTHER', expected 'bench', 'SERIAL-a'"),
        (lambda d: d["sessions"][0].update(date="2026-11-20T12:00:00"), "date"),
    ],
)
def test_a_broken_file_is_named_with_its_remedy(
    spoil: Callable[[dict[str, Any]], None], said: str
) -> None:
    path = path_of("bench", "SERIAL-a")
    path.parent.mkdir(parents=True)
    path.write_text(changed(spoil))
    with pytest.raises(BrokenCalibration, match=said) as caught:
        load("bench", "SERIAL-a")
    assert str(path) in str(caught.value)
    assert "run leadline calibrate again" in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[]", b'"calibration"'])
def test_a_file_that_is_no_calibration_at_all_is_broken(data: bytes) -> None:
    path = save(calibration())
    path.write_bytes(data)
    with pytest.raises(BrokenCalibration, match="run leadline calibrate again"):
        load("bench", "SERIAL-a")


def test_a_file_that_cannot_be_opened_is_broken_and_not_missing() -> None:
    path_of("bench", "SERIAL-a").mkdir(parents=True)
    with pytest.raises(BrokenCalibration, match="Is a directory"):
        load("bench", "SERIAL-a")


def test_a_calibration_that_cannot_be_kept_is_the_rigs_trouble(state: Path) -> None:
    state.write_text("in the way")
    with pytest.raises(RigTrouble, match="XDG_STATE_HOME"):
        save(calibration())


def test_only_sessions_under_the_same_conditions_are_compared_the_newest_of_them() -> None:
    older = [kept_session(run=f"run-{n}") for n in range(20)]
    other = kept_session(conditions=replace(CONDITIONS, kernel="6.5.0"))
    before = calibration(sessions=(*older, other))
    found = comparable(before, CONDITIONS)
    assert [each.run for each in found] == [f"run-{n}" for n in range(11, 20)]
    assert len(found) == SESSIONS_KEPT - 1
    assert comparable(before, other.conditions) == [other]
    assert comparable(None, CONDITIONS) == []
    assert comparable(before, replace(CONDITIONS, deep=4)) == []


def test_a_file_of_before_has_no_depth_and_counts_as_depth_8() -> None:
    path = path_of("bench", "SERIAL-a")
    path.parent.mkdir(parents=True)
    path.write_text(changed(lambda d: d["sessions"][0]["conditions"].pop("deep")))
    found = load("bench", "SERIAL-a")
    assert found == calibration()
    assert found.newest.conditions.deep == 8
    assert not stale(found, CONDITIONS, MEASURED)
    assert comparable(found, CONDITIONS) == [kept_session()]


# What a verdict is told.


def test_a_fresh_calibration_is_used_and_said() -> None:
    noise = noise_of(calibration(), CONDITIONS, MEASURED + timedelta(days=30))
    assert (noise.sigma_d, noise.sigma_session) == (0.0234, SIGMA_SESSION)
    assert noise.note.startswith("noise: calibrated 2026-11-20 (pair sd 1.23%, sigma_d 2.34%")
    assert "between sessions 3% was assumed" in noise.note
    assert "STALE" not in noise.note


def test_the_spread_between_sessions_is_the_calibrations_once_it_has_three() -> None:
    sessions = calibration().sessions * 3
    before = calibration(sessions=sessions)
    found = replace(before, noise=replace(before.noise, sigma_session=0.0456))
    noise = noise_of(found, CONDITIONS, MEASURED)
    assert (noise.sigma_session, noise.sigma_session_deep) == (0.0456, None)
    assert "between sessions 4.56%)" in noise.note
    deep = replace(found, noise=replace(found.noise, sigma_session_deep=0.0123))
    noise = noise_of(deep, CONDITIONS, MEASURED)
    assert (noise.sigma_session, noise.sigma_session_deep) == (0.0456, 0.0123)
    assert "between sessions 4.56%, at depth 8 1.23%)" in noise.note
    shallower = kept_session(conditions=replace(CONDITIONS, deep=4))
    noise = noise_of(replace(deep, sessions=(shallower,) * 3), shallower.conditions, MEASURED)
    assert (noise.sigma_session, noise.sigma_session_deep) == (0.0456, None)
    two = noise_of(replace(deep, sessions=sessions[:2]), CONDITIONS, MEASURED)
    assert (two.sigma_session, two.sigma_session_deep) == (SIGMA_SESSION, None)
    assert "3% was assumed, 2 were calibrated" in two.note


@pytest.mark.parametrize(
    ("now_with", "days", "said"),
    [
        (CONDITIONS, 31, "STALE: it is 31 days old; run leadline calibrate again"),
        (
            replace(CONDITIONS, kernel="6.5.0"),
            0,
            "STALE: the kernel was 6.1.0 and is 6.5.0; run leadline calibrate again",
        ),
        (replace(CONDITIONS, firmware="1.1"), 0, "the drive's firmware was 1.0 and is 1.1"),
        (replace(CONDITIONS, fio="3.36"), 0, "fio was 3.33 and is 3.36"),
        (replace(CONDITIONS, deep=4), 0, "the depth held against 1 was 8 and is 4"),
    ],
)
def test_a_stale_calibration_is_used_all_the_same_and_the_note_warns_why(
    now_with: Conditions, days: int, said: str
) -> None:
    noise = noise_of(calibration(), now_with, MEASURED + timedelta(days=days))
    assert noise.sigma_d == 0.0234
    assert said in noise.note


def test_all_that_has_changed_is_said() -> None:
    now_with = Conditions("2", "7", "4", 4)
    assert len(stale(calibration(), now_with, MEASURED + timedelta(days=99))) == 5


def test_it_is_as_old_as_its_newest_session() -> None:
    sessions = (kept_session(date=MEASURED - timedelta(days=90)), kept_session())
    assert not stale(calibration(sessions=sessions), CONDITIONS, MEASURED + timedelta(days=1))
