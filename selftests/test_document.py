"""A file is read once, every error names its line, and nothing but Misuse comes out."""

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from leadline.errors import Misuse
from leadline.inventory import document
from leadline.inventory.document import Problem, read, shown, some
from leadline.inventory.fields import Entry
from leadline.inventory.shape import require


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "a.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(folder: Path, text: str | bytes) -> str:
    """What reading and shaping a file complains of, paths cut to the file's name."""
    with pytest.raises(Misuse) as caught:
        require(read(written(folder, text)), Cupboard)
    return str(caught.value).replace(f"{folder}/", "")


class Shelf(Entry):
    name: str = Field(description="a name")
    width_mm: float = Field(gt=0, description="millimetres, more than 0")
    books: tuple[str, ...] = Field(default=(), description="a list of titles")


class Cupboard(Entry):
    label: str = Field(validation_alias="cupboard", description="a label")
    path: Path | None = None
    shelves: tuple[Shelf, ...] = Field(min_length=1, description="a list of shelves")


GOOD = "cupboard: 0007\nshelves:\n  - name: off\n    width_mm: 10\n    books: [1e3, ~, 0x10]\n"


def test_every_scalar_stays_text_until_a_model_types_it(tmp_path: Path) -> None:
    cupboard = require(read(written(tmp_path, GOOD)), Cupboard)
    assert cupboard.label == "0007"
    assert cupboard.shelves == (Shelf(name="off", width_mm=10, books=("1e3", "~", "0x10")),)


def test_the_python_loader_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, GOOD)
    with_libyaml = read(path)
    monkeypatch.setattr(document, "_LOADER", yaml.BaseLoader)
    assert read(path) == with_libyaml


def test_lines_are_those_of_keys_and_of_list_entries(tmp_path: Path) -> None:
    found = read(written(tmp_path, GOOD))
    assert found.line(("cupboard",)) == 1
    assert found.line(("shelves", 0)) == 3
    assert found.line(("shelves", 0, "width_mm")) == 4
    assert found.line(("shelves", 0, "not there")) == 3
    assert found.where("shelves", 0, "books").endswith("a.yaml:5")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.yaml:1: found an empty file, expected `key: value` lines"),
        ("# nothing\n", "a.yaml:1: found an empty file, expected `key: value` lines"),
        ("- a\n", "a.yaml:1: found a list, expected `key: value` lines"),
        ("\n\nword\n", 'a.yaml:3: found "word", expected `key: value` lines'),
        (
            "shelves:\n\t- name: x\n",
            "a.yaml:2: found a tab, expected spaces: YAML indents with spaces",
        ),
        ("a: b\n---\nc: d\n", "a.yaml:2: found a second document, expected one"),
        (b"cupboard: a\nx: \xff\n", "a.yaml:2: found a byte 0xff, expected UTF-8 text"),
    ],
)
def test_a_file_that_is_no_mapping(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert refusal(tmp_path, text) == message


@pytest.mark.parametrize(
    ("text", "line"),
    [("cupboard: [a\nshelves: b\n", 2), ("cupboard: a\n b: c\n", 2)],
)
def test_broken_yaml_names_its_line(tmp_path: Path, text: str, line: int) -> None:
    assert refusal(tmp_path, text).startswith(f"a.yaml:{line}: found broken YAML (")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path / "none" / "a.yaml"):
        with pytest.raises(Misuse, match=f"^{path}: found no such file, expected a YAML file"):
            read(path)
    with pytest.raises(Misuse, match="found something that is not a file"):
        read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Misuse, match="found something that is not a file"):
        read(tmp_path / "pipe")
    with pytest.raises(Misuse, match=r"a\.yaml/b: cannot be read: Not a directory"):
        read(written(tmp_path, GOOD) / "b")
    with pytest.raises(Misuse, match="found more than 16 MiB"):
        read(written(tmp_path, b"#" * document.LARGEST + b"#"))


