"""The NCQ ladder: each rung broken by itself, and what it allows of writes to queue_depth."""

from dataclasses import replace
from typing import Any

import pytest

from leadline.drive.bind import Controller, Drive, Link
from leadline.drive.kernel_watch import KernelHistory, KernelLog
from leadline.drive.ladder import Facts, Ladder, Rung, hides_ncq, judge
from leadline.drive.overlap import Overlap
from leadline.drive.queue_depth import refuse, refuse_switched_off
from leadline.errors import DriveFault, Inconclusive, Misuse
from selftests.drive_specimens import sata_drive, scsi_drive

BOOT = (
    "Linux version 6.1.0",
    "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
    "ata1.00: ATA-9: LEADLINE SPECIMEN, 1.0, max UDMA/133",
    "ata1.00: 1000215216 sectors, multi 16: LBA48 NCQ (depth 32), AA",
)
DISABLED = "ata1.00: NCQ disabled due to excessive errors"
QUEUED = Overlap("libata", 256, {"READ FPDMA QUEUED": 256}, 256, 8, 6.5)
UNQUEUED = Overlap("libata", 256, {"READ DMA EXT": 256}, 0, 0, 0.0)
ALONE = Overlap("libata", 256, {"READ FPDMA QUEUED": 256}, 256, 1, 1.0)
AHCI_CAPS = 0xC0141F05  # bit 30 set


def record(number: int, text: str, seconds: float | None = None) -> str:
    return f"6,{number},{int((number if seconds is None else seconds) * 1e6)},-;{text}"


def history(*lines: str, first: int = 0) -> KernelHistory:
    log = KernelLog()
    for number, text in enumerate(lines, first):
        log.take(record(number, text))
    return log.history()


def facts(drive: Drive | None = None) -> Facts:
    return Facts(
        drive=drive or sata_drive(),
        queue_depth=32,
        can_queue=32,
        ahci_caps=AHCI_CAPS,
        queue_type="simple",
        inquiry=bytes(7) + b"\x02",
        kernel_command_line="root=/dev/vda ro",
        history=history(*BOOT),
        overlap=QUEUED,
    )


def ladder(given: Facts) -> Ladder:
    return Ladder(given.drive.identity.serial, "boot", judge(given), given.overlap)


def first_broken(given: Facts) -> Rung:
    broken = ladder(given).first_broken
    assert broken is not None
    return broken


def test_a_healthy_drive_climbs_every_rung() -> None:
    climbed = ladder(facts())
    assert [rung.name for rung in climbed.rungs] == [
        "advertised",
        "controller",
        "kernel",
        "setting",
        "error handling",
        "overlap",
    ]
    assert climbed.first_broken is None
    assert climbed.cause == ""
    assert climbed.unknown == ()


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"ahci_caps": 0}, "the controller cannot queue: ahci at "),
        ({"kernel_command_line": "libata.force=noncq"}, "the kernel takes queueing away: libata"),
        ({"queue_depth": 1}, "a setting allows no queue: device queue depth is 1"),
        ({"overlap": ALONE}, "requests do not overlap at the drive: "),
    ],
)
def test_the_first_broken_rung_is_the_cause_in_a_line(given: dict[str, Any], cause: str) -> None:
    if "kernel_command_line" in given:
        given = given | {"history": history(*BOOT[:3]), "queue_depth": 1}
    said = ladder(replace(facts(), **given)).cause
    assert said.startswith(cause)
    assert "\n" not in said


def test_a_drive_that_does_not_advertise_ncq() -> None:
    broken = first_broken(replace(facts(sata_drive(words={76: 0x000E})), overlap=UNQUEUED))
    assert broken.name == "advertised"
    assert "word 76 bit 8 is 0" in broken.found


def test_a_drive_that_advertises_a_queue_of_one() -> None:
    broken = first_broken(facts(sata_drive(words={75: 0})))
    assert (broken.name, broken.holds) == ("advertised", False)
    assert "depth of 1" in broken.found


def test_an_ahci_controller_without_sncq() -> None:
    broken = first_broken(replace(facts(), ahci_caps=AHCI_CAPS & ~(1 << 30)))
    assert broken.name == "controller"
    assert "ahci at 0000:00:1f.2 (8086:2922): AHCI CAP.SNCQ is 0" in broken.found


