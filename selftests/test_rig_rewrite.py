"""A rig file whose outlets are changed: every other byte of it stays."""

import os
from pathlib import Path

import pytest

from leadline.errors import Misuse
from leadline.inventory import rewrite
from leadline.inventory.rewrite import OutletEdit, text_of, with_outlets, write_outlets
from leadline.inventory.rig import load_rig

FILE = """\
# A bench.
rig: bench   # its name

host: {reach: local}
controllers:
- {name: c, driver: ahci}
pdus:
  - name: "p"
    family: baytech-rpc3
    port: /dev/p
  - {name: q, family: baytech-rpc3, port: /dev/q}

outlets:
  # the left one
  - name: one
    pdu: "p"      # by the window
    outlet: 2     # counted from the top
    feeds: [ a ]  # slot a

  # the shelf
  - name: two
    outlet: 3
    feeds:
      - b    # upper
      # between
      - c    # lower
    pdu: p
  # no more of them

drives:   # all of them
  - {slot: a, model: M, serial: 0007, firmware: off, controller: c, protocol: sata}
  - {slot: b, model: M, serial: S2, firmware: '1', controller: c, protocol: sata}
  - {slot: c, model: "M", serial: S3, firmware: '1', controller: c, protocol: sata}
"""
AS_IT_IS = (
    OutletEdit(0, "one", "p", 2, ("a",)),
    OutletEdit(1, "two", "p", 3, ("b", "c")),
)
MORE = OutletEdit(None, "three", "q", 1, ("host",))


def changed(*edits: OutletEdit, text: str = FILE) -> list[str]:
    """The lines that are other than in `text`: those that went with -, those that came with +."""
    old, new = text.splitlines(), with_outlets(text, edits).splitlines()
    came = [f"+{line}" for line in new if line not in old]
    return [f"-{line}" for line in old if line not in new] + came


def test_edits_that_change_nothing_leave_every_byte() -> None:
    assert with_outlets(FILE, AS_IT_IS) == FILE
    assert with_outlets(FILE, ()) == FILE


def test_a_number_and_a_pdu_are_replaced_where_they_stand() -> None:
    assert changed(OutletEdit(0, "one", "q", 14, ("a",))) == [
        '-    pdu: "p"      # by the window',
        "-    outlet: 2     # counted from the top",
        "+    pdu: q      # by the window",
        "+    outlet: 14     # counted from the top",
    ]


def test_a_list_in_brackets_is_replaced() -> None:
    assert changed(OutletEdit(0, "one", "p", 2, ("b", "c")))[1:] == [
        "+    feeds: [b, c]  # slot a",
    ]
    assert changed(OutletEdit(0, "one", "p", 2, ("host",)))[1:] == ["+    feeds: host  # slot a"]


@pytest.mark.parametrize(
    ("feeds", "wanted"),
    [
        (("c", "b"), ["-      - b    # upper", "-      - c    # lower",
                      "+      - c    # upper", "+      - b    # lower"]),
        (("b",), ["-      - c    # lower"]),
        (("b", "c", "a"), ["+      - a"]),
    ],
)  # fmt: skip
def test_a_list_of_lines_keeps_its_comments(feeds: tuple[str, ...], wanted: list[str]) -> None:
    assert changed(OutletEdit(1, "two", "p", 3, feeds)) == wanted


def test_an_entry_is_added_after_the_last_before_what_follows(tmp_path: Path) -> None:
    text = with_outlets(FILE, [MORE, OutletEdit(None, "four", "q", 2, ("a", "b"))])
    assert (
        "    pdu: p\n"
        "  - name: three\n    pdu: q\n    outlet: 1\n    feeds: host\n"
        "  - name: four\n    pdu: q\n    outlet: 2\n    feeds: [a, b]\n"
        "  # no more of them\n"
    ) in text


