"""What the rig's kernel tells of one drive while its power goes and comes; on this machine."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from leadline.drive import locate
from leadline.drive.bind import Drive, Link, Seen
from leadline.drive.kernel_events import KernelEvent
from leadline.drive.kernel_watch import KernelHistory, KernelLog, KernelWatch
from leadline.host.connection import Host, open_host
from leadline.inventory.rig import HostSpec
from leadline.power.sight import Sight
from selftests.power_world import drive

NOW = 1000.0  # of this machine's clock
AHEAD = 900.0  # the rig's kernel began to count then


class Log:
    """`KernelWatch`, on what a test has the kernel say and when, in seconds since its boot."""

    def __init__(self) -> None:
        self.log = KernelLog()
        self.number = 0

    def says(self, seconds: float, text: str) -> None:
        self.log.take(f"6,{self.number},{seconds * 1e6:.0f},-;{text}")
        self.number += 1

    def mark(self) -> int:
        return self.log.mark()

    def clock(self) -> float:
        return AHEAD

    def since(self, mark: int, of: Drive) -> tuple[KernelEvent, ...]:
        return tuple(
            event for event in self.log.events()[mark:] if (event.device or "").startswith("ata1")
        )

    def history(self) -> KernelHistory:
        return self.log.history()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    clock = SimpleNamespace(monotonic=lambda: NOW)
    monkeypatch.setattr("leadline.power.sight.time", clock)
    return Log()


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with open_host(HostSpec(reach="local")) as opened:
        yield opened


def sight_of(host: Host, log: Log | None, **changes: Any) -> Sight:
    of = drive(**changes)
    disks = [Seen(of.name, "SERIAL-a", "", "MODEL", "", of.hctl, "sata", 1 << 30)]
    return Sight(host, of, disks, cast(KernelWatch | None, log))


def up(speed: str = "6.0") -> str:
    return f"ata1: SATA link up {speed} Gbps (SStatus 133 SControl 300)"


def test_a_link_is_up_when_the_kernel_first_said_so_after_the_power_was_on(
    host: Host, log: Log
) -> None:
    log.says(10.0, up())
    sight = sight_of(host, log)
    log.says(60.0, up())
    log.says(70.0, "ata2: SATA link up 6.0 Gbps (SStatus 133 SControl 300)")
    log.says(80.5, up())
    log.says(90.0, up())
    assert sight.link_up_at(NOW - 30.0) == pytest.approx(AHEAD + 80.5)


def test_a_link_that_came_up_slower_is_up(host: Host, log: Log) -> None:
    sight = sight_of(host, log)
    log.says(79.0, "ata1: SATA link down (SStatus 0 SControl 300)")
    log.says(80.0, up())
    log.says(80.5, up("3.0"))
    assert sight.link_up_at(AHEAD + 80.2) == pytest.approx(AHEAD + 80.5)


def test_a_link_of_another_boot_or_none_is_not_told(host: Host, log: Log) -> None:
    sight = sight_of(host, log)
    log.says(500.0, up())  # of the boot before: by this one's clock it is to come yet
    assert sight.link_up_at(NOW - 30.0) is None
    assert sight_of(host, None).link_up_at(0.0) is None


def test_what_was_said_before_the_drive_was_set_up_anew_is_of_the_old_one(
    host: Host, log: Log
) -> None:
    sight = sight_of(host, log)
    log.says(20.0, "ata1.00: NCQ disabled due to excessive errors")
    log.says(30.0, "ata1.00: ATA-9: MODEL, 1.0, max UDMA/133")
    assert sight.said_since_attached(drive()) == ()
    log.says(40.0, "ata1.00: NCQ disabled due to excessive errors")
    log.says(41.0, "ata2.00: NCQ disabled due to excessive errors")
    (event,) = sight.said_since_attached(drive())
    assert event.time == 40.0
    moved = drive(link=Link("ata2", "ata2.00", "6.0 Gbps", 0, ""))
    (event,) = sight.said_since_attached(moved)
    assert event.time == 41.0
    assert sight_of(host, None).said_since_attached(drive()) == ()


@pytest.mark.parametrize(("text", "rotates"), [("1\n", True), ("0\n", False), (None, True)])
def test_what_is_not_known_to_stand_still_may_be_a_disk(
    host: Host, tmp_path: Path, text: str | None, rotates: bool
) -> None:
    (tmp_path / "queue").mkdir()
    if text is not None:
        (tmp_path / "queue/rotational").write_text(text)
    assert sight_of(host, None, name=f"../..{tmp_path}").rotates is rotates


def test_a_slot_is_pointed_out_even_when_the_drive_is_gone(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locate, "ENCLOSURES", str(tmp_path / "enclosure"))
    slot = tmp_path / "enclosure/6:0:24:0/Slot 07"
    (tmp_path / "device").mkdir()
    slot.mkdir(parents=True)
    (slot.parent / "id").write_text("0x5003\n")
    link = tmp_path / "device/enclosure_device:Slot 07"
    link.symlink_to(slot)
    sight = sight_of(host, None, name=f"../..{tmp_path}")
    link.unlink()
    assert sight.point_out() == ". It is in Slot 07 of enclosure 0x5003"
    assert sight_of(host, None).point_out() == ""
