"""`leadline power map` on a virtual rig, whose own file is the truth, with files that are not."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from leadline.inventory.rig import load_rig
from leadline.virtual import rig as virtual_rig
from leadline.virtual.state import State
from selftests.own_journals import LEADLINE

PROFILE = Path(virtual_rig.__file__).parents[1] / "rigs/profiles/vscsi-1.0.yaml"
MAP_S = 600.0  # on a busy machine without hardware virtualisation
OFF_S = 60.0
FREE_S = 30.0

# Three drives, for a lone one makes Linux probe a virtio-scsi host's 256 targets slowly.
SECOND, THIRD = ("VSCSI0002", "a003"), ("VSCSI0003", "a004")
OUTLET_1 = "    outlet: 2\n    feeds: [scsi1]\n"
OUTLET_1_WRONG = "    outlet: 1\n    feeds: [scsi1]\n"
OUTLET_2 = (
    "  - name: scsi2  # the lower one\n"
    "    pdu: pdu\n"
    "    outlet: 3    # counted from the left\n"
    "    feeds: [scsi2]\n"
)


def more_drives(text: str, folder: Path) -> str:
    """The packaged rig file's text with two more virtio-scsi drives, one with an outlet."""
    start, end = text.index("  - slot: scsi1"), text.index("virtual:\n  memory")
    drives = machine = ""
    for slot, identity in (("scsi2", SECOND), ("scsi3", THIRD)):
        profile = folder / f"{slot}.yaml"
        profile.write_text(with_identity(PROFILE.read_text(), identity))
        drives += with_identity(text[start:end], identity).replace("scsi1", slot)
        machine += f"    - slot: {slot}\n      bus: virtio-scsi\n      profile: {profile}\n"
    return text[:end] + drives + text[end:] + machine


def with_identity(text: str, identity: tuple[str, str]) -> str:
    serial, wwn = identity
    return text.replace("VSCSI0001", serial).replace("a002", wwn)


@dataclass
class Live:
    """The rig that is up, and files that describe it, rightly or not."""

    name: str
    right: str
    folder: Path

    def file(self, *changes: tuple[str, str]) -> Path:
        text = self.right
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = self.folder / "bench.yaml"
        path.write_text(text)
        return path

    def argv(self, path: Path, *words: str) -> list[str]:
        command = [sys.executable, "-c", LEADLINE, str(self.folder / "journal")]
        return [*command, "power", "map", "--rig", str(path), "--yes", *words]

    @property
    def environment(self) -> dict[str, str]:
        """Byte logs go where they are no user's."""
        return os.environ | {"XDG_STATE_HOME": str(self.folder / "state")}

    def map(self, path: Path, *words: str) -> tuple[int, dict[str, Any], str]:
        """Exit code, the JSON object, stderr; whatever was done, every outlet is on."""
        limit = time.monotonic() + FREE_S
        while True:
            done = subprocess.run(
                self.argv(path, "--json", *words),
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=MAP_S,
                check=False,
            )
            print(done.stderr)
            if "is in use by" not in done.stderr or time.monotonic() > limit:
                break  # a killed map's lease is free when the rig has noticed
        assert done.stdout, done.stderr
        assert all(self.outlets().values())
        return done.returncode, json.loads(done.stdout), done.stderr

    def outlets(self) -> dict[str, bool]:
        states: dict[str, bool] = virtual_rig.status(self.name)["outlets"]
        return states


@pytest.fixture(scope="module")
def live(make_rig: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("map")
    path = make_rig("map", (OUTLET_1, OUTLET_1 + OUTLET_2))
    path.write_text(more_drives(path.read_text(), folder))
    rig = load_rig(path)
    with virtual_rig.running(rig):
        yield Live(rig.name, path.read_text(), folder)
    shutil.rmtree(State(rig.name).root)


def feeds(said: dict[str, Any]) -> dict[int, list[str]]:
    return {each["outlet"]: each["feeds"] for each in said["outlets"]}


def line_of(path: Path, name: str) -> int:
    """The line of what an outlet feeds: the fourth of its entry."""
    lines = path.read_text().splitlines()
    return lines.index("outlets:") + next(
        number + 4
        for number, line in enumerate(lines[lines.index("outlets:") :])
        if line.startswith(f"  - name: {name}")
    )


HOST_AND_SCSI1 = ((OUTLET_2, ""), ("outlet: 1\n", "outlet: 2\n"), (OUTLET_1, OUTLET_1_WRONG))
SWAPPED = ((OUTLET_1, OUTLET_1.replace("2", "3")), (OUTLET_2, OUTLET_2.replace("t: 3", "t: 2")))


def hot_plugged(right: str) -> tuple[tuple[str, str], ...]:
    """The host's outlet and the drive on it left out of the file: they take most of the time."""
    cuts = (
        ("  # AHCI ports do not", "  - name: scsi1\n"),
        ("  - slot: ssd1\n    model", "  - slot: scsi1\n    model"),
        ("    - slot: ssd1\n      bus", "    - slot: scsi1\n      bus"),
    )
    return tuple((right[right.index(start) : right.index(end)], "") for start, end in cuts)


@pytest.mark.long
def test_two_outlets_swapped_are_found_and_named_one_of_them_the_hosts(live: Live) -> None:
    path = live.file(*HOST_AND_SCSI1)
    wrong = path.read_text()
    code, said, err = live.map(path)
    assert code == 2
    assert feeds(said) == {1: ["host"], 2: ["scsi1"]}
    assert (said["holds"], said["written"]) == (False, False)
    for number, name, found, expected in (
        (1, "scsi1", "[scsi1]", "host: while outlet 1 of PDU pdu was off, the host went dark"),
        (2, "host", "host", "[scsi1]: while outlet 2 of PDU pdu was off, scsi1 went dark; "
         "the host had power"),
    ):  # fmt: skip
        place = f"{path}:{line_of(path, name)}: outlets[{name}].feeds"
        assert f"{place}: found {found}, expected {expected}\n" in f"{err}\n", number
    assert path.read_text() == wrong


@pytest.mark.long
def test_what_is_swapped_is_mended_and_then_confirmed_whatever_was_killed_between(
    live: Live,
) -> None:
    few = hot_plugged(live.right)
    right = live.file(*few).read_text()
    path = live.file(*few, *SWAPPED)
    lines = {name: f"{path}:{line_of(path, name)}" for name in ("scsi1", "scsi2")}
    code, said, _ = live.map(path, "--write")
    assert (code, said["holds"], said["written"]) == (0, True, True)
    assert feeds(said) == {3: ["scsi2"], 2: ["scsi1"]}
    assert {each["name"]: each["where"] for each in said["outlets"]} == lines
    assert path.read_text() == right, "comments and all"

    argv = live.argv(path)
    with subprocess.Popen(argv, env=live.environment, stderr=subprocess.DEVNULL) as doomed:
        limit = time.monotonic() + OFF_S
        while live.outlets()["scsi1"]:
            assert doomed.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.02)
        doomed.send_signal(signal.SIGKILL)
    assert not live.outlets()["scsi1"]

    code, said, err = live.map(path)
    assert "outlet 2 of PDU 'pdu'" in err
    assert "is on again, after run power map" in err
    assert (code, said["holds"], said["written"]) == (0, True, False)
    assert feeds(said) == {2: ["scsi1"], 3: ["scsi2"]}
    logs = sorted((live.folder / "state/leadline/serial").glob("*/pdu.log"))
    kept = logs[-1].read_text()
    assert r"> off 2\r" in kept, "as every byte"
    assert r"> off 3\r" in kept
