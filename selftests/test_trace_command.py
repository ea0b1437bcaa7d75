"""`leadline trace generate`, `check` and `show` as a user meets them."""

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.cli import main
from leadline.trace.files import load_trace
from leadline.trace.loads import LOADS
from selftests.traces import few, kept

SMALL = str(1 << 28)


def generated(tmp_path: Path, *words: str) -> int:
    return main(["trace", "generate", "--out", str(tmp_path), "--capacity", SMALL, *words])


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return dict(json.loads(capsys.readouterr().out))


def test_all_nine_are_generated_sound_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generated(tmp_path) == 0
    assert len(capsys.readouterr().out.splitlines()) == 9
    files = sorted(str(path) for path in tmp_path.glob("*.iolog.gz"))
    assert [Path(file).name for file in files] == sorted(f"{name}.iolog.gz" for name in LOADS)
    assert main(["trace", "check", *files]) == 0
    assert capsys.readouterr().out.count(": sound: ") == 9
    assert main(["trace", "show", *files]) == 0
    assert capsys.readouterr().out.count(" sequential, from ") == 9


def test_generating_again_gives_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for directory in (one, two):
        assert generated(directory, "dual-copy", "--seed", "4", "--fragments", "9") == 0
    name = "dual-copy.iolog.gz"
    assert (one / name).read_bytes() == (two / name).read_bytes()
    assert generated(two, "dual-copy", "--seed", "4") == 0
    assert (one / name).read_bytes() != (two / name).read_bytes()


def test_the_header_says_what_where_and_by_which_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generated(tmp_path, "copy-mail-import", "--seed", "4", "--json") == 0
    (found,) = printed(capsys)["traces"]
    _, header = load_trace(tmp_path / "copy-mail-import.iolog.gz")
    assert found["file"] == str(tmp_path / "copy-mail-import.iolog.gz")
    assert found["what"].startswith("a large file is copied while mail is imported")
    assert "files at 0.00671 of their size" in found["what"]
    assert (found["seed"], found["capacity_bytes"]) == (4, 1 << 28)
    assert found["where"] == "made up: recorded on no drive"
    assert found["requests"] == header.requests
    assert found["streams"][0]["stream"] == "Sequential"


def test_json_of_check_and_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = kept(tmp_path, few())
    bad = kept(tmp_path, few(), "bad", requests=9)
    assert main(["trace", "check", "--json", str(good), str(bad)]) == 2
    first, second = printed(capsys)["files"]
    assert first == {"file": str(good), "requests": 6, "problems": []}
    assert second["problems"] == [
        f"{bad}:9: 6 requests, and the header says 9; the file is cut off, or the header is "
        "another trace's: copy both again"
    ]
    assert main(["trace", "show", "--json", str(good)]) == 0
    (shown,) = printed(capsys)["traces"]
    assert (shown["requests"], shown["reads"], shown["sequential_share"]) == (6, 3, 0.0)
    assert shown["header"]["generator"] == "by hand"


def test_check_says_what_is_wrong_with_each_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing.iolog.gz"
    assert main(["trace", "check", str(missing), str(kept(tmp_path, few()))]) == 2
    first, second = capsys.readouterr().out.splitlines()
    assert "missing.json: No such file" in first
    assert second.endswith("sound: 6 requests")


def test_the_loads_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "generate", "--list", "--json"]) == 0
    assert list(printed(capsys)["loads"]) == list(LOADS)
    assert main(["trace", "generate", "--list", "dual-copy"]) == 0
    said = "dual-copy  a large file is copied while 512 MB of small files are copied\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch"], "there is no load 'nosuch'"),
        (["--seed", "-1"], "--seed: found -1"),
        (["--capacity", "4096"], "a capacity of 4096 bytes"),
        (["dual-copy", "--capacity", str(1 << 63)], f"a capacity of {1 << 63} bytes: no drive is"),
        (["--fragments", "0"], "0 fragments"),
    ],
)
def test_wrong_arguments_are_told_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    out = tmp_path / "out"
    assert generated(out, *words) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_a_place_that_cannot_be_written_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert generated(tmp_path / "file" / "below") == 2
    assert "--out: " in capsys.readouterr().err


@pytest.mark.parametrize("action", ["generate", "check", "show"])
def test_help_has_examples(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["trace", action, "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert f"leadline trace {action} " in out.partition("examples:")[2]
