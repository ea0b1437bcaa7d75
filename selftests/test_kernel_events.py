"""Kernel logs in every form, and what belongs together in them."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.drive.kernel_events import (
    EventParser,
    KernelEvent,
    concerns,
    may_be_of,
    ncq_disabled,
    parse_log,
)
from selftests.kernel_logs import (
    HEALTHY_BOOT,
    LINK_DOWN,
    LINK_SLOWER,
    LINK_UP,
    TIMEOUT,
    block,
    kinds,
    only,
)

LOGS = Path(__file__).parents[2] / "shared" / "realdata" / "dmesg"


def test_an_exception_is_one_event_with_all_its_failed_commands() -> None:
    exception, reset, up = parse_log(TIMEOUT)
    assert exception.kind == "queued-command-timeout"
    assert (exception.device, exception.time, exception.blame) == ("ata2.00", 100.000001, "drive")
    assert exception.commands == ("READ FPDMA QUEUED", "WRITE FPDMA QUEUED")
    assert exception.is_error
    assert exception.text == (
        "exception Emask 0x0 SAct 0x60 SErr 0x0 action 0x6 frozen; "
        "failed command: READ FPDMA QUEUED, WRITE FPDMA QUEUED (timeout)"
    )
    assert (reset.kind, reset.device, reset.blame) == ("link-reset", "ata2", "drive")
    assert (up.kind, up.severity) == ("link-up", "notice")


def test_a_healthy_boot_has_notices_only() -> None:
    events = parse_log(HEALTHY_BOOT)
    assert {event.severity for event in events} == {"notice"}
    assert {event.kind for event in events} == {"link-up", "port-empty", "quirk", "device-reset"}


def test_a_link_that_comes_back_slower_is_an_error() -> None:
    assert kinds(LINK_UP + LINK_SLOWER + LINK_SLOWER + LINK_UP + LINK_UP) == ["link-slower"]
    assert kinds(LINK_SLOWER + LINK_UP) == []
    assert kinds(LINK_UP + LINK_SLOWER.replace("ata1", "ata2")) == []


def test_a_link_down_is_an_error_where_a_drive_was() -> None:
    assert kinds(LINK_DOWN) == []
    assert kinds(LINK_UP + LINK_DOWN) == ["link-down"]
    assert kinds(LINK_UP.replace("ata1", "ata2") + LINK_DOWN) == []
    exception = "ata1: exception Emask 0x10 SAct 0x0 SErr 0x4010000 action 0xe frozen\n"
    assert kinds(exception + LINK_DOWN) == ["interface-error", "link-down"]


def test_what_the_kernel_does_about_trouble_is_blamed_on_the_trouble() -> None:
    link = block("Emask 0x4 (timeout)", extra="ata1: SError: { PHYRdyChg }\n")
    log = link + "ata1: hard resetting link\nata1: EH complete\n"
    log += "ata1.00: NCQ disabled due to excessive errors\n"
    log += "ata1: limiting SATA link speed to 3.0 Gbps\nata2: limiting SATA link speed to 3.0 Gbps"
    blamed = {(event.kind, event.device): event.blame for event in parse_log(log)}
    assert blamed["link-reset", "ata1"] == "link"
    assert blamed["ncq-disabled", "ata1.00"] == "link"
    own = link + "ata1: failed to read log page 10h (errno=-5)"
    assert parse_log(own)[-1].blame == "drive"
    drive = log.replace("PHYRdyChg", "CommWake")
    blamed = {(event.kind, event.device): event.blame for event in parse_log(drive)}
    assert blamed["link-reset", "ata1"] == "drive"
    assert blamed["link-speed-limited", "ata1"] == "drive"
    assert blamed["link-speed-limited", "ata2"] == "link"


def test_a_timeout_while_the_link_is_unreadable_is_the_links() -> None:
    lost = "ata1.00: failed to read SCR 1 (Emask=0x40)\n"
    timeout = block("Emask 0x4 (timeout)")
    assert [event.blame for event in parse_log(lost + timeout)] == ["link", "link"]
    over = lost + "ata1: EH complete\n" + timeout
    assert [event.blame for event in parse_log(over)] == ["link", "drive"]


def test_a_failed_request_is_one_event_and_follows_its_port() -> None:
    request = """\
