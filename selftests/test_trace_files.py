"""Trace files: what is written is read, and what is wrong is named by file and line."""

import gzip
import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.errors import Misuse
from leadline.trace import iolog
from leadline.trace.files import inspect, load_trace
from leadline.trace.header import header_path, read_header
from leadline.trace.iolog import read_iolog, write_iolog
from leadline.trace.trace import KINDS, Trace, joined, merged, trace_of
from selftests.traces import CAPACITY, few, kept

HEAD = "fio version 3 iolog\n0 /dev/sdx add\n0 /dev/sdx open\n"


def text_of(trace: Trace) -> bytes:
    out = io.BytesIO()
    write_iolog(out, trace)
    return out.getvalue()


def read(text: bytes) -> Trace:
    return joined([piece.trace for piece in read_iolog(io.BytesIO(text), "t")])


requests = st.tuples(
    st.integers(0, 2**62),
    st.integers(0, len(KINDS) - 1),
    st.integers(0, 2**62),
    st.integers(0, 2**32 - 1),
)


@given(st.lists(requests, max_size=30), st.integers(20, 400))
@settings(max_examples=60)
def test_a_trace_comes_back_from_its_text_however_that_is_cut(
    rows: list[tuple[int, ...]], at_once: int
) -> None:
    trace = trace_of(*(zip(*rows, strict=True) if rows else ([],) * 4))
    before = iolog._BYTES_AT_ONCE
    iolog._BYTES_AT_ONCE = at_once
    try:
        pieces = list(read_iolog(io.BytesIO(text_of(trace)), "t"))
    finally:
        iolog._BYTES_AT_ONCE = before
    assert joined([piece.trace for piece in pieces]).equals(trace)
    lines = [int(line) for piece in pieces for line in piece.lines]
    assert lines == list(range(4, 4 + len(rows)))


def test_the_text_is_fios() -> None:
    first, add, opened, *lines = text_of(few()).decode().splitlines()
    assert first == "fio version 3 iolog"
    assert (add, opened) == ("0 /proc/redirect-me add", "0 /proc/redirect-me open")
    assert lines[:2] == ["3 /proc/redirect-me read 0 4096", "3 /proc/redirect-me write 4096 8192"]
    assert lines[3] == "1000 /proc/redirect-me sync 0 0"
    assert lines[-1] == "2000000 /proc/redirect-me close"


def test_what_fio_wrote_itself_is_read() -> None:
    text = HEAD + "17 /dev/sdx write 0 4096\n18 /dev/sdx datasync 0 0\n20 /dev/sdx close\n"
    assert read(text.encode()).equals(trace_of([17, 18], [1, 3], [0, 0], [4096, 0]))


def test_a_saved_trace_comes_back_with_its_header_and_in_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kept(tmp_path, few())
    trace, header = load_trace(path)
    assert trace.equals(few())
    assert (header.requests, header.seconds, header.capacity_bytes) == (6, 2.0, CAPACITY)
    again = tmp_path / "again"
    again.mkdir()
    monkeypatch.setattr(time, "time", lambda: 1e9)
    assert kept(again, few()).read_bytes() == path.read_bytes()
    assert header_path(path) == tmp_path / "few.json"


def test_merging_keeps_the_order_of_equal_times() -> None:
    one, two = trace_of([5, 9], [0, 0], [1, 2], [8, 8]), trace_of([5, 7], [1, 1], [3, 4], [8, 8])
    found = merged([one, two])
    assert found.time_us.tolist() == [5, 5, 7, 9]
    assert found.offset.tolist() == [1, 3, 4, 2]
    assert found.kind.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("at_once", [1 << 22, 12, 30])
@pytest.mark.parametrize(
    ("lines", "line", "expected"),
    [
        ("1 /dev/sdx read 0\n", 4, "expected TIME"),
        ("1 /dev/sdx read 0 4096 9\n", 4, "expected TIME"),
        ("1 /dev/sdx read zero 4096\n", 4, "expected TIME"),
        ("1 /dev/sdx wait 100 0\n", 4, "expected TIME"),
        ("1 /dev/sdx read 0 4294967296\n", 4, "expected TIME"),
        (f"1 /dev/sdx read {1 << 63} 4096\n", 4, "expected TIME"),
        ("1 /dev/sdx read 0 4096\n\n2 /dev/sdx read 0 4096\n", 5, "expected TIME"),
        ("1 /dev/sdx read 0 4096\n1 /dev/sdy read 0 4096\n", 5, "one file"),
        ("1 /dev/sdx read 0 4096\n2 /dev/sdx rea", 5, "cut off"),
    ],
)
def test_a_line_that_fio_would_not_understand_is_named(
    lines: str, line: int, expected: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iolog, "_BYTES_AT_ONCE", at_once)
    with pytest.raises(Misuse, match=f"^t:{line}: ") as raised:
        read((HEAD + lines).encode())
    assert expected in str(raised.value)


def test_a_fault_far_into_a_trace_is_named_by_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iolog, "_BYTES_AT_ONCE", 100)
    good = "".join(f"{n} /dev/sdx read 0 512\n" for n in range(50))
    with pytest.raises(Misuse, match=r"^t:54: found '51 /dev/sdx raed 0 512'"):
        read((HEAD + good + "51 /dev/sdx raed 0 512\n" + good).encode())


def test_what_a_trace_says_does_not_reach_the_terminal_as_it_is() -> None:
    with pytest.raises(Misuse) as raised:
        read((HEAD + "1 /dev/sdx \x1b[31m 0 512\n").encode())
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize("first", [b"", b"fio version 2 iolog\n", b"\x07\x41\x61\x65" * 9])
def test_a_foreign_trace_is_refused_at_its_first_line(first: bytes) -> None:
    with pytest.raises(Misuse, match=r"^t:1: .* no iolog of fio 3\.31"):
        read(first + b"1 /dev/sdx read 0 512\n")


