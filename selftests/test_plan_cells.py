"""Which cells a plan has: builds of one revision, ways there and back, and globs of models."""

import argparse
import json
from itertools import pairwise
from pathlib import Path

import pytest

from leadline.commands.plan import show
from leadline.errors import Misuse
from leadline.inventory.plan import Gap, Visit, survey
from leadline.inventory.rig import load_rig
from leadline.inventory.stations import route_of
from selftests.plan_files import Files, files

__all__ = ["files"]  # a fixture


def revisions(entries: tuple[Visit, ...] | tuple[Gap, ...]) -> list[str]:
    return [entry.cell.firmware for entry in entries]


# Builds that show one revision.


def test_two_builds_of_one_revision_are_two_cells_with_readable_ids(files: Files) -> None:
    files.model("M", "1.0", "1.0-again shows: '1.0'")
    files.drive("a", "M", "1.0")
    _, matrix = files.read()
    again = matrix.firmware("M", "1.0-again")
    files.drives.clear()
    files.drive("a", "M", "1.0", more=f"firmware_sha256: {again.sha256}, ")
    visits, _ = files.survey()
    assert [visit.id for visit in visits] == ["bench-a-M-1.0-again", "bench-a-M-1.0"]
    assert [visit.installed for visit in visits] == [True, False]
    assert again.shows == "1.0"
    assert matrix.firmware("M", "1.0").sha256 != again.sha256


def test_which_of_two_builds_is_on_the_drive_is_not_guessed(files: Files) -> None:
    files.model("M", "1.0", "1.0-again shows: '1.0'")
    files.drive("a", "M", "1.0")
    with pytest.raises(
        Misuse, match=r"which 2 firmware of M .* expected firmware_sha256 beside it"
    ):
        files.survey()


def test_ids_of_two_rigs_cannot_be_one(files: Files, tmp_path: Path) -> None:
    files.model("M", "1.0")
    files.drive("b-c", "M", "1.0")
    first, matrix = files.read()
    text = first.path.read_text().replace("rig: bench", "rig: bench-b").replace("b-c", "c")
    other = tmp_path / "other.yaml"
    other.write_text(text.replace("ttyS0", "ttyS1"))
    with pytest.raises(Misuse, match='found rig and slot "bench-b-c", expected each rig and slot'):
        survey([first, load_rig(other)], matrix)


# Ways there and back.


def test_firmware_that_refuses_a_downgrade_is_not_put_where_it_could_not_go_back(
    files: Files,
) -> None:
    files.model("M", "1.0", "1.1 predecessor: '1.0', downgrade: refused", "1.2 predecessor: '1.1'")
    files.drive("a", "M", "1.0")
    visits, gaps = files.survey()
    assert revisions(visits) == ["1.0", "1.2"]
    assert [(gap.cell.firmware, gap.lacks, gap.reason) for gap in gaps] == [
        ("1.1", "downgrade", "it refuses older firmware, so 1.0 could not be put back")
    ]


def test_one_that_refuses_is_tested_where_what_was_on_the_drive_comes_after_it(
    files: Files,
) -> None:
    files.model("M", "1.1 predecessor: '1.0', downgrade: refused", "1.0", "1.2 predecessor: '1.1'")
    files.drive("a", "M", "1.2")
    visits, gaps = files.survey()
    assert revisions(visits) == ["1.2", "1.0", "1.1"], "for from 1.1 there is no way to 1.0"
    assert gaps == ()


def test_a_drive_whose_own_firmware_refuses_takes_newer_only(files: Files) -> None:
    files.model("M", "1.0", "1.1 predecessor: '1.0', downgrade: refused", "1.2 predecessor: '1.1'")
    files.drive("a", "M", "1.1")
    visits, gaps = files.survey()
    assert revisions(visits) == ["1.1", "1.2"]
    assert [gap.reason for gap in gaps] == ["1.1, which is on the drive, refuses older firmware"]


def test_of_two_that_refuse_the_second_must_come_after_the_first(files: Files) -> None:
    # 3 comes after 2 and 2b, which are branches: neither takes the other.
    files.model(
        "M",
        "2 downgrade: refused",
        "2b downgrade: refused, status: candidate",
        "3 predecessor: '2'",
    )
    files.models[0] = files.models[0].replace('"2b", ', '"2b", predecessor: "2", ')
    files.drive("a", "M", "3")
    visits, gaps = files.survey()
    assert revisions(visits) == ["3", "2"]
    assert [gap.cell.firmware for gap in gaps] == ["2b"], "3 does not come after it"


