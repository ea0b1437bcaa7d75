"""The log of a load's intents, on the steering machine: it outlives the rig and its host.

First stands what is intended, as one JSON object: the plan, from which every request can be
computed, and the drive.  It is on the medium before the first request is sent.  Then come the
events of the load as they reach us (`account`), each before it counts, and remarks that begin
with `#`.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from leadline.errors import RigTrouble
from leadline.integrity.account import Account
from leadline.integrity.plan import Plan

REMARK = "#"


class IntentLog:
    """One load's log; a context manager.  RigTrouble when it cannot be written."""

    def __init__(self, path: Path, plan: Plan, facts: Mapping[str, object]) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("x", encoding="ascii")
        except OSError as error:
            raise self._trouble(error) from error
        self._write(json.dumps({"plan": plan._asdict(), **facts}) + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def keep(self, lines: Sequence[str]) -> None:
        """Events that have just arrived."""
        if lines:
            self._write("".join(f"{ascii(line)[1:-1]}\n" for line in lines))

    def remark(self, text: str) -> None:
        """Something that happened here, with its time."""
        self._write(f"{REMARK} {time.time():.3f} {ascii(text)[1:-1]}\n")

    def sync(self) -> None:
        """On the medium when this returns."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._trouble(error) from error

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            raise self._trouble(error) from error

    def _trouble(self, error: OSError) -> RigTrouble:
        return RigTrouble(
            f"{self.path}: what is about to be written to the drive cannot be put on record "
            f"({error.strerror or error}); free some space or name another directory with --results"
        )


def account_of(path: Path) -> Account:
    """What a load did by its log alone; raises as `Account.take` does."""
    lines = _lines(path)
    account = Account(Plan(**json.loads(next(lines))["plan"]))
    for line in lines:
        if not line.startswith(REMARK):
            account.take(line)
    return account


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="ascii") as file:
        for line in file:
            if line.endswith("\n"):  # else it was cut short, and never counted
                yield line[:-1]
