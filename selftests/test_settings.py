"""What is pinned on a drive, on files in the place of the kernel's attributes."""

from pathlib import Path

import pytest

from leadline.drive import settings
from leadline.drive.bind import Drive
from leadline.drive.settings import NR_REQUESTS, PINNED, pin
from leadline.host.connection import Host
from leadline.host.journal import Journal
from selftests.drive_specimens import sata_drive
from selftests.local_hosts import directory, host

__all__ = ["directory", "host"]  # fixtures

LINK = "link_power_management_policy"
FOUND = {
    "queue/scheduler": "mq-deadline",
    "queue/nomerges": "0",
    "queue/wbt_lat_usec": "75000",
    LINK: "med_power_with_dipm",
    NR_REQUESTS: "64",
}


@pytest.fixture
def attributes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    paths = {name: tmp_path / name.replace("/", " ") for name in FOUND}
    for name, path in paths.items():
        path.write_text(FOUND[name])

    def found(_: Drive) -> dict[str, str]:
        return {name: str(path) for name, path in paths.items()}

    monkeypatch.setattr(settings, "_paths", found)
    return paths


def test_all_are_pinned_and_given_back(
    host: Host, directory: str, attributes: dict[str, Path]
) -> None:
    with Journal(host, "run", directory=directory) as journal:
        pin(host, journal, sata_drive())
        assert {name: attributes[name].read_text() for name in PINNED} == PINNED
    assert {name: path.read_text() for name, path in attributes.items()} == FOUND


def test_what_the_firmware_set_of_the_links_power_is_left_alone(
    host: Host, directory: str, attributes: dict[str, Path]
) -> None:
    """The kernel says this word and does not take it: it could not be given back."""
    attributes[LINK].write_text("keep_firmware_settings")
    with Journal(host, "run", directory=directory) as journal:
        pin(host, journal, sata_drive())
        assert attributes[LINK].read_text() == "keep_firmware_settings"
        assert attributes["queue/nomerges"].read_text() == "2"
