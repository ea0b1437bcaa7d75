"""The byte log: every byte both ways, with times, in files that are bounded and safe to show."""

import os
import string
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import Misuse
from leadline.inventory.pdu import PduSpec
from leadline.power import byte_log
from leadline.power.byte_log import ByteLogs, folder_of_command, folder_of_commands, folder_of_run
from leadline.power.byte_log_line import HEARD, OPENED, SENT, begin, escaped, parse
from leadline.power.byte_log_read import Entry, read_log
from leadline.power.pdu import open_pdu
from leadline.power.session import ByteLog, Chunk
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.power_world import quick

__all__ = ["quick"]  # a fixture

LEFT = PduSpec(name="left", family="baytech-rpc3", port="/dev/ttyS0")
RIGHT = PduSpec(name="right", family="baytech-rpc3", port="/dev/ttyS1")


def never(sentence: str) -> None:
    raise AssertionError(sentence)


def entries(folder: Path) -> list[Entry]:
    return list(read_log(Path("none"), str(folder)).entries)


def said(folder: Path) -> list[tuple[str, str, bytes]]:
    return [(each.pdu, each.kind, each.data) for each in entries(folder) if each.kind != OPENED]


def add(log: ByteLog, *chunks: tuple[float, bool, bytes]) -> None:
    for chunk in chunks:
        log.add(Chunk(*chunk))


# What is in a file.


CHUNKS = st.tuples(
    st.floats(0, 0.05), st.booleans(), st.one_of(st.binary(min_size=1), st.just(b"\\x"))
)


def by_way(chunks: Iterable[tuple[float, bool, bytes]]) -> list[tuple[float, bool, bytes]]:
    """Neighbours that went one way as one, at the time of the first."""
    joined: list[tuple[float, bool, bytes]] = []
    for at, sent, data in chunks:
        if joined and joined[-1][1] == sent:
            joined[-1] = (joined[-1][0], sent, joined[-1][2] + data)
        else:
            joined.append((at, sent, data))
    return joined