def on_ide(words: dict[int, int]) -> Facts:
    ide = Controller("0000:00:01.1", "8086:7010", "ata_piix", "host0")
    drive = sata_drive(words=words, controller=ide, link=Link("ata1", "ata1.00", "", 0, ""))
    return replace(facts(drive), ahci_caps=None, can_queue=1, queue_depth=1, overlap=UNQUEUED)


def test_an_ide_controller_is_the_cause_whether_the_drive_shows_its_word_76_there_or_not() -> None:
    for words in ({}, {75: 0, 76: 0, 77: 0, 78: 0}):
        broken = first_broken(on_ide(words))
        assert hides_ncq(on_ide(words).drive) == bool(words)
        assert broken.name == "controller"
        assert "ata_piix takes 1 at once" in broken.found


def test_a_controller_that_the_kernel_found_unable() -> None:
    said = BOOT[3].replace("NCQ (depth 32), AA", "NCQ (depth 0/32)")
    broken = first_broken(replace(facts(), history=history(*BOOT[:3], said), queue_depth=1))
    assert broken.name == "controller"
    assert "NCQ (depth 0/32)" in broken.found


NOT_USED = BOOT[3].replace("NCQ (depth 32), AA", "NCQ (not used)")


def test_ncq_taken_away_on_the_kernels_command_line() -> None:
    given = replace(
        facts(),
        history=history(*BOOT[:2], "ata1.00: FORCE: modified (noncq)", BOOT[2], NOT_USED),
        kernel_command_line="root=/dev/vda libata.force=noncq ro",
        queue_depth=1,
        overlap=UNQUEUED,
    )
    broken = first_broken(given)
    assert broken.name == "kernel"
    assert "libata.force=noncq on the kernel's command line" in broken.found


def test_ncq_taken_away_by_a_module_option() -> None:
    forced = history(BOOT[0], "ata1.00: FORCE: horkage modified (noncq)", BOOT[2], NOT_USED)
    broken = first_broken(replace(facts(), history=forced, queue_depth=1))
    assert broken.name == "kernel"
    assert "force option of the libata module" in broken.found


def test_ncq_taken_away_by_a_quirk() -> None:
    broken = first_broken(replace(facts(), history=history(*BOOT[:3], NOT_USED), queue_depth=1))
    assert broken.name == "kernel"
    assert "a quirk of the kernel" in broken.found


def test_ncq_off_on_the_command_line_is_seen_when_the_boot_log_is_gone() -> None:
    given = replace(
        facts(),
        history=history("something", first=9000),
        kernel_command_line="libata.force=1:noncq",
        queue_depth=1,
    )
    assert first_broken(given).name == "kernel"


@pytest.mark.parametrize(
    "words",
    [
        "libata.force=2:noncq",
        "libata.force=1.01:noncq",
        "libata.force=noncq,1:ncq",
        "libata.force=noncq libata.force=3.0Gbps",  # the kernel takes the last
    ],
)
def test_what_is_forced_on_another_drive_takes_nothing_from_this_one(words: str) -> None:
    given = replace(facts(), kernel_command_line=words, queue_depth=1)
    gone = replace(given, history=history("something", first=9000))
    assert first_broken(gone).name == "setting"
    by_quirk = first_broken(replace(given, history=history(*BOOT[:3], NOT_USED)))
    assert by_quirk.name == "kernel"
    assert "a quirk of the kernel" in by_quirk.found


def test_a_device_queue_depth_left_at_one() -> None:
    broken = first_broken(replace(facts(), queue_depth=1, overlap=UNQUEUED))
    assert (broken.name, broken.found) == ("setting", "device queue depth is 1")


def test_ncq_switched_off_by_error_handling_though_sysfs_reads_32() -> None:
    given = replace(facts(), history=history(*BOOT, DISABLED), overlap=UNQUEUED)
    broken = first_broken(given)
    assert broken.name == "error handling"
    assert "NCQ disabled due to excessive errors" in broken.found
    assert "4.000 s after boot" in broken.found
    assert "still reads 32" in broken.found


def test_that_event_counts_though_a_write_to_the_queue_depth_has_mended_it() -> None:
    assert first_broken(replace(facts(), history=history(*BOOT, DISABLED))).name == "error handling"


