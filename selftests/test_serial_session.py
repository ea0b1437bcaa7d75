"""The line engine on a virtual clock, and ports that cannot be had."""

import fcntl
import os
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leadline.errors import Misuse, RigTrouble
from leadline.inventory.pdu import PduSpec
from leadline.power import port as port_module
from leadline.power.port import lock_holders, open_port
from leadline.power.session import TICK_S, ByteLog, Chunk, LineTrouble, Session, plain


class ScriptedLine:
    """A port and its clock: bytes come at the seconds that the script says."""

    def __init__(self, *script: tuple[float, bytes], fails: Exception | None = None) -> None:
        self.time = 0.0
        self.script = list(script)
        self.fails = fails
        self.written = b""
        self.closed = False

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    @property
    def in_waiting(self) -> int:
        if self.fails:
            raise self.fails
        return sum(len(data) for at, data in self.script if at <= self.time)

    def read(self, size: int = 1, /) -> bytes:
        if not self.in_waiting:
            due = min([at for at, _ in self.script], default=self.time + TICK_S)
            self.time = min(due, self.time + TICK_S)
        if not self.in_waiting:
            return b""
        at, data = self.script.pop(0)
        if data[size:]:
            self.script.insert(0, (at, data[size:]))
        return data[:size]

    def write(self, data: bytes, /) -> int:
        if self.fails:
            raise self.fails
        self.written += data
        return len(data)

    def close(self) -> None:
        self.closed = True


def opened(line: ScriptedLine, log: ByteLog | None = None) -> Session:
    session = Session(lambda: line, "PDU 'a' (port /dev/x)", clock=line, log=log)
    session.open()
    return session


def test_drain_ends_when_the_line_has_been_quiet() -> None:
    line = ScriptedLine((0.2, b"late"), (0.4, b" words"), (0.9, b"another matter"))
    assert opened(line).drain("listen") == b"late words"
    assert 0.7 <= line.time < 0.8


def test_drain_gives_up_on_a_line_that_never_falls_quiet() -> None:
    line = ScriptedLine(*((n / 10, b"\x1b[2J") for n in range(1000)))
    with pytest.raises(LineTrouble, match=r"port /dev/x\): listen: .*never falls quiet") as caught:
        opened(line).drain("listen", deadline_s=2)
    assert line.time < 2.2
    assert "\x1b" not in str(caught.value)


def test_a_prompt_counts_at_the_end_only() -> None:
    line = ScriptedLine((0.1, b"> status\r\n 1)...a"), (0.5, b">b : On\r\n"), (1.0, b"X>"))
    heard = opened(line).ask(
        b"status\r", lambda heard: heard.endswith(b"X>"), step="status", deadline_s=5
    )
    assert heard.endswith(b"On\r\nX>")
    assert line.written == b"status\r"


def test_a_deadline_is_kept_while_words_keep_coming() -> None:
    line = ScriptedLine(*((n / 100, b".") for n in range(10_000)))
    with pytest.raises(LineTrouble, match=r"status: no whole answer within 3 s"):
        opened(line).ask(b"x", lambda _: False, step="status", deadline_s=3)
    assert 3.0 <= line.time <= 3.0 + TICK_S


@pytest.mark.parametrize(
    ("said", "means"),
    [(b"", "no answer within 1 s"), (bytes(range(128, 160)), "noise .* is the baud rate right")],
)
def test_no_answer_says_what_to_look_at(said: bytes, means: str) -> None:
    line = ScriptedLine(*[(0.1, said)] if said else [])
    with pytest.raises(LineTrouble, match=means):
        opened(line).ask(b"\r", lambda _: False, step="handshake", deadline_s=1)


GONE = [OSError(5, "Input/output error"), termios.error(5, "Input/output error")]


@pytest.mark.parametrize("error", GONE, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "act",
    [lambda session: session.read("status"), lambda session: session.send(b"x", "status")],
    ids=["read", "send"],
)
def test_every_way_in_which_a_port_goes_is_one_error(
    error: Exception, act: Callable[[Session], object]
) -> None:
    line = ScriptedLine()
    session = opened(line)
    line.fails = error
    with pytest.raises(LineTrouble, match=r"port /dev/x\): status: the port went away"):
        act(session)
    assert line.closed
    assert not session.is_open
    with pytest.raises(LineTrouble, match="not open"):
        act(session)


def test_reopen_waits_for_the_port_to_come_back() -> None:
    line = ScriptedLine()
    tries: list[float] = []

    def open_later() -> ScriptedLine:
        tries.append(line.time)
        if line.time < 7.2:
            raise RigTrouble("no such port")
        return line

    session = Session(open_later, "PDU", clock=line)
    session.reopen(20)
    assert session.is_open
    assert 7.2 <= line.time <= 8.2, "found within a second of its return"
    assert len(tries) < 15, "with growing pauses"
    line.time = 0.0
    with pytest.raises(RigTrouble, match="no such port"):
        session.reopen(3)
    assert line.time <= 3