@given(st.lists(CHUNKS, min_size=1))
def test_every_byte_comes_back_with_its_way_and_its_time(
    tmp_path_factory: pytest.TempPathFactory, given: list[tuple[float, bool, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    times = accumulate(pause for pause, _, _ in given)
    chunks = [(at, sent, data) for at, (_, sent, data) in zip(times, given, strict=True)]
    with ByteLogs(folder, never) as logs:
        add(logs.of(LEFT), *chunks)
    text = (folder / "left.log").read_text()
    assert set(text) <= set(string.printable) - set("\t\r\x0b\x0c")
    opened, *found = entries(folder)
    start = opened.at.timestamp() - chunks[0][0]
    back = by_way((each.at.timestamp() - start, each.kind == SENT, each.data) for each in found)
    wanted = by_way(chunks)
    assert [way[1:] for way in back] == [way[1:] for way in wanted]
    assert [at for at, _, _ in back] == pytest.approx([at for at, _, _ in wanted], abs=1e-4)


def test_a_line_holds_what_went_one_way_at_one_time(tmp_path: Path) -> None:
    with ByteLogs(tmp_path, never) as logs:
        log = logs.of(LEFT)
        add(log, (5.0, True, b"on 1\r"), (5.001, False, b"on"), (5.010, False, b" 1\r\n"))
        add(log, (5.025, False, b"RPC3>"), (5.026, True, b"\x1b"), (9.5, True, b"\x7f\\"))
        # In the file at once: a run that is killed here has lost nothing.
        assert said(tmp_path) == [
            ("left", SENT, b"on 1\r"),
            ("left", HEARD, b"on 1\r\n"),
            ("left", HEARD, b"RPC3>"),
            ("left", SENT, b"\x1b"),
            ("left", SENT, b"\x7f\\"),
        ]
    text = (tmp_path / "left.log").read_text()
    assert text.endswith("\n")
    lines = text.splitlines()
    assert [line[27:] for line in lines[1:]] == [
        r" > on 1\r",
        r" < on 1\r\n",
        r" < RPC3>",
        r" > \x1b",
        r" > \x7f\\",
    ]
    assert (
        '= {"pdu": "left", "port": "/dev/ttyS0", "family": "baytech-rpc3", "baud": 9600' in lines[0]
    )
    first, *_, last = entries(tmp_path)
    assert (last.at - first.at).total_seconds() == pytest.approx(4.5, abs=1e-4)
    assert abs((first.at - datetime.now(UTC)).total_seconds()) < 60


def test_each_session_says_whose_it_is_and_no_line_holds_two(tmp_path: Path) -> None:
    with ByteLogs(tmp_path, never) as logs:
        add(logs.of(LEFT), (1.0, True, b"a"))
        add(logs.of(RIGHT), (1.0, True, b"b"))
        add(logs.of(LEFT), (1.001, True, b"c"))
    kinds = [(each.pdu, each.kind, each.port) for each in entries(tmp_path) if each.kind == OPENED]
    assert sorted(kinds) == [
        ("left", OPENED, "/dev/ttyS0"),
        ("left", OPENED, "/dev/ttyS0"),
        ("right", OPENED, "/dev/ttyS1"),
    ]
    assert sorted(said(tmp_path)) == [
        ("left", SENT, b"a"),
        ("left", SENT, b"c"),
        ("right", SENT, b"b"),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["left.log", "right.log"]


def test_a_file_that_is_full_is_begun_anew_and_the_last_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_log, "LIMIT", 2000)
    with ByteLogs(tmp_path, never) as logs:
        log = logs.of(LEFT)
        for n in range(400):
            add(log, (n, True, b"off %d\r" % n))
            assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2 * 2000 + 400
    assert sorted(path.name for path in tmp_path.iterdir()) == ["left.log", "left.log.old"]
    sent = [data for _, _, data in said(tmp_path)]
    assert sent == [b"off %d\r" % n for n in range(400 - len(sent), 400)]
    assert len(sent) > 40
    assert {each.port for each in entries(tmp_path)} == {"/dev/ttyS0"}, "it says again whose it is"


def test_what_was_there_before_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_log, "LIMIT", 2000)
    for _ in range(2):
        with ByteLogs(tmp_path, never) as logs:
            add(logs.of(LEFT), *((float(n), True, b"x" * 9) for n in range(30)))
    assert (tmp_path / "left.log.old").exists()


def test_processes_of_one_run_write_files_of_their_own(tmp_path: Path) -> None:
    with ByteLogs(tmp_path, never) as logs, ByteLogs(tmp_path, never) as others:
        add(logs.of(LEFT), (1.0, True, b"a"))
        add(others.of(LEFT), (1.0, True, b"b"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["left.log", "left~1.log"]
    assert sorted(data for _, _, data in said(tmp_path)) == [b"a", b"b"]
    with ByteLogs(tmp_path, never) as logs:
        add(logs.of(LEFT), (1.0, True, b"c"))
    assert len(list(tmp_path.iterdir())) == 2, "when they have ended, it goes on in the first"


def test_nothing_is_made_for_a_pdu_that_nothing_is_said_to(tmp_path: Path) -> None:
    with ByteLogs(tmp_path / "run", never) as logs:
        logs.of(LEFT)
    assert not (tmp_path / "run").exists()


def test_no_descriptor_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_log, "LIMIT", 200)
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are enough
    with ByteLogs(tmp_path, never) as logs:
        for n in range(20):
            add(logs.of(LEFT), (n, True, b"a" * 50))
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_log_that_cannot_be_written_is_said_once_and_stops_no_switching(
    tmp_path: Path, quick: None
) -> None:
    (tmp_path / "file").write_text("")
    told: list[str] = []
    spec = LEFT.model_copy(update={"port": str(tmp_path / "pdu"), "outlets": 4})
    with (
        VirtualPdu(4, lambda *_: None, tmp_path / "pdu") as unit,
        ByteLogs(tmp_path / "file" / "run", told.append) as logs,
        open_pdu(spec, log=logs.of(spec)) as pdu,
    ):
        assert pdu.switch(1, False).verified
        assert not unit.contacts[1]
    (sentence,) = told
    assert "file/run: the byte log of PDU left cannot be written (Not a directory)" in sentence


def test_a_disk_that_fills_up_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    with ByteLogs(tmp_path, told.append) as logs:
        log = logs.of(LEFT)
        add(log, (1.0, True, b"a"))
        with monkeypatch.context() as full:
            full.setattr(os, "write", _no_space)
            add(log, (2.0, True, b"b"), (3.0, True, b"c"))
        add(log, (4.0, True, b"d"))
    assert [sentence.split(": ")[1] for sentence in told] == [
        "the byte log of PDU left cannot be written (No space left on device); "
        "what follows is not kept"
    ]
    assert said(tmp_path) == [("left", SENT, b"a")]


def _no_space(handle: int, data: bytes) -> int:
    raise OSError(28, os.strerror(28))


# Lines.


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (r"2026-01-31T23:59:59.123456Z > off 2\r", b"off 2\r"),
        (r"2026-01-31T23:59:59.123456Z > a\\x", b"a\\x"),
        (r"2026-01-31T23:59:59.123456Z > a\x1", b"a"),
        ("2026-01-31T23:59:59.123456Z > a\\", b"a"),
        (r"2026-01-31T23:59:59.123456Z >  b ", b" b "),
    ],
)
def test_a_line_that_a_killed_run_cut_short_is_read_as_far_as_it_goes(
    text: str, data: bytes
) -> None:
    line = parse(text)
    assert line is not None
    assert (line.kind, line.data) == (SENT, data)
    assert line.at == datetime(2026, 1, 31, 23, 59, 59, 123456, UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-31T23:59:59.123456Z",
        "2026-01-31T23:59:59.123456Z ? x",
        "2026-13-31T23:59:59.123456Z > x",
        "2026-01-31T23:59:59.123456Z > \x1b[2J",
        r"2026-01-31T23:59:59.123456Z > \u202e",
        r"2026-01-31T23:59:59.123456Z > \d",
        "2026-01-31T23:59:59.123456Z = {}}",
        "2026-01-31T23:59:59.123456Z = [1]",
        "2026-01-31T23:59:59.123456Z = " + '{"a":' * 100_000 + "}",
    ],
)
def test_what_is_no_line(text: str) -> None:
    assert parse(text) is None


