"""Rig files: what they mean, and that each mistake is named with its line."""

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
from leadline.inventory.fields import Entry, packaged
from leadline.inventory.flash import FlashSpec
from leadline.inventory.pdu_dialogue import DialogueSpec
from leadline.inventory.rig import DriveSpec, Rig, load_rig

VIRTUAL = packaged("rigs/virtual.yaml")
BENCH = packaged("rigs/example-bench.yaml")
REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "rig-file.md"

SMALL = """\
rig: small
host:
  reach: local
controllers:
  - name: onboard
    driver: ahci
pdus:
  - name: left
    family: baytech-rpc3
    port: /dev/ttyS0
outlets:
  - name: one
    pdu: left
    outlet: 1
    feeds: [a]
drives:
  - slot: a
    model: MODEL A
    serial: 00123456
    wwn: 0x5000c500a1b2c3d4
    firmware: 0007
    controller: onboard
    protocol: sata
"""
SECOND = """\
  - slot: b
    model: MODEL B
    serial: off
    firmware: 1e3
    controller: onboard
    protocol: sas
"""


def load(folder: Path, text: str) -> Rig:
    path = folder / "rig.yaml"
    path.write_text(text)
    return load_rig(path)


def refusal(folder: Path, text: str) -> list[str]:
    with pytest.raises(Misuse) as caught:
        load(folder, text)
    return str(caught.value).replace(f"{folder}/", "").splitlines()


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


@pytest.mark.parametrize("written", ["0x5000c500a1b2c3d", "0x0000000000000000", "5000c500a1b2c3dg"])
def test_what_is_no_wwn(tmp_path: Path, written: str) -> None:
    assert refusal(tmp_path, SMALL.replace("0x5000c500a1b2c3d4", written)) == [
        f'rig.yaml:20: drives[a].wwn: found "{written}", expected a world wide name: '
        "16 (or 32) hex digits, as in 0x5000c500a1b2c3d4"
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "serial: 0",
            "serail: 0",
            "rig.yaml:19: drives[a].serail: found an unknown key, expected serial? (one of slot, "
            "model, serial, wwn, firmware, firmware_sha256, controller, protocol, writes, "
            "signatures, off_s, ready_s, spin_up_gap_s, power_budget, flash)",
        ),
        (
            "outlet: 1",
            "outlet: 9",
            'rig.yaml:14: outlets[one].outlet: found 9, expected 1 to 8: PDU "left" (line 8) '
            "has no more",
        ),
        (
            "outlet: 1",
            "outlet: 0",
            'rig.yaml:14: outlets[one].outlet: found "0", expected the outlet\'s number on its '
            "PDU, from 1",
        ),
        (
            "pdu: left",
            "pdu: right",
            'rig.yaml:13: outlets[one].pdu: found "right", expected one of the pdus: "left"',
        ),
        (
            "[a]",
            "[a, c]",
            'rig.yaml:15: outlets[one].feeds[2]: found "c", expected one of the slots: "a"',
        ),
        (
            "[a]",
            "a",
            'rig.yaml:15: outlets[one].feeds: found "a", expected host, or a list of slots, '
            "as in [slot1, slot2]",
        ),
        (
            "controller: onboard",
            "controller: hba",
            'rig.yaml:22: drives[a].controller: found "hba", expected one of the controllers: '
            '"onboard"',
        ),
        (
            "controller: onboard",
            "controller:",
            "rig.yaml:22: drives[a].controller: found nothing, expected one of the controllers: "
            '"onboard"',
        ),
        (
            "pdu: left",
            "pdu:",
            'rig.yaml:13: outlets[one].pdu: found nothing, expected one of the pdus: "left"',
        ),
        (
            "[a]",
            '[a, ""]',
            'rig.yaml:15: outlets[one].feeds[2]: found nothing, expected one of the slots: "a"',
        ),
        (
            "reach: local",
            "reach: ssh",
            "rig.yaml:2: host: found reach ssh without an address, expected address too",
        ),
        (
            "reach: local",
            "reach: local\n  address: a.example.org",
            "rig.yaml:2: host: found reach local with an address or ssh_config, expected reach "
            "ssh, or neither",
        ),
        (
            "/dev/ttyS0",
            "ttyS0",
            'rig.yaml:10: pdus[left].port: found "ttyS0", expected an absolute path, a path from '
            "~/, or a URL as in socket://host:port",
        ),
        (
            "slot: a",
            "slot: host",
            'rig.yaml:17: drives[host].slot: found "host", expected another name: an outlet that '
            "feeds host feeds the host itself",
        ),
        (
            "firmware: 0007",
            "firmware: 123456789",
            "rig.yaml:17: drives[a]: found a firmware of 9 characters, expected at most 8: "
            "IDENTIFY DEVICE has no room for more",
        ),
        (
            "protocol: sata",
            "protocol: sata\n    power_budget: {}",
            "rig.yaml:24: drives[a].power_budget: found no budget, expected power_cycles, "
            "emergency_unloads or both",
        ),
        (
            "protocol: sata",
            "protocol: sata\n    power_budget: {power_cycles: -1}",
            'rig.yaml:24: drives[a].power_budget.power_cycles: found "-1", expected a number, '
            "0 or more",
        ),
        (
            "protocol: sata",
            "protocol: nvme",
            'rig.yaml:23: drives[a].protocol: found "nvme", expected sata, sas or scsi',
        ),
        (
            "protocol: sata",
            "protocol: sata\n    off_s: .inf",
            'rig.yaml:24: drives[a].off_s: found ".inf", expected seconds of power off, '
            "more than 0",
        ),
        (
            "protocol: sata",
            "protocol: sata\n    spin_up_gap_s: -1",
            'rig.yaml:24: drives[a].spin_up_gap_s: found "-1", expected seconds from power on for '
            "which no other disk is switched on, 0 to 600",
        ),
        (
            "protocol: sata",
            "protocol: sata\n    spin_up_gap_s: 31",
            "rig.yaml:17: drives[a]: found spin_up_gap_s 31 with ready_s 30, expected no more than "
            "ready_s: a disk that is ready has spun up",
        ),
    ],
)
def test_each_mistake_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert message in refusal(tmp_path, SMALL.replace(old, new, 1))


