"""What the benchmark of the suite counts as drive time, and the rigs that it runs on."""

from pathlib import Path

import pytest

from bench.suite import Measured, ahci_drive, rig_file, scsi_drive
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import plan
from leadline.inventory.rig import load_rig
from leadline.virtual.machine import attachments


def test_drive_time_is_load_and_power_cycles_and_nothing_else() -> None:
    phases = {"drive": 4.0, "shutdown": 0.5, "off": 1.0, "switch": 0.5, "ready": 4.0, "boot": 20.0}
    run = Measured(12.0, phases, {})
    assert run.figures() == {
        "wall_s": 12.0,
        "drive_s": 10.0,
        "under_load_s": 4.0,
        "overhead_s": 2.0,
        "wall_over_drive": pytest.approx(1.2),
    }


def test_the_two_drives_share_no_path_and_are_visited_once_each(tmp_path: Path) -> None:
    drives = [scsi_drive(tmp_path, number) for number in (1, 2)]
    rig = load_rig(rig_file(tmp_path, "two", drives))
    visits = plan([rig], load_matrix())
    assert [visit.cell.slot for visit in visits] == ["scsi1", "scsi2"]
    assert len({visit.shared_path for visit in visits}) == 2
    assert [place.controller for place in attachments(rig)] == [0, 1]


def test_the_drive_by_itself_is_not_flashed(tmp_path: Path) -> None:
    rig = load_rig(rig_file(tmp_path, "one", [ahci_drive()]))
    (visit,) = plan([rig], load_matrix())
    assert visit.installed
    assert [outlet.feeds for outlet in rig.outlets] == ["host"]
