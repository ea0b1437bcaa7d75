"""What stations have recorded: in this run, and of earlier ones that may stand in."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.drive.identify_changes import Log
from leadline.load.slices import FIO_CPU, SliceSetting
from leadline.load.workload import random_read
from leadline.results.record import Record
from leadline.results.rows import slice_row
from leadline.results.schema import CellRow
from leadline.results.stations import Baseline, recorded, said, stood_in
from leadline.statements import AtStation, side_of
from selftests.calibrated import TimedDrive
from selftests.regression_stays import CANDIDATE, HOME

READS = "random_read.at(depth=8)"
BASELINE = Baseline(HOME.cell, "SN1", "a" * 64, since=1000.0)


IMAGE = "a" * 64
"""The hash of what was on the drive, unless a test says otherwise."""


def side(number: int, quantity: str = READS) -> str:
    return side_of(quantity, number, "1.1", "1.0")


Keep = Callable[..., Record]


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Keep]:
    """A function that puts the slices of one station on record; the record of its run."""
    made: list[Record] = []

    def station(
        run: str,
        name: str = "",
        rate: float = 1000.0,
        *,
        count: int = 8,
        settling: str = "",
        seconds: float = 0.5,
        clock: float = 2000.0,
        spoil: str = "",
        **cell: object,
    ) -> Record:
        record = Record(tmp_path, run)
        made.append(record)
        record.start("command", "0")
        facts = {"image_sha256": IMAGE, **cell}
        serial = str(facts.pop("serial", "SN1"))
        row = CellRow(cell=HOME.cell.id, rig="bench", slot="a", model="MODEL", firmware="1.0")
        row.serial, row.controller, row.details = serial, "c", facts
        record.add(row)
        drive = TimedDrive({8: rate}, noise=0.0, clock=clock, spoil=spoil)
        settings = [SliceSetting(8, 12, seconds)] * count
        for place, each in enumerate(drive.measure(random_read(), settings) if name else []):
            where = {"settling": settling or f"{run} {name}", "place": place}
            record.add(slice_row(HOME.cell.id, "c", name, each, **where))  # type: ignore[arg-type]
        return record

    yield station
    for record in made:
        record.close()


def rates(*found: AtStation | None) -> list[tuple[int, float, int]]:
    return [(each.number, each.rates[0], len(each.rates)) for each in found if each]


def test_a_station_is_found_by_cell_and_side_in_this_run(keep: Keep) -> None:
    keep("run-1", side(1), 1000.0)
    record = keep("run-2", side(1), 200.0)
    assert rates(recorded(record, HOME.cell, 1, side(1))) == [(1, 200.0, 8)]
    assert recorded(record, HOME.cell, 4, side(4)) is None
    assert recorded(record, CANDIDATE.cell, 1, side(1)) is None


def test_what_was_run_twice_counts_once_and_slices_of_one_length_do(keep: Keep) -> None:
    keep("run-1", side(1), 1000.0, settling="first")
    keep("run-1", side(1), 150.0, settling="second", count=4)
    record = keep("run-1", side(1), 200.0, settling="second", seconds=2.0, count=9)
    found = recorded(record, HOME.cell, 1, side(1))
    assert found is not None
    assert (rates(found), found.seconds) == ([(1, 200.0, 9)], 2.0)
    assert found.spent_s == pytest.approx(4 * 0.5 + 9 * 2.0), "the drive was busy all the same"


def test_slices_that_do_not_count_are_left_out_and_said(keep: Keep) -> None:
    record = keep("run-1", side(1), spoil=FIO_CPU)
    found = recorded(record, HOME.cell, 1, side(1))
    assert found is not None
    assert found.rates == ()
    assert found.voids[0].endswith("(8 slices at station 1)")


def both(keep: Keep, run: str, rate: float, **facts: object) -> None:
    keep(run, side(1), rate, **facts)
    keep(run, side(4), rate + 1.0, **facts)


def test_two_stations_of_the_last_run_that_has_them_stand_in(keep: Keep) -> None:
    both(keep, "run-1", 1000.0)
    both(keep, "run-2", 200.0)
    keep("run-3", side(1), 300.0)
    now = keep("run-4", side(1), 400.0)
    found = stood_in(now, BASELINE, READS)
    assert rates(*found) == [(1, 200.0, 8), (4, 201.0, 8)]
    assert {each.spent_s for each in found} == {0.0}, "this run has not spent it"
    assert all(each.whose.startswith("run run-2, 1970-01-01 ") for each in found)


@pytest.mark.parametrize(
    "facts",
    [
        {"serial": "SN2"},
        {"image_sha256": "b" * 64},
        {"image_sha256": None},
        {"clock": 900.0},
        {"count": 7},
        {"spoil": FIO_CPU},
    ],
)
def test_of_another_drive_image_or_calibration_nothing_stands_in(
    keep: Keep, facts: dict[str, object]
) -> None:
    both(keep, "run-1", 1000.0, **facts)
    assert stood_in(keep("run-2"), BASELINE, READS) == ()


@pytest.mark.parametrize(("now_on", "stands_in"), [("8086:2922", True), ("8086:7010", False)])
def test_what_was_taken_on_a_controller_of_another_kind_does_not_stand_in(
    keep: Keep, now_on: str, stands_in: bool
) -> None:
    both(keep, "run-1", 1000.0, controller={"pci_id": "8086:2922"}, identify="01", logs=[])
    now = Record(keep("run-2", serial="SN2").directory, "run-9")
    now.start("command", "0")
    row = CellRow(cell=CANDIDATE.cell.id, rig="bench", slot="a", model="MODEL", firmware="1.1")
    row.serial, row.controller, row.details = "SN1", "c", {"controller": {"pci_id": now_on}}
    now.add(row)
    found = stood_in(now, BASELINE, READS)
    heard = said(now, HOME.cell, "SN1", earlier=True, sha256=IMAGE)
    now.close()
    assert (bool(found), heard is not None) == (stands_in, stands_in)


def test_another_quantity_or_firmware_does_not_stand_in(keep: Keep) -> None:
    both(keep, "run-1", 1000.0)
    now = keep("run-2")
    assert len(stood_in(now, BASELINE, READS)) == 2
    assert stood_in(now, BASELINE, "random_read.at(depth=1)") == ()
    assert stood_in(now, BASELINE, "random_read.at(depth_8)") == (), "no pattern: _ is a letter"
    assert stood_in(now, replace(BASELINE, cell=CANDIDATE.cell), READS) == ()


def test_what_a_drive_said_is_its_last_word_in_this_run(keep: Keep) -> None:
    log = {"address": 16, "general_sectors": 1, "smart_sectors": 0}
    keep("run-1", identify="00", logs=[])
    record = keep("run-2", identify="01", logs=[])
    keep("run-2", identify="02", logs=[log])
    found = said(record, HOME.cell, "SN1", earlier=False, sha256=IMAGE)
    assert found is not None
    assert (found.identify, found.logs, found.earlier) == (b"\2", (Log(16, 1, 0),), "")
    assert said(record, HOME.cell, "SN2", earlier=False, sha256=IMAGE) is None
    later = keep("run-3", identify=None, logs=[])
    assert said(later, HOME.cell, "SN1", earlier=False, sha256=IMAGE) is None, (
        "of a SCSI drive, by a release that kept nothing of what it says"
    )


def test_what_a_scsi_drive_said_is_on_record_by_page(keep: Keep) -> None:
    pages = {"INQUIRY": "00ab", "VPD page B0h": "01"}
    record = keep("run-1", identify=None, logs=[], pages=pages)
    found = said(record, HOME.cell, "SN1", earlier=False, sha256=IMAGE)
    assert found is not None
    assert (found.identify, found.logs) == (b"", ())
    assert found.pages == {"INQUIRY": b"\x00\xab", "VPD page B0h": b"\x01"}


def test_what_it_said_in_an_earlier_run_counts_where_that_stands_in(keep: Keep) -> None:
    keep("run-1", identify="01", logs=[])
    record = Record(keep("run-2").directory, "run-9")
    assert said(record, HOME.cell, "SN1", earlier=False, sha256=IMAGE) is None
    keep("run-3", identify="03", logs=[])
    keep("run-4", identify="04", logs=[], image_sha256="b" * 64)
    found = said(record, HOME.cell, "SN1", earlier=True, sha256=IMAGE)
    record.close()
    assert found is not None
    assert found.identify == b"\3"
    assert re.fullmatch(r"run run-3, 20\d\d-\d\d-\d\d \d\d:\d\d", found.earlier)
