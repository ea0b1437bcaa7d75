"""Which disk is the rig file's drive, and whether the drive agrees."""

from dataclasses import replace

import pytest

from leadline.drive.ask import ata_identity, trusted
from leadline.drive.bind import (
    Controller,
    Identity,
    Seen,
    choose,
    controller_disagreements,
    differences,
    disagreements,
    parse_disks,
)
from leadline.drive.identify import decode
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.inventory.rig import ControllerSpec
from selftests.drive_specimens import SPEC
from selftests.identify_images import image

WWN = "0x5000c50000000001"
OTHER_WWN = "0x5000c50000000002"


def disk(name: str, serial: str, wwn: str = "", model: str = "LEADLINE SPECIMEN") -> Seen:
    return Seen(name, serial, wwn, model, "1.0", "0:0:0:0", "sata", 512_110_190_592)


BYSTANDER = disk("sda", "OTHER001", OTHER_WWN, "SOME DISK")


def test_the_drive_is_found_by_serial_and_wwn_whatever_its_name() -> None:
    wanted = disk("sdq", "SPEC0001", WWN)
    assert choose("bench", SPEC, [BYSTANDER, wanted]) is wanted


def test_the_drive_is_found_by_serial_where_no_wwn_is_known() -> None:
    wanted = disk("sdq", "SPEC0001")
    assert choose("bench", SPEC, [BYSTANDER, wanted]) is wanted
    without = SPEC.model_copy(update={"wwn": None})
    assert choose("bench", without, [BYSTANDER, replace(wanted, wwn=WWN)]).name == "sdq"


def test_udev_writes_the_spaces_of_a_serial_as_underscores() -> None:
    spec = SPEC.model_copy(update={"serial": "WD  1234 5", "wwn": None})
    assert choose("bench", spec, [BYSTANDER, disk("sdb", "WD_1234_5")]).name == "sdb"


def test_an_absent_drive_is_the_rigs_trouble_and_lists_what_is_there() -> None:
    with pytest.raises(RigTrouble) as caught:
        choose("bench", SPEC, [BYSTANDER])
    said = str(caught.value)
    assert "slot1" in said
    assert "SPEC0001" in said
    assert f"sda: SOME DISK, serial OTHER001, WWN {OTHER_WWN}" in said
    assert "is its outlet on?" in said


def test_a_rig_without_any_drive_says_so() -> None:
    with pytest.raises(RigTrouble, match="none at all"):
        choose("bench", SPEC, [])


@pytest.mark.parametrize(
    ("second", "by"),
    [
        (disk("sdc", "SPEC0001", WWN), "serial number"),
        (disk("sdc", "SPEC0001", OTHER_WWN), "serial number"),
        (disk("sdc", "SPEC0009", WWN), "WWN"),
    ],
)
def test_a_drive_that_is_there_twice_is_refused(second: Seen, by: str) -> None:
    with pytest.raises(RigTrouble, match=f"2 times on bench, by its {by}") as caught:
        choose("bench", SPEC, [disk("sdb", "SPEC0001", WWN), second])
    assert "sdb:" in str(caught.value)
    assert "sdc:" in str(caught.value)


def test_a_serial_with_another_wwn_is_not_the_drive() -> None:
    with pytest.raises(Misuse, match="that serial number has another WWN") as caught:
        choose("bench", SPEC, [BYSTANDER, disk("sdb", "SPEC0001", "0x5000c50000000009")])
    assert WWN in str(caught.value)
    assert "0x5000c50000000009" in str(caught.value)
    assert "nothing was changed" in str(caught.value)


def test_a_wwn_with_another_serial_is_not_the_drive() -> None:
    with pytest.raises(Misuse, match="that WWN has another serial number"):
        choose("bench", SPEC, [disk("sdb", "SPEC0009", WWN)])


LSBLK = b"""{"blockdevices": [
 {"name":"sda","serial":"S1","wwn":"0x5000c50000000001","vendor":"ATA     ","model":"A B",
  "rev":"1.0 ","hctl":"0:0:0:0","tran":"sata","type":"disk","size":1024},
 {"name":"sdb","serial":"S2","wwn":"eui.0025","vendor":"ACME    ","model":"DISK","rev":null,
  "hctl":"1:0:0:0","tran":null,"type":"disk","size":"2048"},
 {"name":"sr0","serial":null,"wwn":null,"vendor":null,"model":null,"rev":null,
  "hctl":"2:0:0:0","tran":"sata","type":"rom","size":0},
 {"name":"vda","serial":null,"wwn":null,"vendor":"0x1af4","model":null,"rev":null,
  "hctl":null,"tran":"virtio","type":"disk","size":1024},
 {"name":"sdc","serial":"\\u001b[2J","wwn":null,"vendor":null,"model":null,"rev":null,
  "hctl":"3:0:0:0","tran":null,"type":"disk","size":null}
]}"""


