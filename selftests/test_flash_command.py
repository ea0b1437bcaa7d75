"""`leadline flash` outside a session: what it refuses, what it says, what it finishes."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadline import visiting
from leadline.cli import main
from leadline.errors import DriveFault
from leadline.flash_record import begin
from leadline.host.connection import open_host
from leadline.host.journal import Journal
from leadline.inventory.rig import HostSpec
from leadline.results.record import FILE_NAME
from leadline.visiting import OpenVisit
from selftests.flasher import SHA256
from selftests.test_brought_home import run_of
from selftests.test_flash_record import RECORD
from selftests.visit_world import Bench, bench

__all__ = ["bench"]  # a fixture


class Command:
    """The command line, in a folder with a rig file and a matrix; the drive is made up."""

    def __init__(self, bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
        self.bench, self.capsys = bench, capsys
        run_of(bench.folder)
        self.flashed: list[tuple[str, bool]] = []

    def __call__(self, *words: str) -> tuple[int, str, str]:
        folder = self.bench.folder
        files = ["--rig", folder / "bench.yaml", "--matrix", folder / "matrix.yaml"]
        files += ["--results", folder / "results"]
        code = main(["flash", *map(str, files), *words])
        out, said = self.capsys.readouterr()
        return code, out, said

    def flash(self, visit: OpenVisit) -> None:
        self.flashed.append((visit.visit.cell.firmware, visit.station.run.allow_flash))
        identity = replace(self.bench.drive.identity, firmware=visit.visit.cell.firmware)
        visit.rebound(replace(self.bench.drive, identity=identity))

    def leave(self, **changes: Any) -> None:
        """A run that was killed in a flash of slot a."""
        record = replace(RECORD, revision="1.1", rig_file="gone.yaml", **changes)
        with open_host(HostSpec(reach="local")) as here:
            begin(Journal(here, "run-0"), record).reached("activating")

    def asked(self, *words: str) -> str:
        """The command on record, which can be run again."""
        folder = self.bench.folder
        files = f"--rig {folder}/bench.yaml --matrix {folder}/matrix.yaml"
        return f"leadline flash {files} {' '.join(words)}"

    def runs(self) -> Sequence[tuple[str, int]]:
        with sqlite3.connect(self.bench.folder / "results" / FILE_NAME) as connection:
            return connection.execute("select command, exit_code from runs").fetchall()


@pytest.fixture
def command(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    made = Command(bench, capsys)
    monkeypatch.setattr(visiting, "flash", made.flash)
    monkeypatch.setattr("leadline.flash_record.bind", bench.bind)
    return made


def test_a_firmware_is_put_on_a_drive(command: Command) -> None:
    code, out, _ = command("a", "1.1", "--allow-flash", "--json")
    done = json.loads(out)
    assert code == 0
    assert (done["slot"], done["before"], done["firmware"]) == ("a", "1.0", "1.1")
    assert done["flashed"] is True
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "flash-drives.md").read_text()
    assert [name for name in done if f"`{name}`" not in page] == []
    assert command.flashed == [("1.1", True)]
    assert command.runs() == [(command.asked("a", "1.1", "--allow-flash"), 0)]
    code, out, _ = command("a", "1.1", "--allow-flash")
    assert out.startswith("bench a: SERIAL-a runs 1.1, and ran 1.0 (")


def test_nothing_is_done_where_it_runs_already(command: Command) -> None:
    code, out, _ = command("a", "1.0", "--allow-flash")
    assert (code, out) == (0, "bench a: SERIAL-a runs 1.0 already; nothing was done\n")
    assert command.flashed == []


def test_a_firmware_of_which_there_is_no_image_has_none_in_the_object(command: Command) -> None:
    given = {
        "matrix.yaml": f"image: i.bin, sha256: {SHA256}, ",
        "bench.yaml": f", firmware_sha256: {SHA256}",
    }
    for name, words in given.items():
        path = command.bench.folder / name
        path.write_text(path.read_text().replace(words, ""))
    code, out, _ = command("a", "1.0", "--json")
    done = json.loads(out)
    assert (code, done["flashed"], done["image"], done["sha256"]) == (0, False, None, None)


def test_of_two_builds_that_it_shows_alike_each_is_put_on_it(
    command: Command, bench: Bench
) -> None:
    """What it says does not tell whether it runs the one or the other."""
    run_of(bench.folder, '"1.0-rebuilt", shows: "1.0"')
    for revision in ("1.0-rebuilt", "1.0"):
        code, out, _ = command("a", revision, "--allow-flash", "--json")
        assert (code, json.loads(out)["flashed"]) == (0, True)
    assert command.flashed == [("1.0-rebuilt", True), ("1.0", True)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a",), "name a REVISION, or give --resume"),
        (("a", "1.1", "--resume"), "name a REVISION, or give --resume"),
        (("z", "1.1"), "found no slot 'z', expected one of: a, b"),
        (("a", "9"), "firmware of MODEL: found no '9', expected one of: 1.0, 1.1"),
        (("a", "--resume"), "slot a: no flash of it is on record on this machine"),
    ],
)
def test_what_cannot_be_meant(command: Command, words: Sequence[str], said: str) -> None:
    code, _, error = command(*words)
    assert code == 2
    assert said in error
    assert command.flashed == []


def test_a_firmware_that_the_plan_leaves_out_is_refused_with_its_reason(command: Command) -> None:
    path = command.bench.folder / "matrix.yaml"
    text = path.read_text()
    path.write_text(text.replace("status: candidate", "status: withdrawn"))
    code, _, error = command("a", "1.1", "--allow-flash")
    assert code == 2
    assert "slot a is not flashed with 1.1: its status is withdrawn" in error


def test_what_a_dead_run_left_is_finished(command: Command) -> None:
    command.leave()
    code, out, error = command("a", "--resume", "--allow-flash")
    assert code == 0
    assert "leadline: slot a: MODEL SERIAL-a: run run-0 ended when the image had been" in error
    assert f"leadline flash --rig {command.bench.folder}/bench.yaml a --resume" in error
    assert command.flashed == [("1.1", True)]
    assert out.startswith("bench a: SERIAL-a runs 1.1")


def test_or_what_was_on_it_is_put_on_it_anew(command: Command) -> None:
    """It says that it runs 1.0, and may hold 1.1 all the same."""
    command.leave()
    code, out, _ = command("a", "1.0", "--allow-flash")
    assert code == 0
    assert command.flashed == [("1.0", True)]
    assert "nothing was done" not in out


def test_trouble_ends_the_run_on_record(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def flash(visit: OpenVisit) -> None:
        raise DriveFault("it takes no image")

    monkeypatch.setattr(visiting, "flash", flash)
    code, _, error = command("a", "1.1", "--allow-flash")
    assert code == 1
    assert "it takes no image" in error
    assert command.runs() == [(command.asked("a", "1.1", "--allow-flash"), 1)]


def test_a_rig_file_that_is_not_there(tmp_path: Path) -> None:
    assert main(["flash", "--rig", str(tmp_path / "none.yaml"), "a", "1"]) == 2
