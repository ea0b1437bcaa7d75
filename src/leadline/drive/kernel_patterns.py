"""What the Linux kernel says when a drive, its link, its controller or the host misbehaves.

One table: every kind of event, its severity, whom it blames, the words it is known by, and what
it means.  A message's rows are tried from the top, and the first that matches decides.  Three
scopes, because libata and the SCSI layer report one failure in many lines:

- "message": the words stand at the start of one message, behind the device's name;
- "exception": they are sought in all lines of one libata exception block together;
- "failure": they are sought in all lines that report one failed SCSI or block request.

Severities: an "error" means that a command failed or error handling ran; a "warning" that
queueing or speed was taken away and nothing failed; a "notice" is routine.
"""

import re
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "notice"]
Blame = Literal["drive", "link", "controller", "host"]
Scope = Literal["message", "exception", "failure"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One row of the table.

    `inherits` marks what the kernel does in answer to trouble: it is blamed on what the trouble
    before it on the same port is blamed on, and on `blame` when there was none.
    """

    kind: str
    severity: Severity
    blame: Blame
    scope: Scope
    words: re.Pattern[str]
    meaning: str
    inherits: bool = False


def _row(
    kind: str, severity: Severity, blame: Blame, words: str, meaning: str, *, inherits: bool = False
) -> Pattern:
    return Pattern(kind, severity, blame, "message", re.compile(words), meaning, inherits)


def _exception(
    kind: str, blame: Blame, words: str, meaning: str, *, inherits: bool = False
) -> Pattern:
    found = re.compile(words, re.DOTALL)
    return Pattern(kind, "error", blame, "exception", found, meaning, inherits)


def _failure(
    kind: str, blame: Blame, words: str, meaning: str, *, inherits: bool = False
) -> Pattern:
    return Pattern(kind, "error", blame, "failure", re.compile(words), meaning, inherits)


# One libata exception block.  An error mask is a set of bits (AC_ERR_* in include/linux/libata.h):
# 0x1 device, 0x2 protocol (HSM), 0x4 timeout, 0x8 medium, 0x10 ATA bus, 0x20 host bus, 0x40 system.
EXCEPTIONS = (
    _exception(
        "phy-changed",
        "link",
        r"SError: \{[^}]{0,200}\b(?:PHYRdyChg|DevExch)\b|PHY RDY changed|connection status changed",
        "the link dropped or came back: cable, power, or link power management",
    ),
    _exception(
        "interface-error",
        "link",
        r"Emask 0x[0-9a-f]{0,8}[13579bdf][0-9a-f]\b|\(ATA bus error\)|interface fatal error"
        r"|SError: \{[^}]{0,200}\b(?:BadCRC|10B8B|UnrecovData|Dispar|Handshk|LinkSeq|TrStaTrns)\b"
        r"|error: \{[^}]{0,200}\bICRC\b",
        "bits were damaged on the way: cable or connector",
    ),
    _exception(
        "medium-error",
        "drive",
        r"error: \{[^}]{0,200}\bUNC\b|\(media error\)",
        "the drive cannot read a sector",
    ),
    _exception(
        "queued-trim-failed",
        "drive",
        r"failed command: SEND FPDMA",
        "a queued TRIM failed or never ended; many SATA SSDs cannot do it",
    ),
    _exception(
        "queued-command-timeout",
        "drive",
        r"\A(?=.*FPDMA QUEUED)(?=.*\(timeout\))",
        "queued commands were never completed",
        inherits=True,
    ),
    _exception(
        "command-timeout",
        "drive",
        r"\(timeout\)",
        "a command that is not queued was never completed",
        inherits=True,
    ),
    _exception(
        "controller-error",
        "controller",
        r"\((?:host bus|internal) error\)|Emask 0x[0-9a-f]{0,8}[2367abef][0-9a-f]\b",
        "the controller failed while it moved the data",
    ),
    _exception(
        "protocol-error", "drive", r"\(HSM violation\)", "the drive broke the ATA protocol's order"
    ),
    _exception(
        "device-error",
        "drive",
        r"\((?:device|NCQ) error\)|error: \{",
        "the drive refused or failed a command",
    ),
    _exception("exception", "drive", r"", "error handling ran for a reason the log does not give"),
)

# One failed request, as the SCSI disk driver and the block layer report it.
FAILURES = (
    _failure(
        "medium-error",
        "drive",
        r"Sense Key : Medium Error|critical medium error",
        "the drive cannot read or write a sector",
    ),
    _failure("hardware-error", "drive", r"Sense Key : Hardware Error", "the drive has failed"),
    _failure(
        "device-gone",
        "link",
        r"DID_NO_CONNECT|DID_BAD_TARGET|DID_TRANSPORT_FAILFAST",
        "the request found no drive at its address",
        inherits=True,
    ),
    _failure(
        "scsi-timeout",
        "drive",
        r"DID_TIME_OUT|timeout error, dev",
        "the request was not answered in time",
        inherits=True,
    ),
    _failure(
        "transport-error",
        "link",
        r"DID_TRANSPORT_\w+|DID_PARITY|transport error, dev",
        "the request was lost on the way",
    ),
    _failure("scsi-error", "drive", r"Result:", "the request failed", inherits=True),
    _failure("io-error", "drive", r"", "a program's read or write failed", inherits=True),
)

MESSAGES = (
    # What error handling does
    _row(
        "ncq-disabled",
        "error",
        "drive",
        r"NCQ disabled due to",
        "the kernel gave up queueing on this drive; sysfs may still read 32",
        inherits=True,
    ),
    _row(
        "log-10h-unreadable",
        "error",
        "drive",
        r"failed to read log page 10h|log page 10h reported inactive tag",
        "the drive does not say which queued command failed, so all of them fail",
    ),
    _row(
        "link-speed-limited",
        "error",
        "link",
        r"limiting SATA link speed to",
        "the kernel slowed the link after errors",
        inherits=True,
    ),
    _row(
        "transfer-mode-limited",
        "error",
        "link",
        r"limiting speed to",
        "the kernel slowed the transfer mode after errors",
        inherits=True,
    ),
    _row(
        "link-reset",
        "error",
        "link",
        r"hard resetting (?:link|port)|drivers/scsi/\S+ \d+:\s*\w*nexus_reset",
        "the kernel reset the link to get the drive back",
        inherits=True,
    ),
    _row(
        "soft-reset",
        "error",
        "link",
        r"soft resetting (?:link|port)",
        "the kernel reset the drive to get it back",
        inherits=True,
    ),
    _row(
        "reset-failed",
        "error",
        "drive",
        r"(?:COMRESET|SRST|softreset|hardreset|reset|prereset) failed",
        "the drive did not answer a reset",
        inherits=True,
    ),
    _row(
        "flush-retried",
        "error",
        "drive",
        r"retrying FLUSH",
        "a cache flush failed and was sent again",
        inherits=True,
    ),
    _row(
        "link-registers-unreadable",
        "error",
        "link",
        r"failed to (?:read|write) SCR",
        "the link's state could not be read: a port multiplier or the link is gone",
    ),
    _row(
        "illegal-qc-active",
        "error",
        "controller",
        r"illegal qc_active transition",
        "the controller reports commands that nobody gave it",
    ),
    _row("lost-interrupt", "error", "controller", r"lost interrupt", "an interrupt never came"),
    _row(
        "internal-command-timeout",
        "error",
        "drive",
        r"qc timeout\b",
        "a command of the kernel's own (IDENTIFY, a log) was not answered",
        inherits=True,
    ),
    _row(
        "identity-changed",
        "error",
        "drive",
        r"(?:serial number|model number|n_sectors|class) mismatch",
        "after a reset the drive says that it is another one",
    ),
    _row(
        "setup-failed",
        "error",
        "drive",
        r"failed to (?:IDENTIFY|set xfermode|read native max address|recover)|revalidation failed",
        "the drive could not be set up",
        inherits=True,
    ),
    _row(
        "device-disabled",
        "error",
        "drive",
        r"disabled$|disable device$|Device offlined|rejecting I/O to (?:offline|dead) device",
        "the kernel gave the drive up",
        inherits=True,
    ),
    # SCSI and SAS error handling
    _row(
        "flush-failed",
        "error",
        "link",
        r"Synchroniz(?:e|ing) .*\bfailed\b|Start/Stop Unit failed",
        "the drive was gone before its cache was flushed",
        inherits=True,
    ),
    _row(
        "scsi-abort",
        "error",
        "drive",
        r"attempting task abort|[Aa]bort(?:ing command)?\b|timing out command",
        "the kernel called a command back that was not answered in time",
    ),
    _row(
        "scsi-reset",
        "error",
        "drive",
        r"attempting (?:device|target|bus|host) reset|(?:device|target|bus|host) reset\b",
        "the kernel reset a drive that did not answer",
    ),
    _row(
        "sas-error-handling",
        "error",
        "drive",
        r"sas: Enter sas_scsi_recover_host",
        "libsas collects commands that were not answered",
    ),
    _row(
        "sas-link-error",
        "error",
        "link",
        r"sas: sas_ata_task_done: SAS error|\S+ \S+ Phy\d+ : No sig fis",
        "the SAS link refused or lost a command",
    ),
    _row(
        "controller-fault",
        "error",
        "controller",
        r"mpt[23]sas_cm\d+: (?:fault_state|.*host is non-operational|sending diag reset)"
        r"|ahci \S+ AHCI controller unavailable|ahci \S+ controller reset failed",
        "the controller stopped",
    ),
    _row(
        "kernel-warning",
        "error",
        "host",
        r"WARNING: CPU: \d+ PID: \d+ at (?:drivers/(?:ata|scsi)|block)/",
        "the kernel met a state that its own code rules out",
    ),
    # Queueing or speed taken away, and nothing failed
    _row(
        "ncq-forced-off",
        "warning",
        "host",
        r"FORCE: .*\bnoncq\b",
        "the kernel's command line turns NCQ off (libata.force)",
    ),
    _row(
        "setting-forced",
        "warning",
        "host",
        r"FORCE: ",
        "the kernel's command line changes how the drive is driven (libata.force)",
    ),
    _row(
        "ncq-not-used",
        "warning",
        "host",
        r"\d+ sectors.*\bNCQ \(not used\)",
        "the drive offers NCQ and the kernel does not use it: a quirk or libata.force",
    ),
    _row(
        "controller-cannot-queue",
        "warning",
        "controller",
        r"\d+ sectors.*\bNCQ \(depth 0/\d+\)",
        "the drive offers NCQ and its controller cannot do it",
    ),
    _row(
        "controller-log-info",
        "warning",
        "controller",
        r"mpt[23]sas_cm\d+: log_info\(",
        "the controller's firmware reports a code of its own",
    ),
    # Routine
    _row("link-up", "notice", "link", r"SATA link up (?P<gbps>\d+\.\d+) Gbps", "the link is up"),
    _row("port-empty", "notice", "link", r"SATA link down", "nothing is attached to the port"),
    _row("link-slow", "notice", "drive", r"link is slow to respond", "the drive takes its time"),
    _row(
        "quirk",
        "notice",
        "drive",
        r"disabling queued TRIM support|applying bridge limits|LPM support broken|HPA detected"
        r"|HPA support seems broken|supports DRM functions"
        r"|Model '.{0,60}', rev '.{0,20}', applying quirk",
        "the kernel knows of a limit of this drive and minds it",
    ),
    _row(
        "controller-quirk",
        "notice",
        "controller",
        r"ahci \S+ controller can(?:'t)? do [\w ]{1,20}, (?:turning|forcing) ",
        "the kernel knows of a fault of this controller and drives it accordingly",
    ),
    _row(
        "log-unsupported",
        "notice",
        "drive",
        r"READ LOG DMA EXT failed|NCQ Send/Recv Log not supported|Read log \S+ page \S+ failed"
        r"|failed to (?:get|enable) ",
        "the drive lacks a log or a feature that the kernel asked for",
    ),
    _row(
        "device-reset",
        "notice",
        "drive",
        r"Power-on or device reset occurred",
        "the drive says that it was powered on or reset",
    ),
    _row("device-detached", "notice", "link", r"detaching \(SCSI", "the drive's node is removed"),
)

# Chosen over "port-empty" and "link-up" by what the log said of the port before.
LINK_DOWN = _row("link-down", "error", "link", r"SATA link down", "the drive has left the link")
LINK_SLOWER = _row(
    "link-slower", "error", "link", r"SATA link up", "it came back slower", inherits=True
)

PATTERNS = (*EXCEPTIONS, *FAILURES, *MESSAGES, LINK_DOWN, LINK_SLOWER)
