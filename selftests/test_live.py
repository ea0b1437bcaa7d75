"""The live line: seen on a terminal while a test runs, gone afterwards, absent elsewhere."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

TEST = """
from leadline.live import Live

def test_one(pytestconfig):
    live = Live(pytestconfig)
    live.show("  a-cell: 8 slices under way")
    live.clear()
    live.say("a setting was given back")
"""


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    (tmp_path / "test_one.py").write_text(TEST)
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]


def test_seen_on_a_terminal_though_pytest_captures_it(argv: list[str], tmp_path: Path) -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    child = subprocess.Popen(argv, cwd=tmp_path, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    said = b""
    try:
        while data := os.read(master, 4096):
            said += data
    except OSError:
        pass  # how a pty says that its other end is closed
    finally:
        os.close(master)
    assert child.wait(30) == 0
    assert b"a-cell: 8 slices under way" in said
    assert b"\x1b[2K" in said, "the line is erased again"
    assert b"leadline: a setting was given back" in said


def test_silent_where_the_output_is_no_terminal(argv: list[str], tmp_path: Path) -> None:
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "under way" not in done.stdout
    assert "leadline: a setting was given back" in done.stdout
