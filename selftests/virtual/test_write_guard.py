"""The write guard on real block devices: every use of a drive is refused with its reason."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from leadline.drive.bind import Drive, bind
from leadline.drive.guard import Purpose, Refused, admit, admit_host
from leadline.errors import RigTrouble
from leadline.host.connection import DeviceBusy, Host, open_host
from leadline.inventory.rig import HostSpec
from selftests.quick_guest import Guest, ata, booted, scsi, shell, spec_of

UNDER_TEST, BYSTANDER, SATA = "VSCSI0001", "VSCSI0002", "VSSD0001"
# udev looks at a device whenever it has been written, and keeps it busy for that moment.
REREAD = "until udevadm settle; blockdev --rereadpt $dev 2>&1; do :; done; udevadm settle"
WIPE = (
    "swapoff -a; umount -q /mnt || true; vgchange -qq -an || true; mdadm -q --stop --scan || true;"
    "dmsetup remove_all; for part in ${dev}?; do [ ! -b $part ] || wipefs -aqf $part; done;"
    "wipefs -aqf $dev; blockdev --setrw $dev; " + REREAD
)
PARTITIONED = (
    """\
python3 -c '
import struct, sys
table = bytearray(512)
for n, start in enumerate((2048, 206848)):
    struct.pack_into("<BBBBBBBBII", table, 446 + 16 * n, 0, 0, 0, 0, 0x83, 0, 0, 0, start, 204800)
