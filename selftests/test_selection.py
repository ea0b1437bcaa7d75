"""Purposes, budgets of drive time, and what `--collect-only` says they cost and destroy."""

import re
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from leadline.commands import hil
from leadline.running import Run
from leadline.selection import LOADS, USUAL, WRITING_LOADS, Budget, budget_of
from selftests.vendor import MATRIX, RIG, run, vendor

__all__ = ["vendor"]  # a fixture

TESTS = """
import pytest

@pytest.mark.quick
def test_quick(visit): pass

@pytest.mark.acceptance
@pytest.mark.drive_time(90)
def test_acceptance(visit, random_read): pass

@pytest.mark.soak
@pytest.mark.drive_time(7200)
def test_soak(visit): pass

def test_of_no_purpose(visit): pass

def test_destroys(visit, random_write): pass

def test_replays(visit, multitasking): pass

def test_cuts(visit, power_cycle): pass
"""


def collected(vendor: pytest.Pytester, *words: str) -> list[str]:
    """The names of the tests that would run on the SCSI drive."""
    vendor.makepyfile(TESTS)
    result = run(vendor, "--collect-only", "-q", *words)
    return [
        line.partition("::test_")[2].partition("[")[0]
        for line in result.stdout.lines
        if "VSCSI" in line
    ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("quick", ["quick"]),
        ("acceptance", ["quick", "acceptance"]),
        ("soak", ["quick", "acceptance", "soak"]),
        ("not writes", ["quick", "acceptance", "soak", "of_no_purpose", "replays", "cuts"]),
        (USUAL, ["quick", "of_no_purpose", "replays", "cuts"]),
    ],
)
def test_a_purpose_includes_the_ones_before(
    vendor: pytest.Pytester, expression: str, expected: list[str]
) -> None:
    assert collected(vendor, "-m", expression) == expected


