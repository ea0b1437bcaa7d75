"""Rows of the results: what is kept of a drive, a slice, a verdict, an event."""

import json
import math
import random
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadline.basis import Basis, stored
from leadline.claims import Claim
from leadline.drive.identify_changes import Log
from leadline.drive.kernel_events import KernelEvent
from leadline.drive.said import Said
from leadline.drive.smart import SmartSnapshot
from leadline.inventory.plan import Cell
from leadline.load.slices import SliceSetting
from leadline.load.workload import random_read
from leadline.plans import Noise
from leadline.quantities import Load
from leadline.results.record import FILE_NAME, Record
from leadline.results.rows import (
    cell_row,
    digest_of,
    event_row,
    slice_row,
    verdict_facts,
    verdict_row,
)
from leadline.results.schema import OfRun, SliceRow, VerdictRow
from leadline.verdict.verdict import Outcome, Verdict
from selftests.power_world import drive
from selftests.slice_drive import SliceDrive
from selftests.test_claims import Ruling

CELL = Cell("bench", "a", "MODEL", "1.0", "chipset")
INFINITE = Verdict(
    Outcome.INCONCLUSIVE,
    "void",
    ">=",
    3.0,
    2,
    "pair",
    4.0,
    estimate=2.0,
    low=0.0,
    high=float("inf"),
)

Keep = Callable[[OfRun], dict[str, Any]]


@pytest.fixture
def keep(tmp_path: Path) -> Keep:
    """Write a row and read it back, as columns by name; JSON parsed, and strictly."""

    def kept(row: OfRun) -> dict[str, Any]:
        Record(tmp_path, "run-1").add(row)
        with sqlite3.connect(tmp_path / FILE_NAME) as connection:
            connection.row_factory = sqlite3.Row
            query = f"select * from {row.__tablename__} order by id desc"
            found = dict(connection.execute(query).fetchone())
        if "details" in found:
            found["details"] = json.loads(found["details"], parse_constant=pytest.fail)
        return found

    return kept


def claim() -> Claim:
    reads = Load(random_read(), Ruling(), full_depth=32)
    return reads.at(depth=8) >= 3 * reads.at(depth=1)


def verdict_of(verdict: Verdict, explanation: str) -> VerdictRow:
    """A row of a verdict on `claim()`."""
    said = claim()
    basis = Basis(
        statement=stored(said.statement),
        slice_s=0.5,
        budget_s=130.0,
        noise=Noise(),
        seed=5,
        slices=24,
        slices_sha256="cd34",
    )
    return verdict_row(CELL.id, "a_claim", said, verdict, explanation, settling="ab12", basis=basis)


def test_a_drive_as_it_stood(keep: Keep) -> None:
    said = Said(b"\x01\xab", (Log(16, 1, 0),))
    row = keep(cell_row(CELL, drive(), SmartSnapshot(crc_errors=7), "ab" * 32, said))
    assert row["run"] == "run-1"
    assert (row["cell"], row["rig"], row["slot"]) == ("bench-a-MODEL-1.0", "bench", "a")
    assert (row["model"], row["serial"], row["firmware"]) == ("MODEL", "SERIAL-a", "1.0")
    assert row["controller"] == "chipset"
    assert row["details"]["image_sha256"] == "ab" * 32
    assert row["details"]["smart"]["crc_errors"] == 7
    assert row["details"]["queue_depth"] == 32
    assert row["details"]["controller"]["pci_id"] == "8086:2922"
    assert row["details"]["identity"]["wwn"] == "0x5000c50000000001"
    assert row["details"]["identify"] == "01ab"
    assert row["details"]["logs"] == [{"address": 16, "general_sectors": 1, "smart_sectors": 0}]
    assert row["details"]["pages"] == {}


def test_what_a_scsi_drive_said(keep: Keep) -> None:
    said = Said(pages={"INQUIRY": b"\x00\xab", "VPD page B0h": b"\x01"})
    row = keep(cell_row(CELL, drive(), SmartSnapshot(), None, said))
    assert row["details"]["pages"] == {"INQUIRY": "00ab", "VPD page B0h": "01"}
    assert (row["details"]["identify"], row["details"]["logs"]) == (None, [])


