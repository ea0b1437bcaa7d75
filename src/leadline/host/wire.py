"""One agent and the conversation with it: requests out, answers back to whoever waits."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.resources import files
from itertools import count
from queue import Empty, SimpleQueue
from typing import IO, Any

from leadline.errors import RigTrouble
from leadline.host.agent_bytes import write_all
from leadline.host.trouble import DeadlinePassed, HostLost, last_lines, printable

Message = dict[str, Any]
Explain = Callable[[int | None, str], RigTrouble]

PULSE_S = 10.0  # the agent gives us up after 60 s of silence
UNANSWERED = 6  # pings in a row until we give it up, where ssh does not notice
CLOSE_S = 12.0  # it ends its programs first: 2 s of SIGTERM, 3 s of SIGKILL
NOISE_BYTES = 1 << 16
STDERR_TAIL = 8192
SHOWN = ("op", "path", "argv", "paths")  # what an error says of a request
LONGEST_SHOWN = 200  # characters

# Of requests, and so of handles: one of an ended connection is no other's on the next.
_NUMBERS = count(1)

# A constant: nothing of ours, of the rig's or of the user's is ever part of a command line.
BOOTSTRAP = (
    "import sys;b=sys.stdin.buffer;"
    'sys.version_info>=(3,8) or sys.exit("python3 too old: "+sys.version.split()[0]);'
    'exec(compile(b.read(int(b.readline())),"leadline-agent","exec"))'
)
PARTS = ("agent_bytes", "agent_files", "agent_processes", "agent")


def agent_source() -> bytes:
    """The agent's modules as one program, for a Python that has no Leadline."""
    return source_of([f"{__package__}.{part}" for part in PARTS])


def source_of(modules: Sequence[str]) -> bytes:
    """These modules, each after those that it imports, as one program: the last one's `main`."""
    lines = ["import sys"]
    for name in modules:
        package, _, part = name.rpartition(".")
        source = files(package).joinpath(f"{part}.py").read_text(encoding="utf-8")
        lines += [
            f"m=sys.modules[{name!r}]=type(sys)({name!r})",
            f"exec(compile({source!r},{part + '.py'!r},'exec'),m.__dict__)",
        ]
    return "\n".join([*lines, "m.main()", ""]).encode("ascii")


def for_bootstrap(source: bytes) -> bytes:
    """The program, as `BOOTSTRAP` reads it from its stdin."""
    return b"%d\n%s" % (len(source), source)


class Call:
    """One request under way; its messages come in order, ``done`` or an error last."""

    def __init__(self, wire: Wire, request: Message, inbox: SimpleQueue[Message | None]) -> None:
        self.number: int = request["id"]
        self.finished = False
        self._wire, self._inbox = wire, inbox
        self._asked = {name: request[name] for name in SHOWN if name in request}  # not its data

    def next(self, timeout: float) -> Message | None:
        """The next message, or None when there is none within ``timeout`` seconds.

        Raises HostLost as soon as the connection is gone.
        """
        try:
            message = self._inbox.get(timeout=max(0.0, timeout))
        except Empty:
            return None
        if message is None:
            self.finished = True
            raise self._wire.lost()
        if "done" in message or "os_error" in message or "defect" in message:
            self.finished = True
            self._wire.forget(self.number)
        return message

    def messages(self, limit: float) -> Iterator[Message]:
        """Messages until the last one; DeadlinePassed at ``limit`` (of time.monotonic())."""
        patience = limit - time.monotonic()
        while not self.finished:
            message = self.next(limit - time.monotonic())
            if message is None:
                self.finished = True
                self._wire.forget(self.number)
                said = f"{self._wire.name}: {_in_words(self._asked)}: no answer in {patience:.0f} s"
                raise DeadlinePassed(f"{said}; is the drive or the kernel stuck? see dmesg")
            yield message

    def stop(self, patience: float) -> None:
        """Have the agent end the program, and wait until it has."""
        if self.finished:
            return
        with suppress(HostLost, DeadlinePassed):
            self._wire.send({"id": 0, "op": "stop", "run": self.number})
            for _ in self.messages(time.monotonic() + patience):
                pass


