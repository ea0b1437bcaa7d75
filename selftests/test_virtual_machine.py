"""A virtual rig before anything of it runs: its machine, its command line, and wrong input."""

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from leadline.cli import main
from leadline.commands import virtual as command
from leadline.errors import Misuse
from leadline.inventory.fields import packaged
from leadline.inventory.rig import load_rig
from leadline.virtual import access
from leadline.virtual import rig as virtual
from leadline.virtual.accel import Accelerator
from leadline.virtual.machine import (
    Attachment,
    Identity,
    Machine,
    attachments,
    memory_mib,
    profile_identity,
    spec_identity,
)
from leadline.virtual.pdus import units
from leadline.virtual.profile import load_profile
from leadline.virtual.state import State
from selftests.virtual_rig_file import PROFILES, VIRTUAL, changed_rig, own_cache

__all__ = ["own_cache"]  # fixture

SSD = Attachment("ssd1", "ahci", "drive0", 0)


def after(words: list[str], option: str) -> list[str]:
    return [value for name, value in itertools.pairwise(words) if name == option]


def test_qemu_is_told_who_the_drives_are() -> None:
    rig = load_rig(VIRTUAL)
    machine = Machine(Accelerator(False, ""), Path("k"), Path("i"), 700, 2, "libata.force=noncq")
    drives = []
    for place, name in zip(attachments(rig), ("vssd-1.0", "vscsi-1.0"), strict=True):
        identity = profile_identity(load_profile(PROFILES / f"{name}.yaml"))
        drives.append((place.block(Path("/some, where/medium")), place.device(identity)))
    words = machine.arguments(drives, ide=False, console=Path("/a,b/c.log"), qmp="q")
    ssd, scsi = [json.loads(text) for text in after(words, "-device") if text.startswith("{")]
    assert (ssd["driver"], ssd["bus"]) == ("ide-hd", "ide.0")
    assert (ssd["rotation_rate"], scsi["rotation_rate"]) == (1, 1)
    assert (ssd["model"], ssd["serial"], ssd["ver"]) == ("LEADLINE VSSD", "VSSD0001", "1.0")
    assert ssd["wwn"] == 0x5000C5000000A001
    assert (scsi["driver"], scsi["bus"], scsi["scsi-id"]) == ("scsi-hd", "scsi.0", 0)
    assert (scsi["vendor"], scsi["product"]) == ("LEADLINE", "VSCSI")
    node = json.loads(after(words, "-blockdev")[0])
    assert node["node-name"] == ssd["drive"]
    assert node["file"]["filename"] == "/some, where/medium"
    assert node["file"]["cache"] == {"direct": True}
    assert after(words, "-chardev") == ["file,id=console,path=/a,,b/c.log,append=on"]
    assert after(words, "-append")[0].endswith(
        "tsc=reliable norandmaps no_timer_check libata.force=noncq"
    )
    assert not [word for word in words if "hostfwd" in word]  # nobody is let in before it is up


def test_scsi_drives_on_two_controllers_of_the_rig_file_have_two_in_the_machine(
    tmp_path: Path,
) -> None:
    text = VIRTUAL.read_text()
    drive = text[text.index("  - slot: scsi1\n    model") : text.index("virtual:\n  memory")]
    more = drive.replace("scsi1", "scsi2").replace("SCSI0001", "SCSI0002").replace("a002", "a003")
    changes = (
        (drive, f"{drive}{more.replace('controller: virtio-scsi', 'controller: second')}"),
        ("controllers:\n", "controllers:\n  - {name: second, driver: virtio-pci}\n"),
        (
            "    - slot: ssd1\n",
            "    - {slot: scsi2, bus: virtio-scsi, medium: nbd://box}\n    - slot: ssd1\n",
        ),
        ("feeds: [scsi1]", "feeds: [scsi1, scsi2]"),
    )
    second, _, first = attachments(changed_rig(tmp_path, *changes))
    identity = Identity("VSCSI", "S", "1.0", None)
    assert [place.device(identity)["bus"] for place in (second, first)] == ["scsi.0", "scsi1.0"]
    machine = Machine(Accelerator(False, ""), Path("k"), Path("i"), 700, 2, "")
    words = machine.arguments([], ide=False, console=Path("c"), qmp="q", adapters=2)
    adapters = [text for text in after(words, "-device") if text.startswith("virtio-scsi-pci")]
    places = [text.split(",")[1:3] for text in adapters]
    assert places == [["id=scsi", "addr=5"], ["id=scsi1", "addr=6"]]


