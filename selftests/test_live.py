"""The live line: seen on a terminal while a test runs, gone afterwards, absent elsewhere."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.live import Live
from leadline.load.slices import LITTLES_LAW, Slice, SliceSetting
from leadline.load.workload import random_read
from selftests.slice_drive import SliceDrive

TEST = """
from leadline.live import Live
from leadline.load.slices import Slice, SliceSetting

def test_one(pytestconfig):
    live = Live(pytestconfig)
    live.show("  a-cell: 8 slices [bold]under way[/bold]")
    live.clear()
    live.slice("a-cell", "a-claim", "left", CLEAN)
    live.slice("a-cell", "a-claim", "left", VOID)
    live.say("a setting was given back")
"""


def measured(spoil: str) -> Slice:
    model = SliceDrive({8: 1000}, noise=0.0, spoil=spoil)
    (one,) = model.measure(random_read(), [SliceSetting(8, 16)])
    return one


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    clean, void = (measured(spoil) for spoil in ("", LITTLES_LAW))
    text = TEST.replace("CLEAN", repr(clean)).replace("VOID", repr(void))
    (tmp_path / "test_one.py").write_text(text)
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]


def on_a_terminal(argv: list[str], cwd: Path) -> bytes:
    """What a program prints on a terminal, as the bytes that it sends there."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    child = subprocess.Popen(argv, cwd=cwd, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    said = b""
    try:
        while data := os.read(master, 4096):
            said += data
    except OSError:
        pass  # how a pty says that its other end is closed
    finally:
        os.close(master)
    assert child.wait(30) == 0, said.decode()
    return said


def test_seen_on_a_terminal_though_pytest_captures_it(argv: list[str], tmp_path: Path) -> None:
    said = on_a_terminal(argv, tmp_path)
    assert b"a-cell: 8 slices [bold]under way[/bold]" in said, "as it is, and no markup"
    first, last = b"left: depth 8, 1000 requests/s, 16.00 ms", b"16.00 ms  void: littles-law"
    erased = b"\x1b[2K"
    begin, clean, void = (said.index(text) for text in (b"under way", first, last))
    assert b"void:" not in said[clean:void], "where there is nothing to say"
    assert erased in said[begin:clean], "the line is erased"
    stays = said.index(b"leadline: a setting was given back")
    assert void < stays
    assert erased in said[void:stays], "before anything that stays is said"


def test_a_slice_that_leaves_the_depth_as_it_is_says_what_was_offered() -> None:
    class Shown(Live):
        text = ""

        def show(self, text: str) -> None:
            self.text = text

    (one,) = SliceDrive({8: 1000}, noise=0.0).measure(random_read(), [SliceSetting(None, 16)])
    live = Shown(None)
    live.slice("a-cell", "a-claim", "arrival", one)
    assert "arrival: 16 offered, 1000 requests/s" in live.text


def test_silent_where_the_output_is_no_terminal(argv: list[str], tmp_path: Path) -> None:
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "under way" not in done.stdout
    assert "requests/s" not in done.stdout
    assert "leadline: a setting was given back" in done.stdout


def test_silent_where_quiet_was_asked_for(argv: list[str], tmp_path: Path) -> None:
    said = on_a_terminal([*argv, "-q"], tmp_path)
    assert b"under way" not in said
    assert b"leadline: a setting was given back" in said


def test_silent_where_nobody_reports(argv: list[str], tmp_path: Path) -> None:
    """As in xdist's workers."""
    done = subprocess.run(
        [*argv, "-p", "no:terminal"], cwd=tmp_path, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_a_command_says_its_sentences_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    live = Live(None)
    live.show("a line")
    live.say("a setting was given back")
    live.clear()
    assert capsys.readouterr() == ("", "leadline: a setting was given back\n")
