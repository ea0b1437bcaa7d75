"""What was put on a drive last is kept by model and serial number, whatever rig it is on."""

from pathlib import Path

import pytest

from leadline.builds import Build, keep, last_build, path_of
from leadline.errors import RigTrouble
from leadline.inventory.rig import DriveSpec

BUILD = Build("1.0", "a" * 64, "run-1")


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DriveSpec:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return DriveSpec(
        slot="a",
        model="MAKER SSD/1",
        serial="SERIAL 1",
        wwn="0x5000c50000000001",
        firmware="1.0",
        controller="any",
        protocol="sata",
    )


def test_the_last_one_is_known_on_another_rig_too(spec: DriveSpec) -> None:
    assert last_build(spec) is None
    keep(spec, BUILD)
    keep(spec, Build("1.1", "b" * 64, "run-2"))
    elsewhere = spec.model_copy(update={"slot": "b"})
    assert last_build(elsewhere) == Build("1.1", "b" * 64, "run-2")
    assert last_build(spec.model_copy(update={"serial": "SERIAL 2"})) is None


def test_a_file_in_pieces_is_said(spec: DriveSpec) -> None:
    keep(spec, BUILD)
    path_of(spec).write_text('{"shows": "1.0"')
    with pytest.raises(RigTrouble, match=r"MAKER SSD%2F1 SERIAL 1\.json: .* cannot be read"):
        last_build(spec)


def test_where_nothing_can_be_kept_that_is_said(spec: DriveSpec, tmp_path: Path) -> None:
    (tmp_path / "leadline").write_text("not a directory")
    with pytest.raises(RigTrouble, match=r"cannot be kept there .*XDG_STATE_HOME"):
        keep(spec, BUILD)
