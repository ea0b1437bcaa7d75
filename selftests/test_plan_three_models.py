"""rigs/three-models as a whole, from its files alone: what docs/how-to/run-a-matrix.md shows."""

import json
from collections.abc import Sequence
from itertools import groupby

import pytest

from leadline.cli import main
from leadline.inventory.fields import packaged
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import Visit, survey
from leadline.inventory.rig import load_rig
from leadline.inventory.stations import route_of
from leadline.virtual.machine import attachments
from leadline.virtual.profile import load_profile

RIG = packaged("rigs/three-models/rig.yaml")
MATRIX = packaged("rigs/three-models/firmware_matrix.yaml")
SLOTS = {"ssd1": "LEADLINE VSSD", "disk1": "LEADLINE VDISK", "scsi1": "LEADLINE VSCSI"}
REVISIONS = ("1.0", "1.1", "1.2")
CELLS = [(slot, model, revision) for slot, model in SLOTS.items() for revision in REVISIONS]


@pytest.fixture(scope="module")
def visits() -> tuple[Visit, ...]:
    """Those of a plan; each image's hash is held against the matrix meanwhile."""
    planned, gaps = survey([load_rig(RIG)], load_matrix(MATRIX))
    assert gaps == ()
    return planned


def test_each_firmware_of_each_model_is_visited_on_the_controller_that_it_hangs_on(
    visits: Sequence[Visit],
) -> None:
    cells = [each.cell for each in visits]
    assert [(cell.slot, cell.model, cell.firmware) for cell in cells] == CELLS
    for cell in cells:
        assert cell.controller == ("virtio-scsi" if cell.slot == "scsi1" else "ich9-ahci")
    assert len({cell.id for cell in cells}) == 9


def test_each_candidate_is_held_against_what_is_released_and_on_the_drive(
    visits: Sequence[Visit],
) -> None:
    for each in visits:
        released = each.cell.firmware == "1.0"
        assert each.installed is released
        assert each.against == (None if released else "1.0")
        assert each.image is not None, "without one it could not be flashed, or put back"
        profile = load_profile(each.image)
        named = profile.model or f"{profile.vendor} {profile.product}"
        assert (named, profile.firmware) == (each.cell.model, each.cell.firmware)


def test_the_rig_begins_with_what_is_released_and_its_outlets_feed_what_hot_plugs() -> None:
    rig = load_rig(RIG)
    assert {drive.slot: (drive.model, drive.firmware) for drive in rig.drives} == {
        slot: (model, "1.0") for slot, model in SLOTS.items()
    }
    assert len(attachments(rig)) == 3
    assert [(outlet.name, outlet.feeds) for outlet in rig.outlets] == [
        ("host", "host"),
        ("scsi1", ("scsi1",)),
    ]


def test_stations_of_a_comparison_alternate_and_end_where_they_began(
    visits: Sequence[Visit],
) -> None:
    """Released, candidate, candidate, released is what cancels a drift of the drive."""
    route = route_of(visits)
    pairs = [(candidate.firmware, released.firmware) for candidate, released in route.comparisons]
    assert pairs == [("1.1", "1.0"), ("1.2", "1.0")] * len(SLOTS)
    for slot in SLOTS:
        made = [visit.cell.firmware for visit in route.visits if visit.cell.slot == slot]
        assert made == ["1.0", "1.1", "1.0", "1.2", "1.0"]
        stays = [stay for stay in route.stays if stay.visit.cell.slot == slot]
        for candidate in ("1.1", "1.2"):
            own = [stay for stay in stays if stay.candidate.cell.firmware == candidate]
            assert sorted((stay.number, stay.visit.cell.firmware) for stay in own) == [
                (1, "1.0"),
                (2, candidate),
                (3, candidate),
                (4, "1.0"),
            ]


def test_the_command_plans_it_with_as_few_flashes_as_can_be_and_without_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["plan", "--json", "--rig", str(RIG), "--matrix", str(MATRIX)]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert (err, report["warnings"], report["missing"], report["unserved"]) == ("", [], [], [])
    assert report["cells"] == {"wanted": 9, "served": 9, "missing": 0}
    assert (report["flashes"], report["flashes_to_compare"]) == (9, 12)
    once = "test 1.0, flash 1.1, test 1.1, flash 1.2, test 1.2, flash 1.0"
    compared = "test 1.0, flash 1.1, test 1.1, flash 1.0, test 1.0, flash 1.2, test 1.2, flash 1.0"
    assert _steps(report["order"]) == dict.fromkeys(SLOTS, once)
    assert _steps(report["order_to_compare"]) == dict.fromkeys(SLOTS, f"{compared}, test 1.0")


def test_more_rounds_are_two_flashes_each(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--rig", str(RIG), "--matrix", str(MATRIX)]
    assert main(["plan", "--rounds", "3", *files]) == 0
    assert "9 flashes (36 where candidates are compared)" in capsys.readouterr().out
    assert main(["plan", "--rounds", "0", *files]) == 2
    assert "--rounds 0: from 1 to 20" in capsys.readouterr().err


def _steps(order: Sequence[dict[str, str]]) -> dict[str, str]:
    """By slot, in the order in which they come; one slot is done before the next begins."""
    return {
        slot: ", ".join(f"{step['does']} {step['firmware']}" for step in own)
        for slot, own in groupby(order, key=lambda step: step["slot"])
    }