@given(st.binary())
def test_escaped_bytes_are_printable_and_come_back(data: bytes) -> None:
    text = escaped(data)
    assert text.isascii()
    assert text.isprintable()
    line = parse(begin(0.0, HEARD) + text)
    assert line is not None
    assert line.data == data


# Where they are.


def test_the_last_500_commands_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(byte_log, "KEPT_COMMANDS", 3)
    ids = [f"20260101-00000{n}-abcd" for n in range(6)]
    (folder_of_commands() / "not-ours").mkdir(parents=True)
    for run in ids:
        with ByteLogs(folder_of_command(run), never) as logs:
            add(logs.of(LEFT), (1.0, True, b"a"))
    assert sorted(path.name for path in folder_of_commands().iterdir()) == [*ids[-3:], "not-ours"]


def test_the_last_run_is_read_unless_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    results = tmp_path / "results"
    with pytest.raises(Misuse, match=f"there is no byte log yet; runs leave .*{results}"):
        read_log(results, None)
    of_run = folder_of_run(results, "20260101-000001-abcd")
    of_command = folder_of_command("20260101-000002-abcd")
    for folder in (of_run, of_command):
        with ByteLogs(folder, never) as logs:
            add(logs.of(LEFT), (1.0, True, folder.name.encode()))
    of_run.with_name("z").mkdir()
    assert read_log(results, None).run == "20260101-000002-abcd"
    named = read_log(results, "20260101-000001-abcd")
    assert (named.run, named.source) == ("20260101-000001-abcd", of_run)
    assert named.entries[1].data == b"20260101-000001-abcd"
    assert read_log(results, str(of_run)).run is None
    assert read_log(results, str(of_run / "left.log")).entries == named.entries
    wrong = "found no run or file '20269'; there are: 20260101-000002-abcd, 20260101-000001-abcd"
    with pytest.raises(Misuse, match=wrong):
        read_log(results, "20269")


def test_of_runs_of_one_second_the_last_is_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a run's id is random; and a folder may be copied."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    ids = ["20260101-000001-ffff", "20260101-000001-0000", "20251231-235959-abcd"]
    for n, run in enumerate(ids):
        with ByteLogs(folder_of_command(run), never) as logs:
            add(logs.of(LEFT), (1.0, True, b"a"))
        os.utime(folder_of_command(run), (n, n))
    assert read_log(tmp_path, None).run == "20260101-000001-0000"


def test_what_is_no_byte_log_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 10)
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(1 << 40)
    os.mkfifo(tmp_path / "pipe")
    for name in ("binary", "huge", "pipe"):
        with pytest.raises(Misuse, match=f"{name}: it (is|holds) no byte log"):
            read_log(tmp_path, str(tmp_path / name))
    with pytest.raises(Misuse, match="it holds no byte log"):
        read_log(tmp_path, str(tmp_path))
    with pytest.raises(Misuse, match="it is no byte log"):
        read_log(tmp_path, "/dev/zero")
