"""A look at the rigs before a run: what is missing is said once; one good drive is enough."""

from pathlib import Path

import pytest

from leadline import preflight
from leadline.drive.bind import Seen
from leadline.errors import Misuse, RigTrouble
from leadline.flash_record import begin
from leadline.host import journal
from leadline.host.connection import Host, open_host
from leadline.host.journal import Journal
from leadline.inventory.pdu import PduSpec
from leadline.inventory.rig import HostSpec, Rig
from leadline.load.fio import FIO_MINIMUM
from leadline.power.pdu import open_pdu
from leadline.preflight import refuse_absent
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.power_world import pdu_spec, quick
from selftests.test_away import leave_away
from selftests.test_flash_record import RECORD
from selftests.visit_world import WWN, make_run

__all__ = ["quick"]  # a fixture

PRESENT = Seen("sda", "SERIAL-a", WWN, "MODEL", "", "0:0:0:0", "sata", 1 << 30)
OTHER = Seen("sdb", "ELSE", "", "MODEL", "", "1:0:0:0", "sata", 1 << 30)
LAST = Seen("sdc", "SERIAL-b", "", "MODEL", "", "2:0:0:0", "sata", 1 << 30)
ANOTHER_WWN = Seen("sda", "SERIAL-a", "0x5000c50000000002", "MODEL", "", "0:0:0:0", "sata", 1)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """Two drives, on this machine."""
    return make_run(tmp_path).rigs["bench"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Which programs, and which versions of them, the rig was asked for."""
    programs: list[tuple[str, ...]] = []
    monkeypatch.setattr(preflight, "require", lambda _, *program: programs.append(program))
    return programs


def seen(monkeypatch: pytest.MonkeyPatch, *disks: Seen) -> None:
    monkeypatch.setattr(preflight, "scan", lambda _: disks)


@pytest.mark.parametrize("disks", [[PRESENT], [OTHER, LAST]], ids=["first", "last"])
def test_one_drive_is_enough(
    rig: Rig, asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, disks: list[Seen]
) -> None:
    seen(monkeypatch, *disks)
    refuse_absent([rig], 1)
    assert asked == [("fio", FIO_MINIMUM), ("smartctl",)]


def test_no_drive_is_said_for_each_of_them(
    rig: Rig, asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is not there, and one is another than the rig file says."""
    seen(monkeypatch, ANOTHER_WWN)
    with pytest.raises(RigTrouble) as trouble:
        refuse_absent([rig], 1)
    first, slot_a, *_ = str(trouble.value).splitlines()
    assert first == "rig bench: none of its drives can be tested:"
    assert slot_a.startswith("slot a: ")
    assert "slot b: drive MODEL (serial SERIAL-b, WWN not given) is not there" in str(trouble.value)


def test_drives_that_are_all_others_than_the_rig_file_says_are_the_users_fault(
    rig: Rig, asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are where one good drive lets the run begin, and a test binds the other."""
    seen(monkeypatch, ANOTHER_WWN)
    only = rig.model_copy(update={"drives": rig.drives[:1]})
    said = r"^rig bench: none of its drives can be tested:\nslot a: .* has another WWN"
    with pytest.raises(Misuse, match=said):
        refuse_absent([only], 1)
    away = HostSpec(reach="ssh", address="localhost.invalid")
    with pytest.raises(RigTrouble, match="has another WWN"):
        refuse_absent([only, only.model_copy(update={"name": "lost", "host": away})], 2)


def test_a_flash_that_was_killed_is_said_with_drives_that_do_not_answer(
    rig: Rig, asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(journal, "default_directory", lambda _: str(tmp_path / "journal"))
    with open_host(HostSpec(reach="local")) as here:
        begin(Journal(here, "run-0"), RECORD)
        leave_away(Journal(here, "run-0"))
    seen(monkeypatch, OTHER)
    with pytest.raises(RigTrouble) as trouble:
        refuse_absent([rig], 1)
    last, away = str(trouble.value).splitlines()[-2:]
    assert away.startswith("slot a: MODEL SERIAL-a came with firmware 1.0; run run-0 put 1.1 on")
    assert last.startswith("slot a: MODEL SERIAL-a: run run-0 ended while the image was sent")
    assert f"leadline flash --rig {rig.path} a --resume --allow-flash" in last


def test_a_missing_program_is_said(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(host: Host, program: str, minimum: str = "") -> None:
        raise RigTrouble(f"{host.name}: {program} is not installed")

    monkeypatch.setattr(preflight, "require", missing)
    with pytest.raises(RigTrouble, match=r"^rig bench: localhost: fio is not installed$"):
        refuse_absent([rig], 1)


def test_one_good_rig_is_enough_and_of_none_each_is_said(
    rig: Rig, asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen(monkeypatch, PRESENT)
    away = HostSpec(reach="ssh", address="localhost.invalid")
    lost, also = (rig.model_copy(update={"name": n, "host": away}) for n in ("lost", "also"))
    refuse_absent([lost, rig], 2)
    refuse_absent([lost], 2)  # the other one is virtual, and was started
    refuse_absent([], 1)
    with pytest.raises(RigTrouble) as trouble:
        refuse_absent([lost, also], 2)
    assert str(trouble.value).count("localhost.invalid") >= 2
    assert "rig lost: " in str(trouble.value)
    assert "rig also: " in str(trouble.value)


def test_a_pdu_is_tried_and_let_go(
    rig: Rig, asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen(monkeypatch, PRESENT)
    spec: PduSpec = pdu_spec(tmp_path)
    rig = rig.model_copy(update={"pdus": (spec,)})
    with pytest.raises(RigTrouble, match=r"rig bench: PDU 'p' .* no such port"):
        refuse_absent([rig], 1)
    with VirtualPdu(4, lambda *_: None, tmp_path / "pdu"):
        refuse_absent([rig], 1)
        open_pdu(spec).close()