[    7.1] sd 0:0:0:0: [sda] tag#9 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK
[    7.1] sd 0:0:0:0: [sda] tag#9 CDB: Read(10) 28 00 09 65 51 08 00 01 00 00
[    7.1] I/O error, dev sda, sector 157634824 op 0x0:(READ) flags 0x80700 phys_seg 32
[    7.1] Buffer I/O error on dev sda3, logical block 524272, async page read
"""
    event = only(request)
    assert (event.kind, event.device, event.blame) == ("scsi-timeout", "sda", "drive")
    assert len(event.lines) == 4
    link = block("Emask 0x4 (timeout)", extra="ata1: SError: { PHYRdyChg }\n")
    assert parse_log(link + request)[-1].blame == "link"
    assert parse_log(link + "ata1: EH complete\n" + request)[-1].blame == "drive"


def test_syslog_may_part_the_second_line_of_a_message_from_its_device() -> None:
    log = """\
host kernel: ata1.00: exception Emask 0x0 SAct 0x1 SErr 0x10000 action 0x6 frozen
host kernel: ata1: SError: { PHYRdyChg }
host kernel: ata1.00: failed command: READ FPDMA QUEUED
host kernel: ata1.00: cmd 60/08:00:00:10:00/00:00:00:00:00/40 tag 0 ncq dma 4096 in
host kernel:          res 40/00:00:00:00:00/00:00:00:00:00/00 Emask 0x4 (timeout)
host kernel: sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK
"""
    exception, failure = parse_log(log)
    assert exception.text.endswith("(timeout); SError: { PHYRdyChg }")
    assert (failure.kind, failure.blame) == ("scsi-timeout", "link")


def test_two_requests_are_two_events() -> None:
    line = "[    7.{}] I/O error, dev sda, sector {} op 0x0:(READ)\n"
    assert kinds(line.format(1, 8) + line.format(2, 16)) == ["io-error"] * 2
    failed = "[{}.0] sd 0:0:0:0: [sda] tag#9 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK\n"
    assert kinds(failed.format(1) + failed.format(2)) == ["scsi-error"] * 2
    late = "[  900.0] Buffer I/O error on dev sda3, logical block 524272\n"
    assert kinds(failed.format(1) + late) == ["scsi-error", "io-error"]


_WRAPPED = """\
host kernel: ata2.00: exception Emask 0x0 SAct
0x60 SErr 0x0 action 0x6 frozen
host kernel: ata2.00: failed command: READ FPDMA QUEUED
host kernel: ata2.00: cmd
60/08:28:00:10:00/00:00:00:00:00/40 tag 5 ncq dma 4096 in
         res
40/00:00:00:00:00/00:00:00:00:00/00 Emask
         0x4 (timeout)

Any idea what to do about it?
"""


@pytest.mark.parametrize(
    ("log", "when"),
    [
        ("[  12.345678] ata2.00: {}", 12.345678),
        ("[  12.345678][  T123] ata2.00: {}", 12.345678),
        ("[Mon Dec 25 10:00:00 2023] ata2.00: {}", "Mon Dec 25 10:00:00 2023"),
        ("kern  :warn  : [   12.345678] ata2.00: {}", 12.345678),
        ("<4>[   12.345678] ata2.00: {}", 12.345678),
        ("4,1234,12345678,-;ata2.00: {}", 12.345678),
        ("4,1234,12345678,-,caller=T17;ata2.00: {}", 12.345678),
        ("Dec 17 07:41:00 host kernel: ata2.00: {}", "Dec 17 07:41:00"),
        ("Dec 17 07:41:00 kernel: ata2.00: {}", "Dec 17 07:41:00"),
        ("Dec 17 07:41:00 host kernel: [   12.345678] ata2.00: {}", 12.345678),
        ("2025-05-05T09:18:59+0300 host kernel: ata2.00: {}", "2025-05-05T09:18:59+0300"),
        ("[   12.345678] host kernel: ata2.00: {}", 12.345678),
        ("   kernel: ata2.00: {}", None),
        ("l: ata2.00: {}", None),
        ("ata2.00: {}", None),
        ("    ata2.00: {}", None),
        ("> > [  12.345678] ata2.00: {}", 12.345678),
        (">>> Dec 17 07:41:00 host kernel: ata2.00: {}", "Dec 17 07:41:00"),
        ("[  12.345678] ata2.00: {}\r", 12.345678),
    ],
)
def test_a_log_may_come_in_any_form(log: str, when: float | str | None) -> None:
    event = only(log.format("NCQ disabled due to excessive errors"))
    assert (event.kind, event.device, event.time) == ("ncq-disabled", "ata2.00", when)
    assert event.text == "NCQ disabled due to excessive errors"


def test_a_mail_may_have_broken_the_lines() -> None:
    event = only(_WRAPPED)
    assert event.kind == "queued-command-timeout"
    assert event.text.startswith("exception Emask 0x0 SAct 0x60 SErr 0x0 action 0x6 frozen;")
    assert "idea" not in "".join(event.lines)


def test_kmsg_writes_a_message_of_two_lines_with_an_escape() -> None:
    log = (
        "3,100,5000000,-;ata2.00: exception Emask 0x0 SAct 0x60 SErr 0x0 action 0x6 frozen\n"
        " SUBSYSTEM=scsi\n"
        "3,101,5000001,-;ata2.00: failed command: READ FPDMA QUEUED\n"
        "3,102,5000002,-;ata2.00: cmd 60/08:28:00:10:00/00:00:00:00:00/40 tag 5 ncq dma 4096 in"
        "\\x0a         res 40/00:00:00:00:00/00:00:00:00:00/00 Emask 0x4 (timeout)\n"
    )
    event = only(log)
    assert event.kind == "queued-command-timeout"
    assert "SUBSYSTEM" not in event.text
    assert "\\x0a" not in "".join(event.lines)


def test_prose_and_patches_are_no_events() -> None:
    log = """\
