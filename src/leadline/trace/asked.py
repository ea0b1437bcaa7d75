"""What `leadline trace replay` asks of the run that it starts, and what that answers: two files."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from leadline.trace.gain import FEWEST_ROUNDS
from leadline.trace.header import MOST_IN_FLIGHT
from leadline.trace.replay_job import Timing
from leadline.trace.rounds import ReplayedTrace


class Asked(BaseModel):
    """Which traces to replay, how, how often, and where the answer goes.

    `requests` bounds how many of each trace, `in_flight` stands for what the header says.
    """

    model_config = ConfigDict(frozen=True)

    traces: tuple[Path, ...]
    rounds: Annotated[int, Field(ge=FEWEST_ROUNDS)]
    timing: Timing
    requests: Annotated[int, Field(ge=1)] | None
    in_flight: Annotated[int, Field(ge=1, le=MOST_IN_FLIGHT)] | None
    answer: Path


class Answer(BaseModel):
    """What was replayed on which drive; `depth` is the device queue depth with NCQ on, None for a
    drive without it."""

    model_config = ConfigDict(frozen=True)

    drive: str
    depth: int | None
    wrote: bool
    traces: tuple[ReplayedTrace, ...]
