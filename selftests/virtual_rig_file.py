"""The packaged virtual rig's file, changed copies of it, and a cache for its state."""

from pathlib import Path

import pytest

from leadline.inventory.fields import packaged
from leadline.inventory.rig import Rig, load_rig

VIRTUAL = packaged("rigs/virtual.yaml").resolve()
PROFILES = VIRTUAL.parent / "profiles"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No state of a rig is this user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def changed_rig(folder: Path, *changes: tuple[str, str]) -> Rig:
    """The packaged rig with texts of its file replaced; its profiles stay the packaged ones."""
    text = VIRTUAL.read_text().replace("profile: profiles/", f"profile: {PROFILES}/")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "rig.yaml"
    path.write_text(text)
    return load_rig(path)
