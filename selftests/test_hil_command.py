"""`leadline hil` before any rig is touched: usage, and benches that are not there."""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import leadline
from leadline import plugin
from leadline.commands.hil import _summary, names_tests
from leadline.results.record import Record

REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "suite.md"
EXAMPLE = Path(leadline.__file__).parent / "rigs" / "example-bench.yaml"
ELSEWHERE = """\
rig: elsewhere
host: {reach: ssh, address: localhost.invalid}
controllers: [{name: onboard, driver: ahci}]
drives:
  - {slot: one, model: LEADLINE VSSD, serial: S1, firmware: "1.0",
     controller: onboard, protocol: sata}
"""


def hil(tmp_path: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", "leadline.cli", "hil", *map(str, arguments)]
    return subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_bench_that_is_not_there_is_said_once_and_plainly(tmp_path: Path) -> None:
    done = hil(tmp_path, "--rig", EXAMPLE)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("leadline: rig bench-a: ")
    assert done.stderr.count("rig bench-a") == 1
    assert "Traceback" not in done.stderr


def test_a_host_that_is_not_there_is_said_once_and_plainly(tmp_path: Path) -> None:
    rig = tmp_path / "elsewhere.yaml"
    rig.write_text(ELSEWHERE)
    done = hil(tmp_path, "--rig", rig)
    assert done.returncode == 3, done.stderr
    assert "localhost.invalid" in done.stderr
    assert "try by hand: ssh" in done.stderr


def test_a_wrong_file_is_usage(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("rig: bad\nhots: {reach: local}\n")
    done = hil(tmp_path, "--rig", "bad.yaml")
    assert done.returncode == 2
    assert "bad.yaml:2: hots: found" in done.stderr
    assert "host" in done.stderr


def test_help_has_examples_and_where_other_options_go(tmp_path: Path) -> None:
    done = hil(tmp_path, "--help")
    assert done.returncode == 0
    assert "examples:" in done.stdout
    assert "goes to pytest" in done.stdout


class Options:
    """Takes note of the options that a plugin adds, but for those that it hides."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def getgroup(self, *_: str) -> "Options":
        return self

    def addoption(self, name: str, **more: object) -> None:
        if more.get("help") is not argparse.SUPPRESS:
            self.names.append(name)


def test_help_and_the_reference_have_every_option_of_the_suite(tmp_path: Path) -> None:
    options = Options()
    plugin.pytest_addoption(cast(pytest.Parser, options))
    options.names.remove("--run-id")  # which it gives itself
    assert "--allow-writes" in options.names
    said, page = hil(tmp_path, "--help").stdout, REFERENCE.read_text()
    assert [name for name in options.names if f"  {name} " not in said] == []
    assert [name for name in options.names if not re.search(f"^\\| `{name}[ `]", page, re.M)] == []


def test_the_reference_has_every_field_of_the_object_for_programs() -> None:
    record = SimpleNamespace(
        run_id="run-1", directory="there", outcomes=list, verdicts=list, phases=dict
    )
    fields = _summary(cast(Record, record), 0, 1.0, [])
    page = REFERENCE.read_text()
    assert [name for name in fields if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((), False),
        (("-x", "-k", "here"), False),
        (("-k", "name", "here/test_a.py::test_b[c]"), True),
        (("here",), True),
        (("--junitxml", "here"), False),
        (("--junitxml=here", "-n", "2"), False),
        (("--html", "here/report.html"), False),
        (("-c", "here"), False),
    ],
)
def test_a_path_takes_the_place_of_the_suite_and_a_value_does_not(
    words: tuple[str, ...], names: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "test_a.py").touch()
    (tmp_path / "here" / "report.html").touch()
    monkeypatch.chdir(tmp_path)
    assert names_tests(words) is names
