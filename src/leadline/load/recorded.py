"""A directory of recorded runs: fio's JSON files, one a depth, of one drive."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.drive.text import plain
from leadline.errors import Misuse
from leadline.load.recorded_document import Unusable, read_output
from leadline.load.recorded_job import RecordedRun, recorded_run

LARGEST_FILE = 64 << 20
"""Bytes; fio's JSON with all its histograms is some hundred KiB."""
_LOOKED_AT = 64 << 10
_MARK = b'"fio version"'
_SHOWN = 12


@dataclass(frozen=True)
class Refused:
    """A file of which nothing is used, and why."""

    file: str
    why: str


@dataclass(frozen=True)
class Recording:
    """What a directory holds: runs by load and depth, files refused, and the names of what
    does not look like fio's JSON and was left alone."""

    directory: Path
    runs: tuple[RecordedRun, ...]
    refused: tuple[Refused, ...]
    ignored: tuple[str, ...]


def read_directory(directory: Path) -> Recording:
    """Read every file right below `directory` that is named .json or begins as fio's JSON does.

    Files that cannot be read, that are not of the same drive and block size as most
    others, or that give one depth twice are refused, each with its reason.  Raises Misuse
    when there is nothing to read at all.
    """
    files, ignored = _listing(directory)
    runs: list[RecordedRun] = []
    refused: list[Refused] = []
    for path in files:
        try:
            runs.append(recorded_run(plain(path.name), read_output(_text(path))))
        except Unusable as error:
            refused.append(Refused(plain(path.name), str(error)))
    for check in (_one_drive, _one_block_size, _one_file_a_depth):
        unfit = check(runs)
        refused += unfit
        names = {each.file for each in unfit}
        runs = [run for run in runs if run.file not in names]
    runs.sort(key=lambda run: (run.asked.rw, run.offered_depth, run.file))
    return Recording(
        directory, tuple(runs), tuple(sorted(refused, key=lambda each: each.file)), ignored
    )


def _listing(directory: Path) -> tuple[list[Path], tuple[str, ...]]:
    """(files to read, names of everything else)."""
    shown = plain(str(directory))
    try:
        entries = sorted(directory.iterdir())
    except NotADirectoryError:
        raise Misuse(f"{shown}: a file; name the directory of the sweep that it is from") from None
    except OSError as error:
        raise Misuse(f"{shown}: {error.strerror}; name a directory with fio's JSON files") from None
    files = [path for path in entries if path.is_file() and _is_fio_json(path)]
    if not files:
        raise Misuse(f"{shown}: {_no_files(entries)}")
    rest = [path for path in entries if path not in set(files)]
    return files, tuple(plain(path.name) + "/" * path.is_dir() for path in rest)


def _is_fio_json(path: Path) -> bool:
    if path.suffix.lower() == ".json":
        return True
    try:
        with path.open("rb") as file:
            return _MARK in file.read(_LOOKED_AT)
    except OSError:
        return False  # it is listed as left alone


def _no_files(entries: Sequence[Path]) -> str:
    below = [path for path in entries if path.is_dir()]
    if below:
        named = "\n".join(f"  leadline judge {plain(str(path))}" for path in below[:_SHOWN])
        more = f"\n  and {len(below) - _SHOWN} more" if len(below) > _SHOWN else ""
        return (
            "no file of fio's in it, only directories; a sweep is one directory, so judge "
            f"them one by one:\n{named}{more}"
        )
    return (
        "no file of fio's in it; write its results there, one file a depth, with "
        "--output-format=json --output=NAME.json"
    )


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise Unusable(f"it cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_FILE:
        raise Unusable(f"it is larger than {LARGEST_FILE >> 20} MiB, and a run's results are not")
    return content.decode("utf-8", "replace")


def _one_drive(runs: Sequence[RecordedRun]) -> list[Refused]:
    return _odd_ones(
        runs, lambda run: run.asked.target or "no device named", "devices", "one drive"
    )


def _one_block_size(runs: Sequence[RecordedRun]) -> list[Refused]:
    found = []
    for rw in sorted({run.asked.rw for run in runs}):
        same = [run for run in runs if run.asked.rw == rw]
        found += _odd_ones(same, _size, f"block sizes of {rw}", "one block size")
    return found


def _size(run: RecordedRun) -> str:
    return "mixed sizes" if run.asked.block_bytes is None else f"{run.asked.block_bytes} bytes"


def _odd_ones(
    runs: Sequence[RecordedRun], key: Callable[[RecordedRun], str], what: str, wanted: str
) -> list[Refused]:
    """Those that differ from more than half of `runs`; all of them when no half agrees."""
    counts = Counter(key(run) for run in runs)
    if len(counts) < 2:
        return []
    common, times = counts.most_common(1)[0]
    others = f"{times} of {len(runs)} files have {common}"
    if 2 * times <= len(runs):
        others = f"the files have {_listed(counts)}, none of them most"
        common = ""
    return [
        Refused(
            run.file,
            f"a mixture of {what}: it has {key(run)}, and {others}; keep {wanted} a directory",
        )
        for run in runs
        if key(run) != common
    ]


def _one_file_a_depth(runs: Sequence[RecordedRun]) -> list[Refused]:
    """Every file of a depth that more than one has: to choose between them would be a guess."""
    found = []
    for run in runs:
        same = [
            other
            for other in runs
            if other is not run
            and (other.asked.rw, other.offered_depth) == (run.asked.rw, run.offered_depth)
        ]
        if same:
            asked = f"iodepth {run.asked.depth}, {run.jobs} job(s), {run.asked.engine}"
            found.append(
                Refused(
                    run.file,
                    f"a duplicated depth: it offers {run.asked.rw} at depth {run.offered_depth} "
                    f"({asked}), and so does {_listed(other.file for other in same)}; keep one",
                )
            )
    return found


def _listed(names: Iterable[str]) -> str:
    each = list(names)
    more = f" and {len(each) - _SHOWN} more" if len(each) > _SHOWN else ""
    return ", ".join(each[:_SHOWN]) + more
