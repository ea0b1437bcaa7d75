"""Mounting the virtual drive's file system."""

from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.virtual import mount


def test_without_fuse_the_message_names_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RigTrouble, match="modprobe fuse"):
        mount.load_fuse(tmp_path / "fuse")


def test_a_mount_of_something_else_is_left_alone() -> None:
    with pytest.raises(RigTrouble, match="proc file system is mounted there"):
        mount.prepare(Path("/proc"))
    assert Path("/proc/self").exists()


def test_a_mount_point_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RigTrouble, match="cannot be a mount point"):
        mount.prepare(tmp_path / "file" / "mnt")


def test_other_mounts_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a stick with a name in Latin-1, or of two lines to Python."""
    row = b"36 35 98:0 / %s rw,noatime - %s none rw\n"
    rows = [row % (b"/media/K\xfche", b"vfat"), row % ("/media/a\x0bb\u2028c".encode(), b"vfat")]
    rows += [row % (bytes(tmp_path) + name, b"proc") for name in (b"/a\\040b", b"/K\xfche")]
    (tmp_path / "mountinfo").write_bytes(b"".join(rows))
    monkeypatch.setattr(mount, "_MOUNTS", tmp_path / "mountinfo")
    assert mount.below(tmp_path) == [tmp_path / "a b", tmp_path / "K\udcfche"]
    with pytest.raises(RigTrouble, match="proc file system is mounted there"):
        mount.prepare(tmp_path / "a b")
