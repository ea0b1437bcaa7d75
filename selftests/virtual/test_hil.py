"""The whole of it on a virtual rig: `leadline hil`, its verdicts, its exit codes, its manners."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect, text

from leadline.cli import main
from leadline.inventory.rig import load_rig
from leadline.power.pdu import open_pdu
from leadline.virtual import rig as virtual
from selftests.virtual.conftest import RIGS, MakeRig

pytestmark = [pytest.mark.measures, pytest.mark.slow]

DEADLINE_S = 800.0


def start(rig: Path, results: Path, *arguments: str) -> "subprocess.Popen[str]":
    """`leadline hil` on a rig; its text on both pipes."""
    words = [sys.executable, "-m", "leadline.cli", "hil", "--rig", str(rig)]
    return subprocess.Popen(
        [*words, "--results", str(results), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def hil(rig: Path, results: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the JSON object and everything else that it said."""
    child = start(rig, results, "--json", *arguments)
    try:
        out, said = child.communicate(timeout=DEADLINE_S)
    finally:
        if child.poll() is None:  # it puts back what it borrowed, and takes its rig down
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=DEADLINE_S)
    return child.returncode, json.loads(out), said


def outcomes(summary: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Outcome by (slot and firmware, claim)."""
    found = {}
    for row in summary["outcomes"]:
        slot, firmware = row["cell"].split("-")[-3], row["cell"].split("-")[-1]
        found[f"{slot} {firmware}", row["claim"]] = row["outcome"]
    return found


@pytest.mark.alone
def test_first_light(make_rig: MakeRig, tmp_path: Path) -> None:
    """The good firmware passes, the serialising one is caught and excused, all were cycled."""
    rig = make_rig("first-light")
    code, summary, said = hil(rig, tmp_path)
    assert code == 0, said
    found = outcomes(summary)
    assert found["ssd1 1.0", "depth_8_over_depth_1"] == "pass"
    assert found["ssd1 1.1", "depth_8_over_depth_1"] == "excused"
    for drive in ("ssd1 1.0", "ssd1 1.1", "scsi1 1.0"):
        assert found[drive, "drive_comes_back_as_itself"] == "pass"
        assert found[drive, "ready_s"] == "pass"
    claims = [v for v in summary["verdicts"] if v["cell"].split("-")[-3] == "ssd1"]
    ratios = {v["cell"].split("-")[-1]: v for v in claims if v["unit"] == "pair"}
    assert ratios["1.0"]["high"] > 5
    assert ratios["1.1"]["low"] < 2
    assert [v["count"] for v in summary["verdicts"] if v["unit"] == "event"] == [1, 1, 1]
    assert "known issue" in said
    assert main(["recompute", "--results", str(tmp_path)]) == 0
    assert not virtual.status(load_rig(rig).name)["running"]


@pytest.mark.long
def test_no_excuses_and_the_message_has_every_figure(make_rig: MakeRig, tmp_path: Path) -> None:
    rig = make_rig("no-excuses")
    code, summary, said = hil(rig, tmp_path, "--no-excuses", "-k", "VSSD-1.1 and depth_8")
    assert code == 1, said
    (verdict,) = summary["verdicts"]
    assert verdict["outcome"] == "FAIL"
    for needed in (
        "depth=8): ",
        "depth=1): ",
        "requests/s [",
        "ratio: 1.",
        "threshold: >= 3",
        "drive-seconds",
    ):
        assert needed in said


@pytest.mark.parametrize("change", [("serial: VSSD0001", "serial: NOTTHERE")])
def test_another_drive_than_the_rig_file_says(
    make_rig: MakeRig, tmp_path: Path, change: tuple[str, str]
) -> None:
    rig = make_rig("other-drive", change)
    code, summary, said = hil(rig, tmp_path, "-k", "VSSD-1.0 and matches_rig_file")
    assert code == 2, said
    assert [row["outcome"] for row in summary["outcomes"]] == ["usage"]
    assert "VSSD0001" in said
    assert "NOTTHERE" in said


@pytest.fixture(scope="module")
def standing(make_rig: MakeRig) -> Iterator[Path]:
    """A rig that is up before the command under test, and after it."""
    path = make_rig("standing")
    with virtual.running(load_rig(path)):
        yield path


def hard_matrix(folder: Path) -> Path:
    """A matrix whose limit is about what the drive reaches, so that its claim takes minutes."""
    text = (RIGS.parent / "firmware_matrix.yaml").read_text()
    assert "at_least: 3.0" in text
    path = folder / "hard.yaml"
    text = text.replace("at_least: 3.0", "at_least: 8.5")
    path.write_text(text.replace("image: rigs/", f"image: {RIGS}/"))
    return path


def wait_for_slices(results: Path) -> None:
    """Until the first slice is on record: the drive is under load now."""
    deadline = time.monotonic() + 120
    engine = create_engine(f"sqlite:///{results / 'leadline.sqlite'}")
    while time.monotonic() < deadline:
        # The file is there before its tables are.
        if results.exists() and inspect(engine).has_table("slices"):
            with engine.connect() as connection:
                if connection.execute(text("select count(*) from slices")).scalar():
                    return
        time.sleep(0.2)
    pytest.fail("no slice was measured within 120 s")


@pytest.mark.parametrize(
    "signals",
    [
        [signal.SIGKILL],
        *(
            pytest.param(signals, marks=pytest.mark.long)
            for signals in (
                [signal.SIGINT],
                [signal.SIGINT, signal.SIGINT],
                [signal.SIGTERM],
                [signal.SIGHUP, signal.SIGTERM, signal.SIGINT],
            )
        ),
    ],
    ids=lambda signals: "-".join(number.name for number in signals),
)
def test_everything_is_given_back_however_it_is_stopped(
    standing: Path, tmp_path: Path, signals: Sequence[signal.Signals]
) -> None:
    """Settings as they were, the guest as it was: here it was up before, and so stays up."""
    before = settings(standing)
    unsettled = ("--matrix", str(hard_matrix(tmp_path)), "--drive-time", "600")
    child = start(standing, tmp_path, "-k", "VSSD-1.0 and depth_8", *unsettled)
    wait_for_slices(tmp_path)
    for number in signals:
        os.kill(child.pid, number)
        time.sleep(0.3)
    _, said = child.communicate(timeout=60)
    if signal.SIGKILL in signals:
        assert child.returncode == -signal.SIGKILL
        # What it could not do itself, the next command on the rig does.
        code, _, said = hil(standing, tmp_path, "-k", "VSSD-1.0 and matches_rig_file")
        assert code == 0, said
    else:
        assert child.returncode == 130, said
    assert settings(standing) == before


def test_ctrl_c_while_the_power_is_off(standing: Path, tmp_path: Path) -> None:
    """The outlet is on again when the command ends, and the host comes back."""
    rig = load_rig(standing)
    child = start(standing, tmp_path, "-k", "VSSD-1.0 and comes_back")
    wait_for_host(rig.name, "off")
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 130, said
    assert "Traceback" not in said, said
    with open_pdu(rig.pdus[0]) as pdu:
        assert all(pdu.status().values())
    wait_for_host(rig.name, "up")


@pytest.mark.long
def test_a_terminal_that_goes_away_while_the_power_is_off(standing: Path, tmp_path: Path) -> None:
    """SIGHUP, and nobody left to read what is printed: the outlet is on again all the same."""
    rig = load_rig(standing)
    child = start(standing, tmp_path, "-k", "VSSD-1.0 and comes_back")
    wait_for_host(rig.name, "off")
    assert child.stdout and child.stderr
    child.stdout.close()
    child.stderr.close()
    child.send_signal(signal.SIGHUP)
    child.wait(120)
    with open_pdu(rig.pdus[0]) as pdu:
        assert all(pdu.status().values())
    wait_for_host(rig.name, "up")


def wait_for_host(name: str, state: str) -> None:
    deadline = time.monotonic() + 120
    while virtual.status(name)["host"] != state:
        assert time.monotonic() < deadline, virtual.status(name)
        time.sleep(0.02)


def settings(rig: Path) -> dict[str, str]:
    """What a run changes on the drive, as the rig's kernel has it now."""
    from leadline.drive.bind import bind
    from leadline.host.connection import open_host

    loaded = load_rig(rig)
    with open_host(loaded.host) as host:
        drive = bind(host, loaded.drive("ssd1"))
        names = ("device/queue_depth", "queue/scheduler", "queue/nomerges", "queue/nr_requests")
        paths = [f"/sys/block/{drive.name}/{name}" for name in names]
        return {
            path: (data or b"").decode().strip() for path, data in host.read_files(paths).items()
        }