def test_disks_are_read_from_lsblk() -> None:
    ata, scsi, strange = parse_disks("bench", LSBLK)
    assert ata == Seen("sda", "S1", WWN, "A B", "1.0", "0:0:0:0", "sata", 1024)
    assert (scsi.model, scsi.wwn, scsi.size_bytes) == ("ACME DISK", "", 2048)
    assert "\x1b" not in strange.serial  # what a drive says never steers a terminal


def test_a_rig_without_block_devices_has_none() -> None:
    assert parse_disks("bench", b"") == ()


@pytest.mark.parametrize("output", [b"lsblk: unknown column", b"{}", b'{"blockdevices": [{}]}'])
def test_what_is_not_lsblks_json_is_the_rigs_trouble(output: bytes) -> None:
    with pytest.raises(RigTrouble, match="bench: lsblk printed something other"):
        parse_disks("bench", output)


def test_a_drive_that_says_what_the_rig_file_says_agrees() -> None:
    identity = ata_identity(decode(image()))
    assert disagreements(SPEC, identity, "1.0") == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "LEADLINE SPECIMEN 2"}, "model: 'LEADLINE SPECIMEN' in the rig file"),
        ({"serial": "SPEC00012"}, "serial: 'SPEC0001' in the rig file, 'SPEC00012' by"),
        ({"firmware": "1.0.1"}, "firmware: '1.0' in the rig file, '1.0.1' by"),
        ({"wwn": None}, "WWN: '0x5000c50000000001' in the rig file, 'none' by"),
    ],
)
def test_each_disagreement_is_named(change: dict[str, str | None], said: str) -> None:
    identity = ata_identity(decode(image()))
    changed = Identity(
        model=change.get("model") or identity.model,
        serial=change.get("serial") or identity.serial,
        wwn=change.get("wwn", identity.wwn),
        firmware=change.get("firmware") or identity.firmware,
        capacity_bytes=identity.capacity_bytes,
    )
    (found,) = disagreements(SPEC, changed, "1.0")
    assert found.startswith(said)


def test_a_scsi_model_may_be_written_with_or_without_its_vendor() -> None:
    identity = Identity("ACME DISK 1", "S", None, "0001", 512)
    for model, count in (("ACME DISK 1", 0), ("DISK 1", 0), ("DISK", 1), ("ACME", 1)):
        spec = SPEC.model_copy(
            update={"model": model, "serial": "S", "wwn": None, "protocol": "sas"}
        )
        assert len(disagreements(spec, identity, "0001")) == count, model


def test_the_controller_is_held_against_the_rig_file() -> None:
    found = Controller("0000:00:1f.2", "8086:2922", "ahci", "host0")
    agreed = ControllerSpec(name="a", driver="ahci")
    assert controller_disagreements(agreed, found) == []
    wrong = ControllerSpec(name="a", driver="mpt3sas", pci_id="1000:0097")
    assert controller_disagreements(wrong, found) == [
        "PCI id of controller a: '1000:0097' in the rig file, '8086:2922' on the rig",
        "driver of controller a: 'mpt3sas' in the rig file, 'ahci' on the rig",
    ]


def test_a_controller_says_where_it_is_and_what_drives_it() -> None:
    assert str(Controller("0000:00:1f.2", "8086:2922", "ahci", "host0")) == (
        "ahci at 0000:00:1f.2 (8086:2922)"
    )
    assert str(Controller("", "", "", "host0")) == "no driver known"


def test_identity_is_compared_across_a_power_cycle() -> None:
    before = Identity("M", "S", WWN, "1.0", 1000)
    assert differences(before, before) == []
    after = Identity("M", "S2", WWN, "1.1", 900)
    assert differences(before, after) == [
        "serial was 'S' and is 'S2'",
        "firmware was '1.0' and is '1.1'",
        "capacity in bytes was 1000 and is 900",
    ]


def test_identify_data_that_cannot_be_believed_is_the_drives_fault() -> None:
    assert trusted(image(), "bench: /dev/sda").serial == "SPEC0001"
    assert trusted(image(signed=False), "bench: /dev/sda").checksum == "absent"
    broken = bytearray(image())
    broken[54] ^= 1
    with pytest.raises(DriveFault, match=r"/dev/sda: .*checksum that does not hold"):
        trusted(bytes(broken), "bench: /dev/sda")
    with pytest.raises(DriveFault, match="empty"):
        trusted(bytes(512), "bench: /dev/sda")