def test_a_drive_or_an_outlet_given_twice(tmp_path: Path) -> None:
    twin = SMALL[SMALL.index("  - slot: a") :].replace("0x5000c5", "naa.5000C5")
    outlet = "  - name: one\n    pdu: left\n    outlet: 01\n    feeds: host\ndrives:\n"
    text = SMALL.replace("drives:\n", outlet) + twin
    assert refusal(tmp_path, text) == [
        'rig.yaml:16: outlets[one].name: found "one", expected each name once; it is given '
        "already on line 12",
        'rig.yaml:18: outlets[one].outlet: found 01 of PDU "left", expected each outlet once; '
        "it is given already on line 14",
        'rig.yaml:28: drives[a].slot: found "a", expected each slot once; it is given already on '
        "line 21",
        'rig.yaml:30: drives[a].serial: found "00123456", expected each serial number once; it '
        "is given already on line 23",
        'rig.yaml:31: drives[a].wwn: found "naa.5000C500a1b2c3d4", expected each WWN once; it is '
        "given already on line 24",
    ]


def test_entries_are_checked_even_where_the_model_is_not_content(tmp_path: Path) -> None:
    text = SMALL.replace("pdu: left", "pdu: right") + "colour: red\n"
    assert [line.split(": ")[1] for line in refusal(tmp_path, text)] == [
        "outlets[one].pdu",
        "colour",
    ]


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


def test_a_virtual_rig_makes_every_drive_from_one_source(tmp_path: Path) -> None:
    def virtual(drives: str) -> list[str]:
        return refusal(tmp_path, f"{SMALL}virtual:\n  drives:\n{drives}")

    assert 'rig.yaml:25: virtual.drives: found no entry for slot "a", expected one' in virtual(
        "    - {slot: b, bus: ahci, profile: x.yaml}\n"
    )
    assert virtual("    - {slot: a, bus: ahci}\n") == [
        "rig.yaml:26: virtual.drives[a]: found neither a profile nor a medium, expected one of them"
    ]
    both = "    - {slot: a, bus: ahci, profile: x.yaml, medium: 'nbd://localhost/x'}\n"
    assert "found both a profile and a medium" in virtual(both)[0]
    assert "expected an NBD URI" in virtual("    - {slot: a, bus: ahci, medium: /x}\n")[0]


def _keys(node: yaml.Node) -> list[yaml.Node]:
    """Every key of a file."""
    if isinstance(node, yaml.MappingNode):
        return [key for key, _ in node.value] + [k for _, value in node.value for k in _keys(value)]
    if isinstance(node, yaml.SequenceNode):
        return [key for item in node.value for key in _keys(item)]
    return []


def _scalars(node: yaml.Node) -> list[yaml.Node]:
    """Every value of a file that is text."""
    if isinstance(node, yaml.MappingNode):
        return [found for _, value in node.value for found in _scalars(value)]
    if isinstance(node, yaml.SequenceNode):
        return [found for item in node.value for found in _scalars(item)]
    return [node]


@pytest.mark.parametrize("source", [VIRTUAL, BENCH], ids=["virtual", "bench"])
@pytest.mark.parametrize(
    ("nodes", "mutation"),
    [
        (_keys, "zz-{}"),
        (_scalars, "{{nonsense: 1}}"),
        (_scalars, "[[nonsense]]"),
        (_scalars, '"\\x07 {}"'),
    ],
    ids=["renamed key", "mapping for text", "list for text", "control character"],
)
def test_every_mutation_is_named_with_its_line(
    tmp_path: Path, source: Path, nodes: object, mutation: str
) -> None:
    assert callable(nodes)
    text = source.read_text()
    found = nodes(yaml.compose(text, Loader=yaml.BaseLoader))
    assert len(found) > 30
    for node in found:
        start, end, line = node.start_mark.index, node.end_mark.index, node.start_mark.line + 1
        mutant = text[:start] + mutation.format(node.value) + text[end:]
        if _is_free_text(text, line) and "x07" in mutation:
            continue
        messages = refusal(tmp_path, mutant)
        assert any(m.startswith(f"rig.yaml:{line}: ") for m in messages), (
            mutant[start:end],
            messages,
        )


def _is_free_text(text: str, line: int) -> bool:
    """Whether a line holds a sentence for people, in which anything may stand."""
    return (
        re.match(r"description|kernel_arguments", text.splitlines()[line - 1].strip()) is not None
    )


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
    assert fields - used <= {"kernel", "kernel_arguments", "medium"}


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
