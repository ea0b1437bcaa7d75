"""A disk that is real to Linux: what its queue gains, judged as a disk's and as an SSD's."""

import re
from pathlib import Path

import pytest

from leadline.drive.bind import bind
from leadline.host.connection import open_host
from leadline.inventory.rig import load_rig
from leadline.virtual import rig as virtual
from selftests.virtual.conftest import RIGS, MakeRig
from selftests.virtual.test_hil import hil, outcomes

pytestmark = [pytest.mark.timeout(900), pytest.mark.measures]

PROFILE = RIGS / "profiles" / "vdisk-1.0.yaml"
FLASH = re.compile(r"    flash:\n(?:      .*\n)+")
MODEL = """models:
  - model: LEADLINE VDISK
    class: {drive_class}
    protocol: sata
    queue_depth: 32
    cache_bytes: 67108864
    firmware:
      - revision: "1.0"
        status: released
"""
OF_A_DISK = """    limits:
      depth_8_over_depth_1:
        at_least: 1.2
        source: a disk that reorders
"""


def disk_rig(make_rig: MakeRig, name: str, profile: Path = PROFILE) -> Path:
    (flash,) = FLASH.findall((RIGS / "virtual.yaml").read_text())
    return make_rig(
        name,
        (flash, ""),
        ("model: LEADLINE VSSD", "model: LEADLINE VDISK"),
        ("VSSD0001", "VDISK0001"),
        ("0x5000c5000000a001", "0x5000c5000000a003"),
        (f"{RIGS}/profiles/vssd-1.0.yaml", str(profile)),
    )


def matrix(folder: Path, drive_class: str, limits: str) -> Path:
    text = (RIGS.parent / "firmware_matrix.yaml").read_text()
    text = text.replace("image: rigs/", f"image: {RIGS}/")
    path = folder / "matrix.yaml"
    path.write_text(text.replace("models:\n", MODEL.format(drive_class=drive_class) + limits, 1))
    return path


def judged(rig: Path, folder: Path, drive_class: str, limits: str) -> tuple[int, str, float]:
    """Exit code, outcome and ratio of depth 8 to depth 1."""
    chosen = ("-k", "VDISK and depth_8", "--matrix", str(matrix(folder, drive_class, limits)))
    code, summary, _ = hil(rig, folder, *chosen)
    (ratio,) = [v["estimate"] for v in summary["verdicts"] if v["unit"] == "pair"]
    return code, outcomes(summary)["ssd1 1.0", "depth_8_over_depth_1"], ratio


def test_a_disk_that_reorders_passes_by_its_class(make_rig: MakeRig, tmp_path: Path) -> None:
    code, outcome, ratio = judged(disk_rig(make_rig, "disk"), tmp_path, "hdd", OF_A_DISK)
    assert (code, outcome) == (0, "pass")
    assert ratio > 1.3  # and more on a busy machine, whose transport delays a lone request most


@pytest.mark.long
def test_a_disk_fails_as_an_ssd(make_rig: MakeRig, tmp_path: Path) -> None:
    text = PROFILE.read_text()
    assert "reorders: true" in text
    in_order = tmp_path / "in-order.yaml"
    in_order.write_text(text.replace("reorders: true", "reorders: false"))
    rig = disk_rig(make_rig, "in-order", in_order)
    code, outcome, ratio = judged(rig, tmp_path, "ssd", "")
    assert (code, outcome) == (1, "fail")
    assert ratio < 2.5


def test_linux_takes_it_for_a_disk(make_rig: MakeRig) -> None:
    rig = load_rig(disk_rig(make_rig, "rotates"))
    with virtual.running(rig), open_host(rig.host) as host:
        drive = bind(host, rig.drive("ssd1"))
        assert host.read_file(f"/sys/block/{drive.name}/queue/rotational") == b"1\n"
        assert drive.identify is not None
        assert drive.identify.rotation_rpm == 7200
