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
