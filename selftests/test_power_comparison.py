"""A drive before and after its power was cut: each difference, and whose doing it is."""

from dataclasses import replace
from typing import Any

import pytest

from leadline.drive.ask import Identity
from leadline.drive.bind import Drive, Link
from leadline.drive.kernel_events import parse_log
from leadline.drive.smart import SmartSnapshot
from leadline.errors import DriveFault, RigTrouble
from leadline.power.comparison import as_fast_as_before, no_errors_counted, unchanged_but_for
from selftests.power_world import drive

OUR_CUT = "our own abrupt cut"

# Who came back.


def identity(**changes: Any) -> Identity:
    return replace(drive().identity, **changes)


def test_the_same_drive_is_no_fault() -> None:
    unchanged_but_for(drive(), identity(), None)
    unchanged_but_for(drive(), identity(firmware="1.1"), "1.1")
    unchanged_but_for(drive(), identity(firmware="1.1", capacity_bytes=512), "1.1")


@pytest.mark.parametrize(
    ("after", "expected", "words"),
    [
        (identity(model="OTHER"), None, "model was 'MODEL' and is 'OTHER'"),
        (identity(serial="OTHER"), None, "serial was 'SERIAL-a' and is 'OTHER'"),
        (identity(wwn="0x5000c50000000002"), None, "WWN was '0x5000c50000000001'"),
        (identity(capacity_bytes=512), None, "capacity"),
        (identity(firmware="1.1"), None, "firmware was '1.0' and is '1.1'"),
        (identity(), "1.1", "firmware is still '1.0' and '1.1' was to come"),
        (identity(firmware="1.2"), "1.1", "firmware was '1.0' and is '1.2'"),
        (identity(firmware="1.1", serial="OTHER"), "1.1", "serial"),
        (identity(firmware="1.1", model="OTHER"), "1.1", "model"),
        (identity(firmware="1.1", wwn="0x5000c50000000002"), "1.1", "WWN"),
    ],
)
def test_another_drive_is_a_fault(after: Identity, expected: str | None, words: str) -> None:
    with pytest.raises(DriveFault, match=words):
        unchanged_but_for(drive(), after, expected)


# How fast it came back.


def at(speed: str, *, lowered: int = 0, limit: str = "") -> Drive:
    return drive(link=Link("ata1", "ata1.00", speed, lowered, "", speed_limit=limit))


@pytest.mark.parametrize(
    ("after", "abrupt", "whose"),
    [
        (at("3.0 Gbps"), False, DriveFault),
        (at("3.0 Gbps"), True, DriveFault),
        (at("3.0 Gbps", lowered=1), False, DriveFault),
        (at("3.0 Gbps", lowered=1), True, RigTrouble),
        (at("3.0 Gbps", limit="3.0 Gbps"), False, DriveFault),
        (at("3.0 Gbps", limit="3.0 Gbps"), True, RigTrouble),
        (at("3.0 Gbps", limit="6.0 Gbps"), True, DriveFault),
    ],
)
def test_a_slower_link_is_the_drives_fault_unless_our_cut_lowered_it(
    after: Drive, abrupt: bool, whose: type[Exception]
) -> None:
    words = "slot a: MODEL SERIAL-a: its link came back at 3 Gb/s and was at 6 Gb/s"
    with pytest.raises(whose, match=words) as caught:
        as_fast_as_before(drive(), after, abrupt=abrupt)
    assert (OUR_CUT in str(caught.value)) is (whose is RigTrouble)


def test_a_link_that_is_as_fast_faster_or_never_had_a_speed_is_no_fault() -> None:
    for before, after in ((drive(), drive()), (at("3.0 Gbps"), drive()), (at(""), at(""))):
        as_fast_as_before(before, after, abrupt=False)
    as_fast_as_before(drive(link=None), drive(link=None), abrupt=True)


@pytest.mark.parametrize("abrupt", [False, True])
def test_a_smaller_queue_is_a_fault(abrupt: bool) -> None:
    with pytest.raises(DriveFault, match="queue depth of 1, and had 32"):
        as_fast_as_before(drive(), drive(queue_depth=1), abrupt=abrupt)


@pytest.mark.parametrize(("abrupt", "whose"), [(False, DriveFault), (True, RigTrouble)])
def test_queueing_that_error_handling_took_away_still_reads_32(
    abrupt: bool, whose: type[Exception]
) -> None:
    disabled = parse_log("[    2.0] ata1.00: NCQ disabled due to excessive errors")
    with pytest.raises(whose, match=r"without queueing: .*disabled NCQ") as caught:
        as_fast_as_before(drive(), drive(), abrupt=abrupt, events=disabled)
    assert (OUR_CUT in str(caught.value)) is abrupt
    routine = parse_log("[    2.0] ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)")
    as_fast_as_before(drive(), drive(), abrupt=abrupt, events=routine)


def test_a_larger_queue_is_no_fault() -> None:
    as_fast_as_before(drive(queue_depth=8), drive(), abrupt=False)
    as_fast_as_before(drive(queue_depth=None), drive(queue_depth=None), abrupt=False)


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (at(""), "its link's speed after the power cycle, which was 6 Gb/s"),
        (drive(link=None), "its link's speed"),
        (drive(queue_depth=None), "its device queue depth after the power cycle, which was 32"),
    ],
)
def test_what_is_not_told_any_more_is_not_taken_for_equal(after: Drive, what: str) -> None:
    with pytest.raises(RigTrouble, match=f"does not tell {what}"):
        as_fast_as_before(drive(), after, abrupt=False)


# What it counted.

BEFORE = SmartSnapshot(
    crc_errors=1,
    reallocated=2,
    pending=0,
    uncorrectable=0,
    power_cycles=5,
    unsafe_shutdowns=3,
    phy_events=(("port 0 phy 1 invalid_dword_count", 0),),
)


@pytest.mark.parametrize(
    ("changes", "graceful", "abrupt"),
    [
        ({"reallocated": 3}, DriveFault, DriveFault),
        ({"pending": 8}, DriveFault, DriveFault),
        ({"uncorrectable": 1}, DriveFault, DriveFault),
        ({"crc_errors": 2}, DriveFault, RigTrouble),
        ({"crc_errors": 2, "pending": 8}, DriveFault, DriveFault),
        ({"power_cycles": 6, "unsafe_shutdowns": 4, "start_stops": 9}, None, None),
        ({"crc_errors": 0, "pending": None}, None, None),
        ({"phy_events": (("port 0 phy 1 invalid_dword_count", 9),)}, None, None),
        ({}, None, None),
    ],
)
def test_errors_that_it_counted_meanwhile(
    changes: dict[str, Any],
    graceful: type[Exception] | None,
    abrupt: type[Exception] | None,
) -> None:
    after = replace(BEFORE, **changes)
    for whose, cut in ((graceful, False), (abrupt, True)):
        if whose is None:
            no_errors_counted(drive(), BEFORE, after, abrupt=cut)
            continue
        with pytest.raises(whose, match="with more errors counted") as caught:
            no_errors_counted(drive(), BEFORE, after, abrupt=cut)
        assert (OUR_CUT in str(caught.value)) is (whose is RigTrouble)


def test_every_counter_that_rose_is_named() -> None:
    words = r"crc_errors from 1 to 3, pending from 0 to 8$"
    with pytest.raises(DriveFault, match=words):
        no_errors_counted(drive(), BEFORE, replace(BEFORE, crc_errors=3, pending=8), abrupt=False)
