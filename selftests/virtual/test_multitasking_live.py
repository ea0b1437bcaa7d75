"""The suite's test of multitasking on virtual disks, its loads cut much shorter."""

import re
from pathlib import Path
from typing import Any

import pytest

import leadline
from bench.multitasking import KINDS
from leadline.cli import main
from selftests.virtual.conftest import MakeRig
from selftests.virtual.test_disk_live import PROFILE, disk_rig, matrix
from selftests.virtual.test_hil import hil

pytestmark = pytest.mark.measures

SUITE = Path(leadline.__file__).parent / "suite" / "test_multitasking.py"
CUT = "SHORT_CUT = 300"
GAIN = """    limits:
      multitasking_gain:
        at_least: 0.045
        source: half of what the story's disks gained
"""
COSTS = """channels: 1
read_ms: 0.2
write_ms: 0.2
queueing_ms: 100
rotation: {rpm: 7200, mb_per_s: 150, reorders: false}
"""


def shortened(folder: Path) -> Path:
    """The suite's file with another length of its short cut."""
    text = SUITE.read_text()
    assert text.count(CUT) == 1
    path = folder / SUITE.name
    path.write_text(text.replace(CUT, "SHORT_CUT = 32"))
    return path


def profile(folder: Path, text: str) -> Path:
    """What follows the identity of the packaged disk."""
    identity = PROFILE.read_text().partition("\nchannels:")[0]
    path = folder / "disk.yaml"
    path.write_text(f"{identity}\n{text}")
    return path


def judged(rig: Path, folder: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    """What is claimed of the gain on average, of the disk alone."""
    limits = str(matrix(folder, "hdd", GAIN))
    chosen = ("--matrix", limits, "-m", "acceptance", "-k", "VDISK and test_two_tasks_at_once")
    return hil(rig, folder / "results", *chosen, *words, str(shortened(folder)))


def claims(summary: dict[str, Any]) -> dict[str, str]:
    return {row["claim"]: row["outcome"] for row in summary["outcomes"]}


@pytest.mark.long
def test_a_disk_that_reorders_gains_and_its_verdict_is_on_record(
    make_rig: MakeRig, tmp_path: Path
) -> None:
    slow = profile(tmp_path, KINDS["reorders"].profile)  # slow against the way to it
    rig = disk_rig(make_rig, "gains", slow)
    code, summary, said = judged(rig, tmp_path, "--allow-writes", "--explain")
    assert code == 0, said
    assert claims(summary) == {"multitasking_gain": "pass"}
    (verdict,) = summary["verdicts"]
    assert verdict["unit"] == "round"
    assert verdict["count"] >= 4
    assert verdict["estimate"] < 0.9
    assert len(set(re.findall(r"note: ([a-z-]+): gain [+-]\d+\.\d% \[", said))) == 9
    assert "reads alone" not in said
    assert main(["recompute", "--results", str(tmp_path / "results")]) == 0


@pytest.mark.long
def test_a_disk_on_which_queueing_costs_fails(make_rig: MakeRig, tmp_path: Path) -> None:
    """By more than the way to the drive saves, however busy this machine is; reads alone."""
    rig = disk_rig(make_rig, "costs", profile(tmp_path, COSTS))
    code, summary, said = judged(rig, tmp_path)
    assert code == 1, said
    assert claims(summary) == {"multitasking_gain": "fail"}
    assert re.search(r"dual-copy: gain -\d+\.\d% \[.*\], [\d.]+ ms to [\d.]+ ms", said)
    assert "reads alone" in said


@pytest.mark.long
def test_a_disk_that_does_not_reorder_fails(make_rig: MakeRig, tmp_path: Path) -> None:
    """Out of their order, as Linux passes them on with NCQ off, requests would seem to gain."""
    rig = disk_rig(make_rig, "does-not", profile(tmp_path, KINDS["does not reorder"].profile))
    code, summary, said = judged(rig, tmp_path, "--allow-writes")
    assert code == 1, said
    assert claims(summary) == {"multitasking_gain": "fail"}
    assert "note: NCQ off is one request at a time, in the order of the trace" in said


def test_a_disk_without_ncq_fails_where_the_matrix_promises_it(
    make_rig: MakeRig, tmp_path: Path
) -> None:
    code, summary, said = judged(on_ide(disk_rig(make_rig, "without")), tmp_path)
    assert code == 1, said
    assert claims(summary) == {"multitasking_gain": "fail"}
    assert "VDISK0001 does not queue, and its model holds 32 requests by the firmware matrix" in (
        said
    )
    assert summary["verdicts"] == []


def on_ide(rig: Path) -> Path:
    """The same rig, its disk on a controller that cannot queue."""
    text = rig.read_text()
    for old, new in (
        ('pci_address: "0000:00:1f.2"', 'pci_address: "0000:00:04.0"'),
        ('    pci_id: "8086:2922"\n', ""),  # of the one that it has, the matrix knows better
        ("driver: ahci", "driver: ata_piix"),
        ("bus: ahci", "bus: ide"),
    ):
        assert old in text, old
        text = text.replace(old, new)
    path = rig.with_name(f"ide-{rig.name}")
    path.write_text(text)
    return path