def test_collecting_says_what_tests_cost_and_destroy(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(TESTS)
    text = run(vendor, "--collect-only").stdout.str()
    head = "18 tests on drives, at most 364 min of drive time for a claim of each\n"
    assert head in text, "three visits of 7290 s"
    assert "  quick             -  test_quick[" in text
    assert "  acceptance     90 s  test_acceptance[" in text
    assert "  soak         7200 s  test_soak[" in text
    cuts = [line for line in text.splitlines() if line.endswith(", cuts power")]
    assert len(cuts) == 3
    assert "DESTROYS DATA" not in text, "the second key is missing"
    text = run(vendor, "--collect-only", "--allow-writes").stdout.str()
    assert "for a claim of each; preconditioning, where one writes, takes its own\n" in text
    destroying = [line for line in text.splitlines() if line.endswith(", DESTROYS DATA")]
    assert [line.partition("[")[0].split()[-1] for line in destroying] == [
        "test_destroys",
        "test_replays",
    ] * 3, "reads alone without the second key"
    assert "130 s  test_destroys[" in destroying[0], "what a claim costs that says nothing itself"


SUITE = ("-m", "soak", "--pyargs", "leadline.suite")


def chosen(vendor: pytest.Pytester, *words: str) -> tuple[set[str], set[str]]:
    """The tests of the virtual rig's drives that would run, and those said to destroy data."""
    lines = run(vendor, "--collect-only", *words).stdout.lines
    said = [line.split() for line in lines if re.match(r"  (quick|acceptance|soak) ", line)]
    names = [(next(word for word in words if "[" in word).rstrip(","), words) for words in said]
    return {name for name, _ in names}, {name for name, words in names if "DESTROYS" in words}


@pytest.mark.parametrize("class_", ["ssd", "hdd"])
def test_writes_chooses_what_destroys_data_and_nothing_else(
    vendor: pytest.Pytester, class_: str
) -> None:
    """By a fixture, by a mark, or (multitasking, which is of disks) only where both keys allow."""
    text = MATRIX.read_text().replace("image: rigs/", f"image: {MATRIX.parent}/rigs/")
    assert text.count("class: ssd\n    protocol: s") > 1
    classed = text.replace("class: ssd\n    protocol: s", f"class: {class_}\n    protocol: s")
    (vendor.path / "m.yaml").write_text(classed)
    files = ("--matrix=m.yaml", *SUITE)
    every, destroying = chosen(vendor, *files, "--allow-writes")
    harmless, none = chosen(vendor, *files)
    gains = {name for name in every if name.startswith("test_two_tasks_at_once_gain")}
    assert (class_ == "hdd") == bool(gains)
    assert destroying == (every - harmless) | gains
    assert len(destroying) > 10
    assert none == set()
    assert chosen(vendor, *files, "--allow-writes", "-m", "writes")[0] == destroying
    assert chosen(vendor, *files, "--allow-writes", "-m", "not writes")[0] == every - destroying
    assert chosen(vendor, *files, "-m", "not writes")[0] == harmless


def test_tests_of_other_firmware_are_left_out_for_want_of_a_key(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_one(visit): pass")
    real = vendor.path / "real.yaml"
    real.write_text(RIG.read_text().partition("\nvirtual:")[0])
    words = (f"--rig={real}", f"--matrix={MATRIX}", "-p", "no:cacheprovider", "--collect-only")
    text = vendor.runpytest_subprocess(*words).stdout.str()
    assert "leadline: left out, for want of --allow-flash: ssd1 1.1" in text
    assert "VSSD-1.0]" in text
    assert "VSSD-1.1]" not in text
    text = vendor.runpytest_subprocess(*words, "--allow-flash").stdout.str()
    assert "left out" not in text
    assert "VSSD-1.1]" in text


def test_without_a_rig_nothing_is_said(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("import pytest\n@pytest.mark.quick\ndef test_plain(): pass")
    result = vendor.runpytest_subprocess("--collect-only", "-m", "acceptance")
    assert "drive time" not in result.stdout.str()
    assert "test_plain" in result.stdout.str()


def marked(*seconds: float) -> pytest.Item:
    mark = SimpleNamespace(args=seconds) if seconds else None
    return cast(pytest.Item, SimpleNamespace(get_closest_marker=lambda name: mark))


def told(drive_time_s: float | None) -> Run:
    return cast(Run, SimpleNamespace(drive_time_s=drive_time_s))


def test_the_command_line_decides_then_the_test_then_the_usual() -> None:
    assert budget_of(marked(), told(None)) == Budget(130, 2080)
    assert budget_of(marked(90), told(None)) == Budget(90, 90)
    assert budget_of(marked(90), told(10)) == Budget(10, 160)


@pytest.mark.parametrize(
    ("words", "usual"),
    [
        ([], True),
        (["-k", "dip"], True),
        (["-m", "soak"], False),
        (["-msoak"], False),
        (["."], False),
    ],
)
def test_the_suite_without_a_choice_is_the_usual_one(words: list[str], usual: bool) -> None:
    arguments = Namespace(rest=words, results=Path("there"))
    said = hil._pytest_arguments(arguments, [Path("rig.yaml")], Path("m.yaml"), "run-1")
    assert (USUAL in said) == usual


@pytest.mark.parametrize(
    ("words", "loaded"),
    [([], False), (["-k", "dip"], False), (["."], True), (["--hypothesis-seed=1"], True)],
)
def test_the_suite_is_not_kept_waiting_by_a_plugin_that_it_does_not_use(
    words: list[str], loaded: bool
) -> None:
    """A vendor's own tests may use it."""
    arguments = Namespace(rest=words, results=Path("there"))
    said = hil._pytest_arguments(arguments, [Path("rig.yaml")], Path("m.yaml"), "run-1")
    assert ("no:hypothesispytest" in said) != loaded


def test_the_words_by_which_the_pages_choose_tests_choose_some() -> None:
    """pytest looks for them in names of tests, of files and of cells, and not in claims."""
    root = Path(__file__).parents[1]
    suite = list((root / "tests").glob("test_*.py"))
    names = ["bench-a-slot1-INTEL_SSDSC2BX016T4-G2010150", "virtual-ssd1-LEADLINE_VSSD-1.0"]
    names += [path.stem for path in suite]
    for path in suite:
        names += re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    said = "\n".join([hil._EXAMPLES, *(page.read_text() for page in pages)])
    chosen = re.findall(r"""-k ("[^"]+"|'[^']+'|\w+)""", said)
    words = {word for each in chosen for word in re.findall(r"\w+", each)} - {"and", "or", "not"}
    assert {"power_cycle", "depth_8", "slot1"} <= words
    assert [word for word in sorted(words) if not any(word in name for name in names)] == []


def test_the_references_have_every_fixture_that_loads_a_drive_or_writes_to_it() -> None:
    pages = Path(__file__).parents[1] / "docs" / "reference"
    claims, suite = ((pages / name).read_text() for name in ("claims.md", "suite.md"))
    explained = re.findall(r"^\| `(\w+)", claims, re.MULTILINE)
    assert sorted(LOADS - set(explained)) == []
    (mark,) = re.findall(r"^\| `writes` \| .*", suite, re.MULTILINE)
    assert [name for name in sorted(WRITING_LOADS) if f"`{name}`" not in mark] == []
    assert "`verified_writes`" in mark
