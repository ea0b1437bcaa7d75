"""A row of runs on one kind of drive, kept in a folder so that a row of hours can be gone on with.

`runs.jsonl` has a line for each run that ended, beside the results that all of them share.
"""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from leadline.errors import Misuse

RUN_LIMIT_S = 1200.0
"""Of one run on one drive; a run on two may take twice as long."""
ACCEPTANCE, SOAK = "acceptance", "soak"
RUNS, RESULTS = "runs.jsonl", "results"


@dataclass(frozen=True)
class Once:
    """One run: seconds, its exit code, how many tests ended how, and every alarm in words.

    `limit_s` is what it may take; None where that is not limited.
    """

    seconds: float
    code: int
    counted: Mapping[str, int]
    alarms: tuple[str, ...]
    purpose: str = ACCEPTANCE
    limit_s: float | None = RUN_LIMIT_S

    @property
    def is_right(self) -> bool:
        """Whether nothing but passes came of it, in time."""
        in_time = self.limit_s is None or self.seconds <= self.limit_s
        return self.code == 0 and not self.alarms and in_time

    def figures(self) -> dict[str, object]:
        """The run in a line of JSON."""
        return {
            "purpose": self.purpose,
            "exit_code": self.code,
            "outcomes": dict(self.counted),
            "minutes": round(self.seconds / 60, 1),
            "limit_minutes": self.limit_s and round(self.limit_s / 60, 1),
            "false_alarms": list(self.alarms),
        }


@dataclass(frozen=True)
class Kept:
    """One run of a row: of which tests it was (pytest's -k), and of which state of Leadline."""

    expression: str
    leadline: str
    run: Once


_LINE = TypeAdapter(Kept)


def load(folder: Path, expression: str) -> list[Kept]:
    """The runs that a row has so far, in order; none where it is to be begun.

    Raises Misuse, by file and line, for what is no run, or one of other tests than `expression`.
    """
    path = folder / RUNS
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Misuse(f"{path}: {error.strerror}; --row takes a folder of its own") from None
    return [_read(f"{path}, line {n}", line, expression) for n, line in enumerate(lines, 1)]


def _read(where: str, line: bytes, expression: str) -> Kept:
    try:
        kept = _LINE.validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise Misuse(
            f"{where}{field and ': ' + field}: {first['msg']}; remove the line, and that run is "
            "made again"
        ) from None
    if kept.expression != expression:
        raise Misuse(
            f"{where}: a run of -k {kept.expression!r} in a row of -k {expression!r}; give the "
            "same, or another folder"
        )
    return kept


def append(folder: Path, kept: Kept) -> None:
    """Put one more run on record."""
    with (folder / RUNS).open("ab") as file:
        file.write(_LINE.dump_json(kept) + b"\n")


def state_of_leadline() -> str:
    """The commit that is run, `-dirty` where files differ from it; "" where git knows none."""
    argv = [
        "git",
        "-C",
        str(Path(__file__).parent),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
    ]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def states(row: Sequence[Kept]) -> list[str]:
    """The states of Leadline that the runs of a row are of, in order: one, where it is one row."""
    return list(dict.fromkeys(each.leadline for each in row))