def test_everything_wrong_with_a_file_is_said_at_once(tmp_path: Path) -> None:
    text = (
        "cupbord: a\n"
        "shelves:\n"
        "  - name: low\n"
        "    width_mm: wide\n"
        "  - width_mm: 5\n"
        "    name: high\n"
        "    name: top\n"
        "    books: Moby Dick\n"
        "  - short\n"
        "  - name: [low]\n"
        "    width_mm: -1\n"
        "    books: [{a: b}]\n"
        "    colour: red\n"
    )
    assert refusal(tmp_path, text).splitlines() == [
        "a.yaml:1: cupboard: found nothing, expected a label",
        "a.yaml:1: cupbord: found an unknown key, expected cupboard? (one of cupboard, path, "
        "shelves)",
        'a.yaml:4: shelves[low].width_mm: found "wide", expected millimetres, more than 0',
        "a.yaml:7: shelves[high].name: found the key a second time (the first is on line 6), "
        "expected each key once",
        'a.yaml:8: shelves[high].books: found "Moby Dick", expected a list of titles',
        'a.yaml:9: shelves[3]: found "short", expected a mapping of name, width_mm, books',
        "a.yaml:10: shelves[4].name: found a list, expected a name",
        'a.yaml:11: shelves[4].width_mm: found "-1", expected millimetres, more than 0',
        "a.yaml:12: shelves[4].books[1]: found a mapping, expected text",
        "a.yaml:13: shelves[4].colour: found an unknown key, expected one of name, width_mm, books",
    ]


def test_a_file_cannot_set_what_its_reader_knows(tmp_path: Path) -> None:
    found = read(written(tmp_path, GOOD + "path: /elsewhere\n"))
    with pytest.raises(Misuse, match=r"a.yaml:6: path: found an unknown key, expected one of") as e:
        require(found, Cupboard, path=Path("here"))
    assert str(e.value).endswith("one of cupboard, shelves")


def test_a_python_name_is_no_key(tmp_path: Path) -> None:
    assert "a.yaml:1: label: found an unknown key" in refusal(tmp_path, "label: a\n")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("&x [a]\nother: *x", "an alias, *x"),
        ("&x [*x]", "an alias, *x"),
        ("!!python/object:os.system a", 'a tag "tag:yaml.org,2002:python/object:os.system"'),
        ("!!int 7", 'a tag "tag:yaml.org,2002:int"'),
        ("{[a]: b}", "a key that is a list or a mapping"),
    ],
)
def test_what_a_plain_file_does_not_need_is_refused(tmp_path: Path, value: str, found: str) -> None:
    assert f"found {found}, expected" in refusal(tmp_path, f"cupboard: {value}\n")


def test_checks_and_the_models_errors_come_together(tmp_path: Path) -> None:
    found = read(written(tmp_path, "cupboard: a\nshelves: none\n"))
    with pytest.raises(Misuse) as caught:
        require(found, Cupboard, [Problem(("cupboard",), "an a", "a b")])
    assert [line.split(": ", 1)[1] for line in str(caught.value).splitlines()] == [
        "cupboard: found an a, expected a b",
        'shelves: found "none", expected a list of shelves',
    ]


def test_a_value_is_shown_short_and_without_control_characters() -> None:
    assert shown("\x1b[2J\n\x9b\u202e") == r'"\u001b[2J\n\u009b\u202e"'
    assert shown("x" * 1000) == '"' + "x" * 75 + '..."'


def test_many_names_are_not_listed_all() -> None:
    assert some([]) == ""
    assert some(["b", "a", "b"]) == '"b", "a"'
    assert some(map(str, range(10))).endswith(', "8", "9"')
    assert some(map(str, range(11))).endswith(', "8", "9", ...')


def test_a_key_is_shown_without_control_characters(tmp_path: Path) -> None:
    message = refusal(tmp_path, GOOD + '"\\e[2J": 1\n')
    assert r"a.yaml:6: \u001b[2J: found an unknown key" in message


def test_a_field_is_named_to_its_end_below_a_long_name(tmp_path: Path) -> None:
    shelf = "x" * 70
    assert refusal(tmp_path, GOOD.replace("off", shelf).replace("10", "wide")) == (
        f'a.yaml:4: shelves[{shelf}].width_mm: found "wide", expected millimetres, more than 0'
    )
    key = "y" * 1000
    assert f"a.yaml:6: {key[:75]}...: found an unknown key" in refusal(tmp_path, f"{GOOD}{key}: 1")


@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_no_bytes_at_all_end_in_anything_but_misuse(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = written(tmp_path_factory.getbasetemp(), data)
    with pytest.raises(Misuse):
        require(read(path), Cupboard)


@pytest.mark.parametrize("text", ["a: " + "[" * 100_000, "a: " + "[" * 5_000 + "]" * 5_000])
def test_nesting_without_end_is_misuse(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path, text) == "a.yaml:1: found more than 20 levels, expected a few"


def test_twenty_levels_are_read(tmp_path: Path) -> None:
    assert read(written(tmp_path, "a: " + "[" * 20 + "]" * 20)).data
    with pytest.raises(Misuse, match="more than 20 levels"):
        read(written(tmp_path, "a: " + "[" * 21 + "]" * 21))
