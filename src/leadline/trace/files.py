"""Trace files: an iolog, compressed, and its header beside it."""

import gzip
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from leadline.drive.text import plain
from leadline.errors import Misuse
from leadline.trace.checks import Inspector, Problem
from leadline.trace.header import Header, header_path, name_of, read_header
from leadline.trace.iolog import Piece, read_iolog, write_iolog
from leadline.trace.trace import Trace, joined

_LEVEL = 1
"""Of compression: digits gain little from more, and it is what most of the writing's time is."""


def check_place(path: Path) -> None:
    """Misuse unless a trace can be written to `path`: to be asked before one is recorded."""
    name_of(path)
    try:
        fits = not path.is_dir() and os.access(path if path.exists() else path.parent, os.W_OK)
    except OSError:  # of a name that is too long, or in a folder of another user
        fits = False
    if not fits:
        raise Misuse(
            f"{plain(str(path))}: nothing can be written there; name a file in a directory that is "
            "there and may be written to"
        )


def save_trace(path: Path, trace: Trace, header: Header) -> None:
    """Write a trace to `path` (NAME.iolog.gz) and its header beside it.

    The same trace gives the same bytes.  Raises Misuse where the files cannot be written.
    """
    name_of(path)
    try:
        with (
            path.open("wb") as file,
            gzip.GzipFile("", "wb", compresslevel=_LEVEL, fileobj=file, mtime=0) as packed,
        ):
            write_iolog(packed, trace)
        header_path(path).write_text(header.model_dump_json(indent=2) + "\n", "utf-8")
    except OSError as error:
        raise Misuse(f"{plain(str(path))}: {error.strerror}; name a place to write to") from error


def load_trace(path: Path) -> tuple[Trace, Header]:
    """A trace and its header.  Raises Misuse, by file and line, for one not fit to be replayed."""
    pieces: list[Trace] = []
    header, problems = inspect(path, lambda piece: pieces.append(piece.trace))
    if problems:
        shown = plain(str(path))
        raise Misuse("\n".join(f"{shown}:{problem}" for problem in problems))
    return joined(pieces), header


def inspect(
    path: Path, keep: Callable[[Piece], object] = lambda _: None
) -> tuple[Header, tuple[Problem, ...]]:
    """A trace's header, and all that is wrong with its requests; `keep` is handed these.

    Raises Misuse where there is nothing to look at: no header, no iolog, a file cut off.
    """
    header = read_header(path)
    inspector = Inspector(header)
    shown = plain(str(path))
    try:
        with gzip.open(path, "rb") as text:
            for piece in read_iolog(text, shown):
                inspector.look(piece)
                keep(piece)
    except (EOFError, zlib.error) as error:
        found = f"{shown}:{_lines_before_the_cut(path)}"
        raise Misuse(
            f"{found}: the file is cut off or damaged after here; copy it again"
        ) from error
    except gzip.BadGzipFile as error:
        raise Misuse(
            f"{shown}: this is not compressed by gzip, or damaged; copy it again"
        ) from error
    except OSError as error:
        raise Misuse(f"{shown}: {error.strerror}; name a file with a trace") from error
    return header, inspector.problems()


def _lines_before_the_cut(path: Path) -> int:
    """How many whole lines can be read of a file that is cut off."""
    lines = 0
    with suppress(EOFError, zlib.error, OSError), gzip.open(path, "rb") as text:
        while some := text.read1():
            lines += some.count(b"\n")
    return lines
