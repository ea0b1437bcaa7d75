"""Whether a drive is an SSD or a disk by its own word, and the suite's test of it."""

from collections.abc import Callable, Mapping
from typing import cast

import pytest

from leadline.drive.own_class import OwnClass, own_class
from leadline.drive.scsi_pages import Pages, vpd
from leadline.host.connection import Host
from leadline.inventory.matrix import load_matrix
from leadline.suite import test_identity
from selftests.drive_specimens import sata_drive, scsi_drive
from selftests.scsi_answers import answers, page, with_byte
from selftests.test_scsi_pages import Answering
from selftests.vendor import MATRIX

SILENT = cast(Host, None)


def of_sata(rate: int) -> OwnClass:
    return own_class(SILENT, sata_drive(words={217: rate}))


def of_scsi(pages: Pages) -> OwnClass:
    return own_class(cast(Host, Answering(pages)), scsi_drive())


def turning(rate: int) -> Mapping[str, bytes]:
    """A drive whose page B1h has this rate."""
    return answers() | {vpd(0xB1): page(0xB1, rate.to_bytes(2, "big") + bytes(58))}


@pytest.mark.parametrize(
    ("rate", "class_", "words"),
    [
        (0x0001, "ssd", "0001h, does not turn"),
        (7200, "hdd", "1C20h, 7200 revolutions a minute"),
        (0x0401, "hdd", "0401h, 1025 revolutions a minute"),
        (0xFFFE, "hdd", "FFFEh, 65534 revolutions a minute"),
        (0x0000, "unknown", "0000h, which reports no rate"),
        (0x0400, "unknown", "0400h, no valid rate"),
        (0xFFFF, "unknown", "FFFFh, no valid rate"),
    ],
)
def test_word_217_and_page_b1h_tell_the_class(rate: int, class_: str, words: str) -> None:
    assert of_sata(rate) == OwnClass(of_sata(rate).class_, f"IDENTIFY DEVICE word 217 is {words}")
    assert of_sata(rate).class_ == class_
    said = f"MEDIUM ROTATION RATE of VPD page B1h is {words}"
    assert of_scsi(turning(rate)) == OwnClass(of_sata(rate).class_, said)


def test_a_page_that_is_not_listed_is_not_asked_for() -> None:
    pages = with_byte(answers(), vpd(0), 9, 0xB0)
    drive = Answering(pages)
    found = own_class(cast(Host, drive), scsi_drive())
    assert found.class_ == "unknown"
    assert "no VPD page B1h" in found.said
    assert drive.asked == [vpd(0)]
    assert drive.held == []


@pytest.mark.parametrize(("is_", "rate"), [("hdd", 7200), ("ssd", 1)])
@pytest.mark.parametrize("model", ["LEADLINE VSSD", "EXAMPLE SATA-DISK-4T"])
def test_a_drive_of_another_class_than_the_matrix_has_fails(
    model: str, is_: str, rate: int
) -> None:
    matrix = load_matrix(MATRIX)
    entry = matrix.field("models", matrix.place[model], "class")
    holds = cast(Callable[..., None], test_identity.test_drive_is_of_the_class_that_the_matrix_has)
    has = matrix.model(model)
    if has.class_ == is_:
        holds(of_sata(rate), has, entry)
        return
    with pytest.raises(AssertionError) as caught:
        holds(of_sata(rate), has, entry)
    said = str(caught.value)
    assert f"{MATRIX.name}:" in said
    assert f"{model} is of class {has.class_} there" in said
    assert f"the drive is of class {is_}: IDENTIFY DEVICE word 217 is {rate:04X}h" in said
