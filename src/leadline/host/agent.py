"""The agent: the part of Leadline that runs on the rig.

It is sent over as source and run by the rig's own ``python3`` (3.8 or newer), so
it imports the standard library alone, and little of that: on an emulated rig each
module costs tens of milliseconds.  It reads one JSON object a line on stdin and
answers in the same way on stdout; every request has an id and runs in a thread of
its own, because a read of a sick drive's sysfs file may never return.

What it promises: when its stdin closes, or nothing has been heard for
``SILENCE_S``, every program that it started is ended, and then its locks are free.
"""
# pathlib would be one more import on the rig:
# ruff: noqa: PTH102, PTH106, PTH108, PTH110, PTH111, PTH115, PTH208

from __future__ import annotations

import binascii
import errno
import json
import os
import select
import sys
import threading
import time

from leadline.host.agent_bytes import CHUNK, pack, unpack, write_all
from leadline.host.agent_files import (
    lock_file,
    open_device,
    replace_file,
    sg_io,
    sync_directory,
    write_value,
)
from leadline.host.agent_processes import Program, end_processes, read_small, start_guardian

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import IO, Any

    Request = dict[str, Any]

SILENCE_S = 60.0  # the steering side speaks every 10 s
DRAIN_S = 0.5
FILE_LIMIT = 1 << 26


class Agent:
    """Answers requests until its stdin closes."""

    def __init__(self, stdin: int, stdout: int) -> None:
        self.mark = binascii.b2a_hex(os.urandom(6)).decode("ascii")
        self._stdin, self._stdout = stdin, stdout
        self._sending = threading.Lock()
        self._programs: dict[int, Program] = {}
        self._handles: dict[int, int] = {}

    def serve(self) -> None:
        """Answer; at the end, end every program and exit."""
        start_guardian(self.mark)
        self._send({"hello": _hello()})
        for request in self._requests():
            self._dispatch(request)
        groups = [program.group() for program in list(self._programs.values())]
        end_processes(self.mark, frozenset().union(*groups))
        os._exit(0)  # a thread may hang in the kernel; the locks go with the process

    def _requests(self) -> Iterator[Request]:
        """Requests until end of file, or until the other side has long been silent."""
        pieces: list[bytes] = []  # of a line; joined once, for a firmware image comes in hundreds
        while select.select([self._stdin], [], [], SILENCE_S)[0]:
            chunk = os.read(self._stdin, CHUNK)
            if not chunk:
                return
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                line = b"".join([*pieces, end])
                pieces.clear()
                yield json.loads(line)
            pieces.append(rest)

    def _send(self, message: Request) -> None:
        line = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        with self._sending:
            try:
                write_all(self._stdout, line)
            except BrokenPipeError:
                return  # stdin closes as well, and the main loop ends everything

    def _dispatch(self, request: Request) -> None:
        number = request["id"]
        if request["op"] == "stop":
            program = self._programs.get(request["run"])
            if program:
                program.stop()
            return
        if request["op"] == "run":
            self._programs[number] = Program(f"{self.mark}.{number}")
        threading.Thread(target=self._answer, args=(request,), daemon=True).start()

    def _answer(self, request: Request) -> None:
        operation: Callable[[Request], Request | None] = getattr(self, "op_" + request["op"])
        try:
            reply: Request = {"done": operation(request) or {}}
        except OSError as error:
            text = error.strerror or str(error)
            reply = {"os_error": {"errno": error.errno or 0, "text": text}}
        except Exception:
            reply = {"defect": _traceback()}
        self._send(dict(reply, id=request["id"]))

    def op_ping(self, request: Request) -> Request:
        """That it came is what counts, and when."""
        return {"now": time.time()}

    def op_run(self, request: Request) -> Request:
        number = request["id"]
        program = self._programs[number]
        argv: list[str] = list(request["argv"])
        fds: tuple[int, ...] = ()
        if request["handle"] is not None:
            fds = (self._descriptor(request["handle"]),)
            argv = [word.replace("{device}", f"/proc/self/fd/{fds[0]}") for word in argv]
        given = unpack(request["input"])
        try:
            return self._attend(program, argv, fds, given, request)
        finally:
            del self._programs[number]

    def _attend(
        self,
        program: Program,
        argv: list[str],
        fds: tuple[int, ...],
        given: bytes,
        request: Request,
    ) -> Request:
        began = time.monotonic()
        process = program.start(argv, bool(given), fds)
        samples: list[list[Any]] = []
        if request["sample"]:
            path, interval = request["sample"]
            watcher = threading.Thread(target=_sample, args=(program, path, interval, samples))
            watcher.start()
        busy: set[str] = set()  # those whose output the line has not taken yet
        pumps = [
            threading.Thread(target=self._pump, args=(request["id"], *end, busy), daemon=True)
            for end in (("stdout", process.stdout), ("stderr", process.stderr))
        ]
        for pump in pumps:
            pump.start()
        if process.stdin:
            threading.Thread(target=_feed, args=(process.stdin, given), daemon=True).start()
        program.wake.wait(request["deadline"])
        seconds = time.monotonic() - began
        why = None if program.ended else "stopped" if program.stopped else "deadline"
        left = program.kill() if why else []
        if not _join(pumps) and not why:
            left = program.kill()  # a child of it holds the pipes open: its time is over, too
        _join(pumps, busy)  # output that is cut short would be taken for the whole
        code = process.wait() if program.ended else None
        return {"code": code, "seconds": seconds, "why": why, "left": left, "samples": samples}

    def _pump(self, number: int, name: str, stream: IO[bytes], busy: set[str]) -> None:
        with stream:
            while True:
                chunk = os.read(stream.fileno(), CHUNK)
                if not chunk:
                    return
                busy.add(name)
                self._send({"id": number, name: pack(chunk)})
                busy.discard(name)

    def op_read(self, request: Request) -> Request:
        """Sent in pieces: a large file must not hold up the other answers."""
        fd = os.open(request["path"], os.O_RDONLY | os.O_CLOEXEC)
        try:
            total = 0
            while True:
                chunk = os.read(fd, CHUNK)
                if not chunk:
                    return {"real_path": os.path.realpath(request["path"])}
                total += len(chunk)
                if total > FILE_LIMIT:
                    raise OSError(errno.EFBIG, "larger than 64 MiB")
                self._send({"id": request["id"], "stdout": pack(chunk)})
        finally:
            os.close(fd)

    def op_read_many(self, request: Request) -> Request:
        contents: dict[str, dict[str, str] | None] = {}
        for path in request["paths"]:
            try:
                contents[path] = pack(read_small(path))
            except OSError:
                contents[path] = None
        return {"contents": contents}

    def op_write(self, request: Request) -> None:
        suffix = f"{self.mark}.{request['id']}"
        replace_file(request["path"], unpack(request["data"]), request["mode"], suffix)

    def op_write_value(self, request: Request) -> None:
        write_value(request["path"], unpack(request["data"]))

    def op_list(self, request: Request) -> Request:
        return {"names": sorted(os.listdir(request["path"]))}

    def op_link(self, request: Request) -> Request:
        return {"target": os.readlink(request["path"])}

    def op_exists(self, request: Request) -> Request:
        return {"exists": os.path.exists(request["path"])}

    def op_remove(self, request: Request) -> None:
        os.unlink(request["path"])
        sync_directory(request["path"])

    def op_make_dir(self, request: Request) -> None:
        os.mkdir(request["path"])

    def op_remove_dir(self, request: Request) -> None:
        os.rmdir(request["path"])

    def op_hold(self, request: Request) -> Request:
        fd = open_device(request["path"], request["exclusive"])
        self._handles[request["id"]] = fd
        return {"handle": request["id"]}

    def op_release(self, request: Request) -> None:
        os.close(self._descriptor(request["handle"]))
        del self._handles[request["handle"]]

    def _descriptor(self, handle: int) -> int:
        if handle not in self._handles:
            raise OSError(errno.EBADF, "no such handle on this connection")
        return self._handles[handle]

    def op_sg_io(self, request: Request) -> Request:
        fd = self._descriptor(request["handle"])
        answer = sg_io(fd, unpack(request["cdb"]), request["length"], request["timeout_ms"])
        return {key: pack(v) if isinstance(v, bytes) else v for key, v in answer.items()}

    def op_lock(self, request: Request) -> Request:
        fd, ours = lock_file(request["path"], request["shared"])
        if not ours:
            contents = os.read(fd, CHUNK)
            os.close(fd)
            return {"busy": pack(contents)}
        self._handles[request["id"]] = fd
        return {"handle": request["id"]}

    def op_append(self, request: Request) -> None:
        """Append to a locked file, or replace its contents; on the medium when this answers."""
        fd = self._descriptor(request["handle"])
        if request["replace"]:
            os.ftruncate(fd, 0)
        write_all(fd, unpack(request["data"]))
        os.fsync(fd)


