"""No file is committed with both sides of a merge in it; a reader would not know which holds."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MARKS = "^(<<<<<<<|>>>>>>>)( |$)"


def test_no_file_holds_the_marks_of_a_merge() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone: git knows no files here")
    found = subprocess.run(
        ["git", "grep", "-nE", MARKS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout) == (1, ""), found.stderr
