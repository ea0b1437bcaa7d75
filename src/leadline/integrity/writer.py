"""The load itself: runs on the rig, by its own ``python3`` (3.8 or newer), and says what it does.

Its argument is one JSON object (`Job`).  Each of `in_flight` threads takes the next request of
the plan and waits for its answer in the kernel, with O_DIRECT: so many requests are in the
drive's hands at once.  What happens is said on stdout, a line an event (`account`), before a
request goes out and after its answer is there, so that the order of the lines is the order of
events.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import sys
import threading
import time

from leadline.host.agent_bytes import write_all
from leadline.host.agent_files import sg_io
from leadline.integrity.pattern import NOISE_BYTES, SECTOR_BYTES, stamped
from leadline.integrity.plan import FLUSH, FUA, READ, Plan
from leadline.integrity.report import line_of, told, unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypedDict

    from leadline.integrity.plan import Request

    class Job(TypedDict):
        """What is to be done: `seconds` of load (0: read the span back, and no more).

        `command` is a CDB in hexadecimal digits that is sent every `every_s` seconds beside the
        load, with `length` bytes of data in; empty: none.
        """

        device: str
        plan: list[int]
        in_flight: int
        seconds: float
        command: str
        length: int
        every_s: float


COMMAND_MS = 30_000
MOST_NEWS = 2
"""A unit attention comes instead of an answer, once for each thing that there is to tell."""


class Drive:
    """The drive, open past the page cache, and the stream of events."""

    def __init__(self, device: str, flags: int) -> None:
        try:
            self.fd = os.open(device, flags | os.O_DIRECT | os.O_CLOEXEC)
        except OSError as error:
            sys.exit(f"{device}: {error.strerror}")
        self._saying = threading.Lock()

    def say(self, line: str) -> None:
        """One event.  All of them come out in the order in which they are said."""
        with self._saying:
            write_all(1, line.encode("ascii") + b"\n")

    def read(self, buffer: mmap.mmap, lba: int, size: int) -> bytes:
        """The data; `buffer` is where the drive puts it."""
        with memoryview(buffer) as view, view[:size] as part:
            _whole(os.preadv(self.fd, [part], lba * SECTOR_BYTES), size)
        return buffer[:size]

    def write(self, buffer: mmap.mmap, lba: int, data: bytes, *, fua: bool) -> None:
        """One write; on the medium when this returns, if `fua`."""
        buffer[: len(data)] = data
        flags = os.RWF_DSYNC if fua else 0
        with memoryview(buffer) as view, view[: len(data)] as part:
            _whole(os.pwritev(self.fd, [part], lba * SECTOR_BYTES, flags), len(data))


def _whole(done: int, wanted: int) -> None:
    if done != wanted:
        raise OSError(errno.EIO, "a part of the request was done")


class Load:
    """The load, until its time is over or a request fails; `seconds` begin when it is mixed."""

    def __init__(self, drive: Drive, plan: Plan, seconds: float) -> None:
        self._drive, self._plan = drive, plan
        self._seconds = seconds
        self._end: float | None = None
        self._taking = threading.Lock()
        self._number = 0
        self._noise = os.urandom(NOISE_BYTES)
        self.over = threading.Event()
        self.has_failed = False

    def work(self) -> None:
        """What each of the threads does."""
        buffer = buffer_for(self._plan)
        while True:
            number = self._next()
            if number is None:
                return
            try:
                self._do(number, self._plan.request(number), buffer)
            except OSError as error:
                self.has_failed = True
                self.over.set()
                self._drive.say(f"e {number} {error.errno or errno.EIO}")

    def _next(self) -> int | None:
        with self._taking:
            now = time.monotonic()
            if self._end is None and self._number >= self._plan.fills:
                self._end = now + self._seconds
            if self.over.is_set() or (self._end is not None and now >= self._end):
                return None
            self._number += 1
            return self._number

    def _do(self, number: int, request: Request, buffer: mmap.mmap) -> None:
        drive, seed = self._drive, self._plan.seed
        if request.kind == FLUSH:
            drive.say(f"i {number}")
            os.fdatasync(drive.fd)
            drive.say(f"a {number}")
        elif request.kind == READ:
            drive.say(f"i {number}")
            data = drive.read(buffer, request.lba, request.sectors * SECTOR_BYTES)
            drive.say(f"r {number} {line_of(told(data, seed, request.lba))}")
        else:
            data = stamped(seed, request.lba, request.sectors, number, self._noise)
            drive.say(f"i {number}")
            drive.write(buffer, request.lba, data, fua=request.kind == FUA)
            drive.say(f"a {number}")

    def ask(self, cdb: bytes, length: int, every_s: float) -> None:
        """Send the command again and again beside the load, until it fails."""
        missed = 0
        while missed <= MOST_NEWS and not self.over.wait(every_s):
            try:
                answer = sg_io(self._drive.fd, cdb, length, COMMAND_MS)
            except OSError:
                break
            answered = answer["data"] and not answer["host_status"]
            missed = 0 if answered else missed + 1
            if answered:
                self._drive.say("c")
        if not self.over.is_set():
            self._drive.say("x")


def buffer_for(plan: Plan) -> mmap.mmap:
    """Memory as O_DIRECT wants it, for the largest request there is."""
    return mmap.mmap(-1, len(plan.chunks()[0]) * SECTOR_BYTES)


def read_back(drive: Drive, plan: Plan, in_flight: int) -> None:
    """Say what the whole span holds: ``v LBA`` and the words of `report`, a line a chunk."""
    chunks = plan.chunks()

    def work() -> None:
        buffer = buffer_for(plan)
        while True:
            try:
                chunk = chunks.pop()
            except IndexError:
                return
            words = _words(drive, plan, buffer, chunk)
            drive.say(f"v {chunk.start} {line_of(words)}")

    together([work] * in_flight)


def _words(drive: Drive, plan: Plan, buffer: mmap.mmap, chunk: range) -> list[str]:
    """As `told`; a chunk that cannot be read whole is read block by block."""
    try:
        data = drive.read(buffer, chunk.start, len(chunk) * SECTOR_BYTES)
    except OSError as error:
        if len(chunk) == plan.block:
            return [unreadable(error.errno or errno.EIO)] * plan.block
        blocks = range(chunk.start, chunk.stop, plan.block)
        each = (_words(drive, plan, buffer, range(lba, lba + plan.block)) for lba in blocks)
        return [word for words in each for word in words]
    return told(data, plan.seed, chunk.start)


def together(work: list[Callable[[], None]]) -> None:
    """Run each in a thread of its own, until all have ended."""
    threads = [threading.Thread(target=each, daemon=True) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    """Do the job that the argument describes."""
    job: Job = json.loads(sys.argv[1])
    plan = Plan(*job["plan"])
    if not job["seconds"]:
        drive = Drive(job["device"], os.O_RDONLY)
        read_back(drive, plan, job["in_flight"])
    else:
        drive = Drive(job["device"], os.O_RDWR)
        load = Load(drive, plan, job["seconds"])
        if job["command"]:
            arguments = (bytes.fromhex(job["command"]), job["length"], job["every_s"])
            threading.Thread(target=load.ask, args=arguments, daemon=True).start()
        together([load.work] * job["in_flight"])
        load.over.set()
        if load.has_failed:
            return  # that was no end in order
    drive.say("end")