Subject: WARNING: CPU: 11 PID: 7118 at drivers/ata/libata-core.c:4561
Since then the log says NCQ disabled due to excessive errors, and
the drive sees "failed command: READ FPDMA QUEUED" again.
+	{ "LEADLINE*",	NULL,	ATA_HORKAGE_NO_NCQ_TRIM },
"""
    assert parse_log(log) == ()


def test_ncq_disabled_is_remembered_whatever_follows() -> None:
    log = "ata2.00: NCQ disabled due to excessive errors\n" + HEALTHY_BOOT
    assert ncq_disabled(parse_log(log))
    assert not ncq_disabled(parse_log(HEALTHY_BOOT + TIMEOUT))


def test_a_mark_parts_what_was_before_from_what_comes_after() -> None:
    parser = EventParser()
    lines = TIMEOUT.splitlines()
    for line in lines[:4]:
        parser.feed(line)
    assert [event.kind for event in parser.events()] == ["queued-command-timeout"]
    mark = parser.mark()
    assert parser.events_since(mark) == ()
    for line in lines[4:]:
        parser.feed(line)
    after = parser.events_since(mark)
    assert [event.kind for event in after] == ["queued-command-timeout", "link-reset", "link-up"]
    assert after[0].commands == ("WRITE FPDMA QUEUED",)
    assert parser.events()[mark:] == after


def test_a_live_log_is_seen_line_by_line() -> None:
    parser = EventParser()
    parser.feed("[  1.0] ata1.00: NCQ disabled due to excessive errors\n")
    assert ncq_disabled(parser.events())


def test_which_drive_an_event_is_about() -> None:
    def about(device: str | None, *, port: str | None = "ata1") -> bool:
        event = KernelEvent("io-error", "error", device, None, "drive", "", (), ())
        return concerns(event, ata_port=port, name="sda", hctl="0:0:0:0")

    assert all(map(about, ("ata1", "ata1.00", "ata1.01", "sda", "0:0:0:0", None)))
    assert not any(map(about, ("ata11.00", "ata2", "sdaa", "0:0:0:1")))
    assert not about("ata1.00", port=None)


AHCI_GONE = "ahci 0000:00:1f.2: AHCI controller unavailable!"
FAULT = "mpt3sas_cm0: fault_state(0x2622)!"
OLD_FAULT = "mpt2sas_cm1: fault_state(0x2622)!"
RECOVERS = "sas: Enter sas_scsi_recover_host busy: 1 failed: 1"
NEXUS = "drivers/scsi/mvsas/mv_sas.c 1300:mvs_I_T_nexus_reset for device[0]:rc= 0"


@pytest.mark.parametrize(
    ("line", "driver", "pci_address", "may_be"),
    [
        (AHCI_GONE, "ahci", "0000:00:1f.2", True),
        (AHCI_GONE, "ahci", "0000:00:17.0", False),
        (AHCI_GONE, "ahci", "", True),
        (AHCI_GONE, "mpt3sas", "0000:01:00.0", False),
        (AHCI_GONE, "", "", True),
        (FAULT, "ahci", "0000:00:1f.2", False),
        (FAULT, "mpt3sas", "0000:01:00.0", True),
        (FAULT, "", "", True),
        (OLD_FAULT, "mpt3sas", "0000:01:00.0", True),
        (RECOVERS, "ahci", "0000:00:1f.2", False),
        (RECOVERS, "mvsas", "0000:02:00.0", True),
        (RECOVERS, "isci", "0000:02:00.0", True),
        (NEXUS, "mvsas", "0000:02:00.0", True),
        (NEXUS, "ahci", "0000:00:1f.2", False),
        ("WARNING: CPU: 1 PID: 9 at block/blk-mq.c:100 x", "ahci", "0000:00:1f.2", True),
        ("ata1.00: NCQ disabled due to excessive errors", "mpt3sas", "0000:01:00.0", True),
    ],
)
def test_an_event_of_another_controller_is_not_about_a_drive_of_this_one(
    line: str, driver: str, pci_address: str, may_be: bool
) -> None:
    assert may_be_of(only(f"[  1.0] {line}"), driver=driver, pci_address=pci_address) is may_be


def test_no_control_character_comes_through() -> None:
    log = "[  1.0] ata1.00: serial number mismatch '\x1b[31m' != '\x07\x9b'"
    assert only(log).text == "serial number mismatch '[31m' != ''"


_FRAGMENTS = st.sampled_from(
    [
        *TIMEOUT.splitlines(),
        *HEALTHY_BOOT.splitlines(),
        *_WRAPPED.splitlines(),
        "sd 0:0:0:0: [sda] tag#9 FAILED Result: hostbyte=DID_TIME_OUT",
        "ata2.00: NCQ disabled due to excessive errors",
        "",
    ]
)


@given(st.lists(st.text(max_size=80) | _FRAGMENTS, max_size=60).map("\n".join))
def test_any_text_is_parsed(text: str) -> None:
    for event in parse_log(text):
        assert event.text.isprintable()
        assert event.lines


_NASTY = [
    "SError: { " * 150,
    "ata1.00: exception Emask 0x0 " + "failed command: READ FPDMA QUEUED " * 40,
    "ata1.00: failed command: " + "A " * 900,
    "ata1.00: error: {" * 100,
    "> " * 900,
    "ata1.00: Model '" + "', rev '" * 200,
    "[" * 900,
    "\0" * 1800,
    "ata1.00: irq_stat 0x0, " * 80,
    "x" * 1_000_000,
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("line", _NASTY, ids=range(len(_NASTY)))
def test_the_time_is_linear_in_the_length_of_the_log(line: str) -> None:
    """Twice the log takes about twice the time; a quadratic parser would take four times."""

    def seconds(size: int) -> float:
        text = "\n".join([line] * max(1, size // len(line)))
        began = time.process_time()
        parse_log(text)
        return time.process_time() - began

    seconds(50_000)
    assert seconds(4_000_000) < 8 * max(seconds(1_000_000), 0.02)


@pytest.mark.skipif(not LOGS.is_dir(), reason="no logs of real machines here")
@pytest.mark.parametrize(
    ("log", "errors", "disabled"),
    [
        ("2019-07", {("queued-trim-failed", "ata14.00", "drive"): 1}, False),
        ("2023-02", {("queued-trim-failed", "ata1.00", "drive"): 1}, False),
        (
            "2020-09",
            {
                ("queued-command-timeout", "ata2.00", "drive"): 4,
                ("ncq-disabled", "ata2.00", "drive"): 1,
                ("medium-error", "nvme0n1", "drive"): 2,
                ("medium-error", "sdc", "drive"): 1,
            },
            True,
        ),
        (
            "2023-06",
            {("interface-error", None, "link"): 1, ("scsi-error", None, "link"): 1},
            False,
        ),
        (
            "2024-01",
            {("link-registers-unreadable", f"ata7.0{n}", "link"): 1 for n in range(5)}
            | {("queued-command-timeout", "ata7.00", "link"): 1},
            False,
        ),
        (
            "2025-05",
            {
                ("phy-changed", "ata5.00", "link"): 3,
                ("phy-changed", "ata6.00", "link"): 3,
                ("link-reset", "ata5", "link"): 3,
                ("link-reset", "ata6", "link"): 3,
                ("scsi-timeout", "sdb", "link"): 2,
                ("flush-retried", "ata6.00", "link"): 2,
                ("ncq-disabled", "ata5.00", "link"): 1,
                ("ncq-disabled", "ata6.00", "link"): 1,
            },
            True,
        ),
        (
            "2025-11",
            {
                ("queued-command-timeout", "ata2.00", "drive"): 1,
                ("command-timeout", "ata2.00", "drive"): 1,
                ("link-reset", "ata2", "drive"): 2,
                ("ncq-disabled", "ata2.00", "drive"): 1,
            },
            True,
        ),
    ],
)
def test_a_real_log(
    log: str, errors: dict[tuple[str, str | None, str], int], disabled: bool
) -> None:
    (path,) = LOGS.glob(f"linux-ide__{log}_*")
    events = parse_log(path.read_text(encoding="utf-8", errors="replace"))
    counts: dict[tuple[str, str | None, str], int] = {}
    for event in events:
        if event.severity != "notice":
            key = (event.kind, event.device, event.blame)
            counts[key] = counts.get(key, 0) + 1
    assert counts == errors
    assert ncq_disabled(events) == disabled