@pytest.mark.parametrize("device", ["ata2.00", "ata1.01"])
def test_another_drives_event_is_not_this_ones(device: str) -> None:
    """On its port neither: several hang on one behind a port multiplier."""
    unable = BOOT[3].replace("NCQ (depth 32), AA", "NCQ (depth 0/32)")
    said = [line.replace("ata1.00", device) for line in (*BOOT[2:3], unable, DISABLED)]
    assert ladder(replace(facts(), history=history(*BOOT, *said))).first_broken is None


def test_a_drive_attached_since_then_does_not_inherit_the_event() -> None:
    replugged = history(*BOOT, DISABLED, *BOOT[1:])
    assert ladder(replace(facts(), history=replugged)).first_broken is None
    again = history(*BOOT, DISABLED, *BOOT[1:], DISABLED)
    assert first_broken(replace(facts(), history=again)).name == "error handling"


def test_requests_that_never_overlap() -> None:
    broken = first_broken(replace(facts(), overlap=ALONE))
    assert broken.name == "overlap"
    assert "at most 1 outstanding" in broken.found


def test_nothing_is_taken_for_true_when_the_kernel_log_has_wrapped() -> None:
    wrapped = ladder(replace(facts(), history=history("something", first=9000)))
    assert wrapped.first_broken is None
    # The kernel rung still holds: a depth above 1 is given only to what is queued to.
    assert [rung.name for rung in wrapped.unknown] == ["error handling"]
    assert "wrapped" in wrapped.unknown[0].found
    shallow = ladder(replace(facts(), history=history("something", first=9000), queue_depth=1))
    assert [rung.name for rung in shallow.unknown] == ["kernel", "error handling"]


def test_a_trace_without_a_command_says_nothing_of_the_drive() -> None:
    """Its reads were made, or the probe would have said so: the trace has lost them."""
    empty = ladder(replace(facts(), overlap=Overlap("libata", 0, {}, 0, 0, 0.0)))
    assert empty.first_broken is None
    assert [rung.name for rung in empty.unknown] == ["overlap"]


def test_an_overlap_that_cannot_be_seen_is_unknown() -> None:
    blind = ladder(replace(facts(), overlap=None, no_overlap="no tracing here"))
    assert blind.first_broken is None
    assert [(rung.name, rung.found) for rung in blind.unknown] == [("overlap", "no tracing here")]


def test_behind_a_sas_hba_it_is_said_what_cannot_be_known() -> None:
    hba = Controller("0000:03:00.0", "1000:0097", "mpt3sas", "host0")
    seen = Overlap("scsi", 256, {"READ_10": 256}, 256, 8, 7.0)
    drive = sata_drive(controller=hba, link=None)
    given = replace(facts(drive), ahci_caps=None, can_queue=9900, overlap=seen)
    climbed = ladder(given)
    assert climbed.first_broken is None
    assert [rung.name for rung in climbed.unknown] == [
        "controller",
        "kernel",
        "error handling",
        "overlap",
    ]
    assert all("mpt3sas" in rung.found for rung in climbed.unknown)
    assert first_broken(replace(given, queue_depth=1)).name == "setting"
    assert first_broken(replace(given, overlap=replace(seen, most=1))).name == "overlap"


def test_a_scsi_drive_has_rungs_of_its_own() -> None:
    seen = Overlap("scsi", 256, {"READ_10": 256}, 256, 8, 7.0)
    given = replace(facts(scsi_drive()), queue_depth=64, can_queue=256, overlap=seen)
    assert ladder(given).first_broken is None
    assert ladder(given).unknown == ()
    assert first_broken(replace(given, inquiry=bytes(8))).name == "advertised"
    assert first_broken(replace(given, can_queue=1)).name == "controller"
    assert first_broken(replace(given, queue_type="none")).name == "kernel"
    assert first_broken(replace(given, queue_depth=1)).name == "setting"


def test_what_an_ide_port_hides_is_no_fault_of_the_drive_and_elsewhere_it_is() -> None:
    assert not hides_ncq(sata_drive())
    assert not hides_ncq(sata_drive(words={76: 0x000E}))
    assert not hides_ncq(scsi_drive())


# Pairs that must not queue.


