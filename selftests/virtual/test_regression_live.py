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


def matrix(folder: Path) -> Path:
    """One model with its released firmware, and the candidate that is slower."""
    images = RIGS / "profiles"
    hashes = [
        hashlib.sha256((images / f"vssd-{revision}.yaml").read_bytes()).hexdigest()
        for revision in ("1.0", "1.2")
    ]
    path = folder / "matrix.yaml"
    path.write_text(MATRIX.format(folder=images, hashes=hashes))
    return path


@pytest.mark.long
def test_a_candidate_that_is_6_percent_slower_fails_and_is_named_first(
    make_rig: MakeRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its whole queue, whose rate is the drive's own, however late a busy host is.

    The rig's spread from session to session is given, for to calibrate it takes days.
    """
    path = make_rig("regression")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    noise = RigNoise(0.01, 0.0, 0.003, 0.003, 60, 60.0)
    session = kept_session(date=datetime.now(UTC))
    known = calibration(noise=noise, sessions=(session, session, session))
    drive = load_rig(path).drive("ssd1")
    store.save(replace(known, rig=load_rig(path).name, serial=drive.serial))
    words = [sys.executable, "-m", "leadline.cli", "hil", "--rig", str(path), "--json"]
    words += ["--matrix", str(matrix(tmp_path)), "--results", str(tmp_path / "results")]
    words += ["-m", "acceptance", "-k", "VSSD and (whole_queue or queues_as_deep)"]
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
        "regression_whole_queue",
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
