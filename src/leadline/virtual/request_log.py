"""The virtual drive's own record of every request: the truth that a test's figures are held to.

One JSON array a line, `[start_ns, end_ns, op, lba, sectors, in_flight, error]`, after a header
object for each power-on.  Times are `time.monotonic_ns` on the machine that runs the drive;
`in_flight` counts the requests at the drive when this one arrived, itself included.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

FLUSH_INTERVAL_S = 0.1
DEFAULT_LIMIT_BYTES = 32 << 20


class Request(NamedTuple):
    """One request as the drive saw it.  Times in ns, lengths in sectors, `error` an errno or 0."""

    start_ns: int
    end_ns: int
    op: str
    lba: int
    sectors: int
    in_flight: int
    error: int


@dataclass(frozen=True)
class Rate:
    """What the drive did in a stretch of time."""

    completions: int
    seconds: float
    mean_in_flight: float
    max_in_flight: int

    @property
    def per_second(self) -> float:
        """Completions a second."""
        return self.completions / self.seconds


class RequestLog:
    """Appends requests to a file from a thread of its own; the drive never waits for it.

    The file is kept below `limit_bytes`: a full one becomes `<name>.1`, and the one before that
    goes.  A file that cannot be written is said once on stderr, and how many requests were lost
    is in the log when it can be written again.
    """

    def __init__(
        self, path: Path, header: Mapping[str, object], *, limit_bytes: int = DEFAULT_LIMIT_BYTES
    ) -> None:
        self._path = path
        self._header = json.dumps(header) + "\n"
        self._limit_bytes = limit_bytes
        self._waiting: deque[Request] = deque()
        self._lost = 0
        self._complained = False
        self._lock = threading.Lock()
        self._stop = threading.Event()
        # A leading newline ends the line that a power cut may have left half written.
        self._append("\n" + self._header)
        self._writer = threading.Thread(target=self._run, name="request log", daemon=True)
        self._writer.start()

    def add(self, request: Request) -> None:
        """Note one answered request."""
        self._waiting.append(request)

    def flush(self) -> None:
        """Write what is waiting now, and not within the next tenth of a second."""
        with self._lock:
            count = len(self._waiting)
            if count == 0 and self._lost == 0:
                return
            lines = "".join(_line(self._waiting.popleft()) for _ in range(count))
            # What was lost may have been half written, hence the newline.
            lost = f'\n{{"lost": {self._lost}}}\n' if self._lost else ""
            self._lost = 0 if self._append(lost + lines) else self._lost + count

    def close(self) -> None:
        """Write what is left and stop."""
        self._stop.set()
        self._writer.join()
        self.flush()

    def _run(self) -> None:
        while not self._stop.wait(FLUSH_INTERVAL_S):
            self.flush()

    def _append(self, text: str) -> bool:
        """Write to the file, and turn it over when it is full.  False when that fails."""
        try:
            with self._path.open("a", encoding="ascii") as file:
                file.write(text)
                size = file.tell()
            if size > self._limit_bytes:
                self._path.replace(_rotated(self._path))
                self._path.write_text(self._header, encoding="ascii")
        except OSError as trouble:
            if not self._complained:
                self._complained = True
                print(
                    f"{self._path}: requests are not being logged: {trouble.strerror}; the drive "
                    "goes on, but its log cannot vouch for rates: make room on that file system",
                    file=sys.stderr,
                    flush=True,
                )
            return False
        return True


def _rotated(path: Path) -> Path:
    return path.with_name(path.name + ".1")


def _line(r: Request) -> str:
    return f'[{r.start_ns},{r.end_ns},"{r.op}",{r.lba},{r.sectors},{r.in_flight},{r.error}]\n'


def read_request_log(path: Path) -> tuple[Request, ...]:
    """Every request in the log, its rotated part first, in the order of their answers.

    A line that a power cut left half written is passed over.  Raises FileNotFoundError.
    """
    return tuple(Request(*entry) for entry in _entries(path) if isinstance(entry, list))


def count_lost(path: Path) -> int:
    """How many requests could not be logged, and are missing from the log.

    Raises FileNotFoundError.
    """
    return sum(entry.get("lost", 0) for entry in _entries(path) if isinstance(entry, dict))


def _entries(path: Path) -> Iterator[Any]:
    rotated = _rotated(path)
    for part in (rotated, path) if rotated.exists() else (path,):
        with part.open(encoding="ascii") as lines:
            for line in lines:
                # A half-written line has no closing bracket.
                if line.endswith(("]\n", "}\n")):
                    yield json.loads(line)


def rate_between(requests: Sequence[Request], begin_ns: int, end_ns: int) -> Rate:
    """The rate of reads and writes answered in [begin_ns, end_ns)."""
    seconds = (end_ns - begin_ns) / 1e9
    queued = [
        r for r in requests if r.op != "flush" and r.end_ns > begin_ns and r.start_ns < end_ns
    ]
    busy_ns = sum(min(r.end_ns, end_ns) - max(r.start_ns, begin_ns) for r in queued)
    return Rate(
        completions=sum(begin_ns <= r.end_ns < end_ns for r in queued),
        seconds=seconds,
        mean_in_flight=busy_ns / 1e9 / seconds,
        max_in_flight=max((r.in_flight for r in queued), default=0),
    )


def true_rates(requests: Sequence[Request], *, window_s: float = 0.1) -> dict[int, Rate]:
    """The rate of reads and writes by depth, in ascending order of depth.

    Time is cut into windows; a window's depth is the most in flight at any arrival in it.  It
    counts only when the windows before and after have the same depth, which leaves out those in
    which the load began, ended or drained.
    """
    queued = [r for r in requests if r.op != "flush"]
    if not queued:
        return {}
    origin = min(r.start_ns for r in queued)
    length = round(window_s * 1e9)
    windows: dict[int, _Window] = {}
    for r in queued:
        first, last = (r.start_ns - origin) // length, (r.end_ns - origin) // length
        for index in range(first, last + 1):
            begin = origin + index * length
            window = windows.setdefault(index, _Window())
            window.busy_ns += min(r.end_ns, begin + length) - max(r.start_ns, begin)
        windows[first].depth = max(windows[first].depth, r.in_flight)
        windows[last].completions += 1
    by_depth: dict[int, list[_Window]] = {}
    for index, window in windows.items():
        before, after = windows.get(index - 1), windows.get(index + 1)
        if before is not None and after is not None and before.depth == window.depth == after.depth:
            by_depth.setdefault(window.depth, []).append(window)
    return {
        depth: Rate(
            completions=sum(window.completions for window in kept),
            seconds=len(kept) * window_s,
            mean_in_flight=sum(window.busy_ns for window in kept) / (len(kept) * length),
            max_in_flight=depth,
        )
        for depth, kept in sorted(by_depth.items())
        if depth > 0
    }


@dataclass
class _Window:
    depth: int = 0
    completions: int = 0
    busy_ns: int = 0
