"""IDENTIFY DEVICE, word by word."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leadline.drive.identify import (
    Identify,
    Link,
    Microcode,
    Ncq,
    Sector,
    UnusableIdentify,
    decode,
)
from leadline.drive.identify_source import read_source
from selftests.identify_images import hex_words, image, sign

DUMPS = Path(__file__).parents[2] / "shared" / "realdata" / "identify"
SIGNED_83 = 0x4400


def test_a_healthy_ssd() -> None:
    found = decode(image())
    assert (found.model, found.serial, found.firmware) == ("LEADLINE SPECIMEN", "SPEC0001", "1.0")
    assert found.wwn == "0x5000c50000000001"
    assert found.class_ == "ssd"
    assert found.rotation_rpm is None
    assert found.checksum == "valid"
    assert found.ncq == Ncq(True, 32, False, False, False, False)
    assert found.link == Link(6.0, 6.0)
    assert found.capacity_bytes == 1_000_215_216 * 512
    assert found.sector == Sector(512, 512)
    assert found.write_cache == "enabled"
    assert found.trim is True
    assert found.security == "not supported"
    assert found.power_management.hipm == "not supported"
    assert found.power_management.dipm == "enabled"


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        # 76.8 and 75.4:0
        ({75: 0x0000}, "ncq.queue_depth", 1),
        ({75: 0xFFE7}, "ncq.queue_depth", 8),
        ({76: 0x000E}, "ncq.supported", False),
        ({76: 0x000E}, "ncq.queue_depth", 1),  # word 75 without NCQ is the old TCQ's
        ({76: 0x0000}, "ncq.supported", False),
        ({76: 0xFFFF}, "ncq.supported", False),
        ({76: 0x110E}, "ncq.priority", True),
        ({76: 0x090E}, "ncq.unload", True),
        ({76: 0xFFFF, 77: 0x0040}, "ncq.send_receive", False),
        ({77: 0x0046}, "ncq.send_receive", True),
        ({77: 0xFFFF}, "ncq.send_receive", False),
        ({78: 0x0004}, "ncq.autoactivate", True),
        ({78: 0xFFFF}, "ncq.autoactivate", False),
        # 76.1 to 76.3, and 77.3:1
        ({76: 0x0102}, "link.supported_gbps", 1.5),
        ({76: 0x0106}, "link.supported_gbps", 3.0),
        ({76: 0x0100}, "link.supported_gbps", None),
        ({76: 0x0000}, "link.supported_gbps", None),
        ({77: 0x0002}, "link.current_gbps", 1.5),
        ({77: 0x0004}, "link.current_gbps", 3.0),
        ({77: 0x0000}, "link.current_gbps", None),
        ({77: 0x000E}, "link.current_gbps", None),  # reserved
        ({77: 0xFFFF}, "link.current_gbps", None),
        # 217
        ({217: 0x1C20}, "class", "hdd"),
        ({217: 0x1C20}, "rotation_rpm", 7200),
        ({217: 0x0000}, "class", "unknown"),
        ({217: 0x0400}, "class", "unknown"),
        ({217: 0x0401}, "rotation_rpm", 1025),
        ({217: 0xFFFF}, "class", "unknown"),
        ({217: 0xFFFF}, "rotation_rpm", None),
        # 87.8 with 87.15:14, and 108 to 111
        ({87: 0x4000}, "wwn", None),
        ({87: 0x0100}, "wwn", None),
        ({87: 0xC100}, "wwn", None),
        ({108: 0, 109: 0, 110: 0, 111: 0}, "wwn", None),
        # 83.10 with 100 to 103, or 60 and 61; 49.9
        ({83: 0x4000}, "capacity_bytes", 0x0FFF_FFFF * 512),
        ({83: 0x0400}, "capacity_bytes", 0x0FFF_FFFF * 512),
        ({100: 0, 101: 0, 102: 0, 103: 0}, "capacity_bytes", 0x0FFF_FFFF * 512),
        ({102: 1}, "capacity_bytes", (1_000_215_216 + 2**32) * 512),
        ({49: 0x0000}, "capacity_bytes", None),
        ({49: 0xFDFF}, "capacity_bytes", None),
        # 106.15:12, 106.3:0, 117 and 118
        ({106: 0x6003}, "sector.physical", 4096),
        ({106: 0x6003}, "sector.logical", 512),
        ({106: 0x4003}, "sector.physical", 512),
        ({106: 0x2003}, "sector.physical", 512),
        ({106: 0x5000, 117: 2048}, "sector.logical", 4096),
        ({106: 0x5000, 117: 2048}, "capacity_bytes", 1_000_215_216 * 4096),
        ({106: 0x5000, 117: 0, 118: 1}, "sector.logical", 131072),
        ({106: 0x5000, 117: 0}, "sector.logical", 512),
        ({117: 2048}, "sector.logical", 512),
        # 82.5 and 85.5, with 83.15:14 and 87.15:14
        ({85: 0x0000}, "write_cache", "disabled"),
        ({82: 0x0000}, "write_cache", "not supported"),
        ({83: 0x0000}, "write_cache", "not supported"),
        ({87: 0x0000}, "write_cache", "unknown"),
        # 169.0
        ({169: 0x0000}, "trim", False),
        ({169: 0xFFFF}, "trim", False),
        # 128
        ({128: 0x0000}, "security", "not supported"),
        ({128: 0x0008}, "security", "not supported"),
        ({128: 0x0021}, "security", "disabled"),
        ({128: 0x0003}, "security", "enabled"),
        ({128: 0x0007}, "security", "locked"),
        ({128: 0x0009}, "security", "frozen"),
        ({128: 0x000B}, "security", "frozen"),
        # 76.9; 78.3 and 79.3; 78.8 and 79.8
        ({76: 0x030E}, "power_management.HIPM", "supported"),
        ({79: 0x0000}, "power_management.DIPM", "disabled"),
        ({78: 0x0000}, "power_management.DIPM", "not supported"),
        ({76: 0x0000}, "power_management.DIPM", "not supported"),
        ({78: 0x0100, 79: 0x0100}, "power_management.DevSleep", "enabled"),
        ({78: 0x0100, 79: 0x0008}, "power_management.DevSleep", "disabled"),
        ({78: 0x0008, 79: 0x0108}, "power_management.DevSleep", "not supported"),
        # 83.3, 86.3 and 91.7:0
        ({83: 0x4408, 86: 0x0408, 91: 0x80FE}, "power_management.APM", "enabled"),
        ({83: 0x4408, 86: 0x0408, 91: 0x80FE}, "power_management.APM_level", 254),
        ({83: 0x4408, 86: 0x0400, 91: 0x80FE}, "power_management.APM", "disabled"),
        ({83: 0x4408, 86: 0x0400, 91: 0x80FE}, "power_management.APM_level", None),
        ({86: 0x0408}, "power_management.APM", "not supported"),
    ],
)
def test_a_field_by_its_words(words: dict[int, int], field: str, value: object) -> None:
    found: object = decode(image(words=words)).as_json()
    for key in field.split("."):
        assert isinstance(found, dict)
        found = found[key]
    assert found == value


def test_strings_are_unswapped_and_stripped_on_both_sides() -> None:
    found = decode(image(model="  A B", serial="     WD-1", firmware="12345678"))
    assert (found.model, found.serial, found.firmware) == ("A B", "WD-1", "12345678")


def test_a_drive_cannot_send_control_characters_to_the_terminal() -> None:
    found = decode(image(model="\x1b[2Jevil\r\nname", words={10: 0x80FF}))
    assert found.model == "[2Jevilname"
    assert found.serial == "\N{REPLACEMENT CHARACTER}" * 2 + "EC0001"


@pytest.mark.parametrize("position", [0, 27, 255, 300, 511])
def test_one_wrong_bit_is_an_invalid_checksum(position: int) -> None:
    data = bytearray(image())
    data[position] ^= 0x80
    assert decode(bytes(data)).checksum == "invalid"


def test_without_the_signature_there_is_no_checksum() -> None:
    assert decode(image(signed=False)).checksum == "absent"


@pytest.mark.parametrize("length", [0, 511, 513, 1024])
def test_another_length_is_refused(length: int) -> None:
    with pytest.raises(UnusableIdentify, match=rf"512 bytes, and this is {length}"):
        decode(bytes(length))


@pytest.mark.parametrize("filler", [0x00, 0xFF])
def test_empty_data_is_refused_as_such(filler: int) -> None:
    with pytest.raises(UnusableIdentify, match="empty"):
        decode(bytes([filler]) * 512)


@pytest.mark.parametrize("word", [0x8580, 0x85C0, 0x8000])
def test_an_atapi_device_is_no_drive(word: int) -> None:
    with pytest.raises(UnusableIdentify, match="ATAPI"):
        decode(image(words={0: word}))


def test_compact_flash_is_an_ata_device_although_bit_15_is_set() -> None:
    assert decode(image(words={0: 0x848A})).model == "LEADLINE SPECIMEN"


@given(st.binary(min_size=512, max_size=512))
@example(b"\x40" + b"\xff" * 511)
@example(b"\x40" + b"\x00" * 511)
def test_any_512_bytes_decode_or_are_refused(data: bytes) -> None:
    try:
        found = decode(data)
    except UnusableIdentify:
        return
    assert isinstance(found, Identify)
    assert 1 <= found.ncq.queue_depth <= 32
    assert found.sector.physical >= found.sector.logical >= 512
    shown = found.model + found.serial + found.firmware
    assert shown.isprintable()


_NAMES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20)


@given(_NAMES, _NAMES, st.integers(1, 2**64 - 1), st.integers(1, 2**48 - 1), st.integers(0, 31))
def test_what_an_image_is_made_of_comes_back(
    model: str, serial: str, wwn: int, sectors: int, depth: int
) -> None:
    found = decode(image(model=model, serial=serial, wwn=wwn, sectors=sectors, words={75: depth}))
    assert found.model == model.strip()
    assert found.serial == serial.strip()
    assert found.wwn == f"0x{wwn:016x}"
    assert found.capacity_bytes == sectors * 512
    assert found.ncq.queue_depth == depth + 1
    assert found.checksum == "valid"


def _dumps() -> list[Path]:
    return sorted(DUMPS.iterdir()) if DUMPS.is_dir() else []


@pytest.mark.skipif(not shutil.which("hdparm"), reason="hdparm is not installed")
@pytest.mark.skipif(not _dumps(), reason="no dumps of real drives here")
@pytest.mark.parametrize("dump", _dumps(), ids=lambda path: path.name)
def test_a_real_drive_reads_as_hdparm_reads_it(dump: Path) -> None:
    data = read_source(dump.read_bytes(), dump.name)
    _agree(data)


@pytest.mark.skipif(not shutil.which("hdparm"), reason="hdparm is not installed")
@pytest.mark.parametrize(
    "words",
    [
        {},
        {75: 0x0007, 77: 0x0004, 217: 0x1C20},
        {76: 0x0006, 78: 0x0000, 82: 0x0000, 169: 0x0000},
        {79: 0x0000, 82: 0x0022, 85: 0x0000, 106: 0x6003, 128: 0x0009},
        {76: 0x130E, 78: 0x010C, 79: 0x0104, 83: 0x4408, 86: 0x0408, 91: 0x0080},
    ],
)
def test_an_image_reads_as_hdparm_reads_it(words: dict[int, int]) -> None:
    _agree(image(words=words))


def _agree(data: bytes) -> None:
    """Compare with hdparm's decoding of the same words, where it prints one."""
    said = subprocess.run(
        ["hdparm", "--Istdin"],
        input=hex_words(data),
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    ).stdout
    found = decode(data)

    def after(label: str) -> str | None:
        match = re.search(rf"{re.escape(label)}\s*(.*?)\s*$", said, re.MULTILINE)
        return match[1] if match else None

    def feature(words: str) -> str:
        match = re.search(rf"^\t +(\*?)\s+{words}", said, re.MULTILINE)
        return "not supported" if not match else "enabled" if match[1] else "disabled"

    assert found.model == after("Model Number:")
    assert found.serial == after("Serial Number:")
    assert found.firmware == after("Firmware Revision:")
    assert found.checksum == {"correct": "valid", None: "absent"}.get(after("Checksum:"), "invalid")
    assert (found.wwn or "0x")[2:] == (after("Logical Unit WWN Device Identifier:") or "")
    assert found.ncq.supported == (feature(r"Native Command Queueing") == "enabled")
    assert str(found.ncq.queue_depth) == (after("Queue depth:") or "1")
    sectors = after("LBA48  user addressable sectors:") or after("LBA    user addressable sectors:")
    assert found.capacity_bytes == int(sectors or 0) * found.sector.logical
    generations = re.findall(r"Gen\d signaling speed \(([\d.]+)Gb/s\)", said)
    assert found.link.supported_gbps == max(map(float, generations), default=None)
    turning = after("Nominal Media Rotation Rate:")
    rates = {None: ("unknown", None), "Solid State Device": ("ssd", None)}
    expected = rates.get(turning) or ("hdd", int(turning or 0))
    assert (found.class_, found.rotation_rpm) == expected
    assert found.write_cache == feature("Write cache")
    assert found.trim == ("Data Set Management TRIM supported" in said)
    power = found.power_management
    assert power.dipm == feature("Device-initiated interface power management")
    assert power.devsleep == feature(r"Device Sleep \(DEVSLP\)")
    assert power.apm == feature("Advanced Power Management feature set")
    hipm = feature("Host-initiated interface power management")
    assert power.hipm == ("supported" if hipm == "enabled" else hipm)
    physical = after("Physical Sector size:") or after("Logical/Physical Sector size:")
    assert physical == f"{found.sector.physical} bytes"
    assert (found.security == "frozen") == (re.search(r"^\t\tfrozen", said, re.M) is not None)


def test_sign_makes_a_checksum_that_holds() -> None:
    """The helper, for the tests above stand on it."""
    assert sum(sign(bytes(range(256)) * 2)) % 256 == 0


def test_what_a_drive_says_of_its_microcode() -> None:
    signed = {87: 0x4100, 119: 0x4010, 120: 0x4010, 234: 8, 235: 64}
    able = decode(image(words={83: 0x4401, 86: 0x0401, **signed})).microcode
    assert able == Microcode("enabled", "enabled", 8, 64)
    off = decode(image(words={83: 0x4401, 86: 0x0400, 119: 0x4010, 120: 0x4000})).microcode
    assert off == Microcode("disabled", "disabled", None, None)
    none = decode(image(words={119: 0x0010, 120: 0x4010, 234: 0xFFFF})).microcode
    assert none == Microcode("not supported", "not supported", None, None)
