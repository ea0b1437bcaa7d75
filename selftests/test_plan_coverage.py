"""Which of the wanted cells a plan serves, what it costs, and in which order it is done."""

import argparse
import hashlib

import pytest

from leadline.commands.plan import show
from leadline.drive_time import CLAIM_S
from leadline.inventory.coverage import Unserved, carries, coverage
from leadline.inventory.effort import Step, effort, order
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import survey
from leadline.inventory.stations import route_of
from selftests.plan_files import FLASH, HEAD, Files, files

__all__ = ["files"]  # a fixture


def test_a_cell_that_no_drive_serves_says_what_it_lacks(files: Files) -> None:
    files.model("M", "1.0", "1.1", "0.9 status: withdrawn", "1.2 status: candidate, no image")
    files.model("N", "5", "6")
    files.drive("a", "M", "1.0", on="one")
    covered = files.coverage()
    assert (covered.wanted, covered.served) == (3 * 3 + 2 * 3, 2)
    assert covered.absent == ("absent",)
    assert set(covered.unserved) == {
        Unserved("M", "chipset", ("1.2",), "image", "no image in the matrix"),
        Unserved(
            "M", "hba", ("1.0", "1.1", "1.2"), "drive",
            "no drive of this model hangs on it; there are some on chipset",
        ),
        Unserved("M", "absent", ("1.0", "1.1", "1.2"), "rig", "no rig has the controller absent"),
        Unserved("N", "chipset", ("5", "6"), "drive", "no rig has a drive of this model"),
        Unserved("N", "hba", ("5", "6"), "drive", "no rig has a drive of this model"),
        Unserved("N", "absent", ("5", "6"), "rig", "no rig has the controller absent"),
    }  # fmt: skip


def test_a_model_is_wanted_on_the_controllers_that_it_names(files: Files) -> None:
    files.model("M", "1.0")
    files.models[0] = files.models[0].replace(
        "queue_depth: 32\n", "queue_depth: 32\n    controllers: [hba]\n"
    )
    files.drive("a", "M", "1.0", on="one")
    covered = files.coverage()
    assert (covered.wanted, covered.served) == (1, 0), "it is tested, and not on what was meant"


def test_without_controllers_in_the_matrix_any_will_do(files: Files) -> None:
    files.model("M", "1.0", "1.1")
    files.drive("a", "M", "1.0")
    rig, _ = files.read()
    head = HEAD[: HEAD.index("controllers:")] + "models:\n"
    (files.folder / "matrix.yaml").write_text(head + files.models[0])
    matrix = load_matrix(files.folder / "matrix.yaml")
    covered = coverage([rig], matrix, *survey([rig], matrix))
    assert (covered.wanted, covered.served, covered.unserved) == (2, 2, ())


@pytest.mark.parametrize(
    ("driver", "protocols"),
    [("ahci", "sata"), ("ata_piix", "sata"), ("mpt3sas", "sata sas scsi"), ("virtio-pci", "scsi")],
)
def test_what_a_driver_can_have(driver: str, protocols: str) -> None:
    wanted = protocols.split()
    assert [each for each in ("sata", "sas", "scsi") if carries(driver, each)] == wanted


def test_flashes_are_counted_with_the_way_back_and_drive_time_by_shared_path(
    files: Files,
) -> None:
    files.model("M", "1.0", "1.1", "1.2")
    files.drive("a", "M", "1.0", on="one")
    files.drive("b", "M", "1.2", on="one")
    files.model("N", "7")
    files.drive("c", "N", "7", on="two")
    rig, matrix = files.read()
    visits, _ = survey([rig], matrix)
    cost = effort(visits, route_of(visits), matrix)
    assert cost.flashes == 3 + 3
    assert cost.drive_time_s == 7 * 2 * CLAIM_S, "seven visits with two claims each"
    assert cost.longest_path_s == 6 * 2 * CLAIM_S, "a and b share a controller"
    assert effort([], route_of([]), matrix).flashes == 0


def test_the_order_of_work_ends_with_what_the_drive_came_with(files: Files) -> None:
    files.model("M", "1.0", "1.1", "1.2")
    files.drive("a", "M", "1.1")
    files.drive("b", "M", "1.0", more="writes: allowed, ")
    files.drives[1] = files.drives[1].replace(FLASH, "")
    visits, _ = files.survey()
    assert list(order(visits)) == [
        Step("bench", "a", "test", "1.1"),
        Step("bench", "a", "flash", "1.0"),
        Step("bench", "a", "test", "1.0"),
        Step("bench", "a", "flash", "1.2"),
        Step("bench", "a", "test", "1.2"),
        Step("bench", "a", "flash", "1.1"),
        Step("bench", "b", "test", "1.0"),
    ]


def test_what_is_said_of_a_plan(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.model("M", "1.0", "1.0-again shows: '1.0'", "1.2 status: candidate, no image")
    files.model("N", "7")
    digest = hashlib.sha256(b"M 1.0").hexdigest()
    files.drive("a", "M", "1.0", more=f"firmware_sha256: {digest}, ")
    files.drive("b", "N", "7", on="one")
    rig, matrix = files.read()
    options = argparse.Namespace(rig=[rig.path], matrix=matrix.path, why=None, rounds=1, json=False)
    assert show(options) == 0
    limits = ["    claim_a at least 3", "    claim_b at least 3"]
    assert capsys.readouterr().out.replace(f"{files.folder}/", "").splitlines() == [
        "bench-a-M-1.0: candidate, on the drive, controller chipset",
        *limits,
        "bench-a-M-1.0-again: candidate, to be flashed, controller chipset",
        "    its drive says 1.0",
        *limits,
        "    and then 1.0 is flashed again, which it came with",
        "bench-b-N-7: candidate, on the drive, controller chipset",
        *limits,
        "",
        "missing:",
        "    bench-a-M-1.2: no image in the matrix",
        "",
        "not attached:",
        "    matrix.yaml:8: controllers[absent]: found no rig that has it (8086:0003, ahci), and 4 "
        "cell(s) wait for it; add a rig file that does, or name for each model the controllers "
        "that it is to be tested on",
        "    M with 1.0, 1.0-again, 1.2 on hba: no drive of this model hangs on it; there are some "
        "on chipset",
        "    N with 7 on hba: no drive of this model hangs on it; there are some on chipset",
        "",
        "of 12 cells of the matrix, 3 are served",
        "2 flashes, about 13 min of drive time (130 s for each limit), 13 min of it on the "
        "busiest path",
        "3 to run on 2 drives, 1 missing",
    ]