table[510:] = b"\\x55\\xaa"
open(sys.argv[1], "r+b").write(table)' $dev
"""
    + REREAD
    + "\n"
)
MIRROR = "mdadm -q --create /dev/md7 --level=1 -n2 --run --force --metadata=1.2 $dev missing"
MAPPING = "dmsetup create lead --table '0 8 linear '$dev' 0'"
EXT4 = "mkfs.ext4 -q -F"
MOUNT = "mkdir -p /mnt; mount"
VOLUME = (
    "pvcreate -qq $1 && vgcreate -qq vg $1 && lvcreate -qq -Zn -L 20M -n lv vg; dmsetup mknodes"
)


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    folder = tmp_path_factory.mktemp("guard")
    drives = [ata(folder, SATA, "ide.0"), scsi(folder, UNDER_TEST, 0), scsi(folder, BYSTANDER, 1)]
    with booted(folder, drives) as running:
        yield running


@pytest.fixture(scope="module")
def host(guest: Guest) -> Iterator[Host]:
    with open_host(guest.spec, deadline=60) as opened:
        yield opened


@pytest.fixture(scope="module")
def bound(host: Host) -> Drive:
    return bind(host, spec_of(UNDER_TEST))


@pytest.fixture
def drive(host: Host, bound: Drive) -> Iterator[Drive]:
    yield bound
    shell(host, WIPE, bound)


def refused(host: Host, drive: Drive, purpose: Purpose = "write") -> tuple[str, ...]:
    with pytest.raises(Refused) as caught:
        admit(host, drive.spec, drive, purpose, allow_writes=True)
    assert drive.spec.serial in str(caught.value)
    assert all(reason in str(caught.value) for reason in caught.value.reasons)
    handle = host.hold_device(drive.node, exclusive=False)  # the guard holds nothing any more
    host.release_device(handle)
    return caught.value.reasons


def test_a_free_drive_is_admitted_and_held_exclusively(host: Host, drive: Drive) -> None:
    with admit(host, drive.spec, drive, "write", allow_writes=True):
        with pytest.raises(DeviceBusy):
            host.hold_device(drive.node)
        said = shell(host, "mkfs.ext4 -q -F $dev 2>&1 || true", drive)
        assert "in use" in said
    host.release_device(host.hold_device(drive.node))


def test_writing_needs_both_keys(host: Host, drive: Drive) -> None:
    with pytest.raises(Refused, match="--allow-writes was not given"):
        admit(host, drive.spec, drive, "write")
    forbidden = drive.spec.model_copy(update={"writes": "forbidden"})
    with pytest.raises(Refused, match="does not say `writes: allowed`"):
        admit(host, forbidden, drive, "write", allow_writes=True)
    for purpose in ("cut power", "delete", "change a setting"):
        admit(host, forbidden, drive, purpose).release()


USES = {
    "mounted": (EXT4 + " $dev;" + MOUNT + " $dev /mnt", "{name} is mounted at /mnt"),
    "swap": ("mkswap -q $dev; swapon $dev", "{name} is swap"),
    "md": (MIRROR, "a member of md7, an md array (raid1"),
    "lvm": (VOLUME.replace("$1", "$dev"), "a member of vg-lv, an LVM volume"),
    "dm": (MAPPING, "a member of lead, a dm device"),
    # What makes these a volume of that kind is the prefix of the mapping's uuid.
    "crypt": (MAPPING + " --uuid CRYPT-LUKS2-0-lead", "a member of lead, an encrypted volume"),
    "multipath": (MAPPING + " --uuid mpath-lead", "a member of lead, a multipath device"),
    "mounted partition": (
        PARTITIONED + EXT4 + " ${dev}1;" + MOUNT + " ${dev}1 /mnt",
        "{name}1 is mounted at /mnt",
    ),
    "swap on a partition": (PARTITIONED + "mkswap -q ${dev}2; swapon ${dev}2", "{name}2 is swap"),
    "mounted volume on a partition": (
        PARTITIONED
        + VOLUME.replace("$1", "${dev}1")
        + f"; {EXT4} /dev/mapper/vg-lv;"
        + MOUNT
        + " /dev/mapper/vg-lv /mnt",
        "vg-lv is mounted at /mnt",
    ),
}


@pytest.mark.parametrize("use", USES)
def test_a_drive_in_use_is_refused(host: Host, drive: Drive, use: str) -> None:
    script, reason = USES[use]
    shell(host, script, drive)
    purposes: tuple[Purpose, ...] = ("write", "cut power")
    for purpose in purposes:
        reasons = refused(host, drive, purpose)
        assert any(reason.format(name=drive.name) in each for each in reasons), (purpose, reasons)


def test_bcache_is_refused(host: Host, drive: Drive) -> None:
    shell(host, "make-bcache -B $dev; echo $dev > /sys/fs/bcache/register || true", drive)
    try:
        shell(host, "until [ -e /sys/block/bcache0/bcache/stop ]; do sleep 0.1; done")
        assert any("a member of bcache0, a bcache device" in each for each in refused(host, drive))
    finally:
        stop = (
            "echo 1 > /sys/block/bcache0/bcache/stop; while [ -e /sys/block/bcache0 ]; do :; done"
        )
        shell(host, stop)
    assert any("bcache on" in each for each in refused(host, drive))


MARKS = {
    "a stopped array": (MIRROR + "; mdadm -q --stop /dev/md7", "linux_raid_member on {name}"),
    "an idle volume group": ("pvcreate -qq $dev", "LVM2_member on {name}"),
    "one on a partition": (PARTITIONED + "pvcreate -qq ${dev}2", "LVM2_member on {name}2"),
}


@pytest.mark.parametrize("mark", MARKS)
def test_an_idle_member_is_refused_even_if_it_is_named(host: Host, drive: Drive, mark: str) -> None:
    script, reason = MARKS[mark]
    shell(host, script, drive)
    names = ("linux_raid_member", "LVM2_member", "dos")
    named = drive.spec.model_copy(update={"signatures": names})
    with pytest.raises(Refused) as caught:
        admit(host, named, drive, "cut power")
    (found,) = caught.value.reasons
    assert reason.format(name=drive.name) in found
    assert "stopped or not" in found


def test_a_signature_that_the_rig_file_does_not_name(host: Host, drive: Drive) -> None:
    shell(host, PARTITIONED + EXT4 + " ${dev}1", drive)
    (reason,) = refused(host, drive)
    assert f"dos on {drive.name}, ext4 on {drive.name}1" in reason
    assert "`signatures` in the rig file" in reason
    half = drive.spec.model_copy(update={"signatures": ("dos",)})
    with pytest.raises(Refused, match=f"ext4 on {drive.name}1") as caught:
        admit(host, half, drive, "write", allow_writes=True)
    assert "dos" not in caught.value.reasons[0]
    named = drive.spec.model_copy(update={"signatures": ("dos", "ext4")})
    admit(host, named, drive, "write", allow_writes=True).release()


def test_a_read_only_drive_is_not_written(host: Host, drive: Drive) -> None:
    shell(host, "blockdev --setro $dev", drive)
    (reason,) = refused(host, drive)
    assert "read-only" in reason
    admit(host, drive.spec, drive, "cut power").release()


def test_a_program_that_holds_the_drive(host: Host, drive: Drive, guest: Guest) -> None:
    with open_host(guest.spec, deadline=60) as other:
        other.hold_device(drive.node)
        (reason,) = refused(host, drive, "delete")
    assert "something holds it exclusively" in reason
    assert f"fuser -v {drive.node}" in reason


def test_a_node_that_became_another_drives(host: Host, drive: Drive) -> None:
    for serial in (BYSTANDER, SATA):
        other = bind(host, spec_of(serial))
        moved = replace(drive, node=other.node, name=other.name)
        with pytest.raises(RigTrouble, match=f"no longer slot .*is '{serial}'") as caught:
            admit(host, moved.spec, moved, "write", allow_writes=True)
        assert "bound again" in str(caught.value)
        host.release_device(host.hold_device(other.node))


def test_leave_that_is_used_again_confirms_who_is_held(host: Host, drive: Drive) -> None:
    with admit(host, drive.spec, drive, "change a setting") as held:
        held.confirm()
        impostor = replace(drive.identity, serial="ANOTHER")
        with pytest.raises(RigTrouble, match="another drive has its name: serial was 'ANOTHER'"):
            replace(held, drive=replace(drive, identity=impostor)).confirm()
    with pytest.raises(ValueError, match="admitted anew"):
        held.confirm()


def test_a_mounted_drive_under_the_old_name_is_told_as_another_drive(
    host: Host, drive: Drive
) -> None:
    other = bind(host, spec_of(BYSTANDER))
    shell(host, EXT4 + " $dev;" + MOUNT + " $dev /mnt", other)
    try:
        moved = replace(drive, node=other.node, name=other.name)
        with pytest.raises(RigTrouble, match=f"is '{BYSTANDER}'"):
            admit(host, moved.spec, moved, "cut power")
    finally:
        shell(host, WIPE, other)


def test_a_node_that_is_gone(host: Host, drive: Drive) -> None:
    gone = replace(drive, node="/dev/sdzz", name="sdzz")
    with pytest.raises(RigTrouble, match="cannot be opened"):
        admit(host, gone.spec, gone, "delete")


# A whole host.


def test_a_hosts_power_takes_all_its_drives(host: Host, drive: Drive) -> None:
    drives = [drive, bind(host, spec_of(SATA))]
    with admit_host(host, drives) as admitted:
        assert admitted.drives == tuple(drives)
        for each in drives:
            with pytest.raises(DeviceBusy):
                host.hold_device(each.node)
    for each in drives:
        host.release_device(host.hold_device(each.node))


def test_a_drive_that_is_held_already_needs_no_second_look(host: Host, drive: Drive) -> None:
    sata = bind(host, spec_of(SATA))
    with admit(host, drive.spec, drive, "cut power") as held:
        admitted = admit_host(host, [drive, sata], held=[held])
        with pytest.raises(DeviceBusy):
            host.hold_device(drive.node)
        admitted.release()  # of all of them, or its node would keep its name
        assert not held.held
        host.release_device(host.hold_device(drive.node))


def test_a_hosts_power_stays_on_while_one_of_its_drives_is_in_use(host: Host, drive: Drive) -> None:
    sata = bind(host, spec_of(SATA))
    shell(host, EXT4 + " $dev;" + MOUNT + " $dev /mnt", drive)
    with pytest.raises(Refused, match="is mounted at /mnt"):
        admit_host(host, [sata, drive])
    host.release_device(host.hold_device(sata.node))


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (EXT4 + " $dev;" + MOUNT + " $dev /mnt", "is mounted at /mnt"),
        ("mkswap -q $dev; swapon $dev", "is swap"),
        (MIRROR, "a member of md7"),
    ],
)
def test_a_hosts_power_stays_on_while_an_undeclared_disk_is_in_use(
    host: Host, drive: Drive, script: str, reason: str
) -> None:
    other = bind(host, spec_of(BYSTANDER))
    shell(host, script, other)
    try:
        with pytest.raises(Refused, match=f"{other.name} is in use .*{reason}"):
            admit_host(host, [drive])
        host.release_device(host.hold_device(drive.node))
    finally:
        shell(host, WIPE, other)


def test_a_boot_medium_may_be_mounted(host: Host, drive: Drive) -> None:
    boot = bind(host, spec_of(BYSTANDER))
    shell(host, EXT4 + " $dev; mkdir -p /boot; mount $dev /boot", boot)
    try:
        with admit_host(host, [drive]) as admitted:
            assert admitted.at_risk == ("/boot",)
        # Declared as a drive under test it is not.
        with pytest.raises(Refused, match="carries the running system"):
            admit_host(host, [drive, boot])
    finally:
        shell(host, "umount /boot; " + WIPE, boot)


def test_the_machine_that_leadline_runs_on_is_never_cut() -> None:
    with (
        open_host(HostSpec(reach="local")) as here,
        pytest.raises(Refused, match="Leadline itself runs on"),
    ):
        admit_host(here, [])