REFUSING_CANDIDATE = (
    "1.0 status: released",
    "1.1 predecessor: '1.0', downgrade: refused",
    "1.2 predecessor: '1.1', status: released",
)
REFUSING_RELEASED = (
    "1.0 status: released, downgrade: refused",
    "1.1 predecessor: '1.0'",
    "0.9 status: released",
    "1.2 predecessor: '1.1', status: released",
)
REFUSING_AND_ON_THE_DRIVE = (
    "1.1 downgrade: refused, status: released",
    "1.2 predecessor: '1.1'",
)
AGAINST_WHAT_COMES_AFTER_IT = (
    "1.1 downgrade: refused",
    "1.2 predecessor: '1.1', status: released",
)


@pytest.mark.parametrize(
    ("firmware", "home", "way"),
    [
        (REFUSING_CANDIDATE, "1.2", ["1.2", "1.0", "1.1"]),
        (REFUSING_RELEASED, "1.2", ["1.2", "1.1", "0.9", "1.0"]),
        (REFUSING_AND_ON_THE_DRIVE, "1.1", ["1.1", "1.2", "1.1"]),
        (AGAINST_WHAT_COMES_AFTER_IT, "1.2", ["1.2", "1.1", "1.2"]),
    ],
)
def test_candidates_are_compared_only_where_each_firmware_on_the_way_takes_the_next(
    files: Files, firmware: tuple[str, ...], home: str, way: list[str]
) -> None:
    files.model("M", *firmware)
    files.drive("a", "M", home)
    _, matrix = files.read()
    visits, gaps = files.survey()
    assert gaps == ()
    made = revisions(route_of(visits).visits)
    assert made == way
    entry = matrix.model("M")
    for one, next_ in pairwise([*made, home]):
        assert entry.takes(entry.by_revision[one], entry.by_revision[next_])


