"""No file holds both sides of a merge: a reader would not know which of them is meant."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("bench", "docs", "fixtures", "rigs", "selftests", "src", "tests")
MARK = re.compile(rb"^(<{7}|>{7})( |$)", re.MULTILINE)


def test_no_file_holds_the_marks_of_a_merge() -> None:
    files = [each for folder in FOLDERS for each in (ROOT / folder).rglob("*")] + [*ROOT.glob("*")]
    read = [each for each in files if each.is_file() and "__pycache__" not in each.parts]
    assert len(read) > 500, "the folders of the repository have other names now"
    assert [str(each) for each in read if MARK.search(each.read_bytes())] == []
