"""A row of acceptance runs that is ended is gone on with: no run is made twice or lost."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import __main__ as front
from bench import acceptance
from bench.acceptance import KINDS, keep, measure
from bench.fault_rig import Ran, Seeded
from bench.row import RUNS, state_of_leadline
from leadline.errors import Misuse
from leadline.virtual.state import State


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How the runs to come end, by exit code; each leaves a line in the results."""
    codes: list[int] = []

    @contextmanager
    def up(folder: Path, drives: Sequence[Seeded]) -> Iterator[tuple[SimpleNamespace, str]]:
        yield SimpleNamespace(name="r"), "matrix"

    def hil(rig: object, matrix: str, results: Path, words: object, deadline_s: float) -> Ran:
        code = codes.pop(0)
        results.mkdir(exist_ok=True)
        with (results / "runs.txt").open("a") as file:
            file.write(f"{code}\n")
        row = {
            "cell": "r-healthy-X-1.0",
            "claim": "c",
            "outcome": "fail" if code else "pass",
            "message": "said",
        }
        return Ran(code, {"outcomes": [row], "seconds": 60.0})

    monkeypatch.setattr(acceptance, "running", up)
    monkeypatch.setattr(acceptance, "hil", hil)
    monkeypatch.setattr(acceptance, "keep", lambda *_: "a folder")
    monkeypatch.setattr(acceptance, "NEEDED", dict.fromkeys(KINDS, frozenset()))
    yield codes
    assert not codes, "runs that were not made"


def row_of(figures: Mapping[str, Any], kind: str = "sas") -> dict[str, Any]:
    """The figures of one kind."""
    found: dict[str, Any] = figures["drives"][kind]
    return found


def test_runs_that_a_row_has_are_not_made_again(
    tmp_path: Path, ends: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sas", "--row", str(tmp_path / "row"), "--runs"]
    ends += [0, 1]
    assert row_of(measure([*words, "2"]))["right"] == 1
    capsys.readouterr()
    ends += [0]
    figures = row_of(measure([*words, "3"]))
    assert [each["exit_code"] for each in figures["each"]] == [0, 1, 0]
    assert (figures["right"], figures["false_alarms"]) == (2, 2)
    assert figures["leadline"] == [state_of_leadline()]
    said = capsys.readouterr().err
    assert [line for line in said.splitlines() if line[0] != " "] == [
        "before: sas 1: exit 0, 1 pass in 1.0 min",
        "before: sas 2: exit 1, 1 fail in 1.0 min",
        "sas 3: exit 0, 1 pass in 1.0 min",
    ]
    assert (tmp_path / "row/sas/results/runs.txt").read_text() == "0\n1\n0\n", "shared by all"
    assert row_of(measure([*words, "3"])) == figures, "no more than asked, and no rig for it"


def test_each_kind_and_purpose_has_runs_of_its_own(tmp_path: Path, ends: list[int]) -> None:
    words = ["--row", str(tmp_path), "--runs", "1"]
    ends += [0]
    measure(["sas", *words])
    ends += [0]
    both = measure(["sas", "ssd", *words])
    assert [len(row_of(both, kind)["each"]) for kind in ("sas", "ssd")] == [1, 1]
    ends += [0]
    soaked = row_of(measure(["sas", *words, "--soak"]))
    assert [each["purpose"] for each in soaked["each"]] == ["acceptance", "soak"]


def test_a_run_that_is_ended_by_hand_is_none(tmp_path: Path, ends: list[int]) -> None:
    words = ["sas", "--row", str(tmp_path), "--runs", "2"]
    ends += [0, 130]
    with pytest.raises(KeyboardInterrupt):
        measure(words)
    ends += [0]
    assert [each["exit_code"] for each in row_of(measure(words))["each"]] == [0, 0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda line: "{", r"runs\.jsonl, line 2: Invalid JSON.*remove the line"),
        (
            lambda line: json.dumps({**line, "run": {**line["run"], "seconds": "long"}}),
            r"runs\.jsonl, line 2: run\.seconds: Input should be a valid number.*remove the line",
        ),
        (
            lambda line: json.dumps({**line, "expression": "dip"}),
            r"runs\.jsonl, line 2: a run of -k 'dip' in a row of -k ''; give the same",
        ),
    ],
)
def test_what_is_no_run_of_this_row_is_told_by_its_line_before_any_is_made(
    tmp_path: Path, ends: list[int], change: Any, said: str
) -> None:
    ends += [0]
    measure(["sas", "--row", str(tmp_path), "--runs", "1"])
    kept = tmp_path / "sas" / RUNS
    kept.write_text(kept.read_text() + change(json.loads(kept.read_text())) + "\n")
    with pytest.raises(Misuse, match=said):
        measure(["ssd", "sas", "--row", str(tmp_path), "--runs", "3"])


def test_a_file_is_no_row(tmp_path: Path, ends: list[int]) -> None:
    (tmp_path / "row").write_text("")
    with pytest.raises(Misuse, match=r"row/sas/runs\.jsonl: Not a directory; --row takes a folder"):
        measure(["sas", "--row", str(tmp_path / "row")])


def test_a_row_of_two_states_of_leadline_says_so(
    tmp_path: Path, ends: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for count, state in enumerate(("old", "new"), 1):
        ends += [0]
        monkeypatch.setattr(acceptance, "state_of_leadline", lambda state=state: state)
        figures = measure(["sas", "--row", str(tmp_path), "--runs", str(count)])
    assert row_of(figures)["leadline"] == ["old", "new"]


def test_of_a_run_that_left_nothing_nothing_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert list(keep(tmp_path / "none", State("r"), "sas-1-").iterdir()) == []


def test_ctrl_c_ends_a_benchmark_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(words: Sequence[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(acceptance, "measure", stopped)
    monkeypatch.setattr("sys.argv", ["bench", "acceptance", "sas"])
    assert front.main() == 130
    assert capsys.readouterr().err == "bench acceptance: interrupted\n"
