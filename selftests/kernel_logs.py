"""Kernel logs for tests."""

from leadline.drive.kernel_events import KernelEvent, parse_log

TIMEOUT = """\
[  100.000001] ata2.00: exception Emask 0x0 SAct 0x60 SErr 0x0 action 0x6 frozen
[  100.000002] ata2.00: failed command: READ FPDMA QUEUED
[  100.000003] ata2.00: cmd 60/08:28:00:10:00/00:00:00:00:00/40 tag 5 ncq dma 4096 in
                        res 40/00:00:00:00:00/00:00:00:00:00/00 Emask 0x4 (timeout)
[  100.000004] ata2.00: status: { DRDY }
[  100.000005] ata2.00: failed command: WRITE FPDMA QUEUED
[  100.000006] ata2.00: cmd 61/08:30:00:10:00/00:00:00:00:00/40 tag 6 ncq dma 4096 out
                        res 40/00:00:00:00:00/00:00:00:00:00/00 Emask 0x4 (timeout)
[  100.000007] ata2.00: status: { DRDY }
[  100.000008] ata2: hard resetting link
[  100.500000] ata2: SATA link up 6.0 Gbps (SStatus 133 SControl 300)
[  100.500001] ata2.00: configured for UDMA/133
[  100.500002] ata2.00: device reported invalid CHS sector 0
[  100.500003] ata2: EH complete
"""

HEALTHY_BOOT = """\
[    0.000000] Linux version 6.1.0 (build@host) #1 SMP
[    0.203799] Kernel command line: root=/dev/sda1 ro libata.allow_tpm=1 quiet
[    1.500759] libata version 3.00 loaded.
[    1.506617] ahci 0000:00:1f.2: AHCI 0001.0000 32 slots 6 ports 1.5 Gbps 0x3f impl SATA mode
[    1.506620] ahci 0000:00:1f.2: flags: 64bit ncq only
[    1.510598] scsi host0: ahci
[    1.511020] ata1: SATA max UDMA/133 abar m4096@0xfebd5000 port 0xfebd5100 irq 27
[    1.511023] ata2: DUMMY
[    1.984614] ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)
[    1.984615] ata3: SATA link down (SStatus 0 SControl 300)
[    1.985483] ata1.00: supports DRM functions and may not be fully accessible
[    1.985484] ata1.00: Model 'LEADLINE SPECIMEN', rev '1.0', applying quirks: noncqtrim
[    1.985500] ata1.00: disabling queued TRIM support
[    1.985506] ata1.00: ATA-9: LEADLINE SPECIMEN, 1.0, max UDMA/133
[    1.985507] ata1.00: 1000215216 sectors, multi 16: LBA48 NCQ (depth 32), AA
[    1.985508] ata1.00: applying bridge limits
[    1.986434] ata1.00: configured for UDMA/133
[    1.986599] scsi 0:0:0:0: Direct-Access     ATA      LEADLINE SPECIME 1.0  PQ: 0 ANSI: 5
[    7.694638] sd 0:0:0:0: [sda] 1000215216 512-byte logical blocks: (512 GB/477 GiB)
[    7.694648] sd 0:0:0:0: [sda] Write Protect is off
[    7.694658] sd 0:0:0:0: [sda] Write cache: enabled, read cache: enabled, doesn't support DPO
[    7.697492] sd 0:0:0:0: [sda] Attached SCSI disk
[    7.700000] sd 6:0:0:0: Power-on or device reset occurred
[    7.800000] usb 1-1: reset high-speed USB device number 2
[    7.900000] RAS: Correctable Errors collector initialized.
[    8.000000] I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2
[    8.100000] Buffer I/O error on dev fd0, logical block 0, async page read
"""


LINK_UP = "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)\n"
LINK_SLOWER = "ata1: SATA link up 3.0 Gbps (SStatus 123 SControl 300)\n"
LINK_DOWN = "ata1: SATA link down (SStatus 0 SControl 300)\n"


def only(log: str) -> KernelEvent:
    """The one event of a log that is no notice."""
    (event,) = [event for event in parse_log(log) if event.severity != "notice"]
    return event


def kinds(log: str) -> list[str]:
    return [event.kind for event in parse_log(log) if event.severity != "notice"]


def block(result: str, *, extra: str = "", command: str = "READ FPDMA QUEUED") -> str:
    """One exception block of ata1.00 with one failed command; `extra` lines after its head."""
    return (
        "ata1.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x0\n"
        f"{extra}ata1.00: failed command: {command}\n"
        "ata1.00: cmd 60/08:00:00:10:00/00:00:00:00:00/40 tag 0 ncq dma 4096 in\n"
        f"         res 41/40:00:00:00:00/00:00:00:00:00/00 {result}\n"
        "ata1.00: status: { DRDY ERR }\n"
    )
