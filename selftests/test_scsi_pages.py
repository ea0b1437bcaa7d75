"""What a SCSI drive is asked when it is visited: every page that it lists, and no other."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from leadline.drive import smart
from leadline.drive.identify_changes import Log
from leadline.drive.said import Said, says
from leadline.drive.scsi_pages import CAPACITY, INQUIRY, LOG_LIST, Pages, read_pages, vpd
from leadline.errors import DriveFault
from leadline.host.connection import Host
from leadline.host.trouble import CommandRefused
from selftests.drive_specimens import sata_drive, scsi_drive
from selftests.identify_images import image
from selftests.scsi_answers import answers

ILLEGAL_REQUEST, HARDWARE_ERROR = 0x5, 0x4


def sense(key: int) -> bytes:
    """Fixed sense data, SPC-4 4.5."""
    return bytes([0x70, 0, key, *bytes(11)])


@dataclass
class Answering:
    """A host whose drive answers with these, padded to the length that it was asked for."""

    pages: Pages
    fails: str = ""
    name: str = "bench"
    held: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def hold_device(self, path: str, *, exclusive: bool) -> int:
        assert not exclusive, "the write guard may hold it"
        self.held.append(path)
        return 7

    def release_device(self, handle: int) -> None:
        assert handle == 7
        self.held.pop()

    def sg_io(self, handle: int, cdb: bytes, length: int, deadline: float) -> bytes:
        assert len(cdb) == {0x12: 6, 0x9E: 16, 0x4D: 10}[cdb[0]]
        of_inquiry = vpd(cdb[2]) if cdb[1] & 1 else INQUIRY
        name = {0x9E: CAPACITY, 0x4D: LOG_LIST}.get(cdb[0], of_inquiry)
        self.asked.append(name)
        if name == self.fails:
            raise CommandRefused("failed", 2, sense(HARDWARE_ERROR))
        if name not in self.pages:
            raise CommandRefused("refused", 2, sense(ILLEGAL_REQUEST))
        return self.pages[name].ljust(length, b"\0")[:length]


def read(drive: Answering) -> Pages:
    return read_pages(cast(Host, drive), "/dev/sdx")


def test_every_page_that_is_listed_is_asked_for_once_and_kept_as_long_as_it_says() -> None:
    drive = Answering(answers())
    assert read(drive) == answers()
    assert sorted(drive.asked) == sorted(answers())
    assert drive.held == []


def test_a_page_that_is_listed_and_refused_is_left_out() -> None:
    lacking = answers()
    del lacking[vpd(0xB2)], lacking[LOG_LIST]
    drive = Answering(lacking)
    assert read(drive) == lacking
    assert vpd(0xB2) in drive.asked


def test_a_drive_without_pages_says_who_it_is_and_how_large() -> None:
    few = {name: answers()[name] for name in (INQUIRY, CAPACITY)}
    assert read(Answering(few)) == few


def test_a_page_that_fails_is_the_drives_fault_and_it_is_let_go() -> None:
    drive = Answering(answers(), fails=vpd(0x86))
    with pytest.raises(DriveFault, match="bench: /dev/sdx: the drive failed VPD page 86h: failed"):
        read(drive)
    assert drive.held == []


def test_a_drive_is_asked_as_it_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = (Log(0x10, 1, 0),)
    monkeypatch.setattr(smart, "log_directory", lambda host, node: logs)
    host = Answering(answers())
    assert says(cast(Host, host), scsi_drive()) == Said(pages=answers())
    host.asked.clear()
    assert says(cast(Host, host), sata_drive()) == Said(image(), logs)
    assert host.asked == []