@pytest.mark.parametrize(
    ("accelerator", "asked", "given"),
    [
        (Accelerator(False, "", parallel=False), None, "1"),
        (Accelerator(False, "", parallel=False), 4, "4"),
        (Accelerator(True, "", parallel=False), None, "2"),
    ],
)
def test_processors_are_as_many_as_asked_for_or_as_suit_the_accelerator(
    accelerator: Accelerator, asked: int | None, given: str
) -> None:
    machine = Machine(accelerator, Path("k"), Path("i"), 700, asked, "")
    words = machine.arguments([], ide=False, console=Path("c"), qmp="q")
    assert after(words, "-smp") == [given]


def test_a_disk_says_how_fast_it_turns() -> None:
    identity = profile_identity(load_profile(PROFILES / "vdisk-1.0.yaml"))
    assert SSD.device(identity)["rotation_rate"] == 7200


@pytest.mark.parametrize(
    ("uri", "server", "export"),
    [
        ("nbd://box:1234/a%20b", {"type": "inet", "host": "box", "port": "1234"}, "a b"),
        ("nbd://box", {"type": "inet", "host": "box", "port": "10809"}, ""),
        ("nbd+unix:///x?socket=/run/s", {"type": "unix", "path": "/run/s"}, "x"),
        ("nbd+unix:///?socket=/c++/a%20s", {"type": "unix", "path": "/c++/a s"}, ""),
    ],
)
def test_an_nbd_uri_becomes_a_block_node(uri: str, server: object, export: str) -> None:
    node = SSD.block(uri)
    assert node["file"] == {"driver": "nbd", "server": server, "export": export}


def test_an_nbd_socket_without_a_path_is_refused() -> None:
    with pytest.raises(Misuse, match="found no socket, expected nbd\\+unix"):
        SSD.block("nbd+unix:///x")


def test_an_nbd_drive_is_who_the_rig_file_says() -> None:
    rig = load_rig(VIRTUAL)
    assert spec_identity(rig, "ssd1") == Identity(
        "LEADLINE VSSD", "VSSD0001", "1.0", "0x5000c5000000a001"
    )


@pytest.mark.parametrize(
    ("model", "vendor", "product"),
    [
        ("LEADLINE VSCSI", "LEADLINE", "VSCSI"),
        ("LEADLINE BIG DISK", "LEADLINE", "BIG DISK"),
        ("VSCSI", "", "VSCSI"),
        ("SPLENDIDLY FAST", "", "SPLENDIDLY FAST"),
    ],
)
def test_the_model_of_a_scsi_nbd_drive_is_its_vendor_and_product(
    tmp_path: Path, model: str, vendor: str, product: str
) -> None:
    rig = changed_rig(tmp_path, ("model: LEADLINE VSCSI", f"model: {model}"))
    found = spec_identity(rig, "scsi1")
    assert (found.vendor, found.model) == (vendor, product)


def test_the_root_file_system_does_not_eat_the_memory_asked_for(tmp_path: Path) -> None:
    initrd = tmp_path / "initrd"
    with initrd.open("wb") as file:
        file.truncate(190 << 20)
    assert memory_mib(1024, initrd) == 1024 + 191
    assert memory_mib(256, initrd) >= 2 * 190 + 128


