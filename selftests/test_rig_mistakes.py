"""Mistakes in rig files: each is named with its line."""

import re
from pathlib import Path

import pytest
import yaml

from selftests.rig_specimens import BENCH, SMALL, VIRTUAL, refusal


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
