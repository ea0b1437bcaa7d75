"""`leadline hil` and its virtual rigs: started, counted, stopped, and waited for."""

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from leadline.away import left_away
from leadline.commands import hil
from leadline.errors import RigTrouble
from leadline.flash_record import begin, unfinished
from leadline.host import journal
from leadline.host.connection import open_host
from leadline.host.journal import Journal
from leadline.inventory.rig import HostSpec, Rig, load_rig
from leadline.virtual import rig as virtual
from selftests.hil_world import Vendor, vendor
from selftests.test_away import leave_away
from selftests.test_flash_record import RECORD
from selftests.vendor import MATRIX, RIG

__all__ = ["vendor"]  # a fixture


@pytest.fixture
def up(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the virtual rig says of itself; starting it is only noted."""
    status = {"running": False}

    @contextmanager
    def running(rig: Rig) -> Iterator[None]:
        vendor.did.append(f"{rig.name} up")
        yield
        vendor.did.append(f"{rig.name} down")

    def await_boot(rig: Rig) -> None:
        vendor.did.append(f"{rig.name} awaited")

    def preflight(rigs: Sequence[Rig], total: int) -> None:
        vendor.did.append(f"looked at {len(rigs)} of {total}")

    monkeypatch.setattr(virtual, "running", running)
    monkeypatch.setattr(virtual, "await_boot", await_boot)
    monkeypatch.setattr(virtual, "status", lambda _: status)
    monkeypatch.setattr(hil, "refuse_absent", preflight)
    return status


def test_a_virtual_rig_is_started_counted_and_stopped(vendor: Vendor, up: dict[str, Any]) -> None:
    assert vendor.hil("-k", "holds and scsi1", "test_all.py", rig=RIG, matrix=MATRIX) == 0
    assert vendor.did == ["looked at 0 of 1", "virtual up", "virtual down"]
    assert [row["name"] for row in vendor.kept("phases")] == ["boot"]


def test_a_virtual_rig_that_another_brings_up_is_awaited_and_stays_up(
    vendor: Vendor, up: dict[str, Any]
) -> None:
    up["running"] = True
    assert vendor.hil("-k", "holds and scsi1", "test_all.py", rig=RIG, matrix=MATRIX) == 0
    assert vendor.did == ["looked at 0 of 1", "virtual awaited"]


KEPT = """
from pathlib import Path
def test_asked(pytestconfig):
    Path("kept").write_text(str(pytestconfig.option.keep_firmware))
"""


def test_drives_that_are_gone_afterwards_keep_their_firmware(
    vendor: Vendor, up: dict[str, Any]
) -> None:
    (vendor.folder / "test_kept.py").write_text(KEPT)
    for running, rigs, kept in (
        (False, (), "True"),
        (True, (), "False"),
        (False, ("--rig", str(vendor.rig)), "False"),
    ):
        up["running"] = running
        assert vendor.hil("test_kept.py", *rigs, rig=RIG, matrix=MATRIX) == 0
        assert (vendor.folder / "kept").read_text() == kept


def test_what_a_dead_run_was_about_to_flash_went_with_its_virtual_drives(
    vendor: Vendor,
    up: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(journal, "default_directory", lambda _: str(vendor.folder / "journal"))
    with open_host(HostSpec(reach="local")) as here:
        begin(Journal(here, "run-0"), replace(RECORD, serial="VSSD0001"))
    rig = load_rig(RIG)
    up["running"] = True
    assert vendor.hil("-k", "holds and scsi1", "test_all.py", rig=RIG, matrix=MATRIX) == 0
    with open_host(HostSpec(reach="local")) as here:
        assert len(unfinished(here, rig)) == 1, "these are the drives that it was about"
        up["running"] = False
        assert vendor.hil("-k", "holds and scsi1", "test_all.py", rig=RIG, matrix=MATRIX) == 0
        assert unfinished(here, rig) == []
    said = capfd.readouterr().err
    assert "leadline: slot ssd1: MODEL VSSD0001: run run-0 ended while the image was sent" in said
    assert "; it has new drives now" in said


def test_a_record_of_a_flash_that_cannot_be_read_does_not_stop_other_rigs(
    vendor: Vendor,
    up: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(journal, "default_directory", lambda _: str(vendor.folder / "journal"))
    with open_host(HostSpec(reach="local")) as here:
        Journal(here, "run-0").open_entry("flash", {"serial": "VSSD0001"})
    assert vendor.hil("-k", "holds", "test_all.py") == 0, "that is a drive of another rig"
    assert "VSSD0001" not in capfd.readouterr().err
    assert vendor.hil("-k", "holds and scsi1", "test_all.py", rig=RIG, matrix=MATRIX) == 0
    said = capfd.readouterr().err
    assert "run run-0 left a flash of drive VSSD0001 on record that" in said, "new drives, though"
    assert vendor.did[-2:] == ["virtual up", "virtual down"]


def test_what_this_run_leaves_goes_with_its_virtual_drives(
    vendor: Vendor,
    up: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Stopped in a flash: the virtual rig is not mended, for all is gone with its guest."""
    monkeypatch.setattr(journal, "default_directory", lambda _: str(vendor.folder / "journal"))

    @contextmanager
    def running(rig: Rig) -> Iterator[None]:
        yield
        with open_host(HostSpec(reach="local")) as here:
            begin(Journal(here, "run-1"), replace(RECORD, serial="VSSD0001"))
            leave_away(Journal(here, "run-1"), serial="VSSD0001")
        with open_host(HostSpec(reach="local")) as here:
            assert len(unfinished(here, rig)) == len(left_away(here, rig)) == 1

    monkeypatch.setattr(virtual, "running", running)
    rigs = ("--rig", str(vendor.rig))
    assert vendor.hil("-k", "test_drive", "test_all.py", *rigs, rig=RIG, matrix=MATRIX) == 1
    assert [names for names, _ in vendor.mended] == [["bench"]]
    with open_host(HostSpec(reach="local")) as here:
        assert unfinished(here, load_rig(RIG)) == []
        assert left_away(here, load_rig(RIG)) == []
    assert "it has new drives now" not in capfd.readouterr().err


@pytest.mark.parametrize("option", ["--collect-only", "--co"])
def test_nothing_is_started_and_no_rig_asked_to_see_what_would_run(
    vendor: Vendor, up: dict[str, Any], option: str
) -> None:
    assert vendor.hil(option, "test_all.py", rig=RIG, matrix=MATRIX) == 0
    assert vendor.did == ["looked at 0 of 1"], "and that one is virtual"


# Tests are collected while virtual rigs boot, and wait for them.

MARKS = """
from pathlib import Path
Path("collected").touch()
def test_ran():
    Path("ran").touch()
"""


def await_file(path: Path) -> None:
    limit = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_tests_are_collected_while_a_rig_boots_and_wait_for_it(
    vendor: Vendor, up: dict[str, Any], monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    (vendor.folder / "test_marks.py").write_text(MARKS)
    ran = vendor.folder / "ran"

    @contextmanager
    def booting(rig: Rig) -> Iterator[None]:
        await_file(vendor.folder / "collected")
        time.sleep(0.5)
        assert not ran.exists()
        yield

    monkeypatch.setattr(virtual, "running", booting)
    assert vendor.hil("test_marks.py", *workers, rig=RIG, matrix=MATRIX) == 0
    assert ran.exists()


def children() -> set[str]:
    """Of this process, which has others by tests before it: a rig that they share."""
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # a thread that has ended meanwhile
            found.update((task / "children").read_text().split())
    return found


@pytest.mark.parametrize("error", [RigTrouble("the guest hangs"), KeyboardInterrupt()])
def test_a_rig_that_does_not_boot_runs_no_test_and_leaves_no_child(
    vendor: Vendor,
    up: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    (vendor.folder / "test_marks.py").write_text(MARKS)

    def broken(rig: Rig) -> NoReturn:
        await_file(vendor.folder / "collected")
        raise error

    monkeypatch.setattr(virtual, "running", broken)
    before = children()
    code = vendor.hil("test_marks.py", rig=RIG, matrix=MATRIX)
    assert code == (3 if isinstance(error, RigTrouble) else 130)
    assert not (vendor.folder / "ran").exists()
    assert children() <= before


def test_a_wrong_argument_is_told_without_waiting_for_a_boot(
    vendor: Vendor,
    up: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    @contextmanager
    def booting(rig: Rig) -> Iterator[None]:
        time.sleep(60)
        vendor.did.append("booted")
        yield

    monkeypatch.setattr(virtual, "running", booting)
    before = signal.getsignal(signal.SIGCHLD)
    assert vendor.hil("--frobnicate", rig=RIG, matrix=MATRIX) == 2
    assert "--frobnicate" in capfd.readouterr().err
    assert "booted" not in vendor.did
    assert signal.getsignal(signal.SIGCHLD) == before
