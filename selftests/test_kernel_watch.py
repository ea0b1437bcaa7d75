"""Records of /dev/kmsg: in order, once each, and a gap is noticed."""

import time
from typing import cast

import pytest

from leadline.drive.kernel_watch import OVERRUN, KernelLog, KernelWatch, kernel_seconds
from leadline.host.connection import Host
from selftests.test_ladder import BOOT, DISABLED, record


def taken(*lines: str) -> KernelLog:
    log = KernelLog()
    for line in lines:
        log.take(line)
    return log


def test_a_log_that_begins_at_the_boot_is_complete() -> None:
    assert taken(record(0, BOOT[0]), record(1, BOOT[1])).history().complete
    assert not taken(record(17, BOOT[1]), record(18, BOOT[2])).history().complete


def test_what_libata_chose_is_remembered_until_the_next_drive() -> None:
    history = taken(*(record(i, text) for i, text in enumerate(BOOT))).history()
    assert history.ncq_choice("ata1.00") == "NCQ (depth 32)"
    assert history.attached_at("ata1.00") == 2.0
    assert history.ncq_choice("ata2.00") is None
    other = "ata1.00: ATA-7: ANOTHER DISK, 7, max UDMA/133"
    replaced = taken(*(record(i, text) for i, text in enumerate([*BOOT, other]))).history()
    assert replaced.ncq_choice("ata1.00") is None


def test_properties_of_a_record_are_no_message() -> None:
    log = taken(record(0, DISABLED), " SUBSYSTEM=scsi", " DEVICE=+scsi:0:0:0:0")
    (event,) = log.events()
    assert event.text == "NCQ disabled due to excessive errors"


def test_a_message_of_several_lines_is_read_as_dmesg_prints_it() -> None:
    log = taken(
        record(0, "ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x0"),
        record(1, "ata1.00: failed command: READ DMA"),
        record(
            2,
            "ata1.00: cmd c8/00:08:40:42:0f/00:00:00:00:00/e0 tag 1 dma 4096 in\\x0a"
            "         res 41/40:08:40:42:0f/00:00:00:00:00/e0 Emask 0x9 (media error)",
        ),
    )
    (event,) = log.events()
    assert (event.kind, event.commands) == ("medium-error", ("READ DMA",))
    assert not any("x0a" in line for line in event.lines)


def test_records_seen_again_after_a_reconnection_count_once() -> None:
    log = taken(record(0, BOOT[0]), record(1, DISABLED))
    mark = log.mark()
    assert log.take(record(0, BOOT[0])) is None
    assert log.take(record(1, DISABLED)) is None
    assert log.events()[mark:] == ()
    assert log.history().complete
    assert log.take(record(2, DISABLED)) is not None
    assert len(log.events()[mark:]) == 1


def test_a_gap_is_an_event_of_its_own() -> None:
    log = taken(record(0, BOOT[0]))
    before = log.mark()
    log.take(record(5, "usb 1-1: something"))
    after = log.mark()
    (gap,) = log.events()[before:]
    assert (gap.kind, gap.blame) == (OVERRUN, "host")
    assert "4 messages were lost" in gap.text
    assert log.events()[after:] == ()
    assert not log.history().complete


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("ata1: SATA link down (SStatus 0 SControl 300)", "link-down"),
        ("ata1: SATA link up 3.0 Gbps (SStatus 123 SControl 300)", "link-slower"),
    ],
)
def test_after_a_gap_the_ports_are_known_as_they_were(said: str, kind: str) -> None:
    log = taken(record(0, BOOT[1]), record(5, "usb 1-1: something"), record(6, said))
    assert [event.kind for event in log.events()] == ["link-up", OVERRUN, kind]


def test_a_new_boot_is_added_and_its_history_is_its_own() -> None:
    log = taken(record(0, BOOT[0]), record(1, DISABLED))
    mark = log.mark()
    log.begin_boot()
    for number, text in enumerate(BOOT):
        assert log.take(record(number, text)) == text
    kinds = [event.kind for event in log.events()[mark:]]
    assert "ncq-disabled" not in kinds
    assert "ncq-disabled" in [event.kind for event in log.events()]
    assert [event.kind for event in log.history().events] == kinds


def test_our_own_marks_are_no_events() -> None:
    log = taken(record(0, "leadline: mark ata1.00: NCQ disabled due to excessive errors"))
    assert log.events() == ()


class Kmsg:
    """A host whose log gives back what is written to it, `ahead` seconds by its clock."""

    name = "bench"

    def __init__(self, ahead: float) -> None:
        self.ahead = ahead
        self.after_reconnect: list[object] = []
        self.ended = False
        self.waiting: list[str] = []
        self.number = 0

    def boot_id(self) -> str:
        return "boot"

    def start(self, argv: list[str]) -> "Kmsg":
        return self

    def stop(self) -> None:
        self.waiting.clear()

    def write_value(self, path: str, text: str) -> None:
        self.says(text.rstrip("\n"))
        self.says("usb 1-1: something, a little later", later=50.0)

    def says(self, text: str, later: float = 0.0) -> None:
        seconds = time.monotonic() + self.ahead + later
        self.waiting.append(f"6,{self.number},{seconds * 1e6:.0f},-;{text}")
        self.number += 1

    def lines(self, timeout: float) -> list[str]:
        taken, self.waiting = self.waiting, []
        return taken


@pytest.mark.parametrize("ahead", [1000.0, -3.25])
def test_a_time_in_the_log_is_told_by_our_own_clock(ahead: float) -> None:
    with KernelWatch(cast(Host, Kmsg(ahead))) as watch:
        assert watch.clock() == pytest.approx(-ahead, abs=5.0)


def test_the_time_of_a_record() -> None:
    assert kernel_seconds("6,1,2500000,-;ata1: SATA link up 6.0 Gbps") == 2.5
    with pytest.raises(ValueError, match="SUBSYSTEM=scsi' is no record"):
        kernel_seconds(" SUBSYSTEM=scsi")
