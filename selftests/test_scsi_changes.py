"""What a SCSI drive says otherwise with another firmware: bytes, bits, and what is a loss."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from leadline.drive.said import Said
from leadline.drive.scsi_changes import page_changes
from leadline.drive.scsi_pages import CAPACITY, INQUIRY, LOG_LIST, Pages, vpd
from leadline.errors import Inconclusive
from selftests.identify_images import image
from selftests.regression_stays import at_station
from selftests.scsi_answers import (
    DEVICE,
    LOGS,
    PLACE,
    PORT,
    UNIT,
    answers,
    designator,
    log_list,
    page,
    with_byte,
)

IDENTIFICATION, EXTENDED, LIMITS = vpd(0x83), vpd(0x86), vpd(0xB0)
CHARACTERISTICS, PROVISIONING = vpd(0xB1), vpd(0xB2)


def told(after: Pages) -> list[str]:
    return list(map(str, page_changes(answers(), after)))


def changed(*places: tuple[str, int, int]) -> list[str]:
    """What is told of another firmware, some bytes of whose answers are others."""
    after = answers(firmware="0002")
    for name, place, value in places:
        after = with_byte(after, name, place, value)
    return told(after)


def test_another_revision_alone_is_no_change() -> None:
    assert changed() == []


def test_a_queue_that_is_gone_is_a_loss_and_one_that_came_is_told() -> None:
    without = with_byte(answers(), INQUIRY, 7, 0)
    (loss,) = page_changes(answers(), without)
    assert loss.is_loss
    assert str(loss) == (
        "command queueing (CMDQUE) was yes and is no (INQUIRY, byte 7 bit 1): commands are not "
        "queued any more"
    )
    (gain,) = page_changes(without, answers())
    assert not gain.is_loss
    assert str(gain) == "command queueing (CMDQUE) was no and is yes (INQUIRY, byte 7 bit 1)"


def test_commands_that_are_queued_as_linux_does_not_are_a_loss() -> None:
    (loss,) = page_changes(answers(), with_byte(answers(), EXTENDED, 5, 0x06))
    assert loss.is_loss
    assert str(loss) == (
        "SIMPLE commands (SIMPSUP) was yes and is no (VPD page 86h, byte 5 bit 0): Linux queues "
        "its commands as such"
    )


@pytest.mark.parametrize("blocks", [999_999, 1_000_001, 2_000_000])
def test_another_capacity_is_a_loss_whichever_way(blocks: int) -> None:
    (change,) = page_changes(answers(), answers(blocks=blocks))
    assert change.is_loss
    assert (change.what, change.where) == ("capacity in bytes", "READ CAPACITY (16), bytes 0-11")
    assert (change.before, change.after) == ("512000000", str(512 * blocks))


def test_another_length_of_the_blocks_is_a_loss_at_the_same_capacity() -> None:
    found = page_changes(answers(), answers(blocks=125_000, block=4096))
    assert [each.is_loss for each in found] == [True, False]
    assert list(map(str, found)) == [
        "bytes of a logical block was 512 and is 4096 (READ CAPACITY (16), bytes 8-11): every "
        "address means another place",
        "bytes of a physical block was 4096 and is 32768 (READ CAPACITY (16), byte 13 bits 3:0)",
    ]


def test_features_and_limits_are_told_by_name_page_and_byte() -> None:
    assert changed((LIMITS, 10, 0x10), (CHARACTERISTICS, 4, 0x1C), (PROVISIONING, 5, 0x04)) == [
        "most blocks of one transfer was 8192 and is 4096 (VPD page B0h, bytes 8-11): Linux sends "
        "no larger requests",
        "rotation rate was 1 and is 7169 (VPD page B1h, bytes 4-5): Linux takes a drive whose rate "
        "is 1 for an SSD",
        "UNMAP (LBPU) was yes and is no (VPD page B2h, byte 5 bit 7): file systems discard with it",
    ]


def test_what_has_no_name_is_told_as_its_bytes() -> None:
    assert changed((INQUIRY, 36, 0x41), (INQUIRY, 38, 0x42), (PROVISIONING, 6, 0x01)) == [
        "not decoded by Leadline was 00 00 00h and is 41 00 42h (INQUIRY, bytes 36-38)",
        "not decoded by Leadline was 02h and is 01h (VPD page B2h, byte 6)",
    ]
    assert changed((INQUIRY, 36, 0x41), (INQUIRY, 50, 0x42)) == [
        "not decoded by Leadline was 00 00 00 00 00 00 00 00h... and is 41 00 00 00 00 00 00 00h..."
        " (INQUIRY, bytes 36-50)"
    ]


def test_a_bit_with_a_name_and_one_without_are_told_each() -> None:
    assert changed((INQUIRY, 5, 0x81)) == [
        "protection information (PROTECT) was no and is yes (INQUIRY, byte 5 bit 0)",
        "not decoded by Leadline was 00h and is 81h (INQUIRY, byte 5)",
    ]


def test_pages_come_and_go() -> None:
    after = {**answers(), vpd(0xC0): page(0xC0, b"x")}
    del after[PROVISIONING]
    assert told(after) == [
        "VPD page B2h (logical block provisioning) was there and is absent (VPD page 00h): Linux "
        "discards as it says",
        "VPD page C0h (of the vendor, or reserved) was absent and is there (VPD page 00h)",
    ]


def test_a_shorter_page_is_told_and_what_is_left_of_it_compared() -> None:
    short = page(0xB0, answers()[LIMITS][4:16])
    assert told({**answers(), LIMITS: short}) == ["length in bytes was 64 and is 16 (VPD page B0h)"]
    assert told(with_byte({**answers(), LIMITS: short}, LIMITS, 10, 0x10))[1:] == [
        "most blocks of one transfer was 8192 and is 4096 (VPD page B0h, bytes 8-11): Linux sends "
        "no larger requests"
    ]


def test_log_pages_come_and_go() -> None:
    others = bytes({*LOGS} - {0x02} | {0x19})
    assert told({**answers(), LOG_LIST: log_list(others)}) == [
        "log page 02h (write errors) was there and is absent (log page 00h): uncorrected errors "
        "are counted there",
        "log page 19h (statistics and performance) was absent and is there (log page 00h)",
    ]
    without = answers()
    del without[LOG_LIST]
    assert told(without) == [
        "log page 00h (supported log pages) was there and is absent (LOG SENSE)"
    ]


def test_the_names_by_which_it_is_known_are_told() -> None:
    other = designator(3, bytes.fromhex("5000c50000000009"))
    assert told({**answers(), IDENTIFICATION: page(0x83, other + PORT + DEVICE)}) == [
        "NAA of the logical unit was 0x5000c50000000001 and is 0x5000c50000000009 (VPD page 83h): "
        "multipath, and links below /dev/disk/by-id, know the drive by it",
        "relative port number of the target port was 0x00000001 and is absent (VPD page 83h)",
    ]
    name = designator(8, b"naa.5000C5000000000F", association=2, code_set=3)
    assert told({**answers(), IDENTIFICATION: page(0x83, UNIT + PORT + PLACE + name)}) == [
        "SCSI name string of the target device was naa.5000C50000000000 and is "
        "naa.5000C5000000000F (VPD page 83h)"
    ]


def test_losses_come_first() -> None:
    told_first, told_then = told(with_byte(answers(blocks=5), INQUIRY, 6, 0))
    assert told_first.startswith("capacity in bytes was 512000000 and is 2560 ")
    assert told_then == "several ports (MULTIP) was yes and is no (INQUIRY, byte 6 bit 4)"


@given(
    name=st.sampled_from([INQUIRY, CAPACITY, EXTENDED, LIMITS, CHARACTERISTICS, PROVISIONING]),
    place=st.integers(0, 95),
    bit=st.integers(0, 7),
)
def test_no_bit_changes_unseen(name: str, place: int, bit: int) -> None:
    """All but the revision, and how long an answer says that it is."""
    before = answers()
    assume(place < len(before[name]))
    quiet = {INQUIRY: {4, *range(32, 36)}, CAPACITY: set[int]()}.get(name, {0, 1, 2, 3})
    after = with_byte(before, name, place, before[name][place] ^ 1 << bit)
    assert bool(page_changes(before, after)) == (place not in quiet)


@given(st.binary(max_size=100))
def test_whatever_a_drive_says_it_is_called_can_be_shown(names: bytes) -> None:
    after = {**answers(), IDENTIFICATION: page(0x83, names)}
    assert all(str(change).isprintable() for change in page_changes(answers(), after))


def test_what_was_said_is_compared_at_the_last_station() -> None:
    without = with_byte(answers(), INQUIRY, 7, 0)
    says = {"1.0": Said(pages=answers()), "1.1": Said(pages=without)}
    heard: list[str] = []
    (loss,) = at_station(4, says=says, told=heard).changes()
    assert loss.is_loss
    assert heard == [str(loss)]


def test_a_drive_that_was_asked_as_sata_drive_once_is_not_compared() -> None:
    for says in (
        {"1.0": Said(image()), "1.1": Said(pages=answers())},
        {"1.0": Said(pages=answers()), "1.1": Said(image())},
    ):
        with pytest.raises(Inconclusive, match=r"in bench-a-MODEL-1\.1 is not comparable: once"):
            at_station(4, says=says).changes()
