"""INQUIRY, VPD pages and READ CAPACITY, byte by byte."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.drive import inquiry
from leadline.drive.inquiry import Capacity, Inquiry
from leadline.errors import DriveFault
from leadline.host.connection import open_host
from leadline.host.trouble import ProgramFailed
from leadline.inventory.rig import HostSpec

REAL = Path(__file__).parents[2] / "shared" / "realdata" / "sg"

STANDARD = b"\x00\x00\x06\x12\x5b\x00\x00\x02LEADLINE" + b"VSCSI".ljust(16) + b"1.0 "


def page(code: int, content: bytes) -> bytes:
    return bytes([0, code]) + len(content).to_bytes(2, "big") + content


def designator(kind: int, value: bytes, *, association: int = 0, code_set: int = 1) -> bytes:
    return bytes([code_set, association << 4 | kind, 0, len(value)]) + value


NAA = bytes.fromhex("5000c500aabbccdd")
EUI = bytes.fromhex("1122334455667788")
PORT = designator(3, bytes.fromhex("5000c500aabbccde"), association=1)
NAMES = page(0x83, PORT + designator(2, EUI) + designator(3, NAA))


def test_standard_inquiry() -> None:
    found = inquiry.standard(STANDARD)
    assert (found.vendor, found.product, found.revision) == ("LEADLINE", "VSCSI", "1.0")


@pytest.mark.parametrize("device_type", [0x05, 0x0D, 0x1F])
def test_an_enclosure_or_an_optical_drive_is_no_drive(device_type: int) -> None:
    with pytest.raises(DriveFault, match=f"type {device_type:02X}h"):
        inquiry.standard(bytes([device_type]) + STANDARD[1:])


def test_the_serial_number_is_stripped_of_padding_and_of_control_characters() -> None:
    assert inquiry.serial(page(0x80, b"  AB\x1b[2J12\0\0 ")) == "AB[2J12"


def test_the_name_is_the_logical_units_naa_designator() -> None:
    assert inquiry.wwn(NAMES) == "0x5000c500aabbccdd"
    assert inquiry.wwn(page(0x83, PORT + designator(2, EUI))) == "0x1122334455667788"
    assert inquiry.wwn(page(0x83, PORT)) is None
    assert inquiry.wwn(page(0x83, designator(3, b"5000c500", code_set=2))) is None
    assert inquiry.wwn(page(0x83, designator(3, NAA[:5]))) is None


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (0x0001, ("ssd", None)),
        (0x1C20, ("hdd", 7200)),
        (0x0000, ("unknown", None)),
        (0x0400, ("unknown", None)),
        (0xFFFF, ("unknown", None)),
    ],
)
def test_rotation(rate: int, expected: tuple[str, int | None]) -> None:
    assert inquiry.rotation(page(0xB1, rate.to_bytes(2, "big") + bytes(58))) == expected


def test_capacity_is_the_last_block_plus_one() -> None:
    data = (999).to_bytes(8, "big") + (512).to_bytes(4, "big") + bytes([0, 0x03]) + bytes(18)
    assert inquiry.capacity(data) == Capacity(512_000, 512, 4096)


def test_short_answers_and_the_wrong_page_are_the_drives_fault() -> None:
    with pytest.raises(DriveFault, match="INQUIRY brought 35 bytes, and at least 36"):
        inquiry.standard(STANDARD[:35])
    with pytest.raises(DriveFault, match="VPD page 80h brought 3 bytes"):
        inquiry.serial(page(0x80, b"")[:3])
    with pytest.raises(DriveFault, match="asked for VPD page 83h and sent page 80h"):
        inquiry.wwn(page(0x80, b"12"))
    with pytest.raises(DriveFault, match="READ CAPACITY"):
        inquiry.capacity(bytes(8))


@given(st.binary(max_size=300))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    decoders = (inquiry.standard, inquiry.serial, inquiry.wwn, inquiry.rotation, inquiry.capacity)
    for decode in decoders:
        for sent in (data, page(0x80, data), page(0x83, data), page(0xB1, data)):
            try:
                decode(sent)
            except DriveFault as error:
                assert str(error).isprintable()


def _hex(name: str) -> bytes:
    lines = (REAL / f"sg3utils_inhex__{name}.hex").read_text().splitlines()
    return bytes.fromhex(" ".join(line.partition("#")[0] for line in lines))


@pytest.mark.skipif(not REAL.is_dir(), reason="no answers of real drives here")
def test_answers_from_the_examples_of_sg3_utils() -> None:
    assert inquiry.standard(_hex("inq_standard"))[1:] == ("Linux", "scsi_debug", "0191")
    raw = (REAL / "sg3utils_inhex__inq_standard.raw").read_bytes()
    assert inquiry.standard(raw) == inquiry.standard(_hex("inq_standard"))
    assert inquiry.wwn(_hex("vpd_dev_id")) == "0x5000c5003011cb2b"
    assert inquiry.wwn(_hex("vpd_di_all")) == "0x5122334455667788"


def _program(folder: Path, name: str, *answers: tuple[str, bytes | int]) -> None:
    """A program that prints what belongs to the first of `answers` among its arguments, or ends
    with that exit code."""
    cases = ""
    for number, (argument, answer) in enumerate(answers):
        if isinstance(answer, int):
            cases += f'*"{argument}"*) exit {answer};;\n'
            continue
        (folder / f"{name}.{number}").write_bytes(answer)
        cases += f'*"{argument}"*) exec cat {folder}/{name}.{number};;\n'
    program = folder / name
    program.write_text(f'#!/bin/sh\ncase "$*" in\n{cases}esac\nexit 99\n')
    program.chmod(0o755)


def _sg3_utils(folder: Path, characteristics: bytes | int) -> None:
    size = (99).to_bytes(8, "big") + (4096).to_bytes(4, "big") + bytes(20)
    _program(folder, "sg_inq", ("--raw --only /dev/sdb", STANDARD))
    _program(
        folder,
        "sg_vpd",
        ("--page=0x80 --raw /dev/sdb", page(0x80, b"VSCSI0001")),
        ("--page=0x83 --raw /dev/sdb", NAMES),
        ("--page=0xb1 --raw /dev/sdb", characteristics),
    )
    _program(folder, "sg_readcap", ("--16 --raw --readonly /dev/sdb", size))


def test_a_drive_is_asked_through_sg3_utils(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    _sg3_utils(tmp_path, page(0xB1, b"\x00\x01" + bytes(58)))
    with open_host(HostSpec(reach="local")) as host:
        found = inquiry.read(host, "/dev/sdb")
    assert found == Inquiry(
        vendor="LEADLINE",
        product="VSCSI",
        revision="1.0",
        serial="VSCSI0001",
        wwn="0x5000c500aabbccdd",
        class_="ssd",
        rotation_rpm=None,
        capacity=Capacity(409_600, 4096, 4096),
    )
    assert found.model == "LEADLINE VSCSI"


@pytest.mark.parametrize("exit_code", [5, 83])  # refused by the drive; not in its list of pages
def test_a_page_that_the_drive_lacks_is_unknown_and_another_failure_is_trouble(
    exit_code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    _sg3_utils(tmp_path, exit_code)
    with open_host(HostSpec(reach="local")) as host:
        assert inquiry.read(host, "/dev/sdb").class_ == "unknown"
        _sg3_utils(tmp_path, 15)
        with pytest.raises(ProgramFailed, match="exit code 15"):
            inquiry.read(host, "/dev/sdb")
