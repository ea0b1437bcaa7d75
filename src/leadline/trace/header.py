"""What a trace file's header says: what the trace is of, where and when it was made."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from leadline.drive.text import plain
from leadline.errors import Misuse

SUFFIX = ".iolog.gz"
HEADER_SUFFIX = ".json"
MOST_IN_FLIGHT = 256
_LONGEST = 1 << 20  # bytes of a header


class Header(BaseModel):
    """The header of a trace, a JSON file beside it.

    `capacity_bytes` is that of the drive which the trace is of, `block_bytes` what its offsets
    and lengths are multiples of, `in_flight` how many requests its programs had in flight at
    most: what is offered when it is replayed as fast as possible.  `seed` and `streams` are of
    generated traces alone.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["leadline trace 1"] = "leadline trace 1"
    what: str
    where: str
    when: datetime
    made: Literal["generated", "recorded"]
    generator: str
    capacity_bytes: Annotated[int, Field(gt=0, lt=1 << 63)]
    block_bytes: Annotated[int, Field(gt=0, le=1 << 20)] = 512
    in_flight: Annotated[int, Field(ge=1, le=MOST_IN_FLIGHT)]
    requests: Annotated[int, Field(gt=0)]
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    seed: int | None = None
    streams: tuple[dict[str, Any], ...] = ()


def name_of(path: Path) -> str:
    """The name of the trace in a file.  Raises Misuse where the file has no trace's name."""
    if not path.name.endswith(SUFFIX) or path.name == SUFFIX:
        raise Misuse(f"{plain(str(path))}: a trace is named NAME{SUFFIX}, its header NAME.json")
    return path.name.removesuffix(SUFFIX)


def header_path(path: Path) -> Path:
    """Where the header of the trace in `path` is."""
    return path.with_name(name_of(path) + HEADER_SUFFIX)


def read_header(path: Path) -> Header:
    """The header of the trace in `path`.  Raises Misuse that says what is wrong with it."""
    beside = header_path(path)
    shown = plain(str(beside))
    try:
        with beside.open("rb") as file:
            text = file.read(_LONGEST)
    except OSError as error:
        raise Misuse(
            f"{shown}: {error.strerror}; the header says what {plain(path.name)} is of, and "
            "without it nothing is replayed: copy it with the trace"
        ) from error
    try:
        return Header.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise Misuse(
            f"{shown}: {plain(field)}: {plain(first['msg'])}; this is no header of a trace: "
            "copy the one that was made with it"
        ) from None