def _join(threads: list[threading.Thread], busy: Collection[str] = ()) -> bool:
    """Wait for the threads until none has been busy for a moment; whether all have ended."""
    limit = time.monotonic() + DRAIN_S
    for thread in threads:
        while thread.is_alive() and time.monotonic() < limit:
            thread.join(DRAIN_S / 10)
            if busy:
                limit = time.monotonic() + DRAIN_S
    return not any(thread.is_alive() for thread in threads)


def _sample(program: Program, path: str, interval: float, samples: list[list[Any]]) -> None:
    """Read a kernel attribute every so often for as long as a program runs."""
    while not program.wake.wait(interval):
        samples.append([time.time(), read_small(path).decode("ascii", "replace")])


def _feed(stdin: IO[bytes], data: bytes) -> None:
    try:
        with stdin:
            write_all(stdin.fileno(), data)
    except BrokenPipeError:
        return  # the program does not want its input: not our business


def _hello() -> Request:
    return {
        "pid": os.getpid(),
        "python": sys.version.split()[0],
        "boot_id": read_small("/proc/sys/kernel/random/boot_id").decode("ascii").strip(),
        "uid": os.geteuid(),
        "home": os.path.expanduser("~"),
        "state": os.environ.get("XDG_STATE_HOME", ""),
    }


def _traceback() -> str:
    from traceback import format_exc  # slow to import, and seldom wanted

    return format_exc()


def main() -> None:
    """Keep the protocol's ends to ourselves: a stray print goes to stderr."""
    stdin, stdout = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    Agent(stdin, stdout).serve()
