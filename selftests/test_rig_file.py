"""Rig files: what they mean, how a drive may be flashed, and that the reference has every field."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import Misuse
from leadline.inventory import flash as flash_module
from leadline.inventory import pdu as pdu_module
from leadline.inventory import rig as rig_module
from leadline.inventory.document import LARGEST, read
from leadline.inventory.fields import Entry
from leadline.inventory.flash import FlashSpec
from leadline.inventory.pdu_dialogue import DialogueSpec
from leadline.inventory.rig import DriveSpec, Rig, load_rig
from selftests.rig_specimens import BENCH, SECOND, SMALL, VIRTUAL, load, refusal

REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "rig-file.md"


def test_text_stays_what_it_is_and_numbers_become_numbers(tmp_path: Path) -> None:
    rig = load(tmp_path, SMALL + SECOND)
    assert [drive.serial for drive in rig.drives] == ["00123456", "off"]
    assert [drive.firmware for drive in rig.drives] == ["0007", "1e3"]
    assert (rig.pdus[0].baud, rig.pdus[0].outlets, rig.outlets[0].outlet) == (9600, 8, 1)
    assert (rig.drives[0].off_s, rig.drives[0].ready_s, rig.drives[0].writes) == (
        10.0,
        30.0,
        "forbidden",
    )
    assert rig.host.shutdown == ("systemctl", "poweroff")


WWNS = [
    "0x5000c500a1b2c3d4",
    "naa.5000C500A1B2C3D4",
    "wwn-0x5000c500a1b2c3d4",
    "5 000c50 0a1b2c3d4",
]


@pytest.mark.parametrize("written", [*WWNS, "5000c500a1b2c3d4", "5000C500:A1B2C3D4"])
def test_a_wwn_has_one_form_however_it_is_written(tmp_path: Path, written: str) -> None:
    rig = load(tmp_path, SMALL.replace("0x5000c500a1b2c3d4", f'"{written}"'))
    assert rig.drives[0].wwn == "0x5000c500a1b2c3d4"


FLASH = """\
    flash:
      command: [flasher, "{rig}", "{slot}", "--to={device}", "{image}"]
      runs_on: here
      activates: power-cycle