def test_an_ahci_drive_cannot_have_an_outlet_of_its_own(tmp_path: Path) -> None:
    rig = changed_rig(tmp_path, ("feeds: [scsi1]", "feeds: [ssd1]"))
    with pytest.raises(Misuse, match="slot ssd1 on bus ahci with an outlet of its own"):
        attachments(rig)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("virtual/virtual/pdu", "elsewhere/pdu", "found port .*elsewhere/pdu for pdu, expected"),
        ("virtual/virtual/ssh_config", "x/ssh_config", "expected reach: ssh and ssh_config"),
        (
            "address: leadline-virtual",
            "address: root@leadline-virtual",
            r"rig\.yaml:\d+: host\.address: found root@.*, expected leadline-virtual: it is root",
        ),
        (
            "family: baytech-rpc3\n    port: ~/.cache/leadline/virtual/virtual/pdu\n"
            "    baud: 9600\n    outlets: 8",
            "family: control-line\n    port: ~/.cache/leadline/virtual/virtual/pdu\n    outlets: 2",
            r"rig\.yaml:\d+: pdus\[pdu\]\.family: found control-line, .* no DTR",
        ),
        (
            "family: baytech-rpc3",
            "family: described\n    dialogue: {on: 'on {outlet}', off: 'off {outlet}'}",
            r"rig\.yaml:\d+: pdus\[pdu\]\.family: found described with a dialogue that no",
        ),
        ("vssd-1.0.yaml", "vscsi-1.0.yaml", "the profile of a SCSI drive, expected an ATA"),
        ("  memory_mib: 1024", "  memory_mib: 1024\n  kernel: rig.yaml", "found no Linux kernel"),
        *(
            (
                f"profile: {PROFILES}/vssd-1.0.yaml",
                f"medium: {uri}",
                rf"rig\.yaml:\d+: virtual\.drives\[ssd1\]\.medium: {message}",
            )
            for uri, message in (
                ("nbd://box:99999/x", "nbd://box:99999/x: found Port out of range"),
                ("nbd://[::1/x", ".*expected nbd://host:port/name"),
                ("nbd+unix:///x?socket=banks.sock", ".*found the socket banks.sock, expected nbd"),
            )
        ),
    ],
)
def test_a_rig_file_that_would_not_work_is_refused_before_anything_starts(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    rig = changed_rig(tmp_path, (old, new))
    with pytest.raises(Misuse, match=message):
        virtual.up(rig, say=lambda _: None)
    assert not State(rig.name).root.exists()


def test_the_dialogue_of_the_virtual_unit_is_taken(tmp_path: Path) -> None:
    dialogue = json.dumps(units("described")[0].SPEC["dialogue"])
    described = f"family: described\n    dialogue: {dialogue}"
    rig = changed_rig(tmp_path, ("family: baytech-rpc3", described))
    access.check_unit(rig, 0)


def test_a_real_rig_is_not_started() -> None:
    rig = load_rig(packaged("rigs/example-bench.yaml"))
    with pytest.raises(Misuse, match="this rig is real"):
        virtual.up(rig, say=lambda _: None)


@pytest.mark.parametrize("action", ["up", "down", "status"])
def test_a_real_rig_is_not_said_to_be_up_or_down(
    action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["virtual", action, "--rig", str(packaged("rigs/example-bench.yaml"))]) == 2
    assert "this rig is real" in capsys.readouterr().err


def test_the_command_says_down_in_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["virtual", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"rig": "virtual", "running": False}
    assert main(["virtual", "down", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["was_up"] is False


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["up", "--profile", "ssd1"], "found 'ssd1', expected SLOT=FILE"),
        (["up", "--profile", "nosuch=/dev/null"], "found no slot 'nosuch', expected one of: ssd1"),
        (["up", "--kernel", "/nonexistent"], "cannot be read"),
        (["up", "--rig", "/nonexistent"], "/nonexistent"),
        (["flash", str(VIRTUAL), "ssd1", "p.yaml"], "expected the name of a virtual rig"),
        (["flash", "rigs/virtual.yaml", "ssd1", "p.yaml"], "expected the name of a virtual rig"),
    ],
)
def test_wrong_words_are_usage_errors(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: Any = main(["virtual", *words])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert message in capsys.readouterr().err


def test_a_slot_named_twice_is_refused() -> None:
    one = ("ssd1", PROFILES / "vssd-1.0.yaml")
    arguments = argparse.Namespace(profile=[one, one], rig=None)
    with pytest.raises(Misuse, match="found a slot twice"):
        command._up(arguments)
