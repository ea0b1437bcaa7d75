"""What a drive says otherwise with another firmware: words, bits and logs, and what is a loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.claims import NotJudgedHere
from leadline.drive.identify_changes import Change, Log, identify_changes, log_changes
from leadline.drive.said import Said
from leadline.drive.smart import parse_directory
from leadline.errors import Inconclusive
from selftests.identify_images import image, sign
from selftests.regression_stays import at_station


def changed(firmware: str = "1.1", sectors: int = 1_000_215_216, **words: int) -> list[str]:
    """What becomes of a healthy drive's words: `w75=15`."""
    replaced = {int(name[1:]): value for name, value in words.items()}
    after = image(firmware=firmware, sectors=sectors, words=replaced)
    return list(map(str, identify_changes(image(), after)))


def losses(**words: int) -> list[Change]:
    replaced = {int(name[1:]): value for name, value in words.items()}
    return [each for each in identify_changes(image(), image(words=replaced)) if each.is_loss]


def test_another_revision_alone_is_no_change() -> None:
    assert changed() == []


def test_a_queue_that_is_gone_is_one_loss() -> None:
    (loss,) = losses(w76=0x000E)
    assert str(loss) == (
        "NCQ was supported and is not supported (word 76.8): commands are not queued any more"
    )


def test_a_shallower_queue_is_a_loss_and_a_deeper_one_is_told() -> None:
    (loss,) = losses(w75=0x0F)
    assert (loss.what, loss.before, loss.after) == ("queue depth", "32", "16")
    deeper = identify_changes(image(words={75: 0x0F}), image())
    assert [(each.what, each.is_loss) for each in deeper] == [("queue depth", False)]


@pytest.mark.parametrize("sectors", [1_000_215_215, 1_000_215_217, 2_000_000_000])
def test_another_capacity_is_a_loss_whichever_way(sectors: int) -> None:
    (change,) = identify_changes(image(), image(sectors=sectors))
    assert change.is_loss
    assert change.where == "words 60-61 and 100-103"
    assert change.after == str(512 * sectors)


def test_features_are_told_by_name_and_bit() -> None:
    assert changed(w84=0x4140, w169=0) == [
        "WRITE DMA FUA EXT was no and is yes (word 84.6): Linux flushes the cache in its place",
        "TRIM was yes and is no (word 169.0): file systems discard with it",
    ]


def test_a_bit_without_a_name_is_told_as_its_word() -> None:
    assert changed(w130=0x1234, w76=0x018E) == [
        "not decoded by Leadline was 010Eh and is 018Eh (word 76)",
        "not decoded by Leadline was 0000h and is 1234h (word 130)",
    ]


def test_the_speed_of_the_link_is_told_as_one() -> None:
    assert changed(w77=0x0042) == [
        "SEND and RECEIVE FPDMA QUEUED was no and is yes (word 77.6): TRIM is queued only with it",
        "link speed was 6 Gb/s and is 1.5 Gb/s (word 77.3:1)",
    ]


def test_losses_come_first() -> None:
    told = changed(w59=0x1000, w75=0x07)
    assert told[0].startswith("queue depth was 32 and is 8")
    assert told[1].startswith("SANITIZE was no and is yes")


@given(place=st.integers(24, 254).filter(lambda n: n not in (26, 49, 75)), bit=st.integers(0, 15))
def test_no_word_changes_unseen(place: int, bit: int) -> None:
    """All but who it is, its revision and its checksum; the depth is five bits of its word."""
    before = image()
    data = bytearray(before)
    data[2 * place + bit // 8] ^= 1 << bit % 8
    after = sign(bytes(data))
    quiet = {24, 25, 26, *range(60, 62)}  # the revision; the small capacity of a large drive
    assert bool(identify_changes(before, after)) == (place not in quiet)


ERRORS = Log(0x10, 1, 0)


def test_logs_come_go_and_change_their_size() -> None:
    before = [Log(0x04, 8, 8), ERRORS, Log(0xA1, 1, 1)]
    after = [Log(0x04, 8, 8), Log(0x13, 1, 0), Log(0xA1, 16, 0)]
    assert list(map(str, log_changes(before, after))) == [
        "log 10h (NCQ command error) was 1 sectors and is absent (log 00h): after a failed queued "
        "command Linux reads here which one it was",
        "log 13h (NCQ SEND and RECEIVE) was absent and is 1 sectors (log 00h)",
        "log A1h (of the vendor) was 1 sectors, 1 by SMART and is 16 sectors (log 00h)",
    ]


def test_a_directory_that_could_not_be_read_proves_nothing() -> None:
    assert log_changes([ERRORS], []) == log_changes([], [ERRORS]) == ()


def test_the_directory_is_read_from_smartctls_json() -> None:
    table = [
        {"address": 0, "gp_sectors": 1, "smart_sectors": 1},
        {"address": 16, "gp_sectors": 1},
        {"address": 1, "smart_sectors": 1},
        {"name": "of no address"},
    ]
    document = {"ata_log_directory": {"table": table}}
    assert list(parse_directory(document)) == [Log(0, 1, 1), ERRORS, Log(1, 0, 1)]
    assert list(parse_directory({})) == []


def test_what_was_said_is_compared_at_the_last_station_alone() -> None:
    says = {"1.0": Said(image(), (ERRORS,)), "1.1": Said(image(words={75: 15}), ())}
    told: list[str] = []
    (loss,) = at_station(4, says=says, told=told).changes()
    assert loss.is_loss
    assert told == [str(loss)]
    with pytest.raises(NotJudgedHere):
        at_station(3, says=says).changes()
    with pytest.raises(Inconclusive, match=r"in bench-a-MODEL-1\.1 is not on record"):
        at_station(4, says={"1.0": says["1.0"]}).changes()


def test_what_an_earlier_run_stored_is_said_to_be_of_that_run() -> None:
    """In the loss itself too, for that is what the failed test says."""
    fewer, run = image(words={75: 15}), "run run-1, 2026-11-20 10:00"
    says = {"1.0": Said(image(words={75: 31}), earlier=run), "1.1": Said(fewer)}
    told: list[str] = []
    (loss,) = at_station(4, says=says, told=told).changes()
    assert str(loss).startswith(f"queue depth was 32 (by {run}) and is 16")
    assert told == [
        "baseline: 1.0 was not asked again; what stood in for what it says of itself: " + run,
        str(loss),
    ]