def test_every_byte_is_logged_with_its_time_and_handed_on() -> None:
    kept: list[Chunk] = []
    log = ByteLog(kept.append)
    session = opened(ScriptedLine((0.25, b"\x1b[31mred\r\n")), log)
    session.send(b"\x02\r", "x")
    session.drain("x")
    assert log.chunks[0] == Chunk(0.0, True, b"\x02\r")
    assert log.chunks[1].at == 0.25
    assert b"".join(chunk.data for chunk in log.chunks if not chunk.sent) == b"\x1b[31mred\r\n"
    assert kept == list(log.chunks)


def test_plain_shows_the_end_and_no_control_character() -> None:
    assert plain(b"\x1b]0;x\x07\xff") == r"'\x1b]0;x\x07\xff'"
    assert plain(b"a" * 100 + b"end", 5) == "...'aaend'"


# Ports.


@pytest.fixture(autouse=True)
def own_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lock files of these tests' own, away from those of a run on this machine."""
    monkeypatch.setattr(port_module, "LOCK_DIRECTORY", tmp_path)


@pytest.fixture
def pty() -> Iterator[str]:
    master, slave = os.openpty()
    yield os.ttyname(slave)
    os.close(master)
    os.close(slave)


def spec(port: str) -> PduSpec:
    return PduSpec(name="a", family="baytech-rpc3", port=port)


def test_a_missing_port_is_told_with_its_stable_name() -> None:
    with pytest.raises(RigTrouble, match=r"PDU 'a' \(port /dev/ttyNOPE\).*/dev/serial/by-id"):
        open_port(spec("/dev/ttyNOPE"))


def test_a_file_is_no_port(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RigTrouble, match="is no serial port"):
        open_port(spec(str(tmp_path / "file")))


def test_a_url_of_an_unknown_kind_is_misuse() -> None:
    with pytest.raises(Misuse, match="nonsense"):
        open_port(spec("nonsense://x"))


def test_a_serial_server_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RigTrouble, match="is the serial server running"):
        open_port(spec(f"socket://127.0.0.1:{port}"))


def test_socket_ports_carry_bytes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        name = spec(f"socket://127.0.0.1:{server.getsockname()[1]}")
        session = Session(lambda: open_port(name), "PDU")
        session.open()
        peer, _ = server.accept()
        with peer:
            peer.sendall(b"RPC3-NC>")
            assert session.drain("listen") == b"RPC3-NC>"
            session.send(b"on 1\r", "on 1")
            assert peer.recv(100) == b"on 1\r"
        session.close()


def test_a_port_is_ours_alone_and_the_second_hears_whose(pty: str) -> None:
    first = open_port(spec(pty))
    with pytest.raises(RigTrouble, match=rf"another Leadline: pid {os.getpid()} on "):
        open_port(spec(pty))
    first.close()
    open_port(spec(pty)).close()


def test_a_link_to_the_same_port_is_the_same_port(pty: str, tmp_path: Path) -> None:
    (tmp_path / "by-id").symlink_to(pty)
    first = open_port(spec(pty))
    with pytest.raises(RigTrouble, match="another Leadline"):
        open_port(spec(str(tmp_path / "by-id")))
    first.close()


# What powermand does to its port, in a process of its own: it takes a POSIX lock.
STRANGER = """
import fcntl, sys
port = open(sys.argv[1], "r+b", buffering=0)
getattr(fcntl, sys.argv[2])(port, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("call", ["lockf", "flock"])
def test_a_stranger_who_has_the_port_is_named(pty: str, call: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STRANGER, pty, call],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as stranger:
        assert stranger.stdin and stranger.stdout
        assert stranger.stdout.readline() == b"locked\n"
        with pytest.raises(RigTrouble, match=rf"in use by python\S* \(pid {stranger.pid}\)"):
            open_port(spec(pty))
        stranger.stdin.close()
    open_port(spec(pty)).close()


def test_a_holder_that_cannot_be_seen(pty: str, tmp_path: Path) -> None:
    assert lock_holders(Path(pty), tmp_path / "absent") == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which takes root")
def test_permission_denied_names_the_group(pty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(pty).chmod(0o600)
    with tempfile.TemporaryDirectory() as locks:
        Path(locks).chmod(0o1777)  # tmp_path is root's alone
        monkeypatch.setattr(port_module, "LOCK_DIRECTORY", Path(locks))
        os.seteuid(65534)
        try:
            with pytest.raises(RigTrouble, match=r"permission denied .* group \w+.*usermod -aG"):
                open_port(spec(pty))
        finally:
            os.seteuid(0)


def test_a_failed_open_leaves_no_lock_behind(pty: str) -> None:
    # Without O_NOCTTY, tests in a session of their own would be hung up with the line.
    other = os.open(pty, os.O_RDWR | os.O_NOCTTY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(RigTrouble, match="in use"):
            open_port(spec(pty))
    finally:
        os.close(other)
    open_port(spec(pty)).close()