"""


def test_a_flash_commands_placeholders_are_replaced_once() -> None:
    command = ("flasher", "{rig}", "{slot}", "--to={device}", "{image}")
    flash = FlashSpec(command=command, runs_on="here", activates="at-once")
    assert flash.argv(rig="r", slot="{image}", device="/dev/sda", image="{x} $(y).bin") == (
        "flasher",
        "r",
        "{image}",
        "--to=/dev/sda",
        "{x} $(y).bin",
    )


def test_a_flash_that_cannot_work(tmp_path: Path) -> None:
    load(tmp_path, SMALL + FLASH)
    (typo,) = refusal(tmp_path, SMALL + FLASH.replace("{slot}", "{slut}"))
    assert typo.startswith("rig.yaml:25: drives[a].flash.command: found a list, expected no ")
    assert typo.endswith("placeholder but {rig}, {slot}, {device}, {image}; there is {slut}")
    (no_image,) = refusal(tmp_path, SMALL + FLASH.replace("{image}", "x"))
    assert "expected {image} among the arguments" in no_image
    (no_power,) = refusal(tmp_path, (SMALL + FLASH).replace("feeds: [a]", "feeds: [b]") + SECOND)
    assert no_power == (
        'rig.yaml:27: drives[a].flash.activates: found "power-cycle", expected at-once, or an '
        "outlet that feeds this drive"
    )


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("forbidden", None),
        ("allowed", FlashSpec()),
        ("{mode: 0x7}", FlashSpec(method="write-buffer", mode=7, chunk_kib=4)),
        ("{mode: 0Eh}", FlashSpec(mode=14, activates="power-cycle")),
        ("{mode: 13, activates: at-once}", FlashSpec(mode=13, activates="at-once")),
        ("{method: hdparm}", FlashSpec(method="hdparm", activates="at-once")),
    ],
)
def test_flash_is_a_key_and_how(tmp_path: Path, written: str, made: FlashSpec | None) -> None:
    rig = load(tmp_path, f"{SMALL}    flash: {written}\n")
    assert rig.drives[0].flash == made


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("yes", 'flash: found "yes", expected forbidden, allowed, or a mapping that says how'),
        ("{mode: 0xf}", 'flash.mode: found "0xf", expected 0x5, 0x7, 0xd or 0xe'),
        ("{mode: 4}", 'flash.mode: found "4", expected 0x5, 0x7, 0xd or 0xe'),
        ("{chunk_kib: 0}", 'flash.chunk_kib: found "0", expected KiB in one command, 1 to 16384'),
        (
            "{mode: 5, chunk_kib: 4}",
            "flash: found chunk_kib with mode 0x5, which has no offsets, expected mode 0x7, 0xd or "
            "0xe",
        ),
        (
            "{method: hdparm, mode: 7}",
            "flash: found method hdparm with mode or chunk_kib, expected method write-buffer",
        ),
        (
            "{method: hdparm, runs_on: rig}",
            "flash: found method hdparm with command or runs_on, expected method program",
        ),
        ("{method: program}", "flash: found a program without command, expected it too"),
        (
            '{command: [f, "{image}"], runs_on: rig}',
            "flash: found a program without activates, expected it too",
        ),
    ],
)
def test_a_flash_that_is_no_way_to_do_it(tmp_path: Path, written: str, message: str) -> None:
    (said,) = refusal(tmp_path, f"{SMALL}    flash: {written}\n")
    assert said.partition("drives[a].")[2] == message


def test_a_mode_that_waits_for_power_needs_an_outlet_or_to_be_told(tmp_path: Path) -> None:
    unfed = f"{SMALL}    flash: {{mode: 0xe}}\n{SECOND}".replace("feeds: [a]", "feeds: [b]")
    (said,) = refusal(tmp_path, unfed)
    assert said.endswith(
        'flash.mode: found "0xe", expected activates: at-once with it, or an outlet that feeds '
        "this drive"
    )
    load(tmp_path, unfed.replace("{mode: 0xe}", "{mode: 0xe, activates: at-once}"))


def test_outlets_of_a_drive_and_drives_of_an_outlet() -> None:
    rig = load_rig(BENCH)
    feeding = {
        drive.slot: [outlet.name for outlet in rig.outlets_of(drive)] for drive in rig.drives
    }
    assert feeding == {
        "slot1": ["slot1"],
        "slot2": ["host"],
        "shelf1": ["shelf"],
        "shelf2": ["shelf"],
    }
    host, slot1, shelf = rig.outlets
    assert rig.sharing(host) == rig.drives
    assert [drive.slot for drive in rig.sharing(slot1)] == ["slot1"]
    assert [drive.slot for drive in rig.sharing(shelf)] == ["shelf1", "shelf2"]
    assert [rig.spun_up_by(outlet) for outlet in rig.outlets] == [(), (), rig.drives[2:]]
    with pytest.raises(Misuse, match="found no slot 'slot9', expected one of: slot1, slot2, "):
        rig.drive("slot9")


def test_the_hosts_outlet_spins_up_the_disks_on_its_supply_alone(tmp_path: Path) -> None:
    host = "  - {name: host, pdu: left, outlet: 2, feeds: host}\ndrives:\n"
    disk = "    spin_up_gap_s: 5\n"
    rig = load(tmp_path, SMALL.replace("drives:\n", host) + disk + SECOND + disk)
    one, of_host = rig.outlets
    assert [drive.slot for drive in rig.spun_up_by(one)] == ["a"]
    assert [drive.slot for drive in rig.spun_up_by(of_host)] == ["b"]


def test_the_virtual_rig_is_found_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rig = load_rig(VIRTUAL)
    assert rig.host.ssh_config == tmp_path / "leadline" / "virtual" / "virtual" / "ssh_config"
    assert rig.pdus[0].port == str(tmp_path / "leadline" / "virtual" / "virtual" / "pdu")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert (
        load_rig(VIRTUAL).host.ssh_config
        == Path("~/.cache/leadline/virtual/virtual/ssh_config").expanduser()
    )


def test_paths_are_relative_to_the_file() -> None:
    virtual = load_rig(VIRTUAL).virtual
    assert virtual is not None
    profiles = [drive.profile for drive in virtual.drives]
    assert all(profile and profile.is_absolute() and profile.is_file() for profile in profiles)


@given(st.sampled_from(["serial", "model", "firmware"]), st.text(max_size=30))
def test_what_a_drive_says_of_itself_is_printable(name: str, value: str) -> None:
    drive = load_rig(VIRTUAL).drives[1].model_dump() | {name: value}
    if value and value.isascii() and value.isprintable() and value.strip() == value:
        assert getattr(DriveSpec.model_validate(drive), name) == value
    else:
        with pytest.raises(ValueError, match=name):
            DriveSpec.model_validate(drive)


def test_the_example_and_the_reference_explain_every_field() -> None:
    text = BENCH.read_text() + VIRTUAL.read_text()
    reference = REFERENCE.read_text()
    fields = set(re.findall(r"^\| `(\w+)` \|", reference, re.MULTILINE))
    assert fields == _field_names()
    used = set(re.findall(r"^[ #-]*(\w+):", text, re.MULTILINE))
    assert fields - used <= {"cpus", "kernel", "kernel_arguments", "medium"}


def test_the_reference_has_the_largest_file_that_is_read() -> None:
    assert f"a file larger than {LARGEST >> 20} MiB" in REFERENCE.read_text()


def _field_names() -> set[str]:
    """Every key that a rig file may have."""
    named = {**vars(rig_module), **vars(pdu_module), **vars(flash_module)}.values()
    entries = [each for each in named if isinstance(each, type)]
    return {
        str(field.validation_alias or name)
        for entry in entries
        if issubclass(entry, Entry)
        for name, field in entry.model_fields.items()
        if (entry, name) != (Rig, "path")
    }


@pytest.mark.parametrize(
    ("heading", "entry"),
    [
        ("host", rig_module.HostSpec),
        ("dialogue", DialogueSpec),
        ("drives", DriveSpec),
        ("flash", FlashSpec),
        ("virtual", rig_module.VirtualSpec),
    ],
)
def test_the_reference_has_the_defaults_and_the_bounds(heading: str, entry: type[Entry]) -> None:
    sections = REFERENCE.read_text().split("\n## ")
    (section,) = (each for each in sections if each.startswith(f"{heading}\n"))
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| (\d+) \|", section, re.MULTILINE)
    assert rows
    for name, values, default in rows:
        field = entry.model_fields[name]
        assert field.default == int(default), name
        bounds = [getattr(each, end, None) for each in field.metadata for end in ("ge", "le")]
        if len(known := [bound for bound in bounds if bound is not None]) == 2:
            assert values == f"{min(known)} to {max(known)}", name


def test_the_example_without_what_the_tutorial_leaves_out_is_a_rig_file(tmp_path: Path) -> None:
    tutorial = (REFERENCE.parents[1] / "tutorial" / "first-rig.md").read_text()
    (sentence,) = re.findall(r"^Leave (`.*) out at first", tutorial, re.MULTILINE)
    data = yaml.load(BENCH.read_text(), yaml.BaseLoader)
    for name in re.findall(r"`(\w+)`", sentence):
        for mapping in (data, *data["drives"]):
            mapping.pop(name, None)
    rig = load(tmp_path, yaml.safe_dump(data))
    assert (rig.pdus, rig.outlets) == ((), ()), "a port that is not there would end the run"


def test_where_names_the_line(tmp_path: Path) -> None:
    rig = load(tmp_path, SMALL)
    assert rig.where("drives", 0, "firmware") == f"{tmp_path}/rig.yaml:21"
    assert read(rig.path).data["rig"] == rig.name