class Wire:
    """The agent's process (or the ssh client that leads to it) and its three streams."""

    def __init__(self, argv: Sequence[str], name: str, explain: Explain, deadline: float) -> None:
        self.name = name
        self._explain = explain
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Not the terminal's: a Ctrl-C is ours to handle, and ssh must live to undo things.
            start_new_session=True,
            env=dict(os.environ, LC_ALL="C"),
        )
        self._sending = threading.Lock()
        self._state = threading.Lock()
        self._inboxes: dict[int, SimpleQueue[Message | None]] = {}
        self._trouble: RigTrouble | None = None
        self._said = b""
        self._heard = True  # since the last ping
        self._ended = threading.Event()
        self._greeting: SimpleQueue[Message | None] = SimpleQueue()
        self._listener = self._thread(self._listen_to_stderr)
        self._reader = self._thread(self._read)
        try:
            self.hello = self._greet(deadline)
        except BaseException:
            self._process.kill()
            self.close()
            raise
        self._thread(self._pulse)

    def _thread(self, target: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(
            target=target, name=f"{self.name}: {target.__name__}", daemon=True
        )
        thread.start()
        return thread

    def _greet(self, deadline: float) -> Message:
        """Send the agent over and hear its greeting."""
        source = agent_source()
        try:
            self._write(for_bootstrap(source))
            greeting = self._greeting.get(timeout=max(0.0, deadline))
        except Empty:
            said = last_lines(self._said)
            what = f"{self.name}: no answer within {deadline:g} s; is it up and not overloaded?"
            raise DeadlinePassed(what + said) from None
        if greeting is None:
            raise self.lost()
        return greeting

    def begin(self, operation: str, **arguments: Any) -> Call:
        """Send a request; HostLost when there is no connection any more."""
        inbox: SimpleQueue[Message | None] = SimpleQueue()
        with self._state:
            if self._trouble:
                raise self.lost()
            number = next(_NUMBERS)
            self._inboxes[number] = inbox
        request = {"id": number, "op": operation, **arguments}
        self.send(request)
        return Call(self, request, inbox)

    def send(self, request: Message) -> None:
        """One line to the agent."""
        self._write(json.dumps(request, separators=(",", ":")).encode("ascii") + b"\n")

    def _write(self, data: bytes) -> None:
        stdin = _stream(self._process.stdin)
        try:
            with self._sending:
                write_all(stdin.fileno(), data)
        except (OSError, ValueError):  # ValueError: closed by us
            self._ended.wait(CLOSE_S)
            raise self.lost() from None

    def forget(self, number: int) -> None:
        """Nobody waits for this request's answer any more."""
        with self._state:
            self._inboxes.pop(number, None)

    def lost(self) -> RigTrouble:
        """A fresh copy of why there is no connection, to raise in the thread that asks."""
        trouble = self._trouble
        if isinstance(trouble, HostLost):
            return HostLost(str(trouble), trouble.reason)
        return type(trouble)(str(trouble)) if trouble else HostLost(f"{self.name}: not connected")

    def _read(self) -> None:
        with _stream(self._process.stdout) as stdout:
            try:
                if self._await_greeting(stdout):
                    for line in stdout:
                        self._heard = True
                        self._deliver(json.loads(line))
            except ValueError:
                self._process.kill()  # not our agent's language: whatever it is, it is no rig
            finally:
                self._end()

    def _await_greeting(self, stdout: IO[bytes]) -> bool:
        """Skip what a login shell's start-up files print first, within reason."""
        noise = 0
        while noise < NOISE_BYTES and (line := stdout.readline(NOISE_BYTES)):
            if line.startswith(b'{"hello":'):
                self._greeting.put(dict(json.loads(line)["hello"]))
                return True
            noise += len(line)
        return False

    def _deliver(self, message: Message) -> None:
        with self._state:
            inbox = self._inboxes.get(message["id"])
        if inbox:
            inbox.put(message)

    def _end(self) -> None:
        """The stream has ended: find out why, and tell everyone who waits."""
        try:
            code: int | None = self._process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            code = None
        self._listener.join(1.0)
        with self._state:
            if self._trouble is None:
                self._trouble = self._explain(code, self._said.decode("utf-8", "replace"))
        self._tell_all()

    def _tell_all(self) -> None:
        with self._state:
            waiting = list(self._inboxes.values())
            self._inboxes.clear()
        self._ended.set()
        self._greeting.put(None)
        for inbox in waiting:
            inbox.put(None)

    def _listen_to_stderr(self) -> None:
        # A process that ssh left behind may hold it open: nobody else closes it, for that waits.
        with _stream(self._process.stderr) as stderr:
            while chunk := stderr.read1(4096):
                self._said = (self._said + chunk)[-STDERR_TAIL:]

    def _pulse(self) -> None:
        unanswered = 0
        while not self._ended.wait(PULSE_S):
            unanswered = 0 if self._heard else unanswered + 1
            self._heard = False
            if unanswered == UNANSWERED:
                self._give_up()
                return
            with suppress(RigTrouble):
                self.send({"id": 0, "op": "ping"})

    def _give_up(self) -> None:
        """Nobody answers, and ssh does not say so: it goes through a connection of the user's.

        The other end of that holds our streams, too, so that they may not end with our ssh.
        """
        with self._state:
            if self._trouble is None:
                self._trouble = HostLost(
                    f"{self.name}: nothing was heard of it for {UNANSWERED * PULSE_S:.0f} s; is it "
                    "powered on and on this network? A shared connection of ssh that leads to it "
                    "is to be closed (ssh -O exit)",
                    "timeout",
                )
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
        self._tell_all()

    def close(self) -> None:
        """End the conversation; returns when the agent's programs are gone and its locks free."""
        with self._state:
            if self._trouble is None:
                self._trouble = HostLost(f"{self.name}: the connection was closed", "closed")
        owned = self._sending.acquire(timeout=1.0)  # not while a write hangs: killed below
        with suppress(OSError):
            _stream(self._process.stdin).close()
        if owned:
            self._sending.release()
        if not self._ended.wait(CLOSE_S):
            self._process.kill()
        self._reader.join(CLOSE_S)


def _in_words(request: Message) -> str:
    """A request for people: with its file, its files or its program, on a line."""
    of = request.get("path") or request.get("argv") or request.get("paths") or []
    words = [of] if isinstance(of, str) else of
    text = " ".join(" ".join([request["op"], *words]).split())
    return printable(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]} ...")


def _stream(stream: IO[bytes] | None) -> Any:
    if stream is None:
        raise RuntimeError("a stream of the agent's process is missing")
    return stream