def test_a_candidate_that_is_not_compared_is_held_against_what_is_stored(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files.model("M", *REFUSING_CANDIDATE)
    files.drive("a", "M", "1.2")
    visits, _ = files.survey()
    stays = route_of(visits, stored_baseline=True).stays
    assert [stay.released.firmware for stay in stays] == ["1.0", "1.0"]
    rig, matrix = files.read()
    show(argparse.Namespace(rig=[rig.path], matrix=matrix.path, why=None, rounds=1, json=False))
    alone = "    held against 1.0, by what is stored alone: downgrades are refused\n"
    assert alone in capsys.readouterr().out


def test_a_candidate_is_held_against_the_nearest_before_it_that_is_released(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not against another candidate, which may have lost it already, nor a withdrawn one."""
    files.model(
        "M",
        "1.0 status: released",
        "1.1 predecessor: '1.0'",
        "1.2 predecessor: '1.1', status: withdrawn",
        "1.3 predecessor: '1.2'",
        "2.0 status: released",
    )
    files.drive("a", "M", "2.0")
    visits, _ = files.survey()
    against = {visit.cell.firmware: visit.against for visit in visits}
    assert against == {"2.0": None, "1.0": None, "1.1": "1.0", "1.3": "1.0"}
    rig, matrix = files.read()
    show(argparse.Namespace(rig=[rig.path], matrix=matrix.path, why=None, rounds=1, json=False))
    said = capsys.readouterr().out
    assert "held against 1.0 (of those before 1.3, 1.2 was withdrawn, 1.1 is a candidate)" in said
    assert "    held against 1.0\n" in said, "which takes the place of nothing else"


@pytest.mark.parametrize(
    ("home", "against"),
    [("1.1", "1.1"), ("1.0", "1.0"), ("2.0", "1.2"), ("0.9", "1.2")],
    ids=["what it has", "what it has, first of all", "its own is a candidate", "withdrawn"],
)
def test_a_candidate_without_one_is_held_against_the_drives_own_or_else_the_last_released(
    files: Files, home: str, against: str
) -> None:
    files.model(
        "M",
        "1.0 status: released",
        "0.9 status: withdrawn",
        "1.1 status: released",
        "1.2 status: released",
        "2.0",
    )
    files.drive("a", "M", home)
    visits, _ = files.survey()
    assert {each.cell.firmware: each.against for each in visits}["2.0"] == against


def test_a_predecessor_may_stand_below_what_comes_after_it(files: Files) -> None:
    files.model(
        "M",
        "1.2 predecessor: '1.1'",
        "1.1 predecessor: '1.0'",
        "1.0 status: released",
        "2.0 status: released",
    )
    files.drive("a", "M", "2.0")
    visits, _ = files.survey()
    against = {each.cell.firmware: each.against for each in visits}
    assert against == {"2.0": None, "1.2": "1.0", "1.1": "1.0", "1.0": None}


def test_the_order_to_compare_has_the_returns(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two candidates in turn: between them the drive comes home, and is measured there again."""
    files.model("M", "1.0 status: released", "1.1", "1.2")
    files.drive("a", "M", "1.0")
    rig, matrix = files.read()
    show(argparse.Namespace(rig=[rig.path], matrix=matrix.path, why=None, rounds=1, json=True))
    report = json.loads(capsys.readouterr().out)
    steps = {
        name: [f"{step['does']} {step['firmware']}" for step in report[name]]
        for name in ("order", "order_to_compare")
    }
    assert steps["order"] == [
        *("test 1.0", "flash 1.1", "test 1.1", "flash 1.2", "test 1.2", "flash 1.0")
    ]
    assert steps["order_to_compare"] == [
        *("test 1.0", "flash 1.1", "test 1.1", "flash 1.0", "test 1.0"),
        *("flash 1.2", "test 1.2", "flash 1.0", "test 1.0"),
    ]
    flashes = sum(step.startswith("flash") for step in steps["order_to_compare"])
    assert report["flashes_to_compare"] == flashes


def test_a_candidate_is_not_said_to_be_compared_with_what_is_not_visited(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files.model("M", "1.0 status: released, no image", "1.1")
    files.drive("a", "M", "1.1")
    rig, matrix = files.read()
    show(argparse.Namespace(rig=[rig.path], matrix=matrix.path, why=None, rounds=1, json=False))
    said = capsys.readouterr().out
    assert "    bench-a-M-1.0: no image in the matrix\n" in said
    assert (
        "    held against 1.0, by what is stored alone: the drive is not visited with it\n" in said
    )


def test_what_waits_for_a_power_cycle_needs_an_outlet(files: Files) -> None:
    files.model("M", "1.0", "1.1 activation: power-cycle")
    files.drive("a", "M", "1.0")
    files.drive("b", "M", "1.0")
    visits, gaps = files.survey()
    assert [visit.id for visit in visits] == ["bench-a-M-1.0", "bench-a-M-1.1", "bench-b-M-1.0"]
    assert [(gap.cell.id, gap.lacks) for gap in gaps] == [("bench-b-M-1.1", "outlet")]


@pytest.mark.parametrize("by", ["the matrix", "the rig file"])
def test_a_power_cycle_of_the_machine_that_leadline_runs_on_activates_nothing(
    files: Files, by: str
) -> None:
    """It would be refused, and the image would be in the drive by then."""
    files.model("M", "1.0", "1.1 activation: power-cycle" if by == "the matrix" else "1.1")
    files.drive("a", "M", "1.0")
    if by == "the rig file":
        files.drives[0] = files.drives[0].replace("at-once", "power-cycle")
    files.outlets = "{name: o, pdu: p, outlet: 1, feeds: host}"
    visits, gaps = files.survey()
    assert revisions(visits) == ["1.0"]
    assert [(gap.lacks, gap.reason) for gap in gaps] == [
        ("outlet", "it waits for a power cycle, which would be that of this machine")
    ]


# Globs.


def test_a_name_goes_before_a_glob(files: Files) -> None:
    files.model("MAKER*", "9")
    files.model("MAKER A", "1.0")
    files.drive("a", "MAKER A", "1.0")
    _, matrix = files.read()
    entries = [matrix.entry(name) for name in ("MAKER A", "MAKER B", "MADE")]
    assert [entry and entry.model for entry in entries] == ["MAKER A", "MAKER*", None]


def test_globs_that_agree_may_overlap(files: Files) -> None:
    files.model("MAKER*", "9")
    files.models.append(files.models[0].replace("MAKER*", '"*SSD"'))
    files.drive("a", "MAKER SSD", "9")
    visits, _ = files.survey()
    assert revisions(visits) == ["9"]
