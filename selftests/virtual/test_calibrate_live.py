"""`leadline calibrate` on a virtual rig: measured, kept, given back, and used by a verdict."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.drive.bind import bind
from leadline.host.connection import open_host
from leadline.inventory.rig import Rig

pytestmark = pytest.mark.measures

DEADLINE_S = 300.0


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose calibrations are this test's own."""
    return {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}


def leadline(home: dict[str, str], *words: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "leadline.cli", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=DEADLINE_S, env=home
    )


def settings(rig: Rig) -> dict[str, bytes | None]:
    with open_host(rig.host, deadline=60) as host:
        name = bind(host, rig.drive("ssd1")).name
        files = ("device/queue_depth", "queue/scheduler", "queue/nomerges", "queue/nr_requests")
        return host.read_files([f"/sys/block/{name}/{file}" for file in files])


@pytest.mark.long
def test_a_calibration_is_kept_with_its_conditions_and_the_next_verdict_uses_it(
    shared_rig: Rig, home: dict[str, str], tmp_path: Path
) -> None:
    before = settings(shared_rig)
    results = ("--results", tmp_path / "results")
    words = (shared_rig.path, "--slot", "ssd1", "--seconds", "16", "--json", *results)
    done = leadline(home, "calibrate", *words)
    assert done.returncode == 0, done.stderr
    assert settings(shared_rig) == before
    (found,) = json.loads(done.stdout)["calibrations"]
    assert (found["slot"], found["serial"], found["firmware"]) == ("ssd1", "VSSD0001", "1.0")
    assert found["kernel"]
    assert found["fio"].startswith("3.")
    assert found["pairs"] >= 16
    assert found["seconds"] >= 16
    assert 0.002 <= found["sigma_d"] <= 1.0
    assert 0.0 < found["pair_sd"] < 1.0
    assert Path(found["file"]).is_relative_to(tmp_path)

    only = ("-k", "VSSD-1.0 and depth_8", "--drive-time", "20", "--json")
    said = leadline(home, "hil", "--rig", shared_rig.path, *results, *only)
    (verdict,) = json.loads(said.stdout)["verdicts"]
    figures = f"(pair sd {found['pair_sd']:.2%}, sigma_d {found['sigma_d']:.2%}"
    assert f"noise: calibrated {found['date'][:10]} {figures}" in verdict["explanation"]
    assert "STALE" not in verdict["explanation"]
