"""A tracing instance: begun anew, removed at the end, and no cover for what broke it off."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.drive import tracing
from leadline.errors import RigTrouble
from leadline.host.connection import Host, open_host
from leadline.inventory.rig import HostSpec
from selftests.drive_specimens import scsi_drive


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    (tmp_path / "instances").mkdir()
    monkeypatch.setattr(tracing, "_TRACING", (str(tmp_path),))
    with open_host(HostSpec(reach="local")) as here:
        yield here


def test_an_instance_is_there_for_as_long_as_it_is_used(host: Host, tmp_path: Path) -> None:
    for _ in range(2):
        with tracing.instance(host, scsi_drive()) as path:
            assert Path(path).parent == tmp_path / "instances"
            assert Path(path).is_dir()
        assert not Path(path).exists()


def test_one_that_is_in_use_at_the_end_is_trouble_of_the_rig(host: Host) -> None:
    with pytest.raises(RigTrouble), tracing.instance(host, scsi_drive()) as path:
        Path(path, "open").touch()


def test_one_that_is_in_use_does_not_hide_why_it_was_broken_off(host: Host) -> None:
    with pytest.raises(KeyboardInterrupt), tracing.instance(host, scsi_drive()) as path:
        Path(path, "open").touch()
        raise KeyboardInterrupt
    Path(path, "open").unlink()
    assert tracing.forget(host) == [Path(path).name]
