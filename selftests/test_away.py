"""A drive on other firmware than it came with is on record, and said, until it is home again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import pytest

from leadline import away
from leadline.away import ENTRY, AwayRecord, by_record, left_away
from leadline.builds import Build, keep
from leadline.commands import plan as plan_command
from leadline.commands import plan_said
from leadline.errors import Misuse
from leadline.flashing import flash
from leadline.host.connection import Host
from leadline.host.journal import Journal
from leadline.station import Station
from leadline.visiting import OpenVisit
from selftests.flasher import Flasher, flasher
from selftests.local_hosts import host, next_host
from selftests.visit_world import Bench, bench, make_run, open_station

__all__ = ["bench", "flasher", "host", "next_host"]  # fixtures

RECORD = AwayRecord(
    rig="bench",
    rig_file="old.yaml",
    matrix="",
    slot="old",
    model="MODEL",
    serial="SERIAL-a",
    home="1.0",
    revision="1.1",
    shows="1.1",
    sha256="1" * 64,
    since="2026-01-31 23:59:59 UTC",
)


def leave_away(journal: Journal, **changes: Any) -> None:
    """A run that is killed between the flash of a candidate and that of the way home."""
    journal.open_entry(ENTRY, asdict(replace(RECORD, **changes)))


@pytest.fixture
def asked(flasher: Flasher, monkeypatch: pytest.MonkeyPatch) -> Flasher:
    """It is asked what it runs by the next run, too."""
    monkeypatch.setattr("leadline.drive.bind.bind", flasher.bind)
    return flasher


def to(visit: OpenVisit, firmware: str) -> OpenVisit:
    """A visit of the same session with another firmware."""
    cell = replace(visit.visit.cell, firmware=firmware)
    other = OpenVisit(visit.station, replace(visit.visit, cell=cell))
    other.rebound(visit.drive)
    return other


@contextmanager
def next_run(bench: Bench, run_id: str = "run-2") -> Iterator[Station]:
    """The station of another run of the same rig file and matrix."""
    bench.told.said.clear()
    texts = [(bench.folder / name).read_text() for name in ("bench.yaml", "matrix.yaml")]
    with open_station(bench, replace(make_run(bench.folder, *texts), id=run_id)) as station:
        yield station


def test_a_run_that_ends_before_the_way_home_leaves_it_on_record_and_the_next_says_so(
    asked: Flasher, bench: Bench, next_host: Host
) -> None:
    with asked.visit() as visit:
        flash(visit)
        assert left_away(next_host, visit.station.rig) == [], "its run lives"
    with next_run(bench) as station:
        (said,) = bench.told.said
        assert said.startswith(
            "slot a: MODEL SERIAL-a came with firmware 1.0; run run-1 put 1.1 on it and ended "
            "before it was back: it is away since 20"
        )
        folder = bench.folder
        assert said.endswith(
            f", and runs 1.1 now; put it back: leadline flash --rig {folder}/bench.yaml --matrix "
            f"{folder}/matrix.yaml a 1.0 --allow-flash"
        )
        assert len(station.left_away) == 1
        asked.runs = "1.0"
        bench.drive = replace(bench.drive, identity=replace(bench.drive.identity, firmware="1.1"))
        home = OpenVisit(station, station.run.visits[0])
        home.rebound(bench.drive)
        flash(home)
        assert station.left_away == []
    assert list((bench.folder / "journal").iterdir()) == []


def test_the_way_home_closes_it(asked: Flasher, bench: Bench) -> None:
    with asked.visit() as visit:
        flash(visit)
        assert visit.station.away["a"].record.revision == "1.1"
        asked.runs = "1.0"
        flash(to(visit, "1.0"))
        assert visit.station.away == {}
    assert list((bench.folder / "journal").iterdir()) == []


def test_what_was_put_on_it_by_hand_is_no_journey(asked: Flasher, bench: Bench) -> None:
    with asked.visit() as visit:
        visit.station.run = replace(visit.station.run, by_hand=True)
        flash(visit)
    assert list((bench.folder / "journal").iterdir()) == []


def test_a_drive_that_refused_the_image_has_gone_nowhere(asked: Flasher, bench: Bench) -> None:
    asked.does("exit 5")
    asked.runs = "1.0"
    with asked.visit("{mode: 0xe}") as visit, pytest.raises(Misuse):
        flash(visit)
    assert list((bench.folder / "journal").iterdir()) == []


def test_one_that_is_home_again_is_said_no_more(asked: Flasher, bench: Bench) -> None:
    with asked.visit() as visit:
        flash(visit)
    asked.runs = "1.0"
    with next_run(bench):
        assert bench.told.said == []
    assert list((bench.folder / "journal").iterdir()) == []


def test_home_is_where_the_rig_file_has_it_today(asked: Flasher, bench: Bench) -> None:
    with asked.visit() as visit:
        flash(visit)
    path = bench.folder / "bench.yaml"
    path.write_text(path.read_text().replace('firmware: "1.0"', 'firmware: "1.1"', 1))
    with next_run(bench):
        assert bench.told.said == []


def test_another_journey_begins_where_the_first_did(asked: Flasher, bench: Bench) -> None:
    with asked.visit() as visit:
        leave_away(visit.station.here_journal)  # as of a run before, but for its journal
    with next_run(bench) as station:
        candidate = next(each for each in station.run.visits if each.cell.firmware == "1.1")
        visit = OpenVisit(station, candidate)
        visit.rebound(bench.drive)
        flash(visit)
        assert station.away["a"].record.since == RECORD.since
        assert station.left_away == []


def test_of_two_builds_that_it_says_alike_the_last_that_was_put_on_it_decides(
    asked: Flasher, bench: Bench
) -> None:
    asked.runs = "1.0"
    home = "a" * 64
    with asked.visit() as visit:
        leave_away(visit.station.here_journal, shows="1.0", revision="1.0-rebuilt")
        keep(visit.spec, Build("1.0", RECORD.sha256, "run-1"))
    path = bench.folder / "bench.yaml"
    path.write_text(
        path.read_text().replace('firmware: "1.0"', f'firmware: "1.0", firmware_sha256: {home}', 1)
    )
    matrix = bench.folder / "matrix.yaml"
    sha = matrix.read_text().partition("sha256: ")[2][:64]
    path.write_text(path.read_text().replace(home, sha))
    with next_run(bench) as station:
        assert "put 1.0-rebuilt on it" in bench.told.said[0]
        keep(station.rig.drive("a"), Build("1.0", sha, "run-1"))
    with next_run(bench):
        assert bench.told.said == []


def test_one_that_does_not_answer_is_said_and_stays_on_record(asked: Flasher, bench: Bench) -> None:
    with asked.visit() as visit:
        flash(visit)
    asked.runs = None
    for run_id in ("run-2", "run-3"):
        with next_run(bench, run_id):
            (said,) = bench.told.said
            assert "what it runs now cannot be told (the drive is not there); put it back" in said


def test_a_flash_in_doubt_speaks_for_its_drive(asked: Flasher, bench: Bench) -> None:
    """It says that it runs what it came with, and may take up the other yet."""
    with asked.visit() as visit:
        leave_away(visit.station.here_journal)
    with next_run(bench) as station:
        asked.runs = "1.0"
        station.in_doubt["a"] = "in doubt"
        assert list(away.look_after(station)) == []
        assert len(station.left_away) == 1


def test_what_another_version_left_is_left_alone(bench: Bench, next_host: Host) -> None:
    make_run(bench.folder)
    Journal(next_host, "run-0").open_entry(ENTRY, {"serial": "SERIAL-a"})
    next_host.close()
    with next_run(bench):
        assert bench.told.said == []


def test_the_plan_says_it_by_the_record_and_asks_nobody(
    bench: Bench, next_host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(bench.folder)
    leave_away(Journal(next_host, "run-0"))
    next_host.close()
    planned = plan_command._planned([bench.folder / "bench.yaml"], bench.folder / "matrix.yaml", 1)
    (said,) = planned.away
    assert said == (
        "slot a: MODEL SERIAL-a came with firmware 1.0; run run-0 put 1.1 on it and ended before "
        "it was back: it is away since 2026-01-31 23:59:59 UTC; put it back: leadline flash --rig "
        f"{bench.folder}/bench.yaml a 1.0 --allow-flash"
    )
    assert f"    {said}" in list(plan_said.said(planned))
    assert said in plan_command._report(planned)["warnings"]


def test_a_drive_of_another_rig_is_none_of_ours(bench: Bench, host: Host, next_host: Host) -> None:
    rig = make_run(bench.folder).rigs["bench"]
    leave_away(Journal(host, "run-0"), serial="ANOTHER")
    host.close()
    assert list(by_record(next_host, [rig])) == []
