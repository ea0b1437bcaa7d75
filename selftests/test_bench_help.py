"""What `./run bench --help` says: every benchmark, on one line, with the time that it takes."""

import ast
import re
from pathlib import Path

import pytest

import bench
from bench import __main__ as front

PARTS = {"fault_size", "fault_twins", "fault_whole", "knee", "queued_streams"}
"""What is measured by words of `faults` or `stories`, and by no name of its own."""
TIME = re.compile(
    r"\((a second|a minute|minutes|\d+ minutes|a quarter of an hour|half an hour|an hour|hours)\)$"
)


def measuring() -> set[str]:
    """The modules that can be run: those with a function `measure`."""
    (folder,) = bench.__path__
    return {
        path.stem
        for path in Path(folder).glob("*.py")
        for each in ast.parse(path.read_text()).body
        if isinstance(each, ast.FunctionDef) and each.name == "measure"
    }


def test_every_benchmark_has_a_name_and_every_name_a_benchmark() -> None:
    assert measuring() - PARTS == front.NAMES.keys()
    assert front.NAMES.keys() >= front.OF_WORDS
    assert {name for group in front.GROUPS.values() for name in group} <= front.NAMES.keys()


def test_help_has_a_line_for_each_with_the_time_that_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--help"])
    with pytest.raises(SystemExit) as ended:
        front.main()
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    for name, what in front.NAMES.items():
        (line,) = [each for each in lines if each.split()[:1] == [name]]
        assert line.split(maxsplit=1)[1] == what
        assert TIME.search(line), f"{line}: the time in brackets at its end"
        assert len(line) <= 100
    assert any("when none is given" in line for line in lines)
    assert any(line.endswith(", ".join(sorted(front.OF_WORDS))) for line in lines)
