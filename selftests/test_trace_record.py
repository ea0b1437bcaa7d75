"""Recorded traces: from blktrace's events, through the real blkparse, to an iolog."""

import gzip
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import cast

import pytest

from leadline.cli import main
from leadline.errors import Misuse, RigTrouble
from leadline.host.connection import Finished, Host
from leadline.trace.blkparse import Recorded, read_blkparse
from leadline.trace.files import load_trace
from leadline.trace.recording import record
from leadline.trace.trace import READ, SYNC, TRIM, WRITE

needs_blkparse = pytest.mark.skipif(
    shutil.which("blkparse") is None, reason="blkparse (package blktrace) is not installed"
)
# include/uapi/linux/blktrace_api.h: actions, and categories in the upper half.
QUEUE, REQUEUE, ISSUE, COMPLETE = 1, 6, 7, 8
OF_ACTION = {QUEUE: 1 << 20, REQUEUE: 1 << 21, ISSUE: 1 << 22, COMPLETE: 1 << 23}
R, W, F, S, PC, AHEAD, META, D, FUA = (1 << 16 << bit for bit in (0, 1, 2, 3, 9, 11, 12, 13, 15))
SDA = 8 << 20

Event = tuple[int, int, int, int, int]
"""Nanoseconds, action, categories, sector, bytes."""


def blkparsed(directory: Path, events: Sequence[Event]) -> bytes:
    """What the real blkparse prints of such events."""
    with (directory / "events.blktrace.0").open("wb") as out:
        for number, (at, action, categories, sector, size) in enumerate(events, 1):
            full = action | OF_ACTION[action] | categories
            head = (0x65617407, number, at, sector, size, full, 99, SDA, 0, 0, 0)
            out.write(struct.pack("<IIQQIIIIIHH", *head))
    words = ["blkparse", "-q", "-i", "events"]
    return subprocess.run(words, cwd=directory, capture_output=True, check=True).stdout


def read(text: bytes) -> Recorded:
    return read_blkparse(text.splitlines(keepends=True), "t")


@needs_blkparse
def test_what_the_drive_was_sent_is_read_from_blkparse(tmp_path: Path) -> None:
    events = [
        (500, QUEUE, R, 8, 4096),
        (1_000, ISSUE, R, 8, 4096),
        (2_000, ISSUE, W | S | META, 1 << 33, 8192),
        (3_000, COMPLETE, R, 8, 4096),
        (4_000_000, ISSUE, D, 4096, 1 << 20),
        (5_000_000, ISSUE, F | W | S, 0, 0),
        (6_000_000, ISSUE, W | FUA, 64, 512),
        (7_000_000, ISSUE, R | AHEAD, 16, 65536),
        (12_000_000_000, ISSUE, F, 0, 0),
    ]
    found = read(blkparsed(tmp_path, events))
    trace = found.trace
    kinds = [READ, WRITE, TRIM, SYNC, WRITE, READ, SYNC]
    assert trace.kind.tolist() == kinds
    assert trace.time_us.tolist() == [0, 1, 3_999, 4_999, 5_999, 6_999, 11_999_999]
    sectors = [8, 1 << 33, 4096, 0, 64, 16, 0]
    assert trace.offset.tolist() == [512 * sector for sector in sectors]
    assert trace.length.tolist() == [4096, 8192, 1 << 20, 0, 512, 65536, 0]


@needs_blkparse
def test_in_flight_is_what_was_issued_and_not_completed(tmp_path: Path) -> None:
    events = [
        (1_000, COMPLETE, R, 800, 4096),  # issued before the recording began
        (2_000, ISSUE, R, 8, 4096),
        (3_000, ISSUE, R, 16, 4096),
        (4_000, ISSUE, R, 24, 4096),
        (5_000, COMPLETE, R, 8, 4096),
        (6_000, COMPLETE, R, 24, 4096),
        (7_000, ISSUE, R, 8, 4096),
        (8_000, COMPLETE, R, 16, 4096),
        (9_000, COMPLETE, R, 8, 4096),
        (10_000, ISSUE, R, 8, 4096),
    ]
    assert read(blkparsed(tmp_path, events)).in_flight == 3


