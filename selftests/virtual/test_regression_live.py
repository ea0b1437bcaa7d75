"""A candidate that queues as before and is 6 % slower, found on drives that are real to Linux."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from leadline.calibration import store
from leadline.inventory.rig import load_rig
from leadline.verdict.calibration import RigNoise
from selftests.calibrated import calibration, kept_session
from selftests.virtual.conftest import RIGS, MakeRig

DEADLINE_S = 900.0
MATRIX = """
classes:
  ssd:
    regression: {{at_most: 0.03, source: the middle between what is to be found and what is not}}
models:
  - model: LEADLINE VSSD
    class: ssd
    protocol: sata
    queue_depth: 32
    cache_bytes: 67108864
    firmware:
      - {{revision: "1.0", status: released, image: {folder}/vssd-1.0.yaml, sha256: {hashes[0]}}}
      - {{revision: "1.2", status: candidate, image: {folder}/vssd-1.2.yaml, sha256: {hashes[1]}}}
  - model: LEADLINE VSCSI
    class: ssd
    protocol: scsi
    queue_depth: 128
    firmware:
      - {{revision: "1.0", status: released}}
"""


SLOW = {"1.0": ("read_ms: 10", "read_ms: 60"), "1.2": ("read_ms: 10.7", "read_ms: 63.8")}
"""Of the shipped profiles six times as slow, so that a host that is late by milliseconds for it is
busy with something else does not make every slice void; (63.8 + 1)/(60 + 1) is 6 % more."""


def matrix(folder: Path) -> Path:
    """One model with its released firmware, and the candidate that is slower."""
    hashes = []
    for revision, (shipped, slow) in SLOW.items():
        profile = (RIGS / "profiles" / f"vssd-{revision}.yaml").read_text()
        assert f"{shipped}\n" in profile
        (folder / f"vssd-{revision}.yaml").write_text(profile.replace(shipped, slow))
        image = (folder / f"vssd-{revision}.yaml").read_bytes()
        hashes.append(hashlib.sha256(image).hexdigest())
    path = folder / "matrix.yaml"
    path.write_text(MATRIX.format(folder=folder, hashes=hashes))
    return path


@pytest.mark.long
def test_a_candidate_that_is_6_percent_slower_fails_and_is_named_first(
    make_rig: MakeRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rig's spread from session to session is given, for to calibrate it takes days."""
    made = matrix(tmp_path)
    released = (f"{RIGS}/profiles/vssd-1.0.yaml", str(tmp_path / "vssd-1.0.yaml"))
    path = make_rig("regression", released)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    noise = RigNoise(0.01, 0.0, 0.003, 0.003, 60, 60.0)
    session = kept_session(date=datetime.now(UTC))
    known = calibration(noise=noise, sessions=(session, session, session))
    drive = load_rig(path).drive("ssd1")
    store.save(replace(known, rig=load_rig(path).name, serial=drive.serial))
    words = [sys.executable, "-m", "leadline.cli", "hil", "--rig", str(path), "--json"]
    words += ["--matrix", str(made), "--results", str(tmp_path / "results")]
    words += ["-m", "acceptance", "-k", "VSSD and (at_depth_8 or queues_as_deep)"]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=DEADLINE_S, env=os.environ
    )
    summary = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    (verdict,) = summary["verdicts"]
    assert verdict["cell"].endswith("-ssd1-LEADLINE_VSSD-1.2")
    assert verdict["high"] < 0.97
    (lost,) = summary["lost"]
    assert (lost["claim"], lost["against"], lost["cell"]) == (
        "regression_depth_8",
        "1.0",
        verdict["cell"],
    )
    said = done.stderr
    assert said.index("-1.2 loses what 1.0 has:") < said.index("cell, claim")
    assert "with 1.2: " in said
    recorded = [row for row in summary["outcomes"] if row["outcome"] == "recorded"]
    assert len(recorded) == 6, "two tests at three stations"
    (identify,) = [row for row in summary["outcomes"] if row["claim"] == "identify_changes"][-1:]
    assert identify["outcome"] == "pass", "QEMU says the same of every firmware"