def wrong(tmp_path: Path, *rows: tuple[int, int, int, int], requests: int = 0) -> list[str]:
    trace = trace_of(*zip(*rows, strict=True))
    _, problems = inspect(kept(tmp_path, trace, requests=requests or len(rows)))
    return [str(problem) for problem in problems]


def test_each_thing_wrong_is_told_once_with_its_first_line_and_its_count(tmp_path: Path) -> None:
    found = wrong(
        tmp_path,
        (9, 0, 0, 512),
        (5, 0, CAPACITY, 512),
        (4, 1, 100, 512),
        (4, 0, 0, 0),
        (6, 0, CAPACITY - 512, 1024),
    )
    order, capacity, alignment, length = found
    assert order.startswith("5: a request at 5 us after one that is later; ")
    assert "(and 1 more lines)" in order
    assert capacity.startswith(f"5: a request at offset {CAPACITY} for 512 bytes, ")
    assert "(and 1 more lines)" in capacity
    assert alignment.startswith("6: offset 100 and length 512 are no multiples of 512 bytes")
    assert length.startswith("7: a request of no bytes at offset 0")


def test_an_offset_that_no_drive_has_is_beyond_the_capacity(tmp_path: Path) -> None:
    """Where such a request ends is more than 64 bits hold."""
    (problem,) = wrong(tmp_path, (1, 0, (1 << 63) - 512, 4096))
    assert f"a request at offset {(1 << 63) - 512} for 4096 bytes" in problem


def test_order_is_checked_across_what_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iolog, "_BYTES_AT_ONCE", 64)
    rows = [(n, 0, 0, 512) for n in (1, 2, 3, 4, 3, 5)]
    (problem,) = wrong(tmp_path, *rows)
    assert problem.startswith("8: a request at 3 us")


def test_a_sound_trace_has_nothing_wrong(tmp_path: Path) -> None:
    assert inspect(kept(tmp_path, few()))[1] == ()


def test_a_trace_of_another_header_is_told_by_its_count(tmp_path: Path) -> None:
    (problem,) = wrong(tmp_path, (1, 0, 0, 512), requests=7)
    assert problem.startswith("4: 1 requests, and the header says 7; ")


def test_a_trace_with_problems_is_not_loaded(tmp_path: Path) -> None:
    path = kept(tmp_path, trace_of([1], [0], [100], [512]))
    with pytest.raises(Misuse, match=rf"^{path}:4: offset 100"):
        load_trace(path)


def empty(path: Path) -> None:
    path.write_bytes(gzip.compress(text_of(trace_of([], [], [], []))))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def foreign(path: Path) -> None:
    path.write_bytes(b"7z\xbc\xaf\x27\x1c" * 30)


def damaged(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[-6] ^= 0xFF
    path.write_bytes(whole)


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def gone(path: Path) -> None:
    path.unlink()


def header_gone(path: Path) -> None:
    header_path(path).unlink()


def header_cut(path: Path) -> None:
    header_path(path).write_text(header_path(path).read_text()[:40])


def header_wrong(path: Path) -> None:
    beside = header_path(path)
    beside.write_text(json.dumps(json.loads(beside.read_text()) | {"capacity_bytes": "\x1b[2J"}))


def header_vast(path: Path) -> None:
    beside = header_path(path)
    beside.write_text(json.dumps(json.loads(beside.read_text()) | {"capacity_bytes": 1 << 63}))


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (empty, "few.iolog.gz:1: the trace holds no request"),
        (cut, "cut off or damaged"),
        (foreign, "not compressed by gzip"),
        (damaged, "few.iolog.gz: this is not compressed by gzip, or damaged"),
        (nothing, "few.iolog.gz:1: found ''"),
        (gone, "few.iolog.gz: No such file"),
        (header_gone, "few.json: No such file"),
        (header_cut, "few.json: the whole: "),
        (header_wrong, "few.json: capacity_bytes: "),
        (header_vast, "few.json: capacity_bytes: "),
    ],
)
def test_a_spoilt_file_is_refused_with_what_to_do(
    tmp_path: Path, spoil: Callable[[Path], None], expected: str
) -> None:
    path = kept(tmp_path, few())
    spoil(path)
    with pytest.raises(Misuse) as raised:
        load_trace(path)
    said = str(raised.value)
    assert expected in said
    assert ";" in said  # the remedy
    assert "\x1b" not in said


def test_a_file_that_is_cut_off_is_told_by_its_last_whole_line(tmp_path: Path) -> None:
    rows = np.arange(20_000)
    path = kept(tmp_path, trace_of(rows, 0, rows * 7919 % 97 * 512, 512), capacity_bytes=1 << 20)
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2])
    with pytest.raises(Misuse) as raised:
        load_trace(path)
    line = int(str(raised.value).removeprefix(f"{path}:").partition(":")[0])
    assert 5_000 < line < 15_000
    assert text.splitlines()[line - 1].split()[0] == str(line - 4).encode()


def test_another_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="a trace is named NAME"):
        read_header(tmp_path / "trace.txt")


def test_the_columns_have_the_types_that_ten_million_fit_in_memory_with() -> None:
    trace = read(text_of(few()))
    types = [trace.time_us.dtype, trace.kind.dtype, trace.offset.dtype, trace.length.dtype]
    assert types == [np.int64, np.uint8, np.int64, np.uint32]