@needs_blkparse
def test_a_request_that_is_put_back_and_issued_again_is_one(tmp_path: Path) -> None:
    events = [
        (1_000, ISSUE, R, 8, 4096),
        (2_000, REQUEUE, R, 8, 4096),
        (3_000, ISSUE, R, 8, 4096),
        (4_000, COMPLETE, R, 8, 4096),
    ]
    found = read(blkparsed(tmp_path, events))
    assert found.trace.time_us.tolist() == [2]
    assert found.in_flight == 1


@needs_blkparse
def test_commands_beside_the_load_are_left_out(tmp_path: Path) -> None:
    events = [(1_000, ISSUE, PC | R, 0, 512), (2_000, ISSUE, R, 8, 4096)]
    assert len(read(blkparsed(tmp_path, events)).trace) == 1


@needs_blkparse
def test_blkparses_own_summary_is_not_read(tmp_path: Path) -> None:
    blkparsed(tmp_path, [(1_000, ISSUE, R, 8, 4096)])
    words = ["blkparse", "-i", "events"]
    text = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True).stdout
    assert b"Total (" in text or b"CPU0 (" in text
    assert len(read(text).trace) == 1


LINE = b"  8,0    0        1     0.000001000    99  D   R 8 + 8 [fio]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "t: no request was issued"),
        (LINE.replace(b"  D ", b"  Q "), "t: no request was issued"),
        (LINE + b"1 /dev/sdx read 0 4096\n", "t:2: found '1 /dev/sdx read 0 4096'"),
        (LINE[:30] + b"\n", "t:1: found '8,0 "),
        (LINE + LINE.replace(b"8,0 ", b"8,16"), "t:2: found an event of device 8,16"),
        (b"\x1b[2J\n", "t:1: found '[2J'"),
        (LINE.replace(b" 0.0000", b" 99999999999.0000"), "t:1: found"),
        (LINE.replace(b" 8 + 8 ", b" 99999999999999999 + 8 "), "t:1: found '8,0 "),
        (LINE.replace(b" 8 + 8 ", b" 8 + 8388608 "), "t:1: found '8,0 "),
    ],
)
def test_what_is_no_recording_is_refused_by_its_line(text: bytes, said: str) -> None:
    with pytest.raises(Misuse) as raised:
        read(text)
    assert said.replace("'8,0", "'  8,0") in str(raised.value)


SCRIPT = files("leadline.trace").joinpath("record.sh").read_text("ascii")


class Rig:
    """A host on which blktrace ends so."""

    name = "rig"

    def __init__(self, exit_code: int = 0, stdout: bytes = b"", stderr: bytes = b"") -> None:
        self.versions = {"blktrace": "2.0", "blkparse": "1.2"}
        self.ends = (exit_code, stdout, stderr)
        self.argv: tuple[str, ...] = ()
        self.deadline = 0.0

    def run(self, argv: Sequence[str], *, deadline: float, **_: object) -> Finished:
        self.deadline = deadline
        self.argv = tuple(argv)
        return Finished(self.argv, *self.ends, seconds=1.0)


def test_a_recording_on_a_rig() -> None:
    rig = Rig(0, gzip.compress(LINE))
    found = record(cast(Host, rig), "/dev/sdb", 5)
    assert found.trace.offset.tolist() == [4096]
    assert rig.argv[-2:] == ("/dev/sdb", "5")


def test_a_long_recording_has_its_time_for_blkparse_too() -> None:
    """Some 200,000 events a second of a busy drive; what is not ready by then is lost."""
    rig = Rig(0, gzip.compress(LINE))
    record(cast(Host, rig), "/dev/sdb", 3600)
    assert rig.deadline > 3 * 3600