def test_what_keeps_commands_from_being_queued_is_the_drive_its_controller_or_the_kernel() -> None:
    not_used = replace(facts(), history=history(*BOOT[:3], NOT_USED), overlap=UNQUEUED)
    assert ladder(replace(not_used, queue_depth=1)).bars_queueing
    assert ladder(on_ide({})).bars_queueing
    no_sncq = replace(facts(), ahci_caps=AHCI_CAPS & ~(1 << 30), overlap=UNQUEUED)
    assert ladder(no_sncq).bars_queueing
    assert not ladder(facts()).bars_queueing


def test_a_setting_that_may_change_keeps_nothing_from_being_queued() -> None:
    assert not ladder(replace(facts(), queue_depth=1, overlap=UNQUEUED)).bars_queueing
    disabled = replace(facts(), history=history(*BOOT, DISABLED), overlap=UNQUEUED)
    assert not ladder(disabled).bars_queueing, "errors did: it had queued"


def test_what_is_seen_to_be_queued_is_not_kept_from_it_whatever_the_log_says() -> None:
    assert not ladder(replace(facts(), history=history(*BOOT[:3], NOT_USED))).bars_queueing


def test_where_nobody_tells_whether_commands_are_queued_nothing_is_settled() -> None:
    hba = Controller("0000:03:00.0", "1000:0097", "mpt3sas", "host0")
    seen = Overlap("scsi", 256, {"READ_10": 256}, 256, 1, 1.0)
    behind = replace(facts(sata_drive(controller=hba, link=None)), ahci_caps=None, overlap=seen)
    with pytest.raises(Inconclusive, match="kernel: unknown: libata has no part in it"):
        _ = ladder(behind).bars_queueing
    assert ladder(replace(behind, can_queue=1)).bars_queueing, "whatever else is unknown"


# The first write to queue_depth.


def test_nothing_is_written_after_error_handling_switched_queueing_off() -> None:
    broken = ladder(replace(facts(), history=history(*BOOT, DISABLED)))
    for depth in (1, 8, 32):  # even 1: giving 32 back afterwards would mend what is to be found
        with pytest.raises(DriveFault, match="NCQ disabled due to excessive errors"):
            refuse("bench", sata_drive(), depth, broken)


def test_error_handling_forbids_the_write_even_above_another_broken_rung() -> None:
    both = ladder(replace(facts(), queue_depth=1, history=history(*BOOT, DISABLED)))
    with pytest.raises(DriveFault, match="error handling"):
        refuse("bench", sata_drive(), 32, both)


def test_what_comes_after_the_ladder_was_climbed_forbids_every_later_write() -> None:
    refuse_switched_off("bench", sata_drive(), history(*BOOT))
    refuse_switched_off("bench", sata_drive(), history(*BOOT, DISABLED, *BOOT[1:]))
    refuse_switched_off("bench", sata_drive(), history(*BOOT, DISABLED.replace("ata1", "ata2")))
    with pytest.raises(
        DriveFault,
        match=r"on bench does not queue any more: error handling .*"
        r"'NCQ disabled due to excessive errors'",
    ):
        refuse_switched_off("bench", sata_drive(), history(*BOOT, DISABLED))


def test_a_drive_that_cannot_queue_is_not_set_deeper() -> None:
    broken = ladder(replace(facts(), ahci_caps=0))
    refuse("bench", sata_drive(), 1, broken)
    with pytest.raises(DriveFault, match=r"SNCQ is 0"):
        refuse("bench", sata_drive(), 8, broken)


def test_a_depth_left_at_one_may_be_raised() -> None:
    refuse("bench", sata_drive(), 32, ladder(replace(facts(), queue_depth=1)))


@pytest.mark.parametrize("depth", [0, -1, 33])
def test_a_depth_that_ncq_does_not_have(depth: int) -> None:
    with pytest.raises(Misuse, match="it is 1 to 32"):
        refuse("bench", sata_drive(), depth, ladder(facts()))


def test_a_depth_that_this_drive_does_not_have() -> None:
    shallow = sata_drive(words={75: 0x001E})
    refuse("bench", shallow, 31, ladder(facts(shallow)))
    with pytest.raises(Misuse, match="holds 31 commands at most"):
        refuse("bench", shallow, 32, ladder(facts(shallow)))
