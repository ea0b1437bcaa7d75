"""After a session each drive is back on the firmware that it came with, unless told otherwise."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadline import away, visiting
from leadline.drive.bind import Drive
from leadline.errors import DriveFault
from leadline.host.connection import Host, HostLost
from leadline.inventory.rig import DriveSpec
from leadline.results.record import Record
from leadline.running import Run
from leadline.station import Stations
from leadline.visiting import OpenVisit
from selftests.flasher import IMAGE, OUTLET, SHA256
from selftests.visit_world import MATRIX, RIG, Bench, bench, kept, make_run

__all__ = ["bench"]  # a fixture

FLASH = 'protocol: sata, flash: {command: [f, "{image}"], runs_on: here, activates: at-once}}'
Session = Callable[..., list[str]]


def run_of(folder: Path, candidate: str = '"1.1"') -> Run:
    """Drives a and b, each with firmware 1.0, to be tested with the candidate too."""
    (folder / "i.bin").write_bytes(IMAGE)
    (folder / "c.bin").write_bytes(b"candidate")
    released = f"image: i.bin, sha256: {SHA256}, status: released"
    tried = f"image: c.bin, sha256: {hashlib.sha256(b'candidate').hexdigest()}, status: candidate"
    matrix = MATRIX.replace("status: released", released).replace("status: candidate", tried)
    rig = RIG.replace('firmware: "1.0"', f'firmware: "1.0", firmware_sha256: {SHA256}')
    rig = rig.replace("protocol: sata}", FLASH) + OUTLET
    run = make_run(folder, rig, matrix.replace('"1.1"', candidate))
    assert [visit.cell.slot for visit in run.visits] == ["a", "a", "b", "b"]
    assert [visit.installed for visit in run.visits] == [True, False, True, False]
    return run


@pytest.fixture
def session(bench: Bench, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> Session:
    """Opens the visits of these numbers; what was flashed, in the order in which it was."""
    flashed: list[str] = []
    runs = {"a": "1.0", "b": "1.0"}

    def bind(host: Host, spec: DriveSpec, **_: Any) -> Drive:
        identity = replace(bench.drive.identity, firmware=runs[spec.slot])
        return replace(bench.drive, identity=identity)

    def flash(visit: OpenVisit) -> None:
        cell = visit.visit.cell
        flashed.append(f"{cell.slot} {cell.firmware}")
        if (bench.folder / "broken").exists():
            raise DriveFault(f"{cell.slot} takes no image")
        if (bench.folder / "refused").exists():
            visit.station.put_on[cell.slot] = "1.0"  # as flashing does, when it runs what it ran
            raise DriveFault(f"{cell.slot} refused the image")
        away.leaving(visit, cell.firmware.partition("-")[0], "")
        runs[cell.slot] = cell.firmware.partition("-")[0]
        if (bench.folder / "slower").exists() and cell.firmware == "1.1":
            visit.station.put_on[cell.slot] = ""
            raise DriveFault(f"{cell.slot} came back slower")
        visit.station.put_on[cell.slot] = cell.firmware
        away.arrived(visit)
        visit.rebound(bind(visit.station.host, visit.spec))

    monkeypatch.setattr(visiting, "bind", bind)
    monkeypatch.setattr(visiting, "flash", flash)
    Record(bench.folder / "results", "run-1").start("a command", "0")

    def carry_out(
        *numbers: int,
        keep: bool = False,
        then: Callable[[Stations], None] = lambda _: None,
        alike: bool = False,
        found: str = "1.0",
    ) -> list[str]:
        runs["a"] = found
        run = run_of(bench.folder, '"1.0-rebuilt", shows: "1.0"' if alike else '"1.1"')
        with Stations(replace(run, keep_firmware=keep), pytestconfig) as stations:
            for number in numbers:
                with stations.visit(run.visits[number]):
                    pass
            then(stations)
        return flashed

    return carry_out


def homes(bench: Bench) -> list[tuple[str, str, str]]:
    """What is on record of each drive's way home: its cell, how it ended, and why."""
    rows = kept(bench.folder, "outcomes")
    assert {row["claim"] for row in rows} <= {"brought_home"}
    return [(row["cell"], row["outcome"], row["message"]) for row in rows]


def test_each_drive_that_has_another_firmware_goes_back(session: Session, bench: Bench) -> None:
    assert session(0, 1, 2, 3) == ["a 1.1", "b 1.1", "a 1.0", "b 1.0"]
    assert homes(bench) == [("bench-a-MODEL-1.0", "pass", ""), ("bench-b-MODEL-1.0", "pass", "")]
    assert bench.told.said == [
        "slot a of rig bench goes back to firmware 1.0, with which it came",
        "slot b of rig bench goes back to firmware 1.0, with which it came",
    ]


def test_another_image_of_the_same_revision_is_another_firmware(
    bench: Bench, session: Session
) -> None:
    """What the drive says does not tell them apart; what was put on it does."""
    assert session(0, 1, 0, alike=True) == ["a 1.0-rebuilt", "a 1.0"]
    assert session(0, 1, alike=True)[2:] == ["a 1.0-rebuilt", "a 1.0"]


def test_one_that_is_there_already_is_left_alone(session: Session, bench: Bench) -> None:
    assert session(0, 1, 0, 2) == ["a 1.1", "a 1.0"]
    assert homes(bench) == []
    assert bench.told.said == []


def test_what_an_earlier_run_left_is_tested_as_it_is_and_goes_back(session: Session) -> None:
    assert session(1, found="1.1") == ["a 1.0"]


def test_unless_told_otherwise(session: Session, bench: Bench) -> None:
    assert session(1, keep=True) == ["a 1.1"]
    assert list((bench.folder / "journal").iterdir()) == [], "it is no longer missed"


def test_one_whose_visit_could_not_be_opened_after_the_flash(
    session: Session, bench: Bench
) -> None:
    (bench.folder / "slower").touch()
    with pytest.raises(DriveFault, match="a came back slower"):
        session(1)
    assert homes(bench) == [("bench-a-MODEL-1.0", "pass", "")]
    assert bench.told.said == ["slot a of rig bench goes back to firmware 1.0, with which it came"]


def test_one_that_refused_the_image_is_where_it_was(session: Session, bench: Bench) -> None:
    (bench.folder / "refused").touch()
    with pytest.raises(DriveFault, match="a refused the image"):
        session(1)
    assert bench.told.said == []


def test_of_a_lost_rig_it_is_only_said(session: Session, bench: Bench) -> None:
    def lose(stations: Stations) -> None:
        stations.station("bench").lost = HostLost("gone")

    assert session(1, then=lose) == ["a 1.1"]
    said = (
        "slot a of rig bench is not back on firmware 1.0: it is left on 1.1, for the rig was lost: "
        "gone"
    )
    assert bench.told.said == [said]
    assert homes(bench) == [("bench-a-MODEL-1.0", "error", said)]


def test_each_is_tried_whatever_becomes_of_others(session: Session, bench: Bench) -> None:
    def break_both(stations: Stations) -> None:
        stations.station("bench").in_doubt["b"] = "b is in doubt"
        (bench.folder / "broken").touch()

    session(1, 3, then=break_both)
    away = "slot {0} of rig bench is not back on firmware 1.0: {0}"
    assert homes(bench) == [
        ("bench-a-MODEL-1.0", "fail", away.format("a") + " takes no image"),
        ("bench-b-MODEL-1.0", "error", away.format("b") + " is in doubt"),
    ]
    assert {each[2] for each in homes(bench)} <= set(bench.told.said)