@pytest.mark.parametrize(
    ("rig", "said"),
    [
        (Rig(1, b"", b"Operation not permitted"), "recorded nothing .*Operation not permitted"),
        (
            Rig(0, gzip.compress(LINE), b"You have 42 ( 0.1%) dropped events\nConsider using"),
            "blktrace lost 42 events",
        ),
    ],
)
def test_a_recording_with_holes_is_the_rigs_trouble(rig: Rig, said: str) -> None:
    with pytest.raises(RigTrouble, match=f"(?s)rig: /dev/sdb: .*{said}"):
        record(cast(Host, rig), "/dev/sdb", 5)


@pytest.mark.skipif(os.access("/sys/kernel/debug/block", os.F_OK), reason="debugfs is mounted")
@pytest.mark.parametrize("code", [0, 3])
def test_a_debugfs_that_was_not_mounted_is_not_afterwards(tmp_path: Path, code: int) -> None:
    """The real script, with programs that only note what they were called for."""
    did, programs = tmp_path / "did", tmp_path / "bin"
    programs.mkdir()
    for name, then in (("mount", ""), ("umount", ""), ("blktrace", f"exit {code}")):
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {did}\n{then}\n')
    (programs / "blkparse").write_text("#!/bin/sh\necho text\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", SCRIPT, "leadline-record", "/dev/sdb", "5"],
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == code
    first, traced, *last = did.read_text().splitlines()
    assert first == "mount -t debugfs debugfs /sys/kernel/debug"
    assert traced.startswith("blktrace -d /dev/sdb ")
    assert last == ["umount /sys/kernel/debug"]
    if not code:
        assert gzip.decompress(done.stdout) == b"text\n"


def recorded(tmp_path: Path, *words: str) -> int:
    text = tmp_path / "text"
    text.write_bytes(LINE + LINE.replace(b"0.000001", b"2.000001"))
    return main(["trace", "record", str(tmp_path / "mine.iolog.gz"), *words, "--from", str(text)])


OF = ["--capacity", "1000000", "--where", "my desktop", "--what", "a \x1b test"]
ON_RIG = ["--rig", "r.yaml", "--drive", "a"]


def test_the_command_writes_a_trace_and_its_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recorded(tmp_path, *OF, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    trace, header = load_trace(tmp_path / "mine.iolog.gz")
    assert trace.time_us.tolist() == [1, 2_000_001]
    assert (header.made, header.what, header.where) == ("recorded", "a  test", "my desktop")
    assert (header.capacity_bytes, header.in_flight, header.requests) == (1_000_000, 2, 2)
    assert (said["seconds"], said["seed"]) == (2.000001, None)
    assert recorded(tmp_path, *OF) == 0
    assert "2 requests in 2.0 s, at most 2 in flight" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--what", "x"], "--from: say of which drive"),
        ([*OF, "--capacity", "4096"], "the header's capacity is 4096"),
        ([*OF, "--capacity", "0"], "--capacity: found 0, expected the drive's size in bytes"),
        ([*OF, "--capacity", str(1 << 63)], "expected the drive's size in bytes"),
    ],
)
def test_wrong_arguments_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert recorded(tmp_path, *words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x.iolog.gz", "--rig", "r.yaml"], "--rig: name the drive, too"),
        (["x.iolog.gz", "--rig", "r.yaml", "--drive", "a", "--seconds", "0"], "--seconds: found 0"),
        (["x.txt", "--rig", "r.yaml"], "a trace is named NAME"),
        (["no-such-place/x.iolog.gz", *ON_RIG], "no-such-place/x.iolog.gz: nothing can be written"),
        ([f"{'x' * 300}.iolog.gz", *ON_RIG], "xxx.iolog.gz: nothing can be written"),
        (["x.iolog.gz", "--from", "no-such-text", *OF[:4]], "no-such-text: No such file"),
    ],
)
def test_what_is_missing_is_told_before_anything_is_reached(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["trace", "record", *words, "--what", "x"]) == 2
    assert said in capsys.readouterr().err
