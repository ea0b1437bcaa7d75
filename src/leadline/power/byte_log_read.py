"""Read byte logs that are there: of a run, or a file by its name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from leadline.drive.text import plain
from leadline.errors import Misuse
from leadline.power.byte_log import SUFFIXES, folder_of_commands, folder_of_run
from leadline.power.byte_log_line import OPENED, parse
from leadline.run_id import RUN_ID

SHOWN_RUNS = 10
LARGEST = 64 * 1024 * 1024  # eight times what one of ours grows to


@dataclass(frozen=True)
class Entry:
    """One line of a log, and whose it is.  `kind` is one of `byte_log_line`'s."""

    at: datetime
    pdu: str
    port: str
    kind: str
    data: bytes
    session: Mapping[str, str]


@dataclass(frozen=True)
class Reading:
    """What the logs of one run, or one file, hold: `entries` in the order of time.

    `unreadable` counts what are no lines of a byte log.
    """

    source: Path
    run: str | None
    entries: Sequence[Entry]
    unreadable: int

    @property
    def pdus(self) -> list[str]:
        """The names of the PDUs that are in it."""
        return sorted({entry.pdu for entry in self.entries})


@dataclass
class _Files:
    """Reads files one after the other."""

    entries: list[Entry] = field(default_factory=list)
    unreadable: int = 0

    def read(self, path: Path) -> None:
        """Raises Misuse for what cannot be a byte log."""
        try:
            if not path.is_file() or path.stat().st_size > LARGEST:
                raise Misuse(f"{path}: it is no byte log: no file, or larger than any of them")
            with path.open(encoding="latin-1", newline="\n") as file:
                self._lines(path, file)
        except OSError as error:
            raise Misuse(f"{path}: it cannot be read: {error.strerror}") from error

    def _lines(self, path: Path, lines: Iterator[str]) -> None:
        pdu, port = path.name.partition(".log")[0], ""
        for text in lines:
            if not text.strip():
                continue
            line = parse(text.rstrip("\n"))
            if line is None:
                self.unreadable += 1
                continue
            if line.kind == OPENED:
                pdu, port = line.session.get("pdu", pdu), line.session.get("port", "")
            self.entries.append(
                Entry(line.at, plain(pdu), plain(port), line.kind, line.data, line.session)
            )


def read_log(results: Path, name: str | None) -> Reading:
    """The logs of the run `name`, of the file or folder `name`, or of the last run.

    Runs are looked for in `results` and among those of `leadline power`.  Raises Misuse where
    there is none, and names those that there are.
    """
    runs = _runs(results)
    run = max(runs, key=lambda run: _age(run, runs[run]), default=None) if name is None else name
    source = runs.get(run or "")
    if source is None and name is not None and _is_there(Path(name)):
        source, run = Path(name), None
    if source is None:
        found = "there is no byte log yet" if name is None else f"found no run or file {name!r}"
        raise Misuse(f"{found}; {_runs_there_are(results, runs)}")
    files = _Files()
    for path in _paths(source) if source.is_dir() else [source]:
        files.read(path)
    if not files.entries:
        raise Misuse(f"{source}: it holds no byte log; {_runs_there_are(results, runs)}")
    return Reading(source, run, sorted(files.entries, key=lambda entry: entry.at), files.unreadable)


def _runs(results: Path) -> dict[str, Path]:
    """Every run that has byte logs, by its id."""
    parents = (folder_of_commands(), folder_of_run(results, "x").parent)
    return {
        folder.name: folder
        for parent in parents
        for folder in _in(parent)
        if RUN_ID.fullmatch(folder.name) and folder.is_dir()
    }


def _in(parent: Path) -> list[Path]:
    try:
        return list(parent.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise Misuse(f"{parent}: it cannot be read: {error.strerror}") from error


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # of a name that is too long, or in a folder of another user
        return False


def _age(run: str, folder: Path) -> tuple[str, int]:
    """What sorts runs by time: their ids do by the second, and within one their folders."""
    return run.rpartition("-")[0], folder.stat().st_mtime_ns


def _paths(folder: Path) -> list[Path]:
    """Its logs; of each the older part first."""
    return [path for suffix in SUFFIXES for path in sorted(folder.glob(f"*{suffix}"))]


def _runs_there_are(results: Path, runs: Mapping[str, Path]) -> str:
    if not runs:
        return (
            f"runs leave theirs in the directory of their results (here {results}, or --results "
            f"DIR), leadline power in {folder_of_commands()}"
        )
    last = sorted(runs, reverse=True)[:SHOWN_RUNS]
    more = f", and {len(runs) - len(last)} older ones" if len(runs) > len(last) else ""
    return f"there are: {', '.join(map(plain, last))}{more}"
