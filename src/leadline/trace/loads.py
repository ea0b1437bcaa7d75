"""The nine multitasking loads: a task in the foreground beside one in the background.

    From an article on NCQ in desktop drives, which recorded such loads once and replayed them:
    a 6.86 GB MPEG-2 file copied, or opened in a video editor, while an archive of 512 MB is
    made or extracted, or 20,000 mails are imported or exported; and two copies at once.  A
    recording ended when either task did.

Its traces were never published.  What follows are descriptions of what such programs do; the
sizes are the article's, rates and request sizes are assumed, of a desktop of its time.
"""

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from leadline.trace.patterns import Appends, Drive, Files, Place, Random, Sequential, Stream
from leadline.trace.trace import Trace, merged

_MOST_OFFERED = 32

MEDIA, MEDIA_COPY = Place(0.10, 6_860_000_000), Place(0.60, 6_860_000_000)
DOCUMENTS, DOCUMENTS_COPY = Place(0.30, 1_000_000_000), Place(0.84, 1_000_000_000)
ARCHIVE = Place(0.80, 350_000_000)
MAILBOX, EXPORTED = Place(0.36, 420_000_000), Place(0.88, 400_000_000)
MAIL_INDEX = Place(0.37, 24_000_000)
METADATA, JOURNAL = Place(0.02, 120_000_000), Place(0.34, 64_000_000)
KIB = 1024


@dataclass(frozen=True)
class Task:
    """What one program does: a sentence, and its streams."""

    what: str
    streams: tuple[Stream, ...]


@dataclass(frozen=True)
class Load:
    """Two tasks at once, until either ends."""

    name: str
    tasks: tuple[Task, Task]

    @property
    def what(self) -> str:
        """The load in a sentence."""
        return " while ".join(task.what for task in self.tasks)

    @property
    def in_flight(self) -> int:
        """How many requests the tasks have in flight at most."""
        return min(_MOST_OFFERED, sum(stream.burst for stream in self.streams))

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams of both tasks."""
        return tuple(stream for task in self.tasks for stream in task.streams)

    def described(self) -> tuple[dict[str, object], ...]:
        """The streams as plain values, for the header."""
        return tuple({"stream": type(each).__name__, **asdict(each)} for each in self.streams)


def _copy_metadata(per_s: float) -> tuple[Stream, ...]:
    """What the file system writes besides a file's data: its tables, and its journal."""
    return Random(METADATA, "write", 4 * KIB, per_s), Appends(JOURNAL, 4 * KIB, per_s)


_COPY = Task(
    "a large file is copied",
    (
        Sequential(MEDIA, "read", 64 * KIB, 25e6, burst=2),
        Sequential(MEDIA_COPY, "write", 64 * KIB, 25e6, burst=8),
        *_copy_metadata(1.0),
    ),
)
_IMPORT = Task(
    "a large media file is imported",
    (Sequential(MEDIA, "read", 64 * KIB, 30e6, burst=2), Random(METADATA, "read", 4 * KIB, 0.5)),
)
_ARCHIVE_CREATION = Task(
    "an archive is created",
    (
        Files(DOCUMENTS, "read", 512_000_000, 64_000, files_per_s=52.0),
        Sequential(ARCHIVE, "write", 64 * KIB, 2.3e6, burst=8),
        Random(METADATA, "read", 4 * KIB, 20.0),
    ),
)
_ARCHIVE_EXTRACTION = Task(
    "an archive is extracted",
    (
        Sequential(ARCHIVE, "read", 64 * KIB, 2.8e6, burst=2),
        Files(DOCUMENTS_COPY, "write", 512_000_000, 64_000, files_per_s=64.0),
        *_copy_metadata(32.0),
    ),
)
_MAIL_IMPORT = Task(
    "mail is imported",
    (
        Sequential(EXPORTED, "read", 32 * KIB, 2.5e6),
        Appends(MAILBOX, 16 * KIB, 120.0),
        Random(MAIL_INDEX, "read", 4 * KIB, 60.0),
        Random(MAIL_INDEX, "write", 4 * KIB, 25.0, burst=4),
    ),
)
_MAIL_EXPORT = Task(
    "mail is exported",
    (
        Random(MAIL_INDEX, "read", 4 * KIB, 40.0),
        Files(MAILBOX, "read", 400_000_000, 20_000, files_per_s=120.0, request_bytes=16 * KIB),
        Sequential(EXPORTED, "write", 64 * KIB, 2.4e6, burst=4),
    ),
)
_SMALL_FILES_COPY = Task(
    "512 MB of small files are copied",
    (
        Files(DOCUMENTS, "read", 512_000_000, 64_000, files_per_s=60.0),
        Files(DOCUMENTS_COPY, "write", 512_000_000, 64_000, files_per_s=60.0),
        *_copy_metadata(30.0),
    ),
)
_FOREGROUND = {"copy": _COPY, "media": _IMPORT}
_BACKGROUND = {
    "archive-create": _ARCHIVE_CREATION,
    "archive-extract": _ARCHIVE_EXTRACTION,
    "mail-import": _MAIL_IMPORT,
    "mail-export": _MAIL_EXPORT,
}
LOADS: dict[str, Load] = {
    load.name: load
    for load in (
        Load("dual-copy", (_COPY, _SMALL_FILES_COPY)),
        *(
            Load(f"{front}-{back}", (first, second))
            for back, second in _BACKGROUND.items()
            for front, first in _FOREGROUND.items()
        ),
    )
}


def generate(load: Load, drive: Drive, seed: int) -> Trace:
    """The requests of a load on a drive; the same arguments give the same requests.

    Each stream has random numbers of its own.
    """
    tasks = [which for which, task in enumerate(load.tasks) for _ in task.streams]
    streams = list(zip(tasks, load.streams, _chances(load, seed), strict=True))
    ending = [(of, each.requests(drive, own, 0)) for of, each, own in streams if each.ends]
    until = min(
        max(int(made.time_us[-1]) for of, made in ending if of == which)
        for which in range(len(load.tasks))
    )
    pieces = [made for _, made in ending]
    pieces += [each.requests(drive, own, until) for _, each, own in streams if not each.ends]
    # The pieces are in the order of their times, and a slice of one is no copy.
    return merged(
        [each.take(slice(int(np.searchsorted(each.time_us, until, "right")))) for each in pieces]
    )


def _chances(load: Load, seed: int) -> Sequence[np.random.Generator]:
    """Random numbers for each stream, by the seed, the load and the stream's place in it."""
    name = zlib.crc32(load.name.encode())
    return [np.random.default_rng((seed, name, place)) for place in range(len(load.streams))]