def test_a_slice(keep: Keep) -> None:
    setting = SliceSetting(device_depth=8, offered_depth=16)
    model = SliceDrive({8: 7000}, noise=0.0, chance=random.Random(1))
    (measured,) = model.measure(random_read(), [setting])
    made = slice_row(CELL.id, "a_claim", "left", measured, settling="ab12", place=3)
    digest = digest_of([made])
    row = keep(made)
    assert (row["cell"], row["claim"], row["side"]) == (CELL.id, "a_claim", "left")
    assert (row["device_depth"], row["offered_depth"], row["rate"]) == (8, 16, 7000)
    assert row["details"]["setting"]["seconds"] == 0.5
    assert row["details"]["fio_version"] == "fio-3.33"
    assert (row["settling"], row["place"], row["clean"]) == ("ab12", 3, True)
    again = SliceRow(place=row["place"], side=row["side"], details=row["details"])
    assert digest_of([again]) == digest, "what is read back has the digest of what was written"


@pytest.mark.parametrize("changed", ["place", "side", "rate"])
def test_a_digest_tells_one_slice_from_another(changed: str) -> None:
    (measured,) = SliceDrive({8: 7000}).measure(random_read(), [SliceSetting(8, 16)])

    def digest(place: int = 0, side: str = "left", rate: float = 7000.0) -> str:
        this = replace(measured, rate=rate)
        return digest_of([slice_row(CELL.id, "c", side, this, settling="ab12", place=place)])

    other = {"place": digest(place=1), "side": digest(side="right")}
    other["rate"] = digest(rate=math.nextafter(7000.0, 0.0))
    assert digest() == digest()
    assert other[changed] != digest()


def test_a_verdict(keep: Keep) -> None:
    verdict = Verdict(
        Outcome.PASS, "settled", ">=", 3.0, 4, "pair", 8.0, estimate=7.2, low=7.0, high=7.4
    )
    row = keep(verdict_of(verdict, "in words"))
    assert row["statement"] == "random_read.at(depth=8) >= 3 * random_read.at(depth=1)"
    assert (row["outcome"], row["reason"]) == ("PASS", "settled")
    assert [row[name] for name in ("low", "estimate", "high")] == [7.0, 7.2, 7.4]
    assert (row["threshold"], row["drive_seconds"]) == (3.0, 8.0)
    assert (row["details"]["cell"], row["details"]["explanation"]) == (CELL.id, "in words")
    basis = json.loads(row["basis"])
    assert (row["settling"], basis["seed"], basis["slices"]) == ("ab12", 5, 24)
    assert (basis["slice_s"], basis["budget_s"], basis["noise"]["sigma_d"]) == (0.5, 130.0, 0.01)
    facts = verdict_facts(verdict, "in words")
    assert (facts["verdict"], facts["estimate"]) == ("PASS", "7.2 [7, 7.4]")
    assert (facts["low"], facts["ratio"], facts["high"]) == (7.0, 7.2, 7.4)
    assert (facts["count"], facts["unit"], facts["drive_seconds"]) == (4, "pair", 8.0)


def test_an_interval_without_end_is_an_interval_without_a_number(keep: Keep) -> None:
    row = keep(verdict_of(INFINITE, ""))
    assert (row["low"], row["high"]) == (0.0, None)
    assert row["details"]["high"] is None
    assert verdict_facts(INFINITE, "")["high"] is None


@pytest.mark.parametrize("excused", [False, True])
def test_a_kernel_event(keep: Keep, excused: bool) -> None:
    event = KernelEvent("timeout", "error", "ata1.00", 12.5, "drive", "a timeout", (), ())
    row = keep(event_row(CELL.id, "t.py::test", event, excused=excused))
    assert (row["kind"], row["device"], row["time"]) == ("timeout", "ata1.00", 12.5)
    assert (row["node"], row["blame"], row["text"]) == ("t.py::test", "drive", "a timeout")
    assert row["excused"] == excused


def test_an_event_of_no_device_and_no_time_since_boot(keep: Keep) -> None:
    event = KernelEvent("timeout", "error", None, "Nov 20 14:00:00", "host", "text", (), ())
    row = keep(event_row(CELL.id, "t.py::test", event, excused=False))
    assert (row["device"], row["time"]) == ("", None)