@pytest.mark.parametrize(
    ("outlets", "wanted"),
    [
        ("outlets: [{name: one, pdu: p, outlet: 2, feeds: [a]}]  # one",
         "outlets: [{name: one, pdu: p, outlet: 2, feeds: [a]}, "
         "{name: three, pdu: q, outlet: 1, feeds: host}]  # one"),
        ("outlets: []", "outlets: [{name: three, pdu: q, outlet: 1, feeds: host}]"),
        ("outlets:\n- name: one\n  pdu: p\n  outlet: 2\n  feeds: [a]  # a",
         "outlets:\n- name: one\n  pdu: p\n  outlet: 2\n  feeds: [a]  # a\n"
         "- name: three\n  pdu: q\n  outlet: 1\n  feeds: host"),
        ("", "outlets:\n  - name: three\n    pdu: q\n    outlet: 1\n    feeds: host"),
    ],
    ids=["in brackets", "empty", "not indented", "none at all"],
)  # fmt: skip
def test_an_entry_is_laid_out_as_those_that_are_there(
    tmp_path: Path, outlets: str, wanted: str
) -> None:
    head, tail = FILE[: FILE.index("outlets:")], FILE[FILE.index("drives:") :]
    path = tmp_path / "bench.yaml"
    text = f"{head}{tail}{outlets}"
    for end in ("", "\n"):
        path.write_text(text.rstrip("\n") + end if not outlets else text + end)
        after = write_outlets(path, path.read_text(), [MORE])
        assert after.rstrip("\n") == f"{head}{tail}{wanted}"
        assert load_rig(path).outlets[-1].name == "three"


def test_windows_line_ends_stay(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    text = FILE.replace("\n", "\r\n")
    path.write_bytes(text.encode())
    edits = [OutletEdit(0, "one", "p", 5, ("c",)), OutletEdit(1, "two", "p", 3, ("b",)), MORE]
    write_outlets(path, text_of(path), edits)
    assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")
    first, second, third = load_rig(path).outlets
    assert (first.outlet, first.feeds, second.feeds, third.feeds) == (5, ("c",), ("b",), "host")


def test_the_file_keeps_its_mode_its_byte_order_mark_and_the_link_to_it(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "bench.yaml"
    real.write_bytes(b"\xef\xbb\xbf" + FILE.encode())
    real.chmod(0o640)
    link.symlink_to(real)
    write_outlets(link, text_of(link), [MORE])
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert real.read_bytes().startswith(b"\xef\xbb\xbf# A bench")
    assert load_rig(link).outlets[2].feeds == "host"
    assert sorted(tmp_path.iterdir()) == [link, real], "nothing else is left there"


def refused(path: Path, before: str, *edits: OutletEdit) -> str:
    held = path.read_bytes()
    with pytest.raises(Misuse) as caught:
        write_outlets(path, before, edits)
    assert path.read_bytes() == held
    assert list(path.parent.iterdir()) == [path]
    return str(caught.value)


def test_what_would_make_a_wrong_file_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(FILE)
    said = refused(path, FILE, OutletEdit(0, "one", "p", 3, ("a",)))
    assert f'{path}:22: outlets[two].outlet: found 3 of PDU "p", expected each outlet once' in said
    assert "not written. What was to be written is one: pdu: p, outlet: 3, feeds: [a]" in said


def test_a_file_that_somebody_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(FILE + "# a thought\n")
    assert "changed meanwhile" in refused(path, FILE, MORE)


def test_a_layout_that_only_a_person_can_change_is_left_to_one(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    text = FILE.replace("    outlet: 3\n", "    ? outlet\n    : >-\n      3\n")
    path.write_text(text)
    assert load_rig(path).outlets[1].outlet == 3
    said = refused(path, text, OutletEdit(1, "two", "p", 4, ("b", "c")), MORE)
    assert "two: pdu: p, outlet: 4, feeds: [b, c]; three: pdu: q" in said


def test_what_comes_out_is_read_again_and_must_say_that_and_else_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(FILE)
    right = with_outlets(FILE, [MORE])
    for wrong in (FILE, right.replace("S2", "S4"), right.replace("outlet: 2 ", "outlet: 5 ")):
        monkeypatch.setattr(rewrite, "with_outlets", lambda *_, wrong=wrong: wrong)
        assert "only a person can change" in refused(path, FILE, MORE)


def test_a_full_disk_is_said_and_leaves_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "bench.yaml"
    path.write_text(FILE)
    monkeypatch.setattr(os, "fsync", full)
    said = refused(path, FILE, MORE)
    assert said == f"{path}: cannot be written: No space left on device; nothing was changed"


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="cannot be read"):
        text_of(tmp_path / "none.yaml")
