"""What speaks against touching a drive, read from the kernel's own words."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from leadline.drive import guard
from leadline.drive.bind import Drive
from leadline.drive.guard import (
    Admission,
    Refused,
    admit,
    admit_rig,
    is_own_machine,
    reasons_against,
)
from leadline.drive.in_use import (
    Node,
    Signature,
    Uses,
    parse_mounts,
    parse_signatures,
    parse_swaps,
    parse_tree,
    uses_among,
    uses_of_all,
)
from leadline.errors import RigTrouble
from leadline.host.connection import Host, open_host
from leadline.host.trouble import DeadlinePassed, ProgramFailed
from leadline.inventory.rig import HostSpec
from selftests.drive_specimens import SPEC, sata_drive

TREE = json.dumps(
    {
        "blockdevices": [
            {
                "name": "sda",
                "kname": "sda",
                "type": "disk",
                "maj:min": "8:0",
                "children": [
                    {"name": "sda1", "kname": "sda1", "type": "part", "maj:min": "8:1"},
                    {
                        "name": "sda2",
                        "kname": "sda2",
                        "type": "part",
                        "maj:min": "8:2",
                        "children": [
                            {"name": "vg-lv", "kname": "dm-0", "type": "lvm", "maj:min": "253:0"}
                        ],
                    },
                ],
            }
        ]
    }
).encode()

MOUNTS = r"""22 1 0:20 / / rw,relatime - overlay overlay rw
23 22 8:1 / /boot/efi rw,relatime shared:1 - vfat /dev/sda1 rw
24 22 253:0 / /srv/data\040here ro,relatime shared:2 - ext4 /dev/mapper/vg-lv rw
25 22 0:31 /sub /srv/b rw,relatime - btrfs /dev/sda1 rw
26 22 0:32 / /srv/nfs rw,relatime - nfs server:/export rw
short line
"""


def uses(mounts: str = "", swaps: str = "") -> Uses:
    (disk,) = parse_tree("bench", TREE)
    return uses_among(disk, parse_mounts(mounts), parse_swaps(swaps))


def test_mounts_are_read_as_the_kernel_writes_them() -> None:
    mounts = parse_mounts(MOUNTS)
    assert [mount.point for mount in mounts] == [
        "/",
        "/boot/efi",
        "/srv/data here",
        "/srv/b",
        "/srv/nfs",
    ]
    assert [mount.read_only for mount in mounts] == [False, False, True, False, False]


def test_a_mount_counts_wherever_on_the_disk_it_is() -> None:
    found = [(node.name, mount.point) for node, mount in uses(MOUNTS).mounts]
    assert found == [
        ("sda1", "/boot/efi"),
        ("sda1", "/srv/b"),  # btrfs, which mounts under a device number of its own
        ("vg-lv", "/srv/data here"),
    ]


@pytest.mark.parametrize(
    ("point", "system"),
    [
        ("/", True),
        ("/boot", True),
        ("/boot/efi", True),
        ("/usr", True),
        ("/run/live/medium", True),
        ("/run/media/ann/BACKUP", False),
        ("/srv", False),
        ("/mnt", False),
        ("/bootleg", False),
        ("/home", False),
    ],
)
def test_the_running_system_is_known_by_where_it_is_mounted(point: str, system: bool) -> None:
    assert uses(f"23 22 8:1 / {point} rw - ext4 /dev/sda1 rw").is_system is system


def test_swap_is_found_on_partitions_and_volumes() -> None:
    head = "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n"
    for line, name in (("/dev/sda1", "sda1"), ("/dev/dm-0", "vg-lv")):
        (node,) = uses(swaps=f"{head}{line}   partition\t102396\t0\t-2\n").swaps
        assert node.name == name
    assert uses(swaps=f"{head}/swapfile  file\t102396\t0\t-2\n").swaps == ()


def test_members_are_what_a_volume_manager_made() -> None:
    assert [node.name for node in uses().members] == ["vg-lv"]
    bcache = Node("bcache0", "bcache0", "disk", "251:0", ())
    kpartx = Node("mpatha-part1", "dm-3", "part", "253:3", ())
    assert bcache.is_member
    assert kpartx.is_member
    assert not Node("sda1", "sda1", "part", "8:1", ()).is_member


def test_a_free_disk_has_no_uses() -> None:
    (disk,) = parse_tree("bench", TREE.replace(b"vg-lv", b"sda2p").replace(b"dm-0", b"sda2p"))
    assert disk.children[1].children[0].is_member  # its kind says so, whatever its name
    plain = Node("sda", "sda", "disk", "8:0", (Node("sda1", "sda1", "part", "8:1", ()),))
    assert not uses_among(plain, [], [])


@pytest.mark.parametrize("output", [b"not json", b"{}", b'{"blockdevices": [{"name": "sda"}]}'])
def test_what_is_not_lsblks_json_is_the_rigs_trouble(output: bytes) -> None:
    with pytest.raises(RigTrouble, match="lsblk printed something other"):
        parse_tree("bench", output)


def test_signatures_are_read_from_wipefs() -> None:
    output = (
        b'{"signatures": [{"device": "sda", "type": "gpt"}, {"device": "sda", "type": "PMBR"}]}'
    )
    assert parse_signatures("bench", output) == (Signature("sda", "gpt"), Signature("sda", "PMBR"))
    assert parse_signatures("bench", b"") == ()
    with pytest.raises(RigTrouble, match="wipefs printed something other"):
        parse_signatures("bench", b"oops")


def reasons(*marks: str, named: tuple[str, ...] = ()) -> list[str]:
    found = Uses((), (), (), tuple(Signature("sda", mark) for mark in marks))
    return reasons_against(SPEC.model_copy(update={"signatures": named}), found)


def test_signatures_speak_against_a_drive_unless_they_are_named() -> None:
    assert reasons() == []
    (reason,) = reasons("ext4", "ext4")
    assert "ext4 on sda (if" in reason  # once, though the mark is there twice
    assert reasons("ext4", named=("ext4",)) == []
    assert reasons("gpt", "PMBR", named=("gpt",)) == []  # a GPT comes with a protective MBR
    (reason,) = reasons("PMBR", named=("dos",))
    assert "PMBR" in reason


@pytest.mark.parametrize(
    "mark",
    ["linux_raid_member", "LVM2_member", "zfs_member", "bcache", "isw_raid_member", "drbd"],
)
def test_a_member_is_refused_though_it_is_named(mark: str) -> None:
    (reason,) = reasons(mark, named=(mark,))
    assert f"{mark} on sda" in reason
    assert "stopped or not" in reason


def test_the_running_system_is_named_as_such() -> None:
    (reason, *_) = reasons_against(SPEC, uses("23 22 8:1 / / rw - ext4 /dev/sda1 rw"))
    assert reason == "it carries the running system (sda1 is /)"


@pytest.fixture
def drive() -> Drive:
    return sata_drive()


@pytest.mark.parametrize(
    ("writes", "allow", "said"),
    [
        ("forbidden", False, "`writes: allowed` for it and --allow-writes was not given"),
        ("forbidden", True, "does not say `writes: allowed`"),
        ("allowed", False, "--allow-writes was not given"),
    ],
)
def test_without_both_keys_the_drive_is_not_even_opened(
    drive: Drive, writes: str, allow: bool, said: str
) -> None:
    spec = SPEC.model_copy(update={"writes": writes})
    with (
        open_host(HostSpec(reach="local")) as host,
        pytest.raises(Refused, match=said) as caught,
    ):
        # There is no such node here: opening it would be another error.
        nowhere = replace(drive, node="/dev/leadline-nowhere")
        admit(host, spec, nowhere, "write", allow_writes=allow)
    assert "everything on the drive will be lost" in str(caught.value)


def test_any_outlet_may_be_cut_only_where_nothing_but_the_system_is_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {"sdx": uses("22 1 8:1 / / rw - ext4 /dev/sda1 rw"), "sdy": Uses((), (), ())}
    monkeypatch.setattr(guard, "uses_of_all", lambda host: found)
    with open_host(HostSpec(reach="local")) as here:
        with admit_rig(here, []) as leave:
            assert leave.at_risk == ("/",), "and this machine's own drives are admitted"
        found["sdy"] = uses()
        with pytest.raises(Refused, match=r"no outlet is switched:\n  - sdy is in use"):
            admit_rig(here, [])


def test_the_machine_that_we_run_on_is_known_by_its_boot() -> None:
    with open_host(HostSpec(reach="local")) as here:
        assert is_own_machine(here)
        here._wire.hello["boot_id"] = "another"
        assert not is_own_machine(here)


class Silent:
    """A host without power, behind a connection that has not noticed."""

    def release_device(self, handle: int) -> None:
        raise DeadlinePassed("bench: release /dev/sda: no answer in 30 s")


def test_a_drive_is_let_go_though_its_host_has_no_power_any_more(drive: Drive) -> None:
    leave = Admission(cast(Host, Silent()), drive, "cut power", 7)
    leave.release()
    assert not leave.held


class NoLsblk:
    """A rig whose lsblk fails."""

    name = "rig"

    def read_files(self, paths: list[str]) -> dict[str, bytes]:
        return dict.fromkeys(paths, b"")

    def run(self, argv: list[str], **_: object) -> SimpleNamespace:
        return SimpleNamespace(exit_code=-9, stdout=b"", stderr=b"")


def test_what_cannot_be_listed_is_not_taken_for_unused() -> None:
    with pytest.raises(ProgramFailed, match="lsblk"):
        uses_of_all(cast(Host, NoLsblk()))
