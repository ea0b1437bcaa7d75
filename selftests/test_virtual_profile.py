"""A virtual drive's profile: what a file may say, and how it is refused."""

from pathlib import Path

import pytest

from leadline.errors import Misuse
from leadline.virtual.faults import Faults
from leadline.virtual.profile import Profile, load_profile
from leadline.virtual.rotation import Rotation

PROFILES = Path(__file__).parent.parent / "rigs" / "profiles"
GOOD = {
    "model": "DRIVE",
    "serial": "00123456",
    "firmware": "0007",
    "capacity_bytes": "1048576",
    "channels": "8",
    "read_ms": "10",
    "write_ms": "3",
}


def written(directory: Path, fields: dict[str, str]) -> Path:
    path = directory / "profile.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    return path


def test_the_shipped_firmwares_are_the_same_drive() -> None:
    good, broken = (load_profile(PROFILES / f"vssd-{revision}.yaml") for revision in ("1.0", "1.1"))
    assert (good.firmware, broken.firmware) == ("1.0", "1.1")
    assert (good.model, good.serial, good.wwn, good.capacity_bytes) == (
        broken.model,
        broken.serial,
        broken.wwn,
        broken.capacity_bytes,
    )
    assert (good.faults.serialise, broken.faults.serialise) == (False, True)
    assert not good.is_scsi


def test_the_shipped_scsi_drive_is_one() -> None:
    assert load_profile(PROFILES / "vscsi-1.0.yaml").is_scsi


def test_text_that_looks_like_a_number_stays_text(tmp_path: Path) -> None:
    profile = load_profile(written(tmp_path, GOOD))
    assert (profile.serial, profile.firmware) == ("00123456", "0007")


@pytest.mark.parametrize(
    ("fields", "line", "said"),
    [
        ({"chanels": "8"}, 8, "channels?"),
        ({"channels": "0"}, 5, "1 to 64"),
        ({"channels": "65"}, 5, "1 to 64"),
        ({"read_ms": "fast"}, 6, "milliseconds"),
        ({"read_ms": "nan"}, 6, "milliseconds"),
        ({"capacity_bytes": "1048577"}, 4, "multiple of 4096"),
        ({"serial": "123456789012345678901"}, 2, "at most 20"),
        ({"firmware": "REV 12345"}, 3, "at most 8"),
        ({"vendor": "V"}, 1, "model (ATA) or vendor and product (SCSI)"),
        ({"wwn": "0x5000c500"}, 8, "16 (or 32) hex digits"),
        ({"wwn": "0x6000c5000000a0010000000000000001"}, 1, "16 digits"),
        ({"rotation": "{rpm: 7200, mb_per_s: 150}"}, 1, "channels: 1, for a disk has one arm"),
        ({"rotation": "{rpm: 1, mb_per_s: 150}"}, 8, "1025 to 65534"),
        (
            {"write_cache": "false", "faults": "{partial_flush: {one_in: 9}}"},
            1,
            "partial_flush without a write cache",
        ),
        (
            {"rotation": "{rpm: 7200, mb_per_s: 150, full_stroke_ms: 0.1}", "channels": "1"},
            8,
            "no less than track_to_track_ms",
        ),
        (
            {
                "rotation": "{rpm: 7200, mb_per_s: 150, write_behind: 8}",
                "channels": "1",
                "write_cache": "false",
            },
            1,
            "write_cache: true",
        ),
        ({"faults": "{bad_lbas: [2048]}"}, 1, "below the capacity"),
        ({"faults": "{read_error_rate: 1.5}"}, 8, "0 to 1"),
        ({"faults": "{slow_depths: [{factor: 2}]}"}, 8, "one of the two"),
        ({"faults": "{slow_depths: [{at: 2, beyond: 3, factor: 2}]}"}, 8, "one of the two"),
        ({"faults": "{stalls: [{after_s: 0, seconds: 3, every_s: 2}]}"}, 8, "a longer every_s"),
        (
            {
                "faults": "{stalls: [{after_s: 0, seconds: 6, every_s: 10},"
                " {after_s: 5, seconds: 6, every_s: 10}]}"
            },
            8,
            "a longer every_s",
        ),
        ({"faults": "{changes: [{after_cycle: 0, serial: X}]}"}, 8, "from 1"),
    ],
)
def test_a_wrong_field_is_refused_with_its_line(
    tmp_path: Path, fields: dict[str, str], line: int, said: str
) -> None:
    path = written(tmp_path, GOOD | fields)
    with pytest.raises(Misuse) as refused:
        load_profile(path)
    assert str(refused.value).startswith(f"{path}:{line}: ")
    assert said in str(refused.value)


def test_a_scsi_revision_has_four_characters(tmp_path: Path) -> None:
    fields = GOOD | {"vendor": "V", "product": "P", "firmware": "12345"}
    del fields["model"]
    with pytest.raises(Misuse, match="at most 4 characters"):
        load_profile(written(tmp_path, fields))


def test_the_drive_changes_after_the_cycles_that_it_is_told_to(tmp_path: Path) -> None:
    changes = "[{after_cycle: 5, read_ms: 40}, {after_cycle: 2, serial: OTHER, firmware: '2'}]"
    profile = load_profile(written(tmp_path, GOOD | {"faults": f"{{changes: {changes}}}"}))
    seen = [
        (drive.serial, drive.firmware, drive.read_ms)
        for drive in map(profile.at_cycle, (0, 1, 2, 4, 5, 6))
    ]
    assert seen == [
        ("00123456", "0007", 10),
        ("00123456", "0007", 10),
        ("OTHER", "2", 10),
        ("OTHER", "2", 10),
        ("OTHER", "2", 40),
        ("OTHER", "2", 40),
    ]


def test_a_change_that_makes_no_drive_is_refused_when_read(tmp_path: Path) -> None:
    fields = GOOD | {"vendor": "V", "product": "P", "firmware": "1"}
    del fields["model"]
    fields["faults"] = "{changes: [{after_cycle: 1, firmware: '12345'}]}"
    with pytest.raises(Misuse, match="at most 4 characters"):
        load_profile(written(tmp_path, fields))


def test_the_example_explains_every_field() -> None:
    example = load_profile(PROFILES / "example.yaml")
    unset = {"vendor", "product", "rotation"}  # an ATA drive has no vendor, an SSD does not turn
    assert set(Profile.model_fields) - example.model_fields_set == unset
    assert set(Faults.model_fields) == example.faults.model_fields_set
    disk = load_profile(PROFILES / "vdisk-1.0.yaml")
    assert disk.rotation is not None
    assert set(Rotation.model_fields) == disk.rotation.model_fields_set
