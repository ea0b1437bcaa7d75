"""The table of kernel events: every row, whom it blames, and its page in the reference."""

import re
from itertools import chain
from pathlib import Path

import pytest

from leadline.drive.kernel_events import parse_log
from leadline.drive.kernel_patterns import PATTERNS
from selftests.kernel_logs import HEALTHY_BOOT, LINK_DOWN, LINK_SLOWER, LINK_UP, block, only

REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "kernel-events.md"
_ROW = re.compile(r"\| `[\w-]+` \| (?:error|warning|notice) \|")

CASES = [
    (block("Emask 0x4 (timeout)"), "queued-command-timeout", "drive"),
    (block("Emask 0x4 (timeout)", command="READ DMA"), "command-timeout", "drive"),
    (
        block("Emask 0x4 (timeout)", command="SEND FPDMA QUEUED"),
        "queued-trim-failed",
        "drive",
    ),
    (block("Emask 0x409 (media error)"), "medium-error", "drive"),
    (
        block("Emask 0x401 (device error)") + "ata1.00: error: { UNC }\n",
        "medium-error",
        "drive",
    ),
    (
        block("Emask 0x401 (device error)") + "ata1.00: error: { ABRT }\n",
        "device-error",
        "drive",
    ),
    (block("Emask 0x10 (ATA bus error)"), "interface-error", "link"),
    (
        block("Emask 0x12", extra="ata1: SError: { UnrecovData 10B8B BadCRC }\n"),
        "interface-error",
        "link",
    ),
    (
        block("Emask 0x1 (device error)") + "ata1.00: error: { ICRC ABRT }\n",
        "interface-error",
        "link",
    ),
    (
        block("Emask 0x8", extra="ata1.00: irq_stat 0x08000000, interface fatal error\n"),
        "interface-error",
        "link",
    ),
    (
        block("Emask 0x4 (timeout)", extra="ata1: SError: { PHYRdyChg CommWake }\n"),
        "phy-changed",
        "link",
    ),
    (
        block("Emask 0x14", extra="ata1: irq_stat 0x00400040, connection status changed\n"),
        "phy-changed",
        "link",
    ),
    (block("Emask 0x2 (HSM violation)"), "protocol-error", "drive"),
    (block("Emask 0x20 (host bus error)"), "controller-error", "controller"),
    (block("Emask 0x40 (internal error)"), "controller-error", "controller"),
    ("ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x0\n", "exception", "drive"),
    ("ata1.00: NCQ disabled due to excessive errors", "ncq-disabled", "drive"),
    ("ata1: failed to read log page 10h (errno=-5)", "log-10h-unreadable", "drive"),
    ("ata1: log page 10h reported inactive tag 3", "log-10h-unreadable", "drive"),
    ("ata1: limiting SATA link speed to 1.5 Gbps", "link-speed-limited", "link"),
    ("ata1.00: limiting speed to UDMA/100:PIO4", "transfer-mode-limited", "link"),
    ("ata1: hard resetting link", "link-reset", "link"),
    ("ata1: soft resetting link", "soft-reset", "link"),
    ("ata1: COMRESET failed (errno=-16)", "reset-failed", "drive"),
    ("ata1: softreset failed (1st FIS failed)", "reset-failed", "drive"),
    ("ata1: SRST failed (errno=-16)", "reset-failed", "drive"),
    ("ata1: reset failed, giving up", "reset-failed", "drive"),
    ("ata1.00: retrying FLUSH 0xea Emask 0x4", "flush-retried", "drive"),
    ("ata7.03: failed to read SCR 1 (Emask=0x40)", "link-registers-unreadable", "link"),
    (
        "ata2: illegal qc_active transition (100000000->100000001)",
        "illegal-qc-active",
        "controller",
    ),
    ("ata1: lost interrupt (Status 0x50)", "lost-interrupt", "controller"),
    ("ata1.00: qc timeout (cmd 0xec)", "internal-command-timeout", "drive"),
    ("ata1.00: qc timeout after 5000 msecs (cmd 0xec)", "internal-command-timeout", "drive"),
    ("ata1.00: serial number mismatch 'A' != 'B'", "identity-changed", "drive"),
    ("ata1.00: failed to IDENTIFY (I/O error, err_mask=0x4)", "setup-failed", "drive"),
    ("ata1.00: revalidation failed (errno=-5)", "setup-failed", "drive"),
    ("ata1.00: failed to set xfermode (err_mask=0x40)", "setup-failed", "drive"),
    ("ata1.00: disabled", "device-disabled", "drive"),
    ("ata1.00: disable device", "device-disabled", "drive"),
    ("sd 0:0:0:0: rejecting I/O to offline device", "device-disabled", "drive"),
    (
        "sd 0:0:0:0: Device offlined - not ready after error recovery",
        "device-disabled",
        "drive",
    ),
    (
        "sd 0:0:0:0: [sda] Synchronize Cache(10) failed: Result: hostbyte=DID_NO_CONNECT",
        "flush-failed",
        "link",
    ),
    ("sd 6:0:0:0: [sda] tag#12 abort", "scsi-abort", "drive"),
    ("sd 0:0:3:0: attempting task abort!scmd(0x1)", "scsi-abort", "drive"),
    ("sd 0:0:3:0: [sdd] tag#1 timing out command, waited 180s", "scsi-abort", "drive"),
    ("sd 6:0:0:0: device reset", "scsi-reset", "drive"),
    ("sas: Enter sas_scsi_recover_host busy: 4 failed: 4", "sas-error-handling", "drive"),
    ("sas: sas_ata_task_done: SAS error 0x8a", "sas-link-error", "link"),
    ("mvsas 0000:01:00.0: Phy1 : No sig fis", "sas-link-error", "link"),
    ("mpt3sas_cm0: fault_state(0x5854)!", "controller-fault", "controller"),
    ("ahci 0000:00:11.0: AHCI controller unavailable!", "controller-fault", "controller"),
    (
        "WARNING: CPU: 1 PID: 7 at drivers/ata/libata-core.c:4561 __ata_qc_complete+0x1/0x2",
        "kernel-warning",
        "host",
    ),
    ("ata1.00: FORCE: modified (noncq)", "ncq-forced-off", "host"),
    ("ata1.00: FORCE: horkage modified (noncq)", "ncq-forced-off", "host"),
    ("ata1: FORCE: PHY spd limit set to 1.5Gbps", "setting-forced", "host"),
    ("ata1.00: 100 sectors, multi 16: LBA48 NCQ (not used)", "ncq-not-used", "host"),
    (
        "ata1.00: 100 sectors, multi 16: LBA48 NCQ (depth 0/32)",
        "controller-cannot-queue",
        "controller",
    ),
    ("mpt3sas_cm0: log_info(0x31110e05): originator(PL)", "controller-log-info", "controller"),
    (
        "sd 8:0:0:0: [sdc] tag#255 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE\n"
        "sd 8:0:0:0: [sdc] tag#255 Sense Key : Medium Error [current]",
        "medium-error",
        "drive",
    ),
    ("critical medium error, dev sda, sector 10000 op 0x0:(READ)", "medium-error", "drive"),
    (
        "sd 8:0:0:0: [sdc] tag#2 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK\n"
        "sd 8:0:0:0: [sdc] tag#2 Sense Key : Hardware Error [current]",
        "hardware-error",
        "drive",
    ),
    (
        "sd 8:0:0:0: [sdc] tag#2 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK",
        "scsi-timeout",
        "drive",
    ),
    (
        "sd 8:0:0:0: [sdc] FAILED Result: hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK",
        "device-gone",
        "link",
    ),
    (
        "sd 8:0:0:0: [sdc] FAILED Result: hostbyte=DID_TRANSPORT_DISRUPTED",
        "transport-error",
        "link",
    ),
    (
        "sd 8:0:0:0: [sdc] tag#2 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK",
        "scsi-error",
        "drive",
    ),
    ("blk_update_request: I/O error, dev sda, sector 7 op 0x1:(WRITE)", "io-error", "drive"),
    ("print_req_error: I/O error, dev sda, sector 7", "io-error", "drive"),
    ("I/O error, dev sda, sector 7 op 0x0:(READ) flags 0x0", "io-error", "drive"),
    ("Buffer I/O error on dev sda3, logical block 5, async page read", "io-error", "drive"),
]

_NOTICES = [
    "ata1: link is slow to respond, please be patient (ready=0)",
    "ata2.00: NCQ Send/Recv Log not supported",
    "ahci 0000:01:00.0: controller can't do NCQ, turning off CAP_NCQ",
    "ata3.00: detaching (SCSI 2:0:0:0)",
]


@pytest.mark.parametrize(("log", "kind", "blame"), CASES)
def test_a_kind_and_its_blame(log: str, kind: str, blame: str) -> None:
    event = only(log)
    assert (event.kind, event.blame) == (kind, blame)


def test_every_row_of_the_table_is_reached() -> None:
    logs = [log for log, _, _ in CASES]
    logs += [HEALTHY_BOOT, LINK_UP + LINK_SLOWER, LINK_UP + LINK_DOWN, *_NOTICES]
    seen = {event.kind for event in chain.from_iterable(map(parse_log, logs))}
    assert seen == {row.kind for row in PATTERNS}


def test_the_reference_lists_the_table() -> None:
    lines = REFERENCE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if _ROW.match(line)]
    assert rows == [
        f"| `{row.kind}` | {row.severity} | {row.blame}{' *' if row.inherits else ''} "
        f"| {row.meaning} |"
        for row in PATTERNS
    ]
