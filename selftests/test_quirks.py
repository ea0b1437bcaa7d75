"""What the kernel reports that it does otherwise: read from its log, of this drive alone."""

from dataclasses import replace

import pytest

from leadline.drive.kernel_watch import KernelHistory, KernelLog
from leadline.drive.quirks import applied, forced, names_them
from selftests.drive_specimens import LINK, sata_drive, scsi_drive

UP = "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)"
SET_UP = (
    "ata1.00: ATA-9: LEADLINE SPECIMEN, 1.0, max UDMA/133",
    "ata1.00: 1000215216 sectors, multi 16: LBA48 NCQ (depth 32), AA",
)


def history(*lines: str) -> KernelHistory:
    log = KernelLog()
    for number, text in enumerate(lines):
        log.take(f"6,{number},{number * 1000000},-;{text}")
    return log.history()


def named(*lines: str) -> list[str]:
    return [quirk.name for quirk in applied(sata_drive(), history(*lines))]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (
            "ata1.00: Model 'LEADLINE SPECIMEN', rev '1.0', applying quirks: noncqtrim nolpm",
            ["noncqtrim", "nolpm"],
        ),
        ("ata1.00: Model 'X', rev '1', applying quirk: 1.5gbps", ["1.5gbps"]),
        ("ata1.00: applying bridge limits", ["bridge-limits"]),
        ("ata1.00: LPM support broken, forcing max_power", ["nolpm"]),
        ("ata1.00: disabling queued TRIM support", ["noncqtrim"]),
        ("ata1.00: HPA support seems broken, skipping HPA handling", ["brokenhpa"]),
        ("ata1.00: FORCE: modified (noncq)", ["noncq"]),
        ("ata1.00: FORCE: horkage modified (nolpm)", ["nolpm"]),
        ("ata1: FORCE: PHY spd limit set to 1.5Gbps", ["1.5Gbps"]),
        ("ata1: FORCE: link flag 0x4 forced -> 0x5", ["link flag 0x4 forced -> 0x5"]),
        ("ahci 0000:00:1f.2: controller can't do NCQ, turning off CAP_NCQ", ["noncq"]),
        ("ahci 0000:00:1f.2: controller can't do 64bit DMA, forcing 32bit", ["no64bitdma"]),
        ("ahci 0000:00:1f.2: controller can do FBS, turning on CAP_FBS", ["fbs"]),
        ("ata1.00: HPA detected: current 100, native 200", []),
        ("ata1.00: supports DRM functions and may not be fully accessible", []),
    ],
)
def test_each_report_by_the_kernels_own_name(line: str, names: list[str]) -> None:
    assert named(UP, line, *SET_UP) == names


def test_queueing_that_the_kernel_does_not_use_is_a_quirk_of_a_kernel_that_names_none() -> None:
    not_used = SET_UP[1].replace("NCQ (depth 32), AA", "NCQ (not used)")
    (quirk,) = applied(sata_drive(), history(UP, SET_UP[0], not_used))
    assert quirk.name == "noncq"
    assert str(quirk) == f"noncq ({not_used.removeprefix('ata1.00: ')})"


def test_a_quirk_that_is_reported_twice_is_one_in_the_words_that_came_first() -> None:
    by_name = "ata1.00: Model 'LEADLINE SPECIMEN', rev '1.0', applying quirks: nolpm"
    effect = "ata1.00: LPM support broken, forcing max_power"
    (quirk,) = applied(sata_drive(), history(UP, by_name, effect, *SET_UP, effect))
    assert quirk.said == by_name.removeprefix("ata1.00: ")


def test_a_link_that_came_up_again_after_a_reset_changes_nothing() -> None:
    assert named(UP, "ata1.00: applying bridge limits", *SET_UP, UP) == ["bridge-limits"]


def test_queued_trim_that_a_quirk_takes_away_is_seen_in_sysfs() -> None:
    """Kernels from 5.x on no longer say so in their log."""
    drive = sata_drive(link=replace(LINK, trim="forced_unqueued"))
    assert [quirk.name for quirk in applied(drive, history(UP, *SET_UP))] == ["noncqtrim"]
    unqueued = sata_drive(link=replace(LINK, trim="unqueued"))
    assert applied(unqueued, history(UP, *SET_UP)) == ()


@pytest.mark.parametrize(
    "line",
    [
        "ata1.01: applying bridge limits",
        "ata11.00: applying bridge limits",
        "ata2: FORCE: PHY spd limit set to 1.5Gbps",
        "ahci 0000:00:17.0: controller can't do NCQ, turning off CAP_NCQ",
    ],
)
def test_what_is_said_of_another_drive_port_or_controller_is_not_this_ones(line: str) -> None:
    assert named(line, UP, *SET_UP, line) == []


def test_a_drive_does_not_inherit_its_predecessors_quirks_and_does_what_is_forced() -> None:
    before = (UP, "ata1.00: applying bridge limits", *SET_UP)
    forced_on_port = "ata1: FORCE: PHY spd limit set to 3.0Gbps"
    assert named(forced_on_port, *before, UP, *SET_UP) == ["3.0Gbps"]
    assert named(forced_on_port, *before) == ["3.0Gbps", "bridge-limits"]


def test_where_libata_has_no_part_nothing_is_reported() -> None:
    assert applied(scsi_drive(), history(UP, "ata1.00: applying bridge limits", *SET_UP)) == ()


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("ro quiet", ()),
        ("libata.force=noncq", ("noncq",)),
        ("libata.force=3:noncq", ("noncq",)),
        ("libata.force=3.00:noncq", ("noncq",)),
        ("libata.force=3.0:noncq", ("noncq",)),
        ("libata.force=3.15:noncq", ("noncq",)),
        ("libata.force=3.01:noncq", ()),
        ("libata.force=1:noncq", ()),
        ("libata.force=13:noncq", ()),
        ("libata.force=3.x:noncq", ()),
        ("libata.force=1:noncq,3.0Gbps,3:nolpm,norst", ("nolpm", "norst")),
        ("libata.force=3:1.5Gbps", ("1.5Gbps",)),
        ("libata.force=noncq libata.force=3:nolpm", ("nolpm",)),
    ],
)
def test_what_the_command_line_forces_on_one_device(words: str, values: tuple[str, ...]) -> None:
    assert forced(f"root=/dev/vda {words}", "ata3.00") == values


@pytest.mark.parametrize(
    ("release", "does"),
    [("6.12.0", True), ("6.12-rc1", True), ("7.0.1", True), ("6.1.0-38-amd64", False), ("", False)],
)
def test_which_kernels_print_the_names_of_quirks(release: str, does: bool) -> None:
    assert names_them(release) is does
